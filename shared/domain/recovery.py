"""Recovery: what to do about a live task whose execution is gone, or whose deadline nobody acted on.

Nothing in here guesses an outcome. A task gets a new execution under its own task and keys, and `Wake` finds out.
"""

from dataclasses import dataclass
from typing import Final

from shared.domain.answer import child_ended
from shared.domain.change import Change, Ground, begin, count_attempts, publish, set_execution, start_run
from shared.domain.checkpoint import Checkpoint
from shared.domain.child import wait_of
from shared.domain.deadline import act_on_rung, end_wait
from shared.domain.directive import unsettled_action
from shared.domain.status import Status
from shared.domain.steps import plan, take
from shared.domain.wait import Wait

# Two executions dying in a row is bad luck; a third says that the task itself kills them.
RESTARTS_MAX: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What the state machine service said about the run that owns the task."""

    running: bool
    aborted_by_operator: bool


def mend(
    task: Checkpoint,
    ground: Ground,
    finding: Finding,
    *,
    wait: Wait | None = None,
    ended: Checkpoint | None = None,
) -> Change | None:
    """Return the change that gives a live task a next event again, or None if it has one or is beyond mending here.

    Args:
        wait: the stored row of the task's open wait, if it could be read.
        ended: a child task that has ended and whose end the task does not know of yet.
    """
    if task.closed:
        return None
    if finding.running and ended is not None and wait_of(task, ended) is not None:
        return child_ended(task, ended, ground)
    if finding.running:
        return _overdue(task, wait, ground)
    if finding.aborted_by_operator:
        return _restart(task, ground, "an operator aborted the execution", hold=True)
    if task.attempts.restarts > RESTARTS_MAX:
        # Another execution would die as well. The alarm on failed executions and the queue show the task.
        return None
    died = task.attempts.restarts + 1
    return _restart(task, ground, f"the execution ended under a live task ({died} in a row)", hold=died > RESTARTS_MAX)


def _overdue(task: Checkpoint, wait: Wait | None, ground: Ground) -> Change | None:
    """Act on the rung whose time has come; the record alone is enough to end a wait whose row is lost."""
    pending = next(iter(task.execution.waits), None)
    if pending is None or ground.now < pending.acts_at:
        return None
    if ground.now >= pending.deadline_at:
        return end_wait(task, pending, ground)
    return None if wait is None else act_on_rung(task, wait, ground)


def _restart(task: Checkpoint, ground: Ground, because: str, *, hold: bool) -> Change:
    """Start the next run; with a hold, a person looks before anything new is done, but what is in flight is settled."""
    change = begin(task, because=because, ground=ground)
    if hold and task.business.status is not Status.NEEDS_REVIEW:
        change = set_execution(change, hold=because)
        if unsettled_action(task) is None:
            change = take(plan(change, ground), change, ground)
    restarts = task.attempts.restarts + 1
    change = count_attempts(change, change.task.attempts.model_copy(update={"restarts": restarts}))
    change = start_run(change, task.execution.run + 1)
    return publish(change, "task.recovered", reason=because)
