"""Receive a signed event: match it to a wait, once, or keep it until the wait opens."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from shared.domain.answer import SignedEvent, answered, read_answer
from shared.domain.canonical import canonical
from shared.domain.change import Change, Ground
from shared.domain.checkpoint import Checkpoint
from shared.domain.errors import (
    DecisionClosed,
    DuplicateEvent,
    InvalidRequest,
    NotAuthorised,
    StaleApproval,
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


class Reception(StrEnum):
    """What became of an event."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    KEPT = "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """The answer to the sender. `task_status` is the task's true state now, where the event found one."""

    reception: Reception
    task_status: str | None = None


def receive_event(tenant: str, event: SignedEvent, deps: WebhookDeps) -> Received:
    """Take in an event of a tenant's source. The caller has verified the signature over the raw bytes.

    Raises:
        InvalidRequest: the answer has not the form that the wait asks for; nothing was stored.
        NotAuthorised: this source may not answer this wait.
        StaleApproval: the event speaks of another version of the request.
        DecisionClosed: the wait was settled by another answer, or its time is over. Nothing was changed; say so loudly.
        Retry, Redecide: nothing was stored; the sender has to come again.

    If killed here:
        The event and the transition it causes are one commit (B05). Before it nothing is remembered.
    """
    return decide_on_fresh(lambda: _receive(tenant, event, deps))


def consume_early(loaded: Loaded, *, tasks: Records, waits: WaitStore, inbox: Inbox) -> Loaded | None:
    """Take in an event that came before the task's open wait, if one was kept for it.

    Returns:
        The task after it, or None if nothing was kept or what was kept does not fit.
    """
    for pending in loaded.task.execution.waits:
        if pending.kind is not WaitKind.EVENT:
            continue
        for kept in inbox.early(loaded.task.security.tenant, pending.correlation_id):
            event = SignedEvent.model_validate_json(kept.event or "")
            wait = waits.get(loaded.task.security.tenant, pending.correlation_id)
            if wait is None:
                continue
            try:
                return _answer(loaded, wait, pending, event, tasks)
            except (InvalidRequest, NotAuthorised, StaleApproval, DecisionClosed, DuplicateEvent):
                # It does not fit this wait; the wait goes on, and its deadline is its own.
                continue
    return None


def _receive(tenant: str, event: SignedEvent, deps: WebhookDeps) -> Received:
    wait = deps.waits.get(tenant, event.correlation_id)
    if wait is None:
        deps.inbox.keep(_early(tenant, event, deps))
        # Whoever opens the wait looks for kept events after its commit; who keeps one looks for the wait again.
        wait = deps.waits.get(tenant, event.correlation_id)
        if wait is None:
            return Received(reception=Reception.KEPT)
    if wait.kind is not WaitKind.EVENT:
        # A person's wait is none of a machine's business, and its id tells a stranger nothing.
        msg = "this source may not answer this wait"
        raise NotAuthorised(msg)
    known = deps.inbox.get(tenant, f"event:{event.source}", event.event_id)
    loaded = load_task(TaskKey(tenant=tenant, task_id=wait.task_id), deps.tasks)
    status = str(loaded.task.business.status)
    if known is not None:
        return Received(reception=Reception.DUPLICATE, task_status=status)
    pending = loaded.task.wait(wait.wait_id)
    if pending is None or wait.status is not WaitStatus.OPEN:
        return _late(loaded.task, wait, event, deps)
    try:
        after = _answer(loaded, wait, pending, event, deps.tasks)
    except DuplicateEvent:
        return Received(reception=Reception.DUPLICATE, task_status=status)
    return Received(reception=Reception.ACCEPTED, task_status=str(after.task.business.status))


def _answer(loaded: Loaded, wait: Wait, pending: PendingWait, event: SignedEvent, tasks: Records) -> Loaded:
    task = loaded.task
    now = tasks.clock.now()
    if event.source not in wait.answered_by:
        msg = "this source may not answer this wait"
        raise NotAuthorised(msg)
    if event.request_version is not None and event.request_version != task.business.request_version:
        msg = f"the event is for version {event.request_version} of the request"
        raise StaleApproval(msg)
    if now >= pending.deadline_at:
        msg = "the time to answer is over"
        raise DecisionClosed(msg)
    workflow = tasks.workflows[task.business.workflow]
    values = read_answer(workflow, pending, event.answer)
    ground = Ground(workflow=workflow, now=now, stamps=task.stamps, new_id=tasks.ids.new)
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
    """The wait is settled: the same answer again moves nothing; another answer is a contradiction that people see."""
    fact = next((f for f in reversed(task.business.facts) if f.name == wait.name), None)
    if wait.status is WaitStatus.SETTLED and fact is not None and dict(fact.values) == dict(event.answer):
        return Received(reception=Reception.DUPLICATE, task_status=str(task.business.status))
    deps.alarm(f"a contradicting or late event of {event.source} for {wait.name} of {task.task_id}")
    msg = f"{wait.name} is {wait.status}; the task is {task.business.status}"
    raise DecisionClosed(msg)


def _early(tenant: str, event: SignedEvent, deps: WebhookDeps) -> InboxRow:
    now = deps.tasks.clock.now()
    return InboxRow(
        tenant=tenant,
        source=f"early:{event.correlation_id}",
        event_id=f"{event.source}:{event.event_id}",
        digest=event.digest,
        task_id="",
        received_at=now,
        purge_at=now + EARLY_KEPT,
        event=canonical(event.model_dump(mode="json")).decode(),
    )
