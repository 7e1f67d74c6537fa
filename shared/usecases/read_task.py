"""Read a task. Reading changes nothing."""

from shared.domain.authority import Operation, Principal
from shared.usecases.engine import ApiDeps
from shared.usecases.permission import load_permitted
from shared.usecases.summary import TaskSummary, summarise


def read_task(principal: Principal, task_id: str, deps: ApiDeps) -> TaskSummary:
    """Answer with the task as it is stored now, strongly consistent.

    Raises:
        TaskNotFound: unknown, another tenant's, or not readable by this principal.
        Untrusted: the task is quarantined.
    """
    loaded = load_permitted(principal, task_id, Operation.READ, tasks=deps.tasks, rights=deps.rights)
    return summarise(loaded.task)
