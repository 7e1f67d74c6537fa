"""Cancel a task: a request to stop, never a claim that nothing happened."""

from dataclasses import dataclass

from shared.domain.authority import Operation, Principal
from shared.domain.change import (
    Ground,
    begin,
    move_to,
    set_execution,
    settle_waits,
    stamps_of,
    void_approvals,
)
from shared.domain.checkpoint import CancelRequest, CancelScope
from shared.domain.errors import TaskClosed
from shared.domain.status import Status
from shared.domain.wait import WaitStatus
from shared.usecases.engine import ApiDeps
from shared.usecases.fresh import decide_on_fresh
from shared.usecases.permission import load_permitted
from shared.usecases.stored_task import commit_change
from shared.usecases.summary import TaskSummary, summarise


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelTask:
    """A request to cancel the whole task."""

    principal: Principal
    task_id: str


def cancel_task(command: CancelTask, deps: ApiDeps) -> TaskSummary:
    """Stop new work; what is in flight is reconciled by the machine before the task ends.

    Cancelling what is being cancelled answers with the current state.

    Raises:
        TaskNotFound, NotAuthorised: nothing was changed.
        TaskClosed: the task has ended already, with the outcome it names.

    If killed here:
        The request, the voided waits and the machine's wake-up are stored together or not at all.
    """
    return decide_on_fresh(lambda: _cancel(command, deps))


def _cancel(command: CancelTask, deps: ApiDeps) -> TaskSummary:
    loaded = load_permitted(command.principal, command.task_id, Operation.CANCEL, tasks=deps.tasks, rights=deps.rights)
    task = loaded.task
    if task.execution.cancel is not None:
        return summarise(task)
    if task.closed:
        msg = f"the task has ended: {task.business.outcome}"
        raise TaskClosed(msg)
    workflow = deps.tasks.workflows[task.business.workflow]
    now = deps.tasks.clock.now()
    ground = Ground(workflow=workflow, now=now, stamps=stamps_of(workflow, deps.model_id), new_id=deps.tasks.ids.new)
    change = begin(task, because=f"cancellation requested by {command.principal.ref.subject}", ground=ground)
    change = move_to(change, status=Status.CANCEL_REQUESTED, stage=task.business.stage, ground=ground)
    change = void_approvals(settle_waits(change, WaitStatus.VOID))
    request = CancelRequest(scope=CancelScope.TASK, principal=command.principal.ref, requested_at=now)
    change = set_execution(change, cancel=request)
    return summarise(commit_change(change, deps.tasks, previous=loaded).task)
