"""What happens when a wait has not been answered by its deadline. The wait owns the deadline; no timer does."""

from typing import Final

from shared.domain.change import (
    Change,
    Ground,
    Reason,
    begin,
    climb,
    expire_approval,
    move_to,
    note_fact,
    prompt,
    settle_waits,
    void_approvals,
)
from shared.domain.checkpoint import Checkpoint, Fact
from shared.domain.directive import unsettled_action
from shared.domain.errors import IllegalTransition
from shared.domain.identity import NAME_CHARACTERS_MAX
from shared.domain.instants import format_instant
from shared.domain.status import Status
from shared.domain.steps import plan, take
from shared.domain.wait import OnDeadline, PendingWait, Wait, WaitKind, WaitStatus
from shared.domain.workflow import Compensate, Review

_EXPIRED: Final = "_expired"
_ENDS = {OnDeadline.EXPIRE: Status.EXPIRED, OnDeadline.FAIL: Status.FAILED}


def act_on_rung(task: Checkpoint, wait: Wait, ground: Ground) -> Change | None:
    """Do what the wait's next rung says, if its time has come; None otherwise.

    A firing that comes early, late, twice or for a wait that has ended changes nothing: only the stored rung acts.
    """
    pending = task.wait(wait.wait_id)
    if pending is None or wait.status is not WaitStatus.OPEN or ground.now < wait.next_rung_at:
        return None
    rung = wait.rule.ladder[wait.rung]
    if rung.ends or ground.now >= pending.deadline_at:
        return end_wait(task, pending, ground)
    return moved_up(task, wait, ground, because="still open")


def moved_up(task: Checkpoint, wait: Wait, ground: Ground, *, because: str | Reason) -> Change:
    """Remind or escalate, as the wait's next rung says, whether or not its time has come.

    Raises:
        IllegalTransition: the next rung ends the wait; its time alone does that.
    """
    rung = wait.rule.ladder[wait.rung]
    if rung.ends:
        msg = f"nobody is left to turn to; {wait.name} ends at {format_instant(wait.deadline_at)}"
        raise IllegalTransition(msg)
    words = {OnDeadline.REMIND: "reminded", OnDeadline.ESCALATE: "escalated to"}
    event = {OnDeadline.REMIND: "wait.reminded", OnDeadline.ESCALATE: "task.escalated"}[rung.do]
    reason = Reason(says=f"{wait.name}: {words[rung.do]} {rung.to}", quotes=str(because))
    change = begin(task, because=reason, ground=ground)
    change = move_to(change, status=task.business.status, stage=task.business.stage, ground=ground)
    change = climb(change, wait)
    return prompt(change, wait, event, to=rung.to)


def end_wait(task: Checkpoint, wait: PendingWait, ground: Ground) -> Change:
    """End an overdue wait the way its last rung says: expire or fail the task, hand it to a person, or go on without.

    A task may not end, not even as failed, while nobody knows what its last effect did or while a child task is under
    way; and what it did before is undone first.
    """
    because = f"no answer to {wait.name} by its deadline"
    change = settle_waits(begin(task, because=because, ground=ground), WaitStatus.EXPIRED)
    stage = task.business.stage
    if unsettled_action(task) is not None:
        return take(Review(stage=stage, reason=task.business.because), change, ground)
    change = expire_approval(change, wait.correlation_id)
    # The task's own deadline came first: whatever the ladder would have done, the task is over.
    over = ground.now >= task.business.deadline_at and wait.kind is not WaitKind.REVIEW
    if wait.ends_by is OnDeadline.PROCEED and task.execution.ending is None and not over:
        change = _noted(change, wait)
        return take(plan(change, ground), change, ground)
    change = void_approvals(change)
    if task.execution.ending is not None:
        # The unanswered question was about an undo: go on with what else can be undone.
        return take(plan(change, ground), change, ground)
    change = _noted(change, wait)
    status = Status.EXPIRED if over else _ENDS.get(wait.ends_by)
    if status is None or task.live_children:
        return take(Review(stage=stage, reason=because), change, ground)
    return take(Compensate(stage=stage, status=status, outcome=because), change, ground)


def _noted(change: Change, wait: PendingWait) -> Change:
    name = f"{wait.name[: NAME_CHARACTERS_MAX - len(_EXPIRED)]}{_EXPIRED}"
    return note_fact(change, Fact(name=name, happened=True, reference=wait.wait_id))


def is_silence(fact: Fact) -> bool:
    """Whether a fact says that nobody answered a wait in time."""
    return fact.ordinal is None and fact.name.endswith(_EXPIRED)
