"""Errors as HTTP: one table from what went wrong to a status, and one form of answer (problem details, RFC 9457).

A problem's `code` is stable and for machines; `detail` is a sentence for a person. Neither ever repeats what was sent.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from shared.domain.errors import (
    ActionInFlight,
    AuthorityUnreadable,
    DecisionClosed,
    Disposition,
    EngineError,
    IllegalTransition,
    InvalidRequest,
    KeyReused,
    LeaseLost,
    NotAuthenticated,
    NotAuthorised,
    NothingToCancel,
    ReleaseRefused,
    RequestTooLarge,
    StaleApproval,
    StaleCommand,
    TaskClosed,
    TaskNotFound,
)

PROBLEM_JSON: Final = "application/problem+json"
# Long enough for a throttled table to breathe, short enough for a person who waits at a screen.
RETRY_AFTER_SECONDS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a kind of error means to a caller over HTTP."""

    status: HTTPStatus
    title: str


# By class, so that an error's subclasses mean the same until they have a line of their own.
_BY_CLASS: Final[Mapping[type[EngineError], Meaning]] = {
    InvalidRequest: Meaning(status=HTTPStatus.BAD_REQUEST, title="The request does not have the promised form"),
    RequestTooLarge: Meaning(status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE, title="The request is too large"),
    NotAuthenticated: Meaning(status=HTTPStatus.UNAUTHORIZED, title="No valid access token"),
    NotAuthorised: Meaning(status=HTTPStatus.FORBIDDEN, title="You may not do this"),
    TaskNotFound: Meaning(status=HTTPStatus.NOT_FOUND, title="Not found"),
    IllegalTransition: Meaning(status=HTTPStatus.CONFLICT, title="Not possible at this point of the task"),
    KeyReused: Meaning(
        status=HTTPStatus.UNPROCESSABLE_ENTITY, title="The idempotency key was used for another request"
    ),
    StaleApproval: Meaning(status=HTTPStatus.CONFLICT, title="This speaks of another version of the request"),
    DecisionClosed: Meaning(status=HTTPStatus.CONFLICT, title="It can no longer be decided or answered"),
    TaskClosed: Meaning(status=HTTPStatus.CONFLICT, title="The task has ended"),
    ActionInFlight: Meaning(status=HTTPStatus.CONFLICT, title="An effect is under way or has happened"),
    NothingToCancel: Meaning(status=HTTPStatus.CONFLICT, title="There is nothing to stop"),
    StaleCommand: Meaning(status=HTTPStatus.CONFLICT, title="The task is not as you saw it"),
    ReleaseRefused: Meaning(status=HTTPStatus.CONFLICT, title="The task stays in quarantine"),
    # Another attempt holds what this one needs; the same request may win later.
    LeaseLost: Meaning(status=HTTPStatus.SERVICE_UNAVAILABLE, title="Busy; try again"),
    AuthorityUnreadable: Meaning(status=HTTPStatus.SERVICE_UNAVAILABLE, title="Rights cannot be read; try again"),
}
_BY_DISPOSITION: Final[Mapping[Disposition, Meaning]] = {
    Disposition.REJECT: Meaning(status=HTTPStatus.BAD_REQUEST, title="The request has to change"),
    Disposition.REDECIDE: Meaning(status=HTTPStatus.CONFLICT, title="The task moved on meanwhile; look again"),
    Disposition.RETRY: Meaning(status=HTTPStatus.SERVICE_UNAVAILABLE, title="Nothing happened; try again"),
    Disposition.PARK: Meaning(status=HTTPStatus.CONFLICT, title="A person has to look at this task first"),
    Disposition.CRASH: Meaning(status=HTTPStatus.INTERNAL_SERVER_ERROR, title="Something is wrong on our side"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An answer that is not what was asked for. `more` are members beyond the standard ones."""

    status: HTTPStatus
    code: str
    title: str
    detail: str
    more: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> str:
        """The body, as problem details."""
        return json.dumps(
            {
                "type": f"urn:holdfast:problem:{self.code}",
                "title": self.title,
                "status": int(self.status),
                "detail": self.detail,
                "code": self.code,
                **self.more,
            }
        )


class HttpError(Exception):
    """A refusal that only HTTP knows, such as a method that a path does not have."""

    def __init__(self, status: HTTPStatus, code: str, detail: str, *, headers: Mapping[str, str] | None = None) -> None:
        """Keep what the problem is made of."""
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers or {}


def problem_of(error: Exception, *, correlation_id: str, current: object = None) -> Problem:
    """Turn an error into a problem.

    Args:
        error: anything; what nobody raised on purpose is a crash, and a crash tells nothing about itself.
        correlation_id: finds this request in the logs.
        current: the task as it is now, for a caller who lost against it.
    """
    more = {"correlation_id": correlation_id} | ({} if current is None else {"current": current})
    if isinstance(error, HttpError):
        return Problem(
            status=error.status,
            code=error.code,
            title=error.status.phrase,
            detail=error.detail,
            more=more,
            headers=error.headers,
        )
    if not isinstance(error, EngineError) or error.disposition is Disposition.CRASH:
        meaning = _BY_DISPOSITION[Disposition.CRASH]
        detail = "The failure is logged under the correlation id."
        return Problem(status=meaning.status, code="internal_error", title=meaning.title, detail=detail, more=more)
    meaning = meaning_of(type(error))
    return Problem(
        status=meaning.status,
        code=error.code,
        title=meaning.title,
        detail=error.message,
        more=more,
        headers=_headers_of(meaning.status),
    )


def meaning_of(kind: type[EngineError]) -> Meaning:
    """Look a class of error up: by itself, by the nearest class it descends from, by its disposition."""
    for ancestor in kind.__mro__:
        if ancestor in _BY_CLASS:
            return _BY_CLASS[ancestor]
    return _BY_DISPOSITION[kind.disposition]


def _headers_of(status: HTTPStatus) -> dict[str, str]:
    if status is HTTPStatus.SERVICE_UNAVAILABLE:
        return {"Retry-After": str(RETRY_AFTER_SECONDS)}
    if status is HTTPStatus.UNAUTHORIZED:
        return {"WWW-Authenticate": "Bearer"}
    return {}
