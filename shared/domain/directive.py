"""Directives: what the state machine does next. A pure view of the checkpoint, so any execution can be replaced."""

from datetime import datetime
from enum import StrEnum

from shared.domain.action import SETTLED, Action, ActionStatus
from shared.domain.checkpoint import Checkpoint
from shared.domain.instants import Instant
from shared.domain.proposal import ObjectRef
from shared.domain.records import Record
from shared.domain.status import Status
from shared.domain.wait import PendingWait, WaitKind, state_timeout_seconds


class Next(StrEnum):
    """The spokes of the state machine."""

    PROPOSE = "propose"
    AWAIT_APPROVAL = "await_approval"
    AWAIT_INPUT = "await_input"
    AWAIT_EVENT = "await_event"
    AWAIT_CHILD = "await_child"
    NEEDS_REVIEW = "needs_review"
    AWAIT_RETRY = "await_retry"
    PERFORM = "perform"
    RECONCILE = "reconcile"
    COMPENSATE = "compensate"
    CONTINUE_AS_NEW = "continue_as_new"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"


AWAITS = {
    WaitKind.APPROVAL: Next.AWAIT_APPROVAL,
    WaitKind.INPUT: Next.AWAIT_INPUT,
    WaitKind.EVENT: Next.AWAIT_EVENT,
    WaitKind.CHILD: Next.AWAIT_CHILD,
    WaitKind.REVIEW: Next.NEEDS_REVIEW,
}
ENDS = {
    Status.COMPLETED: Next.COMPLETED,
    Status.FAILED: Next.FAILED,
    Status.CANCELED: Next.CANCELED,
    Status.EXPIRED: Next.EXPIRED,
}


class Directive(Record):
    """The small document that travels through the machine: identifiers and references, never a body."""

    next: Next
    tenant: str
    task_id: str
    run: int
    version: int
    hops: int = 0
    # Wake-ups in a row that found nothing to move.
    idle: int = 0
    reason: str
    wait_id: str | None = None
    correlation_id: str | None = None
    wait_seconds: int | None = None
    until: Instant | None = None
    operation: str | None = None
    window: ObjectRef | None = None
    fence: int | None = None


def unsettled_action(task: Checkpoint) -> Action | None:
    """The one action whose outcome the record does not know yet; a task performs one at a time."""
    return next((a for a in task.execution.actions if a.status not in SETTLED), None)


def directive_for(task: Checkpoint, *, now: datetime) -> Directive:
    """Say what the machine has to do for a task as it is stored."""
    base = Directive(
        next=Next.PROPOSE,
        tenant=task.security.tenant,
        task_id=task.task_id,
        run=task.execution.run,
        version=task.version,
        reason=task.business.because,
    )
    if task.business.status in ENDS:
        return base.model_copy(update={"next": ENDS[task.business.status]})
    if task.execution.waits:
        return _awaiting(base, task.execution.waits[0], now=now)
    action = unsettled_action(task)
    if action is None:
        return base
    return base.model_copy(update={"next": _spoke(task, action), "operation": action.operation})


def until(directive: Directive, instant: datetime, reason: str) -> Directive:
    """Turn a directive into a pause."""
    return directive.model_copy(update={"next": Next.AWAIT_RETRY, "until": instant, "reason": reason})


def _awaiting(base: Directive, wait: PendingWait, *, now: datetime) -> Directive:
    return base.model_copy(
        update={
            "next": AWAITS[wait.kind],
            "wait_id": wait.wait_id,
            "correlation_id": wait.correlation_id,
            "wait_seconds": state_timeout_seconds(wait.deadline_at, now=now),
        }
    )


def _spoke(task: Checkpoint, action: Action) -> Next:
    if task.business.status is Status.OUTCOME_UNKNOWN or action.status is ActionStatus.OUTCOME_UNKNOWN:
        return Next.RECONCILE
    return Next.COMPENSATE if action.undoes else Next.PERFORM
