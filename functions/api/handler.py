"""The API's entry point: take the request in, identify the caller, let the routes answer."""

from collections.abc import Callable
from typing import Any

from functions.api.application import application
from functions.api.call import ApiParts, Call, identify, wired_parts
from functions.api.incoming import take_in
from functions.api.problems import explain
from functions.api.rendering import as_answer_event
from functions.api.routes import description
from shared.runtime.observability import Handler, observed


def answering(parts: Callable[[], ApiParts]) -> Handler:
    """Make a handler that works with these parts.

    Size is checked before anything else and identity before the body is parsed, so that a stranger's bytes are counted
    and never read.
    """

    def answer(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - the runtime's own type
        gateway = event.get("requestContext") or {}
        call = Call(parts=parts, identity=None, correlation_id=str(gateway.get("requestId", "")))
        try:
            taken = take_in(event)
            if not _is_open(event):
                call.identity = identify(event, parts())
        except Exception as error:  # noqa: BLE001 - whatever it was, the caller gets a problem and the log the cause
            return as_answer_event(explain(error, call, operation="none", task_id=None))
        application.append_context(**call.as_context())  # type: ignore[no-untyped-call] # published without types
        return application.resolve(taken, context)

    return answer


def _is_open(event: dict[str, Any]) -> bool:
    return bool(event.get("rawPath") == description.PATH)


handler = observed(answering(wired_parts))
