"""One commit as one transaction: every item with its condition, each clause by name."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from shared.adapters.dynamodb.actions import action_item, action_key
from shared.adapters.dynamodb.checkpoints import checkpoint_item
from shared.adapters.dynamodb.heads import head_item, head_key
from shared.adapters.dynamodb.inbox import inbox_item
from shared.adapters.dynamodb.items import Item, instant, number, text
from shared.adapters.dynamodb.outbox import outbox_item
from shared.adapters.dynamodb.waits import wait_item, wait_key
from shared.domain.action import ActionRow, ActionStatus
from shared.domain.checkpoint import shown_reason, watch_shard
from shared.domain.errors import InvariantBroken
from shared.domain.identity import TaskKey
from shared.domain.instants import format_instant
from shared.domain.outbox import Message, OutboxRow
from shared.domain.status import Status
from shared.domain.wait import Wait, WaitSettlement, WaitStatus
from shared.ports.task_records import Commit, Head


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTables:
    """The tables of a task's records. A function that never writes a kind of row does not know its table."""

    heads: str
    checkpoints: str | None = None
    waits: str | None = None
    actions: str | None = None
    inbox: str | None = None
    outbox: str | None = None
    leases: str | None = None


class Part(StrEnum):
    """What one item of the transaction is for; it says what its failed condition means."""

    HEAD = "head"
    CHECKPOINT = "checkpoint"
    EVENT = "event"
    OPENED = "opened wait"
    SETTLED = "settled wait"
    INTENT = "intent"
    WITHDRAWN = "withdrawn intent"
    LEASE = "lease"
    CHILD = "child task"
    MESSAGES = "messages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One item of a transaction."""

    part: Part
    request: dict[str, Any]


def writes_of(commit: Commit, tables: TaskTables, *, lifts: str | None = None) -> tuple[Write, ...]:
    """Return everything that a commit writes, the head first.

    Args:
        lifts: the reason of the quarantine that a release takes the task out of; any other commit lifts none.

    Raises:
        InvariantBroken: the commit speaks of another task, skips a version, or writes a row twice.
    """
    _require_own_rows(commit)
    _require_next_version(commit, may_skip=lifts is not None)
    writes = (
        _head(commit, tables.heads) if lifts is None else _released_head(commit, tables.heads, lifts),
        _put(Part.CHECKPOINT, named(tables.checkpoints, "checkpoints"), checkpoint_item(commit), unless_exists="task"),
        *_event(commit, tables),
        *(_opened(wait, tables) for wait in commit.opened),
        *(_settle(end, commit, named(tables.waits, "waits")) for end in commit.settled),
        *(_climb(wait, named(tables.waits, "waits")) for wait in commit.climbed),
        *(_intent(row, named(tables.actions, "actions")) for row in commit.intents),
        *(_withdraw(operation, commit, named(tables.actions, "actions")) for operation in commit.withdrawn),
        *_release(commit, tables),
        *_staged(
            OutboxRow(key=commit.key, version=commit.checkpoint.version, messages=commit.messages), tables, commit.now
        ),
    )
    _require_once(writes)
    return (*writes, *(write for child in commit.children for write in _beside(child, commit, tables)))


