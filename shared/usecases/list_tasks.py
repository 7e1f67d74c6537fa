"""List a tenant's tasks of one status, longest in that status first."""

from dataclasses import dataclass
from datetime import datetime

from shared.domain.authority import Operation, Principal
from shared.domain.errors import NotAuthorised
from shared.domain.instants import parse_instant
from shared.domain.status import Status
from shared.ports.task_records import QueueEntry
from shared.usecases.engine import ApiDeps
from shared.usecases.permission import require_on_workflow


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLine:
    """A line of the queue. `age_seconds` is how long the task has had this status; `reason` says why somebody looks."""

    task_id: str
    workflow: str
    status: str
    stage: str
    owner: str
    since: str
    age_seconds: int
    due_at: str | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLines:
    """A page of the queue, and the cursor of the next."""

    entries: tuple[QueueLine, ...]
    cursor: str | None


def list_tasks(principal: Principal, *, status: Status, limit: int, cursor: str | None, deps: ApiDeps) -> QueueLines:
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
    now = deps.tasks.clock.now()
    lines = tuple(_line(entry, now) for entry in page.entries if entry.workflow in visible)
    return QueueLines(entries=lines, cursor=page.cursor)


def _line(entry: QueueEntry, now: datetime) -> QueueLine:
    age = now - parse_instant(entry.since)
    return QueueLine(
        task_id=entry.task_id,
        workflow=entry.workflow,
        status=entry.status,
        stage=entry.stage,
        owner=entry.owner,
        since=entry.since,
        age_seconds=max(0, int(age.total_seconds())),
        due_at=entry.due_at,
        reason=entry.reason,
    )


def _may_list(principal: Principal, workflow: str, deps: ApiDeps) -> bool:
    try:
        require_on_workflow(principal, Operation.LIST, deps.tasks.workflows[workflow], rights=deps.rights)
    except NotAuthorised:
        return False
    return True
