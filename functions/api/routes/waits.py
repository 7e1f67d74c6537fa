"""Waits: the answer to a question that a task waits for."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Path

from functions.api.answers import TaskAnswer
from functions.api.call import call_in
from functions.api.operations import new_router, operation
from functions.api.rendering import rendered
from functions.api.requests import AnswerBody
from functions.api.routes.tasks import TaskIdInPath
from shared.usecases.answer_input import AnswerInput, answer_input

router = new_router()

WaitIdInPath = Annotated[str, Path(description="From the task's waits")]


@operation(
    router,
    "answer_wait",
    "POST",
    "/tasks/<task_id>/waits/<wait_id>/answer",
    answer=TaskAnswer,
    also=(404, 409, 413, 415),
)
def answer(task_id: TaskIdInPath, wait_id: WaitIdInPath, body: Annotated[AnswerBody, Body()]) -> Response[str]:
    """Answer a question that a task waits for. Saying the same again changes nothing."""
    call = call_in(router.context)
    command = AnswerInput(
        principal=call.principal,
        task_id=task_id,
        wait_id=wait_id,
        request_version=body.version,
        answer=dict(body.answer),
    )
    return rendered(TaskAnswer.of(answer_input(command, call.deps)))
