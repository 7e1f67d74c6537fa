"""Escalate: a person does not wait for a wait's next rung."""

from dataclasses import dataclass

from shared.domain.authority import Operation
from shared.domain.change import publish
from shared.domain.deadline import moved_up
from shared.domain.errors import IllegalTransition, TaskClosed, WaitSettled
from shared.domain.wait import WaitStatus
from shared.usecases.engine import ApiDeps
from shared.usecases.operator_command import OperatorCommand, ground_of, load_operated
from shared.usecases.stored_task import commit_change
from shared.usecases.summary import TaskSummary, summarise


@dataclass(frozen=True, slots=True, kw_only=True)
class EscalateWait(OperatorCommand):
    """A command about one open wait."""

    wait_id: str


def escalate_wait(command: EscalateWait, deps: ApiDeps) -> TaskSummary:
    """Act on the next rung of a wait's ladder now: remind, or hand it to its next owner. The wait goes on.

    Raises:
        TaskNotFound, NotAuthorised, StaleCommand: nothing was changed.
        TaskClosed: the task has ended.
        IllegalTransition: the task does not wait for this, or the next rung would end the wait.
        WaitSettled: it was answered meanwhile.

    If killed here:
        The rung, its event and the next timer are one commit.
    """
    loaded = load_operated(command, Operation.ESCALATE, deps)
    task = loaded.task
    if task.closed:
        msg = f"the task has ended: {task.business.outcome}"
        raise TaskClosed(msg)
    pending = task.wait(command.wait_id)
    if pending is None:
        msg = f"the task does not wait for this; it is {task.business.status}"
        raise IllegalTransition(msg)
    wait = deps.waits.get(task.security.tenant, pending.correlation_id)
    if wait is None or wait.wait_id != pending.wait_id or wait.status is not WaitStatus.OPEN:
        msg = "the wait is no longer open"
        raise WaitSettled(msg)
    change = moved_up(task, wait, ground_of(task, deps), because=command.sentence("wanted now"))
    change = publish(change, "task.operated", command="escalate", by=command.principal.ref.key)
    return summarise(commit_change(change, deps.tasks, previous=loaded).task)
