"""Taking a workflow's step: turning what a workflow asks for into a change that can be committed."""

from datetime import timedelta
from functools import singledispatch
from typing import Final

from shared.domain.action import EffectClass
from shared.domain.approval import ApprovalStatus
from shared.domain.change import (
    Change,
    Ground,
    intend,
    move_to,
    open_wait,
    prompt,
    publish,
    request_approval,
    set_business,
    set_execution,
    settle_waits,
    void_approvals,
)
from shared.domain.change import explain as explained
from shared.domain.checkpoint import BECAUSE_CHARACTERS_MAX, CancelScope, Ending
from shared.domain.child import STOPPING_WAIT, start_child, tell_parent, wait_for
from shared.domain.compensation import Undo, next_undo, not_undone
from shared.domain.errors import InvalidRequest
from shared.domain.status import Status
from shared.domain.wait import OnDeadline, Rung, WaitKind, WaitRule, WaitStatus
from shared.domain.workflow import (
    AskModel,
    AwaitChildren,
    AwaitEvent,
    AwaitInput,
    Compensate,
    ContinueCompensation,
    Finish,
    PerformAction,
    RequestApproval,
    Review,
    StandStill,
    StartChild,
    Step,
)

# Long enough for a holiday; after it the task ends as failed instead of waiting for nobody.
REVIEW_WAIT: Final = WaitRule(
    ladder=(
        Rung(after_seconds=int(timedelta(days=1).total_seconds()), do=OnDeadline.REMIND, to="operator"),
        Rung(after_seconds=int(timedelta(days=7).total_seconds()), do=OnDeadline.ESCALATE, to="operator_lead"),
        Rung(after_seconds=int(timedelta(days=30).total_seconds()), do=OnDeadline.FAIL, to="operator_lead"),
    )
)


@singledispatch
def take(step: Step, change: Change, ground: Ground) -> Change:  # noqa: ARG001 - the implementations use them
    """Apply a step to a change.

    Raises:
        IllegalTransition: the step leads along no edge of the status table or of the workflow's stages.
    """
    msg = f"no such step: {step!r}"
    raise TypeError(msg)


@take.register
def _(step: AskModel, change: Change, ground: Ground) -> Change:
    return move_to(change, status=Status.READY, stage=step.stage, ground=ground)


@take.register
def _(step: RequestApproval, change: Change, ground: Ground) -> Change:
    moved = move_to(change, status=Status.WAITING_APPROVAL, stage=step.stage, ground=ground)
    moved, approval = request_approval(moved, step.action, step.rule, ground=ground)
    moved = open_wait(
        moved,
        kind=WaitKind.APPROVAL,
        name="approval",
        rule=step.wait,
        answered_by=(step.rule.role,),
        ground=ground,
        correlation_id=approval.approval_id,
    )
    moved = explained(moved, step.rule.because)
    return prompt(moved, moved.opened[-1], "approval.requested", approval_id=approval.approval_id, role=step.rule.role)


@take.register
def _(step: AwaitEvent, change: Change, ground: Ground) -> Change:
    moved = move_to(change, status=Status.WAITING_EVENT, stage=step.stage, ground=ground)
    return open_wait(
        moved,
        kind=WaitKind.EVENT,
        name=step.name,
        rule=step.wait,
        answered_by=step.sources,
        ground=ground,
        correlation_id=step.correlation_id,
    )


@take.register
def _(step: AwaitInput, change: Change, ground: Ground) -> Change:
    moved = move_to(change, status=Status.WAITING_INPUT, stage=step.stage, ground=ground)
    moved = open_wait(
        moved, kind=WaitKind.INPUT, name=step.name, rule=step.wait, answered_by=(step.role,), ground=ground
    )
    return prompt(moved, moved.opened[-1], "input.requested", role=step.role)


@take.register
def _(step: StartChild, change: Change, ground: Ground) -> Change:
    try:
        started = start_child(change, step, ground)
    except InvalidRequest as unusable:
        review = Review(stage=change.task.business.stage, reason=f"{step.name}: {unusable.message}"[:500])
        return take(review, change, ground)
    return move_to(started, status=Status.WAITING_CHILD, stage=step.stage, ground=ground)


@take.register
def _(step: AwaitChildren, change: Change, ground: Ground) -> Change:
    waiting = wait_for(change, change.task.live_children[0], STOPPING_WAIT, ground)
    return move_to(waiting, status=Status.CANCEL_REQUESTED, stage=step.stage, ground=ground)


@take.register
def _(step: PerformAction, change: Change, ground: Ground) -> Change:
    flaw = _no_permission(step, ground)
    if flaw is not None:
        return take(Review(stage=change.task.business.stage, reason=f"{step.action.tool}: {flaw}"), change, ground)
    moved = move_to(change, status=Status.READY, stage=step.stage, ground=ground)
    moved = explained(moved, f"{step.action.tool} is permitted and about to be performed")
    return intend(moved, step.action, approval=step.approval, ground=ground)


