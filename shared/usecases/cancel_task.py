"""Cancel a task, or what it is doing: a request to stop, never a claim that nothing happened."""

from collections.abc import Iterator
from dataclasses import dataclass

from shared.domain.action import ActionStatus
from shared.domain.authority import Operation, Principal
from shared.domain.cancel import Stop, canceled, is_covered
from shared.domain.change import Change, stamps_of
from shared.domain.checkpoint import CancelRequest, CancelScope, Checkpoint
from shared.domain.directive import unsettled_action
from shared.domain.errors import ActionInFlight, CheckpointQuarantined, StaleVersion, TaskClosed
from shared.usecases.engine import ApiDeps
from shared.usecases.fresh import decide_on_fresh
from shared.usecases.permission import load_permitted
from shared.usecases.stored_task import Loaded, commit_change
from shared.usecases.summary import TaskSummary, summarise


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelTask:
    """A request to stop the whole task, the tool call or the model turn under way, or the task's child tasks."""

    principal: Principal
    task_id: str
    scope: CancelScope = CancelScope.TASK


def cancel_task(command: CancelTask, deps: ApiDeps) -> TaskSummary:
    """Stop new work. What has not left is taken back at once; what is in flight is found out before anything else.

    Canceling what is being canceled answers with the current state. A whole task ends as what is true and names what
    could not be undone; after a tool call or a model turn a person says how to go on. Child tasks are told in the same
    commit, and their parent waits for what each of them says it came to.

    Raises:
        TaskNotFound, NotAuthorised: nothing was changed.
        TaskClosed: the task has ended already, with the outcome it names.
        NothingToCancel, NoChildTasks: what was to be stopped is not under way.
        CheckpointQuarantined: nothing may be decided on what is stored; an operator releases or closes the task first.

    If killed here:
        The request, the withdrawn intent, the voided waits and the machine's wake-up are stored together or not at all.
    """
    return decide_on_fresh(lambda: _cancel(command, deps))


def _cancel(command: CancelTask, deps: ApiDeps) -> TaskSummary:
    loaded = load_permitted(command.principal, command.task_id, Operation.CANCEL, tasks=deps.tasks, rights=deps.rights)
    task = loaded.task
    if is_covered(task, command.scope):
        return summarise(task)
    if task.closed:
        msg = f"the task has ended: {task.business.outcome}"
        raise TaskClosed(msg)
    children = tuple(_stopped_children(task, command, deps))
    if command.scope is CancelScope.CHILD_TASKS and task.live_children and not children:
        return summarise(task)
    change = _stopped(task, command.scope, command, deps)
    try:
        return summarise(commit_change(change, deps.tasks, previous=loaded, children=children).task)
    except ActionInFlight as claimed:
        # A worker claimed the intent that was to be taken back: what to do about it is decided anew (B17).
        raise StaleVersion(claimed.message) from claimed


def _stopped(task: Checkpoint, scope: CancelScope, command: CancelTask, deps: ApiDeps) -> Change:
    workflow = deps.tasks.workflows[task.business.workflow]
    ground = deps.tasks.ground(workflow, stamps_of(workflow, deps.model_id))
    request = CancelRequest(scope=scope, principal=command.principal.ref, requested_at=ground.now)
    return canceled(Stop(task=task, request=request, ground=ground, unsent=_is_unsent(task, deps)))


def _stopped_children(task: Checkpoint, command: CancelTask, deps: ApiDeps) -> Iterator[tuple[Change, Loaded]]:
    """Tell every live child, and theirs, to stop, as far as the request reaches.

    One that has ended, or was told before, needs no telling. One that is quarantined is in the hands of operators; its
    parent waits for what they make of it.
    """
    if command.scope not in {CancelScope.TASK, CancelScope.CHILD_TASKS}:
        return
    for known in task.live_children:
        try:
            child = load_permitted(
                command.principal, known.task_id, Operation.CANCEL, tasks=deps.tasks, rights=deps.rights
            )
        except CheckpointQuarantined:
            continue
        if child.task.closed or is_covered(child.task, CancelScope.TASK):
            continue
        yield _stopped(child.task, CancelScope.TASK, command, deps), child
        yield from _stopped_children(child.task, command, deps)


def _is_unsent(task: Checkpoint, deps: ApiDeps) -> bool:
    action = unsettled_action(task)
    row = deps.ledger.get(task.key, action.operation) if action else None
    return row is not None and row.status is ActionStatus.INTENT
