"""From anything that went wrong to a problem and its line in the log. Lines name who, what and why, never a body."""

from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError

from functions.api.answers import TaskAnswer
from functions.api.call import Call
from shared.domain.errors import EngineError, InvalidRequest, TaskNotFound
from shared.runtime.api import Problem, problem_of
from shared.runtime.observability import logger
from shared.usecases.read_task import read_task

_DENIED: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


class FieldFaults(InvalidRequest):
    """Parts of the request are not as promised; names them, without repeating what was sent."""

    def __init__(self, faults: list[dict[str, str]]) -> None:
        """Keep the faults."""
        super().__init__("; ".join(f"{fault['field']}: {fault['problem']}" for fault in faults))
        self.faults = faults


def explain(error: Exception, call: Call, *, operation: str, task_id: str | None) -> Problem:
    """Make the problem that answers an error, and log it: denials and failures so that somebody notices."""
    error = _as_engine_error(error)
    problem = problem_of(error, correlation_id=call.correlation_id)
    if problem.status is HTTPStatus.CONFLICT and task_id is not None:
        problem = problem_of(error, correlation_id=call.correlation_id, current=_current(call, task_id))
    if isinstance(error, FieldFaults):
        problem = _with(problem, errors=error.faults)
    _log(error, problem, call, operation=operation, task_id=task_id)
    return problem


def _as_engine_error(error: Exception) -> Exception:
    if not isinstance(error, RequestValidationError):
        return error
    faults = [{"field": ".".join(map(str, e["loc"])), "problem": str(e["msg"])} for e in error.errors()]
    # The router reports an answer of ours that breaks its own promise in the same way; that is not the caller's fault.
    if any(fault["field"].startswith("response") for fault in faults):
        return error
    return FieldFaults(faults)


def _current(call: Call, task_id: str) -> dict[str, Any] | None:
    if call.known is None:
        return None
    try:
        summary = read_task(call.known, task_id, call.deps)
    except EngineError:
        # The conflict is the answer; the state is a courtesy.
        return None
    return TaskAnswer.of(summary).model_dump(mode="json")


def _with(problem: Problem, **more: object) -> Problem:
    return Problem(
        status=problem.status,
        code=problem.code,
        title=problem.title,
        detail=problem.detail,
        more={**problem.more, **more},
        headers=problem.headers,
    )


def _log(error: Exception, problem: Problem, call: Call, *, operation: str, task_id: str | None) -> None:
    line = {
        "principal": call.name,
        "operation": operation,
        "task_id": task_id,
        "status": int(problem.status),
        "code": problem.code,
        "correlation_id": call.correlation_id,
    }
    if problem.status is HTTPStatus.INTERNAL_SERVER_ERROR:
        logger.error("request failed", exc_info=error, extra=line)
    elif problem.status in _DENIED or isinstance(error, TaskNotFound):
        logger.warning("request denied", extra={**line, "reason": problem.detail})
    else:
        logger.info("request refused", extra={**line, "reason": problem.detail})
