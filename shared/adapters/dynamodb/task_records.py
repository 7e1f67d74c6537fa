"""Heads, checkpoints and the one commit, on DynamoDB."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeAlias

from shared.adapters.dynamodb.checkpoints import checkpoint_key, read_checkpoint
from shared.adapters.dynamodb.errors import Cancelled, NoAnswer
from shared.adapters.dynamodb.heads import head_key, read_head
from shared.adapters.dynamodb.items import Item, read_number, read_text
from shared.adapters.dynamodb.store_calls import Patience, StoreCalls
from shared.adapters.dynamodb.task_lists import overdue_query, page_query, read_overdue, read_page
from shared.adapters.dynamodb.transaction import (
    Part,
    Quarantine,
    TaskTables,
    Write,
    named,
    writes_of,
    writes_of_quarantine,
    writes_of_reminder,
)
from shared.domain.canonical import short_digest
from shared.domain.errors import (
    ActionInFlight,
    DependencyTimeout,
    DuplicateEvent,
    EngineError,
    InvariantBroken,
    LeaseLost,
    StaleVersion,
    WaitSettled,
)
from shared.domain.identity import TaskKey
from shared.domain.instants import format_instant
from shared.domain.outbox import Message
from shared.domain.seal import SealedCheckpoint
from shared.domain.status import TERMINAL
from shared.domain.wait import Wait
from shared.ports.task_records import Commit, Head, QueuePage, Stored

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

# One failed condition: what the item was for, and what stood in the way.
Failed: TypeAlias = tuple[Part, Item | None]

# What a failed condition means, the most telling first. The rest of the parts are judged by the head read again.
_MEANING: Final[tuple[tuple[Part, type[EngineError], str], ...]] = (
    (Part.EVENT, DuplicateEvent, "the event was accepted before"),
    (Part.HEAD, StaleVersion, "another commit came first"),
    (Part.SETTLED, WaitSettled, "the wait is no longer open"),
    (Part.LEASE, LeaseLost, "the lease moved on"),
)


class DynamoTaskRecords:
    """The task's records."""

    def __init__(self, client: "DynamoDBClient", tables: TaskTables, patience: Patience | None = None) -> None:
        self._calls = StoreCalls(client, patience)
        self._tables = tables

    def load(self, key: TaskKey, *, version_hint: int | None = None) -> Stored | None:
        """See `TaskRecords.load`.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience.
        """
        head, checkpoint = self._read(key, version_hint)
        if head is None:
            return None
        if checkpoint is None or checkpoint.version != head.version:
            # The two reads of one batch are not one moment: the checkpoint may have been written in between.
            item = self._calls.get(self._checkpoints, checkpoint_key(key, head.version))
            checkpoint = None if item is None else read_checkpoint(item)
        return Stored(head=head, checkpoint=checkpoint)

    def commit(self, commit: Commit) -> None:
        """See `TaskRecords.commit`.

        Raises:
            DependencyTimeout: no answer, and the store could not be asked what came of it, or knows nothing of it yet.
        """
        self._write(commit, writes_of(commit, self._tables))

    def release(self, commit: Commit, *, quarantine: str) -> None:
        """See `TaskRecords.release`.

        Raises:
            DependencyTimeout: no answer, and the store could not be asked what came of it, or knows nothing of it yet.
        """
        self._write(commit, writes_of(commit, self._tables, lifts=quarantine))

    def has_ended(self, key: TaskKey) -> bool:
        """See `TaskRecords.has_ended`.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience.
        """
        head = self._head(key)
        return head is not None and head.quarantine is None and head.columns.get("status") in TERMINAL

    def checkpoint(self, key: TaskKey, version: int) -> SealedCheckpoint | None:
        """See `TaskRecords.checkpoint`.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience.
        """
        item = self._calls.get(self._checkpoints, checkpoint_key(key, version))
        return None if item is None else read_checkpoint(item)

    def _write(self, commit: Commit, writes: Sequence[Write]) -> None:
        try:
            self._calls.transact([write.request for write in writes], token=commit.attempt_id)
        except Cancelled as cancelled:
            failed = [(writes[position].part, old) for position, old in cancelled.failed.items()]
            if _holds_ours(commit, failed) or (cancelled.in_doubt and self._is_stored(commit)):
                return
            raise self._meaning(commit, failed) from cancelled
        except NoAnswer as lost:
            if not self._is_stored(commit):
                raise DependencyTimeout("no answer to a commit, and no trace of it yet") from lost

    def quarantine(
        self,
        key: TaskKey,
        *,
        version: int,
        reason: str,
        review: Wait,
        messages: tuple[Message, ...],
        now: datetime,
        remind_at: datetime,
    ) -> None:
        """See `TaskRecords.quarantine`.

        Raises:
            InvariantBroken: the review wait exists and the head knows nothing of it.
            Throttled, DependencyTimeout: no answer within our patience; quarantining again is safe.
        """
        quarantine = Quarantine(
            key=key,
            version=version,
            reason=reason,
            review=review,
            messages=messages,
            now=now,
            remind_at=remind_at,
        )
        writes: tuple[Write, ...] = writes_of_quarantine(quarantine, self._tables)
        token = short_digest("quarantine", [key.key, version, reason, review.wait_id, review.opened_at.isoformat()])
        try:
            self._calls.transact([write.request for write in writes], token=token)
        except Cancelled as cancelled:
            head = self._head(key)
            if head is None or head.version != version:
                msg = f"{key.task_id} is no longer at version {version}"
                raise StaleVersion(msg) from cancelled
            if head.quarantine is None:
                raise InvariantBroken("the review of a quarantine exists, the quarantine does not") from cancelled
        except NoAnswer as lost:
            raise DependencyTimeout("no answer to a quarantine") from lost

    def remind_of_quarantine(
        self, head: Head, *, messages: tuple[Message, ...], now: datetime, remind_at: datetime
    ) -> bool:
        """See `TaskRecords.remind_of_quarantine`.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience; reminding again is safe.
        """
        writes = writes_of_reminder(head, messages, self._tables, now=now, remind_at=remind_at)
        token = short_digest("reminder", [head.key.key, head.version, format_instant(now)])
        try:
            self._calls.transact([write.request for write in writes], token=token)
        except Cancelled as cancelled:
            if any(writes[position].part is Part.HEAD for position in cancelled.failed):
                msg = f"{head.key.task_id} is not quarantined as it was seen"
                raise StaleVersion(msg) from cancelled
            return False
        except NoAnswer as lost:
            raise DependencyTimeout("no answer to a reminder") from lost
        return True

    def overdue(self, shard: str, *, before: datetime, limit: int) -> tuple[TaskKey, ...]:
        """See `TaskRecords.overdue`.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience.
        """
        items = self._calls.query(**overdue_query(self._tables.heads, shard, before=before, limit=limit))
        return tuple(read_overdue(item) for item in items)

    def queue(self, tenant: str, status: str, *, limit: int, cursor: str | None = None) -> QueuePage:
        """See `TaskRecords.queue`.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience.
        """
        query = page_query(self._tables.heads, tenant, status, limit=limit, cursor=cursor)
        return read_page(self._calls.query(**query), tenant, status, limit=limit)

    @property
    def _checkpoints(self) -> str:
        return named(self._tables.checkpoints, "checkpoints")

    def _read(self, key: TaskKey, version_hint: int | None) -> tuple[Head | None, SealedCheckpoint | None]:
        if version_hint is None:
            return self._head(key), None
        found = self._calls.batch_get(
            {
                self._tables.heads: [head_key(key)],
                self._checkpoints: [checkpoint_key(key, version_hint)],
            }
        )
        heads, checkpoints = found[self._tables.heads], found[self._checkpoints]
        return (
            read_head(key, heads[0]) if heads else None,
            read_checkpoint(checkpoints[0]) if checkpoints else None,
        )

    def _head(self, key: TaskKey) -> Head | None:
        item = self._calls.get(self._tables.heads, head_key(key))
        return None if item is None else read_head(key, item)

    def _is_stored(self, commit: Commit) -> bool:
        """Say whether this very attempt's checkpoint is there, whoever came after it (B11)."""
        item = self._calls.get(self._checkpoints, checkpoint_key(commit.key, commit.checkpoint.version))
        return item is not None and read_text(item, "attempt") == commit.attempt_id

    def _meaning(self, commit: Commit, failed: Sequence[Failed]) -> EngineError:
        parts = {part for part, _ in failed}
        for part, error, message in _MEANING:
            if part in parts:
                return error(message)
        if any(part is Part.WITHDRAWN and old is not None for part, old in failed):
            return ActionInFlight("the action is no longer a mere intent")
        head = self._head(commit.key)
        if (head.version if head else None) != commit.previous:
            return StaleVersion("another commit came first")
        msg = f"something is stored that the head does not know of, or missing: {', '.join(sorted(parts))}"
        return InvariantBroken(msg)


def _holds_ours(commit: Commit, failed: Sequence[Failed]) -> bool:
    """Say whether what stood in the way is this very attempt's own work (B11)."""
    return any(
        part in {Part.HEAD, Part.CHECKPOINT}
        and old is not None
        and read_text(old, "attempt") == commit.attempt_id
        and read_number(old, "version") == commit.checkpoint.version
        for part, old in failed
    )
