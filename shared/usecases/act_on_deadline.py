"""Act on a wait's ladder: remind, escalate, or end the wait it was armed for, and nothing else."""

from dataclasses import dataclass

from shared.domain.answer import child_ended
from shared.domain.deadline import act_on_rung
from shared.domain.errors import CheckpointQuarantined, TaskNotFound
from shared.domain.identity import TaskKey
from shared.domain.wait import WaitKind
from shared.usecases.engine import DeadlineDeps
from shared.usecases.fresh import decide_on_fresh
from shared.usecases.stored_task import commit_change, ended_child, load_task


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlineFired:
    """What a timer says: which wait it was armed for, and at which rung."""

    tenant: str
    correlation_id: str
    wait_id: str
    rung: int


def act_on_deadline(fired: DeadlineFired, deps: DeadlineDeps) -> bool:
    """Act on the rung if the stored wait is still at it and its time has come (B67).

    Returns:
        Whether anything was changed.

    Raises:
        Redecide, Retry: nothing was changed; fire again.

    If killed here:
        The rung, its event and the next timer are one commit; a second firing finds a higher rung and does nothing.
    """
    return decide_on_fresh(lambda: _act(fired, deps))


def _act(fired: DeadlineFired, deps: DeadlineDeps) -> bool:
    wait = deps.waits.get(fired.tenant, fired.correlation_id)
    if wait is None or (wait.wait_id, wait.rung) != (fired.wait_id, fired.rung):
        return False
    try:
        loaded = load_task(TaskKey(tenant=wait.tenant, task_id=wait.task_id), deps.tasks)
    except (TaskNotFound, CheckpointQuarantined):
        return False
    workflow = deps.tasks.workflows[loaded.task.business.workflow]
    ground = deps.tasks.ground(workflow, loaded.task.stamps)
    child = ended_child(loaded.task, deps.tasks) if wait.kind is WaitKind.CHILD else None
    # What a child came to counts, also where the word of it was lost.
    change = act_on_rung(loaded.task, wait, ground) if child is None else child_ended(loaded.task, child, ground)
    if change is None:
        return False
    commit_change(change, deps.tasks, previous=loaded)
    return True
