"""Bad input on the deployed system: the right status, a stable code, and nothing changed."""

from http import HTTPStatus
from typing import Any

import pytest

from local.walkthrough import Observer

GOOD = {"amount_minor": 45_000, "currency": "EUR", "order_reference": "ord-3001"}


def request(**changes: Any) -> dict[str, Any]:
    """A good request with something wrong about it."""
    return {"workflow": "refund", "request": {**GOOD, **changes}}


BAD_STARTS: dict[str, tuple[object, bytes | None, int, str]] = {
    "malformed JSON": (None, b'{"workflow": ', HTTPStatus.BAD_REQUEST, "invalid_request"),
    "not an object": ([], None, HTTPStatus.BAD_REQUEST, "invalid_request"),
    "a float": (request(amount_minor=450.5), None, HTTPStatus.BAD_REQUEST, "invalid_request"),
    "a whole float": (
        None,
        b'{"workflow":"refund","request":{"amount_minor":45000.0,"currency":"EUR","order_reference":"ord-3001"}}',
        HTTPStatus.BAD_REQUEST,
        "invalid_request",
    ),
    "text": (request(amount_minor="45000"), None, HTTPStatus.BAD_REQUEST, "invalid_request"),
    "a boolean": (request(amount_minor=True), None, HTTPStatus.BAD_REQUEST, "invalid_request"),
    "negative": (request(amount_minor=-1), None, HTTPStatus.BAD_REQUEST, "invalid_request"),
    "nothing": (request(amount_minor=0), None, HTTPStatus.BAD_REQUEST, "invalid_request"),
    "huge": (request(amount_minor=10**18), None, HTTPStatus.BAD_REQUEST, "invalid_request"),
    "unknown currency": (request(currency="XXX"), None, HTTPStatus.BAD_REQUEST, "invalid_request"),
    "unknown field": (request(by="manager-7"), None, HTTPStatus.BAD_REQUEST, "invalid_request"),
    "a key separator": (request(order_reference="ord#3001"), None, HTTPStatus.BAD_REQUEST, "invalid_request"),
    "unknown workflow": ({"workflow": "payroll", "request": GOOD}, None, HTTPStatus.BAD_REQUEST, "invalid_request"),
    "oversize": (request(note="n" * 300_000), None, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "request_too_large"),
}


@pytest.mark.parametrize("what", list(BAD_STARTS))
def test_a_bad_request_starts_nothing(observer: Observer, what: str) -> None:
    """B59: status and code say what is wrong, and no task exists afterwards."""
    body, raw, status, code = BAD_STARTS[what]
    api = observer.instance.api("clerk-1")
    before = tasks(observer)

    answer = api.request("POST", "/tasks", body=body, raw=raw, headers={"idempotency-key": f"bad {what}"})

    assert (answer.status, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"].startswith("application/problem+json")
    assert tasks(observer) == before


def test_a_start_without_a_key_is_refused(observer: Observer) -> None:
    """B27: no idempotency key, no task."""
    answers = [
        observer.instance.api("clerk-1").request("POST", "/tasks", body=request(), headers=headers)
        for headers in ({}, {"idempotency-key": "  "})
    ]

    assert [(a.status, a.json()["code"]) for a in answers] == [(HTTPStatus.BAD_REQUEST, "invalid_request")] * 2


def test_a_key_with_another_body_is_refused(observer: Observer) -> None:
    """The same Idempotency-Key with another body is 422 and the first task stands."""
    first = observer.start("clerk-1", "bad-reuse", GOOD)
    second = observer.start("clerk-1", "bad-reuse", {**GOOD, "amount_minor": 45_001})

    assert first.status == HTTPStatus.CREATED
    assert (second.status, second.json()["code"]) == (HTTPStatus.UNPROCESSABLE_ENTITY, "idempotency_key_reused")


BAD_DECISIONS: dict[str, tuple[dict[str, Any], int]] = {
    **{
        f"decision {word!r}": ({"decision": word, "version": 1}, HTTPStatus.BAD_REQUEST)
        for word in ("no", "false", "approve ", "APPROVE", "rejected", "", None, 0, {"approved": False}, ["approve"])
    },
    "somebody else's name": (
        {"decision": "approve", "version": 1, "by": "manager-7", "amount": 9_000, "status": "ready"},
        HTTPStatus.BAD_REQUEST,
    ),
    "no version": ({"decision": "approve"}, HTTPStatus.BAD_REQUEST),
    "version as text": ({"decision": "approve", "version": "1"}, HTTPStatus.BAD_REQUEST),
    "a later version": ({"decision": "approve", "version": 2}, HTTPStatus.CONFLICT),
}


@pytest.fixture(scope="module")
def waiting(observer: Observer) -> str:
    """A refund that waits for approval."""
    task_id = str(observer.start("clerk-1", "bad-decisions", GOOD).json()["task_id"])
    observer.until_waiting(task_id, "Await approval")
    return task_id


@pytest.mark.parametrize("what", list(BAD_DECISIONS))
def test_a_bad_decision_decides_nothing(observer: Observer, waiting: str, what: str) -> None:
    """B31, B55: only the exact words, the exact fields and the exact version decide."""
    body, status = BAD_DECISIONS[what]
    before = observer.task(waiting)
    path = f"/tasks/{waiting}/approvals/{observer.approval_id(waiting)}/decision"

    answer = observer.instance.api("manager-7").post(path, body)

    assert answer.status == status
    assert observer.task(waiting) == before


def tasks(observer: Observer) -> int:
    """How many tasks there are, counted in the table itself: an index may be behind."""
    client = observer.instance.aws.client("dynamodb")
    counted = client.scan(TableName="holdfast-local-heads", Select="COUNT", ConsistentRead=True)
    return int(counted["Count"])
