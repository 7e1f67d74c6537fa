"""A process for measuring: the product's own adapters on DynamoDB Local, everything else in memory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from shared.domain.identity import TaskKey
from shared.domain.outbox import OutboxRow
from shared.ports.outbox import Outbox
from shared.ports.task_records import Commit, QueuePage, Stored, TaskRecords
from tests.contract.stores import Stores
from tests.fakes.calls import Calls
from tests.fakes.process import Process
from tests.fakes.store import World

if TYPE_CHECKING:
    from shared.domain.outbox import Message
    from shared.domain.wait import Wait


class _Streamed:
    """The real records, with the stream played into the world's outbox."""

    def __init__(self, real: TaskRecords, world: World) -> None:
        self._real = real
        self._world = world

    def load(self, key: TaskKey, *, version_hint: int | None = None) -> Stored | None:
        return self._real.load(key, version_hint=version_hint)

    def commit(self, commit: Commit) -> None:
        self._real.commit(commit)
        row = OutboxRow(key=commit.key, version=commit.checkpoint.version, messages=commit.messages)
        if row.messages:
            self._world.outbox[row.key.key, row.version, row.part] = row

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
        self._real.quarantine(
            key, version=version, reason=reason, review=review, messages=messages, now=now, remind_at=remind_at
        )

    def overdue(self, shard: str, *, before: datetime, limit: int) -> tuple[TaskKey, ...]:
        return self._real.overdue(shard, before=before, limit=limit)

    def queue(self, tenant: str, status: str, *, limit: int, cursor: str | None = None) -> QueuePage:
        return self._real.queue(tenant, status, limit=limit, cursor=cursor)


class _Drained:
    """The real outbox; a removed row leaves the world's as well."""

    def __init__(self, real: Outbox, world: World) -> None:
        self._real = real
        self._world = world

    def stale(self, *, before: datetime, limit: int) -> tuple[OutboxRow, ...]:
        return self._real.stale(before=before, limit=limit)

    def restage(self, row: OutboxRow, *, now: datetime) -> None:
        self._real.restage(row, now=now)

    def remove(self, row: OutboxRow) -> None:
        self._real.remove(row)
        self._world.outbox.pop((row.key.key, row.version, row.part), None)


def measured_process(stores: Stores) -> Callable[[World, Calls], Process]:
    """Return a factory of processes whose stores are the real adapters."""

    def make(world: World, calls: Calls) -> Process:
        process = Process(world, calls)
        process.records = _Streamed(stores.records, world)  # type: ignore[assignment]
        process.outbox = _Drained(stores.outbox, world)  # type: ignore[assignment]
        process.waits = stores.waits  # type: ignore[assignment]
        process.tokens = stores.tokens  # type: ignore[assignment]
        process.ledger = stores.ledger  # type: ignore[assignment]
        process.inbox = stores.inbox  # type: ignore[assignment]
        process.leases = stores.leases  # type: ignore[assignment]
        process.authority = stores.authority  # type: ignore[assignment]
        return process

    return make
