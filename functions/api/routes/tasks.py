"""Tasks: start, list, read, amend, cancel."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Header, Path, Query

from functions.api.answers import QueueAnswer, TaskAnswer
from functions.api.call import call_in
from functions.api.operations import new_router, operation
from functions.api.rendering import rendered
from functions.api.requests import (
    CURSOR_CHARACTERS_MAX,
    IDEMPOTENCY_KEY_CHARACTERS_MAX,
    IDEMPOTENCY_KEY_PATTERN,
    PAGE_TASKS_DEFAULT,
    PAGE_TASKS_MAX,
    AmendTaskBody,
    CancelBody,
    StartTaskBody,
)
from shared.domain.checkpoint import CancelScope
from shared.domain.status import Status
from shared.usecases.amend_task import AmendTask, amend_task
from shared.usecases.cancel_task import CancelTask, cancel_task
from shared.usecases.list_tasks import list_tasks
from shared.usecases.read_task import read_task
from shared.usecases.start_task import StartTask, start_task

router = new_router()

TaskIdInPath = Annotated[str, Path(description="`tsk_` and 32 hexadecimal digits")]
IdempotencyKey = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=IDEMPOTENCY_KEY_CHARACTERS_MAX,
        pattern=IDEMPOTENCY_KEY_PATTERN,
        description="Your own name for this request; repeating it with the same body starts nothing a second time",
    ),
]


@operation(router, "start_task", "POST", "/tasks", answer=TaskAnswer, status=201, also=(200, 413, 415, 422))
def start(body: Annotated[StartTaskBody, Body()], idempotency_key: IdempotencyKey) -> Response[str]:
    """Start a task.

    The same key with the same body answers 200 with the task that it started; with another body it is refused.
    """
    call = call_in(router.context)
    summary = start_task(
        StartTask(
            principal=call.principal,
            workflow=body.workflow,
            request=dict(body.request),
            idempotency_key=idempotency_key,
        ),
        call.deps,
    )
    # Relative to this address, whatever path the API is served under.
    location = {"Location": f"tasks/{summary.task_id}"}
    return rendered(TaskAnswer.of(summary), status=201 if summary.created else 200, headers=location)


@operation(router, "list_tasks", "GET", "/tasks", answer=QueueAnswer)
def list_by_status(
    status: Annotated[Status, Query(description="Which tasks")],
    limit: Annotated[int, Query(ge=1, le=PAGE_TASKS_MAX, description="How many at most")] = PAGE_TASKS_DEFAULT,
    cursor: Annotated[
        str | None, Query(min_length=1, max_length=CURSOR_CHARACTERS_MAX, description="From the page before")
    ] = None,
) -> Response[str]:
    """List your tenant's tasks of one status, longest in that status first."""
    call = call_in(router.context)
    page = list_tasks(call.principal, status=status, limit=limit, cursor=cursor, deps=call.deps)
    return rendered(QueueAnswer.of(page))


@operation(router, "read_task", "GET", "/tasks/<task_id>", answer=TaskAnswer, also=(404, 409))
def read(task_id: TaskIdInPath) -> Response[str]:
    """Read a task as it is stored now."""
    call = call_in(router.context)
    return rendered(TaskAnswer.of(read_task(call.principal, task_id, call.deps)))


@operation(router, "amend_task", "PATCH", "/tasks/<task_id>", answer=TaskAnswer, also=(404, 409, 413, 415))
def amend(task_id: TaskIdInPath, body: Annotated[AmendTaskBody, Body()]) -> Response[str]:
    """Replace a task's request. Approvals of the old request are void."""
    call = call_in(router.context)
    command = AmendTask(
        principal=call.principal,
        task_id=task_id,
        request=dict(body.request),
        request_version=body.request_version,
    )
    return rendered(TaskAnswer.of(amend_task(command, call.deps)))


@operation(router, "cancel_task", "POST", "/tasks/<task_id>/cancel", answer=TaskAnswer, also=(404, 409, 413, 415))
def cancel(task_id: TaskIdInPath, body: Annotated[CancelBody, Body()]) -> Response[str]:
    """Ask to stop a task, or what it is doing. Asking again answers with the current state.

    Nothing new is begun from then on. What has not left is taken back; what has is found out before the task ends, and
    its outcome names what could not be undone.
    """
    call = call_in(router.context)
    command = CancelTask(principal=call.principal, task_id=task_id, scope=CancelScope(body.scope))
    return rendered(TaskAnswer.of(cancel_task(command, call.deps)))
