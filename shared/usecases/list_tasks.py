"""List a tenant's tasks of one status, oldest in that status first."""

from shared.domain.authority import Operation, Principal
from shared.domain.errors import NotAuthorised
from shared.domain.status import Status
from shared.ports.task_records import QueuePage
from shared.usecases.engine import ApiDeps
from shared.usecases.permission import require_on_workflow


def list_tasks(principal: Principal, *, status: Status, limit: int, cursor: str | None, deps: ApiDeps) -> QueuePage:
    """Answer with a page of the queue; tasks of workflows that the principal may not list are left out.

    The page comes from an index and may be a moment behind; read the task before acting on it.

    Raises:
        NotAuthorised: the principal may list no workflow at all.
        InvalidRequest: the cursor is not one of ours.
    """
    visible = {name for name in deps.tasks.workflows if _may_list(principal, name, deps)}
    if not visible:
        msg = "you may not list tasks"
        raise NotAuthorised(msg)
    page = deps.tasks.records.queue(principal.tenant, str(status), limit=limit, cursor=cursor)
    return QueuePage(entries=tuple(e for e in page.entries if e.workflow in visible), cursor=page.cursor)


def _may_list(principal: Principal, workflow: str, deps: ApiDeps) -> bool:
    try:
        require_on_workflow(principal, Operation.LIST, deps.tasks.workflows[workflow], rights=deps.rights)
    except NotAuthorised:
        return False
    return True
