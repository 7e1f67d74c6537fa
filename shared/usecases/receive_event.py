"""Receive a signed event: match it to a wait, once, or keep it until the wait opens."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from shared.domain.answer import SignedEvent, answered, read_answer
from shared.domain.canonical import canonical
from shared.domain.change import Change
from shared.domain.checkpoint import Checkpoint
from shared.domain.errors import (
    DecisionClosed,
    DuplicateEvent,
    EngineError,
    InvalidRequest,
    NotAuthorised,
    StaleApproval,
    StaleVersion,
)
from shared.domain.identity import TaskKey
from shared.domain.wait import PendingWait, Wait, WaitKind, WaitStatus
from shared.ports.inbox import Inbox, InboxRow
from shared.ports.wait_store import WaitStore
from shared.usecases.engine import Records, WebhookDeps
from shared.usecases.fresh import decide_on_fresh
from shared.usecases.stored_task import Loaded, commit_change, load_task

# A signature is accepted for minutes; the row that recognises a repeat outlives that by far (B51).
EVENT_KEPT: Final = timedelta(days=30)
# As long as the longest wait may be away: an event that comes before its wait is not lost.
EARLY_KEPT: Final = timedelta(days=90)
# What is told about an event that does not fit; its reasons name as many fields as its sender likes.
TOLD_CHARACTERS_MAX: Final = 300


class Reception(StrEnum):
    """What became of an event."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    KEPT = "kept"
    # Too late, contradicting what is known, or about another version of the request: nothing was changed.
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """The answer to the sender. `task_status` is the task's true state now, where the event found one."""

    reception: Reception
    task_status: str | None = None
    request_version: int | None = None
    reason: str | None = None


def receive_event(tenant: str, event: SignedEvent, deps: WebhookDeps) -> Received:
    """Take in an event of a tenant's source. The caller has verified the signature over the raw bytes.

    An event for a wait that its source may not answer fares like one that came before its wait: it is kept, answers
    nothing, and its sender learns nothing about waits of others.

    Raises:
        InvalidRequest: the answer has not the form that the wait asks for; nothing was stored.
        Untrusted: the task is quarantined; nothing was stored, and the sender has to come again.
        Retry, Redecide: nothing was stored; the sender has to come again.

    If killed here:
        The event and the transition it causes are one commit (B05). Before it nothing is remembered.
    """
    return decide_on_fresh(lambda: _receive(tenant, event, deps))


def consume_early(
    loaded: Loaded, *, tasks: Records, waits: WaitStore, inbox: Inbox, alarm: Callable[[str], None]
) -> Loaded | None:
    """Take in an event that came before the task's open wait, if one was kept for it: the first that fits.

    Its sender was told that it is kept, so nobody but people here can learn that it does not fit: they are alarmed.

    Returns:
        The task after it, or None if nothing was kept or what was kept does not fit.
    """
    tenant = loaded.task.security.tenant
    for pending in loaded.task.execution.waits:
        wait = waits.get(tenant, pending.correlation_id) if pending.kind is WaitKind.EVENT else None
        if wait is None or wait.wait_id != pending.wait_id:
            continue
        kept = [row for source in wait.answered_by for row in inbox.early(tenant, source, pending.correlation_id)]
        for row in sorted(kept, key=lambda row: row.received_at):
            event = SignedEvent.model_validate_json(row.event or "")
            try:
                return _answer(loaded, wait, pending, event, tasks)
            except DuplicateEvent:
                continue
            except (InvalidRequest, NotAuthorised, StaleApproval, DecisionClosed) as unfit:
                # The wait goes on, and its deadline is its own.
                alarm(_passed_over(loaded.task, wait, event, unfit))
    return None


def _passed_over(task: Checkpoint, wait: Wait, event: SignedEvent, unfit: EngineError) -> str:
    why = unfit.message[:TOLD_CHARACTERS_MAX]
    return f"an event of {event.source} for {wait.name} of {task.task_id} came early and was passed over: {why}"


def _receive(tenant: str, event: SignedEvent, deps: WebhookDeps) -> Received:
    wait = _wait_of(tenant, event, deps)
    if wait is None:
        _keep(tenant, event, deps)
        # Whoever opens the wait looks for kept events after its commit; who keeps one looks for the wait again.
        wait = _wait_of(tenant, event, deps)
        if wait is None:
            return Received(reception=Reception.KEPT)
    known = deps.inbox.get(tenant, f"event:{event.source}", event.event_id)
    loaded = load_task(TaskKey(tenant=tenant, task_id=wait.task_id), deps.tasks)
    if known is not None:
        if known.digest == event.digest:
            return _received(Reception.DUPLICATE, loaded.task)
        return _contradiction(loaded.task, wait, event, deps, "this event id has said something else before")
    if wait.status is not WaitStatus.OPEN:
        return _late(loaded.task, wait, event, deps)
    return _in_time(loaded, wait, event, deps)


