"""Heads, checkpoints and the one commit, in memory."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from shared.domain.action import ActionStatus
from shared.domain.checkpoint import shown_reason, watch_shard
from shared.domain.errors import (
    ActionInFlight,
    DuplicateEvent,
    InvalidRequest,
    InvariantBroken,
    LeaseLost,
    StaleVersion,
    WaitSettled,
)
from shared.domain.identity import TaskKey
from shared.domain.instants import format_instant
from shared.domain.outbox import Message, OutboxRow
from shared.domain.seal import SealedCheckpoint
from shared.domain.status import TERMINAL, Status
from shared.domain.wait import Wait, WaitStatus
from shared.ports.inbox import InboxRow
from shared.ports.task_records import Commit, Head, QueueEntry, QueuePage, Stored
from tests.fakes.calls import Calls
from tests.fakes.inbox import to_whole_second
from tests.fakes.store import World


class FakeTaskRecords:
    """Checks every condition of a commit before it changes anything; a changed mind changes nothing."""

    def __init__(self, world: World, calls: Calls | None = None) -> None:
        self._world = world
        self._calls = calls or Calls()

    def load(self, key: TaskKey, *, version_hint: int | None = None) -> Stored | None:
        with self._calls.around("task_records.load"), self._world as world:
            head = world.heads.get(key.key)
            if head is None:
                return None
            return Stored(head=head, checkpoint=world.checkpoints.get((key.key, head.version)))

    def commit(self, commit: Commit) -> None:
        with self._calls.around("task_records.commit"), self._world:
            _require_sound(commit)
            if self._is_ours(commit):
                return
            self._require_new_event(commit)
            for child in commit.children:
                self._require_beside(child, commit)
            self._require_writable(commit)
            for each in (commit, *commit.children):
                self._write(each)

    def _require_writable(self, commit: Commit) -> None:
        _require_next_version(commit, may_skip=False)
        self._require_current(commit)
        self._require_open_waits(commit)
        self._require_climbing_waits(commit)
        self._require_lease(commit)
        self._require_unsent(commit)
        self._require_unheard_of(commit)

    def _require_beside(self, child: Commit, commit: Commit) -> None:
        _require_sound(child)
        if child.key.tenant != commit.key.tenant or child.key == commit.key:
            raise InvariantBroken("a commit takes child tasks of its own tenant along")
        self._require_current(commit)
        if child.previous is None and child.key.key in self._world.heads:
            raise InvariantBroken("a child task is stored that the head does not know of")
        self._require_writable(child)

    def release(self, commit: Commit, *, quarantine: str) -> None:
        with self._calls.around("task_records.release"), self._world as world:
            _require_sound(commit)
            _require_next_version(commit, may_skip=True)
            if self._is_ours(commit):
                return
            head = world.heads.get(commit.key.key)
            if head is None or (head.version, head.quarantine) != (commit.previous, quarantine):
                raise StaleVersion("the task is not quarantined as it was seen")
            self._require_open_waits(commit)
            self._require_unsent(commit)
            self._require_unheard_of(commit)
            self._write(commit)

    def has_ended(self, key: TaskKey) -> bool:
        with self._calls.around("task_records.has_ended"), self._world as world:
            head = world.heads.get(key.key)
            return head is not None and head.quarantine is None and head.columns["status"] in TERMINAL

    def checkpoint(self, key: TaskKey, version: int) -> SealedCheckpoint | None:
        with self._calls.around("task_records.checkpoint"), self._world as world:
            return world.checkpoints.get((key.key, version))

    def remind_of_quarantine(
        self, head: Head, *, messages: tuple[Message, ...], now: datetime, remind_at: datetime
    ) -> bool:
        with self._calls.around("task_records.remind_of_quarantine"), self._world as world:
            stored = world.heads.get(head.key.key)
            if stored is None or (stored.version, stored.quarantine) != (head.version, head.quarantine):
                msg = f"{head.key.task_id} is not quarantined as it was seen"
                raise StaleVersion(msg)
            if (head.key.key, head.version, 1) in world.outbox:
                return False
            columns = stored.columns | {"check_at": format_instant(remind_at)}
            world.heads[head.key.key] = replace(stored, columns=columns)
            _stage(world, OutboxRow(key=head.key, version=head.version, part=1, messages=messages))
            return True

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
        with self._calls.around("task_records.quarantine"), self._world as world:
            head = world.heads.get(key.key)
            if head is None or head.version != version:
                msg = f"{key.task_id} is no longer at version {version}"
                raise StaleVersion(msg)
            if head.quarantine is not None:
                return
            where = (review.tenant, review.correlation_id)
            if where in world.waits:
                raise InvariantBroken("the review wait exists already")
            columns = head.columns | {
                "status": str(Status.QUARANTINED),
                "queue": f"{key.tenant}#{Status.QUARANTINED}",
                "since": f"{format_instant(now)}#{key.task_id}",
                "due_at": format_instant(review.deadline_at),
                "reason": shown_reason(reason),
                "watch": watch_shard(key.task_id),
                "check_at": format_instant(remind_at),
            }
            world.heads[key.key] = replace(head, columns=columns, quarantine=reason)
            world.waits[where] = review
            _stage(world, OutboxRow(key=key, version=version, part=1, messages=messages))

    def queue(self, tenant: str, status: str, *, limit: int, cursor: str | None = None) -> QueuePage:
        with self._calls.around("task_records.queue"), self._world as world:
            after = _position(cursor, tenant, status)
            wanted = f"{tenant}#{status}"
            lines = sorted(
                (str(head.columns["since"]), head) for head in world.index.values() if head.columns["queue"] == wanted
            )
            rest = [head for since, head in lines if since > after]
            page = rest[:limit]
            more = len(rest) > limit
            return QueuePage(
                entries=tuple(_entry(head, status) for head in page),
                cursor=f"{tenant}|{status}|{page[-1].columns['since']}" if more else None,
            )

    def overdue(self, shard: str, *, before: datetime, limit: int) -> tuple[TaskKey, ...]:
        with self._calls.around("task_records.overdue"), self._world as world:
            due = sorted(
                (str(head.columns["check_at"]), head.key.key, head.key)
                for head in world.index.values()
                if head.columns.get("watch") == shard and str(head.columns["check_at"]) <= format_instant(before)
            )
            return tuple(key for _, _, key in due[:limit])

    def _is_ours(self, commit: Commit) -> bool:
        return self._world.writers.get((commit.key.key, commit.checkpoint.version)) == commit.attempt_id

    def _require_new_event(self, commit: Commit) -> None:
        if commit.inbox is not None and _inbox_key(commit.inbox) in self._world.inbox:
            raise DuplicateEvent("the event was accepted before")

    def _require_current(self, commit: Commit) -> None:
        head = self._world.heads.get(commit.key.key)
        if (head.version if head else None) != commit.previous:
            raise StaleVersion("another commit came first")
        if head is not None and head.quarantine is not None:
            raise StaleVersion("the task was quarantined meanwhile")
        if head is not None and int(head.columns["run"]) > int(commit.columns["run"]):
            raise StaleVersion("a later run has taken the task over")

    def _require_open_waits(self, commit: Commit) -> None:
        for end in commit.settled:
            wait = self._world.waits.get((end.tenant, end.correlation_id))
            open_here = (
                wait is not None
                and wait.task_id == commit.key.task_id
                and wait.wait_id == end.wait_id
                and wait.status is WaitStatus.OPEN
            )
            if not open_here:
                raise WaitSettled("the wait is no longer open")

    def _require_climbing_waits(self, commit: Commit) -> None:
        for higher in commit.climbed:
            wait = self._world.waits.get((higher.tenant, higher.correlation_id))
            if wait is None or wait.model_copy(update={"rung": higher.rung}) != higher or wait.rung != higher.rung - 1:
                raise WaitSettled("the wait is no longer open at the rung below")
            if wait.status is not WaitStatus.OPEN:
                raise WaitSettled("the wait is no longer open")

    def _require_lease(self, commit: Commit) -> None:
        if commit.lease_fence is None:
            return
        lease = self._world.leases.get(commit.key.key)
        if lease is None or lease.fence != commit.lease_fence:
            raise LeaseLost("the lease moved on")

    def _require_unsent(self, commit: Commit) -> None:
        for operation in commit.withdrawn:
            row = self._world.actions.get((commit.key.key, operation))
            if row is None:
                raise InvariantBroken("an intent to withdraw does not exist")
            if row.status is not ActionStatus.INTENT:
                raise ActionInFlight("the action is no longer a mere intent")

    def _require_unheard_of(self, commit: Commit) -> None:
        world, task = self._world, commit.key.key
        known = (
            (task, commit.checkpoint.version) in world.checkpoints
            or any(_stands_in_the_way(world.waits.get((w.tenant, w.correlation_id)), w) for w in commit.opened)
            or any((task, row.operation) in world.actions for row in commit.intents)
            or (task, commit.checkpoint.version, 0) in world.outbox
        )
        if known:
            raise InvariantBroken("something is stored that the head does not know of")

    def _write(self, commit: Commit) -> None:
        world, task, version = self._world, commit.key.key, commit.checkpoint.version
        world.heads[task] = Head(
            key=commit.key, version=version, attempt_id=commit.attempt_id, columns=dict(commit.columns)
        )
        world.checkpoints[task, version] = commit.checkpoint
        world.writers[task, version] = commit.attempt_id
        if commit.inbox is not None:
            world.inbox[_inbox_key(commit.inbox)] = to_whole_second(commit.inbox)
        for wait in commit.opened:
            world.waits[wait.tenant, wait.correlation_id] = wait
        for end in commit.settled:
            where = (end.tenant, end.correlation_id)
            world.waits[where] = world.waits[where].model_copy(update={"status": end.status, "settled_at": commit.now})
        for wait in commit.climbed:
            world.waits[wait.tenant, wait.correlation_id] = wait
        for row in commit.intents:
            world.actions[task, row.operation] = row
        for operation in commit.withdrawn:
            void = {"status": ActionStatus.VOID, "settled_at": commit.now, "reason": "withdrawn", "lease_ends_at": None}
            world.actions[task, operation] = world.actions[task, operation].model_copy(update=void)
        if commit.lease_fence is not None:
            world.leases[task] = replace(world.leases[task], ends_at=commit.now)
        _stage(world, OutboxRow(key=commit.key, version=version, messages=commit.messages))


def _require_sound(commit: Commit) -> None:
    key = commit.key
    foreign = (
        any((w.tenant, w.task_id) != (key.tenant, key.task_id) for w in commit.opened)
        or any((w.tenant, w.task_id) != (key.tenant, key.task_id) for w in commit.climbed)
        or any(s.tenant != key.tenant for s in commit.settled)
        or any((a.tenant, a.task_id) != (key.tenant, key.task_id) for a in commit.intents)
        or (commit.inbox is not None and commit.inbox.tenant != key.tenant)
    )
    if foreign:
        raise InvariantBroken("a commit writes rows of its own task only")
    waits = [w.correlation_id for w in commit.opened] + [s.correlation_id for s in commit.settled]
    waits += [w.correlation_id for w in commit.climbed]
    operations = [a.operation for a in commit.intents] + list(commit.withdrawn)
    if _has_repeats(waits) or _has_repeats(operations):
        raise InvariantBroken("a commit writes a row once")


def _require_next_version(commit: Commit, *, may_skip: bool) -> None:
    version, following = commit.checkpoint.version, (commit.previous or 0) + 1
    follows = version >= following if may_skip else version == following
    if not follows or commit.columns.get("version") != version:
        raise InvariantBroken("the versions of a commit do not follow each other")


def _stands_in_the_way(stored: Wait | None, opened: Wait) -> bool:
    """A wait that is over makes room for the same task's next one for the same matter."""
    return stored is not None and (stored.task_id != opened.task_id or stored.status is WaitStatus.OPEN)


def _has_repeats(names: Iterable[str]) -> bool:
    listed = list(names)
    return len(set(listed)) != len(listed)


def _stage(world: World, row: OutboxRow) -> None:
    if row.messages:
        world.outbox[row.key.key, row.version, row.part] = row
        world.staged_at[row.key.key, row.version, row.part] = world.clock.now()


def _inbox_key(row: InboxRow) -> tuple[str, str, str]:
    return (row.tenant, row.source, row.event_id)


def _position(cursor: str | None, tenant: str, status: str) -> str:
    if cursor is None:
        return ""
    parts = cursor.split("|")
    if parts[:2] != [tenant, status] or len(parts) != len(("tenant", "status", "since")):
        raise InvalidRequest("the cursor is not one of this list")
    return parts[2]


def _entry(head: Head, status: str) -> QueueEntry:
    columns = head.columns
    due_at = columns.get("due_at")
    return QueueEntry(
        task_id=head.key.task_id,
        workflow=str(columns["workflow"]),
        status=status,
        stage=str(columns["stage"]),
        owner=str(columns["owner"]),
        since=str(columns["since"]).partition("#")[0],
        due_at=None if due_at is None else str(due_at),
        reason=None if (reason := columns.get("reason")) is None else str(reason),
    )
