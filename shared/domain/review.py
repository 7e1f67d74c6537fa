"""What an operator's command makes of a task: going on after a review, and a wait that moves up its ladder now.

Nothing in here says what became of an effect. That stands in the ledger, and `Wake` takes it from there.
"""

from shared.domain.action import ActionRow, ActionStatus, EffectClass
from shared.domain.approval import ApprovalStatus
from shared.domain.change import (
    Change,
    Ground,
    Reason,
    begin,
    count_attempts,
    move_to,
    replace_approvals,
    set_business,
    set_execution,
    settle_waits,
    void_consumed,
)
from shared.domain.checkpoint import Checkpoint, Fact
from shared.domain.deadline import is_silence
from shared.domain.directive import unsettled_action
from shared.domain.status import Status
from shared.domain.steps import plan, take
from shared.domain.wait import WaitStatus
from shared.domain.workflow import Workflow


def retried(task: Checkpoint, row: ActionRow | None, ground: Ground, *, because: str | Reason) -> Change:
    """End a review and let the task try again.

    With an action that is open, the task goes back to finding out what became of it. Otherwise what was refused last is
    forgotten, so that it is asked for and tried anew under a new key; what was read is read again; who has not answered
    is asked again. Whoever has said no is not.
    """
    change = settle_waits(begin(task, because=because, ground=ground), WaitStatus.SETTLED)
    change = set_execution(change, hold=None)
    change = count_attempts(change, change.task.attempts.model_copy(update={"refusals": 0}))
    if unsettled_action(task) is not None:
        return _back_to_the_ledger(change, row, ground)
    change = _without_silence(_without_refusals(change))
    if not task.execution.is_ending:
        change = _without_reads(change, ground.workflow)
    return take(plan(change, ground), change, ground)


def settled(task: Checkpoint, row: ActionRow, ground: Ground, *, because: str | Reason) -> Change:
    """End the review, if there is one, of an action whose outcome stands in the ledger now; `Wake` takes it in."""
    change = settle_waits(begin(task, because=because, ground=ground), WaitStatus.SETTLED)
    return _back_to_the_ledger(set_execution(change, hold=None), row, ground)


def _back_to_the_ledger(change: Change, row: ActionRow | None, ground: Ground) -> Change:
    return move_to(change, status=_while_open(change.task, row), stage=change.task.business.stage, ground=ground)


def _while_open(task: Checkpoint, row: ActionRow | None) -> Status:
    """The status of a task whose last action has to be looked at in the ledger."""
    if task.execution.ending is not None:
        return Status.COMPENSATING
    if task.execution.cancel is not None:
        return Status.CANCEL_REQUESTED
    nothing_sent = row is None or row.status is ActionStatus.INTENT or row.effect is EffectClass.READ
    return Status.READY if nothing_sent else Status.OUTCOME_UNKNOWN


def _without_refusals(change: Change) -> Change:
    """Forget what was refused last; of a task that is being undone, every undo that was refused."""
    task = change.task
    failed = [a for a in task.execution.actions if a.status is ActionStatus.FAILED]
    if task.execution.ending is not None:
        doomed = [a for a in failed if a.undoes is not None]
    else:
        last = _last_of_an_action(task)
        doomed = [a for a in failed if last is not None and not last.happened and a.ordinal == last.ordinal]
    for action in doomed:
        change = void_consumed(change, action)
    ordinals = {a.ordinal for a in doomed} | _children_in_vain(task)
    change = set_execution(
        change,
        actions=tuple(a for a in task.execution.actions if a not in doomed),
        children=tuple(c for c in task.execution.children if c.ordinal not in ordinals),
    )
    return set_business(change, facts=tuple(f for f in task.business.facts if f.ordinal not in ordinals))


def _children_in_vain(task: Checkpoint) -> set[int]:
    """The child task that has ended last, if it did not complete and nothing of it stands: another may be started."""
    last = _last_of_an_action(task)
    if last is None or last.happened or task.execution.is_ending:
        return set()
    return {c.ordinal for c in task.execution.children if c.ordinal == last.ordinal and not c.stands}


def _last_of_an_action(task: Checkpoint) -> Fact | None:
    return next((f for f in reversed(task.business.facts) if f.ordinal is not None), None)


def _without_reads(change: Change, workflow: Workflow) -> Change:
    reads = {tool.fact for tool in workflow.tools.values() if tool.effect is EffectClass.READ}
    facts = tuple(fact for fact in change.task.business.facts if fact.name not in reads)
    return set_business(change, facts=facts)


def _without_silence(change: Change) -> Change:
    """Forget that nobody answered, if that was the last thing that happened; void approvals that nobody decided."""
    facts = change.task.business.facts
    if facts and is_silence(facts[-1]):
        change = set_business(change, facts=facts[:-1])
    approvals = tuple(
        a.model_copy(update={"status": ApprovalStatus.VOID}) if a.status is ApprovalStatus.EXPIRED else a
        for a in change.task.security.approvals
    )
    return replace_approvals(change, approvals)