def _no_permission(step: PerformAction, ground: Ground) -> str | None:
    """Say why a workflow's wish is no permitted action: an approval serves one action once, whoever says otherwise."""
    if step.approval is None:
        irreversible = ground.workflow.tools[step.action.tool].effect is EffectClass.IRREVERSIBLE_WRITE
        return "what cannot be taken back needs an approval" if irreversible else None
    if step.approval.spec != step.action:
        return "the approval is of another action"
    if step.approval.status is not ApprovalStatus.GRANTED:
        return f"the approval is {step.approval.status}"
    return None


@take.register
def _(step: Compensate, change: Change, ground: Ground) -> Change:
    ending = Ending(stage=step.stage, status=step.status, outcome=step.outcome)
    return take(ContinueCompensation(), set_execution(change, ending=ending), ground)


@take.register
def _(step: Finish, change: Change, ground: Ground) -> Change:
    moved = move_to(change, status=step.status, stage=step.stage, ground=ground)
    moved = void_approvals(settle_waits(moved, WaitStatus.VOID))
    closed = set_business(moved, outcome=step.outcome, because=step.outcome[:500], result=dict(step.result))
    return publish(tell_parent(closed), "task.closed", status=str(step.status), outcome=step.outcome[:500])


@take.register
def _(step: Review, change: Change, ground: Ground) -> Change:
    moved = move_to(change, status=Status.NEEDS_REVIEW, stage=step.stage, ground=ground)
    # Whoever is being asked is not asked any more: an approval without its wait cannot be decided.
    asked = {wait.correlation_id for wait in moved.task.execution.waits}
    moved = void_approvals(moved, lambda approval: approval.approval_id in asked)
    moved = open_wait(
        settle_waits(moved, WaitStatus.VOID),
        kind=WaitKind.REVIEW,
        name="review",
        rule=REVIEW_WAIT,
        answered_by=("operator",),
        ground=ground,
    )
    return prompt(explained(moved, step.reason), moved.opened[-1], "task.needs_review", reason=step.reason[:300])


@take.register
def _(step: StandStill, change: Change, ground: Ground) -> Change:
    return take(Review(stage=step.stage, reason=step.reason), set_execution(change, cancel=None), ground)


def plan(change: Change, ground: Ground) -> Step:
    """Say what a task needs now: a person, to end what was canceled or is being undone, or its workflow's step."""
    task = change.task
    if task.execution.hold is not None:
        return Review(stage=task.business.stage, reason=task.execution.hold)
    if task.execution.ending is not None:
        return ContinueCompensation()
    cancel = task.execution.cancel
    if cancel is not None and cancel.scope is not CancelScope.TASK:
        found = f"{task.business.because}; the call was canceled by {cancel.principal.subject}"
        return StandStill(stage=task.business.stage, reason=found[:BECAUSE_CHARACTERS_MAX])
    if cancel is not None and task.live_children:
        return AwaitChildren(stage=task.business.stage)
    if cancel is not None:
        return Compensate(stage=task.business.stage, status=Status.CANCELED, outcome="canceled on request")
    return ground.workflow.next_step(ground.workflow.view(task, now=ground.now))


@take.register
def _(_step: ContinueCompensation, change: Change, ground: Ground) -> Change:
    """Undo the newest effect that still stands, or end when none can be undone any more.

    What could not be undone is named; with anything open the task goes to a person and is never green (B28).
    """
    ending = change.task.execution.ending
    if ending is None:
        msg = "there is no compensation under way"
        raise ValueError(msg)
    following = next_undo(change.task, ground.workflow)
    if following is not None:
        return _undo(following, change, ground)
    left = not_undone(change.task, ground.workflow)
    if left and ending.status is not Status.CANCELED:
        return take(Review(stage=change.task.business.stage, reason="not undone: " + "; ".join(left)), change, ground)
    outcome = ending.outcome + (f"; not undone: {'; '.join(left)}" if left else "")
    return take(Finish(stage=ending.stage, status=ending.status, outcome=outcome[:500]), change, ground)


def _undo(following: Undo, change: Change, ground: Ground) -> Change:
    stage = change.task.business.stage
    demanded = ground.workflow.tools[following.action.spec.tool].undo_approval
    if demanded is not None and following.approval is None:
        request = RequestApproval(stage=stage, action=following.undo, rule=demanded.rule, wait=demanded.wait)
        return take(request, change, ground)
    moved = move_to(change, status=Status.COMPENSATING, stage=stage, ground=ground)
    moved = explained(moved, f"{following.action.spec.tool} is being undone by {following.undo.tool}")
    return intend(moved, following.undo, approval=following.approval, ground=ground, undoes=following.action.operation)