def _in_time(loaded: Loaded, wait: Wait, event: SignedEvent, deps: WebhookDeps) -> Received:
    pending = loaded.task.wait(wait.wait_id)
    if pending is None:
        # Somebody settled the wait between our two reads: what is true now is read again (B78).
        msg = "the wait was settled meanwhile"
        raise StaleVersion(msg)
    try:
        after = _answer(loaded, wait, pending, event, deps.tasks)
    except DecisionClosed as late:
        return _contradiction(loaded.task, wait, event, deps, late.message)
    except StaleApproval as stale:
        return _received(Reception.REFUSED, loaded.task, reason=stale.message)
    return _received(Reception.ACCEPTED, after.task)


def _wait_of(tenant: str, event: SignedEvent, deps: WebhookDeps) -> Wait | None:
    """The wait that this event's source may answer. Any other wait is none of its business, and there is none."""
    wait = deps.waits.get(tenant, event.correlation_id)
    if wait is None or wait.kind is not WaitKind.EVENT or event.source not in wait.answered_by:
        return None
    return wait


def _answer(loaded: Loaded, wait: Wait, pending: PendingWait, event: SignedEvent, tasks: Records) -> Loaded:
    task = loaded.task
    now = tasks.clock.now()
    if event.source not in wait.answered_by:
        msg = "this source may not answer this wait"
        raise NotAuthorised(msg)
    if event.request_version is not None and event.request_version != task.business.request_version:
        msg = (
            f"the event is for version {event.request_version} of the request, "
            f"the request is now version {task.business.request_version}"
        )
        raise StaleApproval(msg)
    if now >= pending.deadline_at:
        msg = "the time to answer is over"
        raise DecisionClosed(msg)
    workflow = tasks.workflows[task.business.workflow]
    values = read_answer(workflow, pending.name, event.answer)
    ground = tasks.ground(workflow, task.stamps)
    change: Change = answered(
        task, pending, values, by=event.source, reference=f"event:{event.event_id}"[:100], ground=ground
    )
    receipt = InboxRow(
        tenant=wait.tenant,
        source=f"event:{event.source}",
        event_id=event.event_id,
        digest=event.digest,
        task_id=task.task_id,
        received_at=now,
        purge_at=now + EVENT_KEPT,
    )
    return commit_change(change, tasks, previous=loaded, inbox=receipt)


def _late(task: Checkpoint, wait: Wait, event: SignedEvent, deps: WebhookDeps) -> Received:
    """The wait has ended: the same answer again moves nothing; another answer, or a late one, is seen by people."""
    fact = next((f for f in reversed(task.business.facts) if f.name == wait.name), None)
    values = read_answer(deps.tasks.workflows[task.business.workflow], wait.name, event.answer)
    if wait.status is WaitStatus.SETTLED and fact is not None and dict(fact.values) == dict(values):
        return _received(Reception.DUPLICATE, task)
    return _contradiction(task, wait, event, deps, f"{wait.name} is {wait.status}")


def _contradiction(task: Checkpoint, wait: Wait, event: SignedEvent, deps: WebhookDeps, reason: str) -> Received:
    deps.alarm(f"an event of {event.source} for {wait.name} of {task.task_id} was refused: {reason}")
    return _received(Reception.REFUSED, task, reason=reason)


def _received(reception: Reception, task: Checkpoint, *, reason: str | None = None) -> Received:
    business = task.business
    return Received(
        reception=reception,
        task_status=str(business.status),
        request_version=business.request_version,
        reason=reason,
    )


def _keep(tenant: str, event: SignedEvent, deps: WebhookDeps) -> None:
    """Keep an event that came before its wait. Two that contradict each other are both kept, and people are told."""
    now = deps.tasks.clock.now()
    row = InboxRow(
        tenant=tenant,
        source=f"early:{event.source}:{event.correlation_id}",
        event_id=event.event_id,
        digest=event.digest,
        task_id="",
        received_at=now,
        purge_at=now + EARLY_KEPT,
        event=canonical(event.model_dump(mode="json")).decode(),
    )
    deps.inbox.keep(row)
    kept = deps.inbox.early(tenant, event.source, event.correlation_id)
    if any(other.digest != event.digest for other in kept):
        deps.alarm(f"events of {event.source} for {event.correlation_id} contradict each other before its wait opens")
