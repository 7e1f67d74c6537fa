"""The frame of every function that the state machine calls: parse, call, render, and five error names.

Step Functions matches error *names*. So a function raises one of exactly five classes whose names are the dispositions,
with ``{"code", "message"}`` as the message; the graph has one rule for each and never changes when an error is added.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from shared.domain.errors import Disposition, EngineError, InvariantBroken
from shared.domain.records import Record
from shared.runtime.observability import logger

RequestT = TypeVar("RequestT", bound=Record)


class StepError(Exception):
    """What the state machine sees of an error."""

    def __init__(self, code: str, message: str) -> None:
        """Render code and message as the cause that an operator reads in the console."""
        super().__init__(json.dumps({"code": code, "message": message[:1_000]}))


class Reject(StepError):
    """The input has to change."""


class Redecide(StepError):
    """Facts moved; wake again."""


class Retry(StepError):
    """Nothing happened; the same input later."""


class Park(StepError):
    """A person or a clock moves it."""


class Crash(StepError):
    """Our bug."""


_NAMES: Final[Mapping[Disposition, type[StepError]]] = {
    Disposition.REJECT: Reject,
    Disposition.REDECIDE: Redecide,
    Disposition.RETRY: Retry,
    Disposition.PARK: Park,
    Disposition.CRASH: Crash,
}


def run_step(event: object, form: type[RequestT], work: Callable[[RequestT], Record]) -> dict[str, Any]:
    """Read the machine's payload, do the work, and return its result as JSON.

    Raises:
        StepError: one of the five. An error that nobody raised on purpose keeps its own name and is a crash too.
    """
    try:
        request = form.model_validate_json(json.dumps(event))
    except (ValidationError, TypeError, ValueError) as error:
        raise Crash(InvariantBroken.code, f"the machine sent an input of another form: {error}") from error
    try:
        result = work(request)
    except EngineError as error:
        logger.warning(error.message, extra={"code": error.code, "disposition": error.disposition})
        raise _NAMES[error.disposition](error.code, error.message) from error
    answer = result.model_dump(mode="json", exclude_none=True)
    logger.info("step", extra={"answer": answer})
    return answer
