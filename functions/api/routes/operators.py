"""What operators do: look at a record, and give commands. Each command leaves a line in the log, kept or refused."""

from typing import Annotated, Any, Final

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body

from functions.api.answers import RecordAnswer, TaskAnswer
from functions.api.call import Call, call_in
from functions.api.operations import new_router, operation
from functions.api.rendering import rendered
from functions.api.requests import CommandBody, EscalateBody, ReleaseBody, SettleBody
from functions.api.routes.tasks import TaskIdInPath
from shared.runtime.observability import logger
from shared.usecases.escalate_wait import EscalateWait, escalate_wait
from shared.usecases.inspect_record import inspect_record
from shared.usecases.operator_command import OperatorCommand
from shared.usecases.quarantine_by_hand import quarantine_by_hand
from shared.usecases.release_task import ReleaseTask, close_task, release_task
from shared.usecases.retry_task import retry_task
from shared.usecases.settle_action import SettleAction, settle_action

router = new_router()
_COMMANDS: Final = "/tasks/<task_id>/operations"
_REFUSALS: Final = (404, 409, 413, 415)


@operation(router, "inspect_record", "GET", "/tasks/<task_id>/record", answer=RecordAnswer, also=(404, 409))
def inspect(task_id: TaskIdInPath) -> Response[str]:
    """Look at a task's record, trusted or not, before releasing or closing it."""
    call = call_in(router.context)
    return rendered(RecordAnswer.of(inspect_record(call.principal, task_id, call.deps)))


@operation(router, "retry_task", "POST", f"{_COMMANDS}/retry", answer=TaskAnswer, also=_REFUSALS)
def retry(task_id: TaskIdInPath, body: Annotated[CommandBody, Body()]) -> Response[str]:
    """Let a task in review try again.

    What was refused last is asked for and tried anew, under a new key. An outcome that is unknown is asked about again.
    """
    call = call_in(router.context)
    answer = TaskAnswer.of(retry_task(OperatorCommand(**_common(call, task_id, body)), call.deps))
    return _kept(call, "retry", answer, body)


@operation(router, "settle_action", "POST", f"{_COMMANDS}/settle", answer=TaskAnswer, also=_REFUSALS)
def settle(task_id: TaskIdInPath, body: Annotated[SettleBody, Body()]) -> Response[str]:
    """Say what became of an action whose outcome is unknown, as the provider has told you.

    It stands in the ledger as your word, with your evidence, and the task goes on from there.
    """
    call = call_in(router.context)
    command = SettleAction(
        **_common(call, task_id, body),
        operation=body.operation,
        outcome=body.outcome,
        reference=body.reference,
        evidence=body.evidence,
    )
    return _kept(call, "settle", TaskAnswer.of(settle_action(command, call.deps)), body)


@operation(router, "release_task", "POST", f"{_COMMANDS}/release", answer=TaskAnswer, also=_REFUSALS)
def release(task_id: TaskIdInPath, body: Annotated[ReleaseBody, Body()]) -> Response[str]:
    """Take a task out of quarantine, from a version of its record that is intact.

    It passes every gate again, and people are asked again about what they had approved.
    """
    call = call_in(router.context)
    command = ReleaseTask(**_common(call, task_id, body), from_version=body.from_version)
    return _kept(call, "release", TaskAnswer.of(release_task(command, call.deps)), body)


@operation(router, "close_task", "POST", f"{_COMMANDS}/close", answer=TaskAnswer, also=_REFUSALS)
def close(task_id: TaskIdInPath, body: Annotated[CommandBody, Body()]) -> Response[str]:
    """End a quarantined task as failed. Its outcome names what is open."""
    call = call_in(router.context)
    answer = TaskAnswer.of(close_task(OperatorCommand(**_common(call, task_id, body)), call.deps))
    return _kept(call, "close", answer, body)


@operation(router, "quarantine_task", "POST", f"{_COMMANDS}/quarantine", answer=RecordAnswer, also=_REFUSALS)
def quarantine(task_id: TaskIdInPath, body: Annotated[CommandBody, Body()]) -> Response[str]:
    """Quarantine a task by hand. Nothing is begun on it until it is released or closed."""
    call = call_in(router.context)
    quarantine_by_hand(OperatorCommand(**_common(call, task_id, body)), call.deps)
    answer = RecordAnswer.of(inspect_record(call.principal, task_id, call.deps))
    return _kept(call, "quarantine", answer, body)


@operation(router, "escalate_wait", "POST", f"{_COMMANDS}/escalate", answer=TaskAnswer, also=_REFUSALS)
def escalate(task_id: TaskIdInPath, body: Annotated[EscalateBody, Body()]) -> Response[str]:
    """Move an open wait up its ladder now: remind, or hand it to its next owner."""
    call = call_in(router.context)
    command = EscalateWait(**_common(call, task_id, body), wait_id=body.wait_id)
    return _kept(call, "escalate", TaskAnswer.of(escalate_wait(command, call.deps)), body)


def _common(call: Call, task_id: str, body: CommandBody) -> dict[str, Any]:
    return {"principal": call.principal, "task_id": task_id, "version": body.version, "reason": body.reason}


def _kept(call: Call, command: str, answer: TaskAnswer | RecordAnswer, body: CommandBody) -> Response[str]:
    """Answer, and write the audit line of a command that was carried out. Refused ones are logged like all refusals."""
    logger.info(
        "operator's command",
        extra={
            "audit": "operator_command",
            "command": command,
            "principal": call.name,
            "task_id": answer.task_id,
            "seen_version": body.version,
            "version": answer.version,
            "reason": body.reason,
            "correlation_id": call.correlation_id,
        },
    )
    return rendered(answer)
