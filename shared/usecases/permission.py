"""Asking whether a principal may act on a task: the same question from every surface."""

from shared.domain.action import Arguments
from shared.domain.authority import Operation, Principal, Question
from shared.domain.checkpoint import Checkpoint
from shared.domain.dispatch import question_on_workflow, resource_of
from shared.domain.errors import NotAuthorised, TaskNotFound
from shared.domain.identity import task_key
from shared.domain.workflow import Workflow
from shared.usecases.engine import Records, Rights
from shared.usecases.stored_task import Loaded, load_task


def load_permitted(
    principal: Principal, task_id: str, operation: Operation, *, tasks: Records, rights: Rights
) -> Loaded:
    """Load a task of the principal's own tenant and check that the principal may do this with it.

    Knowing an id gives nothing: another tenant's task, an unknown one and one that may not even be read answer alike.

    Raises:
        TaskNotFound, NotAuthorised, Untrusted, SealUnavailable.
    """
    loaded = load_task(task_key(principal.tenant, task_id), tasks)
    require(principal, operation, loaded.task, tasks.workflows[loaded.task.business.workflow], rights=rights)
    return loaded


def require(
    principal: Principal, operation: Operation, task: Checkpoint, workflow: Workflow, *, rights: Rights
) -> None:
    """Check a right on a task.

    Raises:
        TaskNotFound: the principal may not even read it.
        NotAuthorised: the principal may read it, and may not do this.
    """
    question = Question(
        principal=principal,
        operation=operation,
        resource=resource_of(task),
        attributes=workflow.attributes(task.business.request),
    )
    ruling = rights.authoriser.rule(question)
    if ruling.allowed:
        return
    readable = rights.authoriser.rule(question.model_copy(update={"operation": Operation.READ}))
    if not readable.allowed:
        msg = "no such task"
        raise TaskNotFound(msg)
    raise NotAuthorised(ruling.reason)


def require_on_workflow(
    principal: Principal,
    operation: Operation,
    workflow: Workflow,
    *,
    rights: Rights,
    attributes: Arguments | None = None,
) -> None:
    """Check a right that is not about one task, such as starting.

    Raises:
        NotAuthorised: the policies say no.
    """
    ruling = rights.authoriser.rule(question_on_workflow(principal, operation, workflow, attributes or {}))
    if not ruling.allowed:
        raise NotAuthorised(ruling.reason)