def _beside(child: Commit, commit: Commit, tables: TaskTables) -> Iterator[Write]:
    """What is written of a child task in the same transaction: as in a commit of its own."""
    if child.key.tenant != commit.key.tenant or child.key == commit.key:
        raise InvariantBroken("a commit takes child tasks of its own tenant along")
    for write in writes_of(child, tables):
        # One that stands in the way of a new child is nothing that a commit which came first explains.
        yield write if child.previous is not None else replace(write, part=Part.CHILD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """What a quarantine writes: the mark on the head, the review that a person owes, and the alarm."""

    key: TaskKey
    version: int
    reason: str
    review: Wait
    messages: tuple[Message, ...]
    now: datetime
    remind_at: datetime


def writes_of_quarantine(quarantine: Quarantine, tables: TaskTables) -> tuple[Write, ...]:
    """Return everything that a quarantine writes, the head first. No checkpoint is among it."""
    key, review = quarantine.key, quarantine.review
    row = OutboxRow(key=key, version=quarantine.version, part=1, messages=quarantine.messages)
    return (_mark(quarantine, tables.heads), _opened(review, tables), *_staged(row, tables, quarantine.now))


def writes_of_reminder(
    head: Head, messages: tuple[Message, ...], tables: TaskTables, *, now: datetime, remind_at: datetime
) -> tuple[Write, ...]:
    """Return what another alarm about a quarantined task writes, the head first."""
    as_seen = "version = :version"
    distrusted = "quarantine = :quarantine"
    again = _write(
        Part.HEAD,
        "Update",
        tables.heads,
        Key=head_key(head.key),
        UpdateExpression="SET check_at = :remind_at",
        ConditionExpression=f"{as_seen} AND {distrusted}",
        ExpressionAttributeValues={
            ":version": number(head.version),
            ":quarantine": text(head.quarantine or ""),
            ":remind_at": instant(remind_at),
        },
    )
    row = OutboxRow(key=head.key, version=head.version, part=1, messages=messages)
    return (again, *_staged(row, tables, now))


def _opened(wait: Wait, tables: TaskTables) -> Write:
    first_time = "attribute_not_exists(correlation)"
    # What the outside knows a matter by stays the same when the same task waits for it once more.
    over = "task_id = :task_id AND #status <> :open"
    return _write(
        Part.OPENED,
        "Put",
        named(tables.waits, "waits"),
        Item=wait_item(wait),
        ConditionExpression=f"{first_time} OR ({over})",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={":task_id": text(wait.task_id), ":open": text(WaitStatus.OPEN)},
    )


def _staged(row: OutboxRow, tables: TaskTables, now: datetime) -> Iterator[Write]:
    if row.messages:
        yield _put(Part.MESSAGES, named(tables.outbox, "outbox"), outbox_item(row, staged_at=now), unless_exists="task")


def _mark(quarantine: Quarantine, table: str) -> Write:
    key, status = quarantine.key, Status.QUARANTINED
    this_version = "version = :version"
    not_yet = "attribute_not_exists(quarantine)"
    return _write(
        Part.HEAD,
        "Update",
        table,
        Key=head_key(key),
        UpdateExpression="SET quarantine = :reason, reason = :shown, #status = :status, #queue = :queue, "
        # The sweep does nothing on it but remind people, a closed task's included.
        "since = :since, due_at = :due_at, watch = :watch, check_at = :remind_at",
        ConditionExpression=f"{this_version} AND {not_yet}",
        ExpressionAttributeNames={"#status": "status", "#queue": "queue"},
        ExpressionAttributeValues={
            ":version": number(quarantine.version),
            ":reason": text(quarantine.reason),
            ":shown": text(shown_reason(quarantine.reason)),
            ":status": text(status),
            ":queue": text(f"{key.tenant}#{status}"),
            ":since": text(f"{format_instant(quarantine.now)}#{key.task_id}"),
            ":due_at": instant(quarantine.review.deadline_at),
            ":watch": text(watch_shard(key.task_id)),
            ":remind_at": instant(quarantine.remind_at),
        },
    )


def _head(commit: Commit, table: str) -> Write:
    if commit.previous is None:
        return _put(Part.HEAD, table, head_item(commit), unless_exists="task")
    follows = "version = :previous"
    # A run never gives a task back to an older one.
    not_older = "#run <= :run"
    # Whoever commits has not seen the quarantine: it is lifted by nothing that rests on the distrusted record.
    trusted = "attribute_not_exists(quarantine)"
    return _write(
        Part.HEAD,
        "Put",
        table,
        Item=head_item(commit),
        ConditionExpression=f"{follows} AND {not_older} AND {trusted}",
        ExpressionAttributeNames={"#run": "run"},
        ExpressionAttributeValues={":previous": number(commit.previous), ":run": number(int(commit.columns["run"]))},
    )


def _released_head(commit: Commit, table: str, quarantine: str) -> Write:
    as_seen = "version = :previous"
    distrusted = "quarantine = :quarantine"
    return _write(
        Part.HEAD,
        "Put",
        table,
        # A whole new head: nothing of the distrusted one is left, the mark included.
        Item=head_item(commit),
        ConditionExpression=f"{as_seen} AND {distrusted}",
        ExpressionAttributeValues={
            ":previous": number(commit.previous or 0),
            ":quarantine": text(quarantine),
        },
    )


def _event(commit: Commit, tables: TaskTables) -> Iterator[Write]:
    if commit.inbox is not None:
        yield _put(Part.EVENT, named(tables.inbox, "inbox"), inbox_item(commit.inbox), unless_exists="event_id")


def _settle(end: WaitSettlement, commit: Commit, table: str) -> Write:
    this_wait = "wait_id = :wait_id AND task_id = :task_id"
    still_open = "#status = :open"
    return _write(
        Part.SETTLED,
        "Update",
        table,
        Key=wait_key(end.tenant, end.correlation_id),
        UpdateExpression="SET #status = :status, settled_at = :now",
        ConditionExpression=f"{this_wait} AND {still_open}",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={
            ":wait_id": text(end.wait_id),
            ":task_id": text(commit.key.task_id),
            ":open": text(WaitStatus.OPEN),
            ":status": text(end.status),
            ":now": instant(commit.now),
        },
    )


def _climb(wait: Wait, table: str) -> Write:
    this_wait = "wait_id = :wait_id AND task_id = :task_id"
    still_open = "#status = :open"
    one_below = "rung = :below"
    return _write(
        Part.SETTLED,
        "Update",
        table,
        Key=wait_key(wait.tenant, wait.correlation_id),
        UpdateExpression="SET rung = :rung",
        ConditionExpression=f"{this_wait} AND {still_open} AND {one_below}",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={
            ":wait_id": text(wait.wait_id),
            ":task_id": text(wait.task_id),
            ":open": text(WaitStatus.OPEN),
            ":below": number(wait.rung - 1),
            ":rung": number(wait.rung),
        },
    )


def _intent(row: ActionRow, table: str) -> Write:
    return _put(Part.INTENT, table, action_item(row), unless_exists="operation")


def _withdraw(operation: str, commit: Commit, table: str) -> Write:
    never_sent = "#status = :intent"
    return _write(
        Part.WITHDRAWN,
        "Update",
        table,
        Key=action_key(commit.key, operation),
        UpdateExpression="SET #status = :void, settled_at = :now, reason = :reason REMOVE lease_ends_at",
        ConditionExpression=never_sent,
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={
            ":intent": text(ActionStatus.INTENT),
            ":void": text(ActionStatus.VOID),
            ":reason": text("withdrawn"),
            ":now": instant(commit.now),
        },
    )


def _release(commit: Commit, tables: TaskTables) -> Iterator[Write]:
    if commit.lease_fence is None:
        return
    ours = "fence = :fence"
    yield _write(
        Part.LEASE,
        "Update",
        named(tables.leases, "leases"),
        Key=head_key(commit.key),
        UpdateExpression="SET ends_at = :now",
        ConditionExpression=ours,
        ExpressionAttributeValues={":fence": number(commit.lease_fence), ":now": instant(commit.now)},
    )


def _put(part: Part, table: str, item: Item, *, unless_exists: str) -> Write:
    return _write(part, "Put", table, Item=item, ConditionExpression=f"attribute_not_exists({unless_exists})")


def _write(part: Part, kind: str, table: str, **request: object) -> Write:
    # The item that stood in the way tells our own earlier try from somebody else's.
    shown = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    return Write(part=part, request={kind: {"TableName": table, **request, **shown}})


def named(table: str | None, kind: str) -> str:
    """Return the name of a table.

    Raises:
        InvariantBroken: the function was not told it, because it has nothing to do there.
    """
    if table is None:
        msg = f"this function does not know the table of {kind}"
        raise InvariantBroken(msg)
    return table


def _require_own_rows(commit: Commit) -> None:
    key = commit.key
    owners = {(wait.tenant, wait.task_id) for wait in (*commit.opened, *commit.climbed)}
    owners |= {(row.tenant, row.task_id) for row in commit.intents}
    tenants = {end.tenant for end in commit.settled} | ({commit.inbox.tenant} if commit.inbox else set())
    if owners - {(key.tenant, key.task_id)} or tenants - {key.tenant}:
        raise InvariantBroken("a commit writes rows of its own task only")


def _require_next_version(commit: Commit, *, may_skip: bool) -> None:
    version, following = commit.checkpoint.version, (commit.previous or 0) + 1
    follows = version >= following if may_skip else version == following
    if not follows or commit.columns.get("version") != version:
        raise InvariantBroken("the versions of a commit do not follow each other")


def _require_once(writes: tuple[Write, ...]) -> None:
    waits = [w.request["Put"]["Item"]["correlation"]["S"] for w in writes if w.part is Part.OPENED]
    waits += [w.request["Update"]["Key"]["correlation"]["S"] for w in writes if w.part is Part.SETTLED]
    operations = [w.request["Put"]["Item"]["operation"]["S"] for w in writes if w.part is Part.INTENT]
    operations += [w.request["Update"]["Key"]["operation"]["S"] for w in writes if w.part is Part.WITHDRAWN]
    if len(set(waits)) < len(waits) or len(set(operations)) < len(operations):
        raise InvariantBroken("a commit writes a row once")
