"""The webhook's entry point: take a delivery in, verify it, hand what it says to its task, answer its sender."""

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from functions.webhook.authentication import authenticate
from functions.webhook.body import read_event
from functions.webhook.incoming import Incoming, take_in
from shared.domain.errors import Disposition, EngineError, NotAuthenticated
from shared.runtime import wiring
from shared.runtime.api import PROBLEM_JSON, RETRY_AFTER_SECONDS, HttpError, Problem, problem_of
from shared.runtime.observability import Handler, alarm, logger, observed
from shared.runtime.wiring import WebhookParts
from shared.usecases.receive_event import Received, Reception, receive_event

_STATUS: Final = {
    Reception.ACCEPTED: HTTPStatus.OK,
    Reception.DUPLICATE: HTTPStatus.OK,
    Reception.KEPT: HTTPStatus.ACCEPTED,
    Reception.REFUSED: HTTPStatus.CONFLICT,
}
# Nothing was taken in, and the same delivery may be taken in later. A rejection would make its sender give it up.
_COMES_AGAIN: Final = frozenset({Disposition.RETRY, Disposition.REDECIDE, Disposition.PARK})


def receiving(parts: Callable[[], WebhookParts]) -> Handler:
    """Make a handler that works with these parts."""

    def answer(event: dict[str, Any], _context: object) -> dict[str, Any]:
        gateway = event.get("requestContext")
        request_id = str(gateway.get("requestId", "")) if isinstance(gateway, Mapping) else ""
        try:
            incoming = take_in(event)
            received = _receive(incoming, parts())
        except Exception as error:  # noqa: BLE001 - whatever it was, the sender gets a problem and the log the cause
            return _rendered(_explained(error, request_id))
        _log(incoming, received, request_id)
        if received.reception is Reception.REFUSED:
            return _rendered(_refusal(received, request_id))
        return _response(_STATUS[received.reception], "application/json", json.dumps(_state(received)))

    return answer


def _receive(incoming: Incoming, parts: WebhookParts) -> Received:
    authenticate(incoming, parts.secrets, now=parts.deps.tasks.clock.now())
    return receive_event(incoming.tenant, read_event(incoming), parts.deps)


def _explained(error: Exception, request_id: str) -> Problem:
    """Make the problem that answers an error, and log it. The log says why; a stranger is not told."""
    line = {"correlation_id": request_id, "reason": str(error)[:300]}
    if isinstance(error, NotAuthenticated):
        logger.warning("delivery denied", extra=line)
        detail = "no valid signature of a known source"
        challenge = {"WWW-Authenticate": "Standard-Webhooks"}
        error = HttpError(HTTPStatus.UNAUTHORIZED, NotAuthenticated.code, detail, headers=challenge)
    elif isinstance(error, EngineError) and error.disposition in _COMES_AGAIN:
        logger.warning("delivery put off", extra=line)
        detail = "nothing was taken in; send it again"
        later = {"Retry-After": str(RETRY_AFTER_SECONDS)}
        error = HttpError(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", detail, headers=later)
    elif isinstance(error, EngineError) and error.disposition is Disposition.REJECT:
        logger.info("delivery refused", extra=line)
    else:
        logger.error("delivery failed", exc_info=error, extra={"correlation_id": request_id})
        alarm("a signed event could not be taken in because of an error of ours")
    return problem_of(error, correlation_id=request_id)


def _refusal(received: Received, request_id: str) -> Problem:
    return Problem(
        status=_STATUS[Reception.REFUSED],
        code="event_refused",
        title="The event changes nothing any more",
        detail=received.reason or "",
        more={"correlation_id": request_id, "current": _state(received)},
    )


def _state(received: Received) -> dict[str, object]:
    """What a sender is told about the task that it may speak to: nothing but where it stands."""
    if received.task_status is None:
        return {"reception": str(received.reception)}
    return {
        "reception": str(received.reception),
        "task_status": received.task_status,
        "request_version": received.request_version,
    }


def _log(incoming: Incoming, received: Received, request_id: str) -> None:
    line = {
        "tenant": incoming.tenant,
        "source": incoming.source,
        "event_id": incoming.delivery.event_id,
        "reception": str(received.reception),
        "correlation_id": request_id,
    }
    logger.info("delivery", extra=line)


def _rendered(problem: Problem) -> dict[str, Any]:
    return _response(problem.status, PROBLEM_JSON, problem.body, problem.headers)


def _response(
    status: HTTPStatus, content_type: str, body: str, headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    return {
        "statusCode": int(status),
        "headers": {"Content-Type": content_type, "Cache-Control": "no-store", **(headers or {})},
        "body": body,
        "isBase64Encoded": False,
    }


handler = observed(receiving(wiring.webhook))
