"""Approvals: the page that is decided on, and the decision. Only POST decides (B02)."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path

from functions.api.answers import ApprovalPageAnswer, TaskAnswer
from functions.api.call import call_in
from functions.api.operations import new_router, operation
from functions.api.rendering import rendered
from functions.api.requests import DecisionBody
from functions.api.routes.tasks import TaskIdInPath
from shared.domain.approval import DecisionWord
from shared.usecases.decide_approval import DecideApproval, decide_approval
from shared.usecases.read_approval import read_approval

router = new_router()

ApprovalIdInPath = Annotated[str, Path(description="From the task's approvals")]


@operation(
    router,
    "read_approval",
    "GET",
    "/tasks/<task_id>/approvals/<approval_id>",
    answer=ApprovalPageAnswer,
    also=(404, 409),
)
def read(task_id: TaskIdInPath, approval_id: ApprovalIdInPath) -> Response[str]:
    """Read what an approval covers and what you may decide."""
    call = call_in(router.context)
    return rendered(ApprovalPageAnswer.of(read_approval(call.principal, task_id, approval_id, call.deps)))


@operation(
    router,
    "decide_approval",
    "POST",
    "/tasks/<task_id>/approvals/<approval_id>/decision",
    answer=TaskAnswer,
    also=(404, 409, 413, 415),
)
def decide(
    task_id: TaskIdInPath, approval_id: ApprovalIdInPath, body: Annotated[DecisionBody, Body()]
) -> Response[str]:
    """Approve or reject. Saying the same again changes nothing."""
    call = call_in(router.context)
    command = DecideApproval(
        principal=call.principal,
        task_id=task_id,
        approval_id=approval_id,
        word=DecisionWord(body.decision),
        request_version=body.version,
        reason=body.reason,
    )
    return rendered(TaskAnswer.of(decide_approval(command, call.deps)))
