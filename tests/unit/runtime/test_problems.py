"""Errors as HTTP."""

import json
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from shared.domain import errors
from shared.domain.errors import EngineError, InvariantBroken, NotAuthenticated, StaleApproval, Throttled
from shared.runtime.api import RETRY_AFTER_SECONDS, HttpError, meaning_of, problem_of
from shared.usecases.stored_task import Untrusted

# Every error that the engine raises on purpose, and what HTTP says about it. A new error needs a line here.
STATUSES = {
    "InvalidRequest": 400,
    "RequestTooLarge": 413,
    "NotAuthenticated": 401,
    "NotAuthorised": 403,
    "TaskNotFound": 404,
    "IllegalTransition": 409,
    "KeyReused": 422,
    "StaleApproval": 409,
    "DecisionClosed": 409,
    "TaskClosed": 409,
    "ActionInFlight": 409,
    "NothingToCancel": 409,
    "NoChildTasks": 409,
    "StaleCommand": 409,
    "ReleaseRefused": 409,
    "StaleVersion": 409,
    "ApprovalVoid": 409,
    "EvidenceStale": 409,
    "WaitSettled": 409,
    "DuplicateEvent": 409,
    "LeaseLost": 503,
    "LeaseHeld": 503,
    "Throttled": 503,
    "DependencyTimeout": 503,
    "ModelUnavailable": 503,
    "SealUnavailable": 503,
    "SecretsUnavailable": 503,
    "GateFailed": 409,
    "CheckpointQuarantined": 409,
    "OutcomeUnknown": 409,
    "AuthorityUnreadable": 503,
    "InvariantBroken": 500,
}
BASES = {"EngineError", "Reject", "Redecide", "Retry", "Park", "Crash"}


def engine_errors() -> Iterator[type[EngineError]]:
    """Find every error of the domain."""
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, EngineError) and name not in BASES:
            yield value


def test_every_error_has_its_status() -> None:
    """The table is complete: no error is answered by a status that nobody chose."""
    assert {kind.__name__: int(meaning_of(kind).status) for kind in engine_errors()} == STATUSES


def test_an_error_derived_elsewhere_means_what_its_parent_means() -> None:
    """A more special error, such as one that carries more for the engine, changes nothing for a caller."""
    assert meaning_of(Untrusted).status is HTTPStatus.CONFLICT


def test_a_problem_has_the_standard_members_and_a_stable_code() -> None:
    """RFC 9457: type, title, status and detail; the code is for machines and finds its way into the type."""
    problem = problem_of(StaleApproval("look again"), correlation_id="req-1", current={"version": 3})

    assert json.loads(problem.body) == {
        "type": "urn:holdfast:problem:stale_approval",
        "title": "This speaks of another version of the request",
        "status": 409,
        "detail": "look again",
        "code": "stale_approval",
        "correlation_id": "req-1",
        "current": {"version": 3},
    }


@pytest.mark.parametrize("error", [InvariantBroken("row 7 of acme is odd"), KeyError("secret")])
def test_a_crash_tells_nothing_about_itself(error: Exception) -> None:
    """What went wrong on our side is for our logs; the caller gets the id that finds it."""
    problem = problem_of(error, correlation_id="req-1")

    assert (problem.status, problem.code) == (HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error")
    assert "secret" not in problem.body
    assert "acme" not in problem.body
    assert json.loads(problem.body)["correlation_id"] == "req-1"


def test_what_only_http_knows_keeps_its_own_words() -> None:
    """A method or media type that does not fit is answered in the same form."""
    error = HttpError(HTTPStatus.METHOD_NOT_ALLOWED, "method_not_allowed", "use GET", headers={"Allow": "GET"})

    problem = problem_of(error, correlation_id="r")

    assert (problem.status, problem.code, problem.detail) == (405, "method_not_allowed", "use GET")
    assert problem.headers == {"Allow": "GET"}


def test_a_caller_is_told_when_to_try_again_and_how_to_log_in() -> None:
    """503 comes with Retry-After, 401 with the scheme."""
    assert problem_of(Throttled("slow down"), correlation_id="r").headers == {"Retry-After": str(RETRY_AFTER_SECONDS)}
    assert problem_of(NotAuthenticated("who?"), correlation_id="r").headers == {"WWW-Authenticate": "Bearer"}
