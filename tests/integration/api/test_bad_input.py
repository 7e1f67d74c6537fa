"""Bad input: the status, the stable code, and the proof that nothing changed."""

from collections.abc import Mapping
from typing import Any

import pytest

from functions.api.incoming import BODY_BYTES_MAX
from shared.usecases.request_form import UNTRUSTED_BYTES_MAX
from tests.integration.api.conftest import REFUND, Answer, Api, an_event, decision_of, page_of

Task = Mapping[str, Any]
pytestmark = pytest.mark.usefixtures("unchanged")
UNKNOWN_TASK = "tsk_" + "0" * 32


@pytest.fixture
def unchanged(api: Api, task: Task) -> Any:
    """Everything stored after the task of the test was started is as it was."""
    before = api.snapshot()
    yield
    assert api.snapshot() == before


def post(api: Api, raw: str | None = None, *, who: str = "clerk-1", key: str | None = "k-2", **parts: Any) -> Answer:
    """Send something to POST /tasks."""
    headers = {} if key is None else {"Idempotency-Key": key}
    return api.call(who, "POST", "/tasks", raw=raw, headers={**headers, **parts.pop("headers", {})}, **parts)


@pytest.mark.parametrize(
    "raw",
    [
        "{",
        "",
        "null",
        "[]",
        '"refund"',
        "7",
        "{}",
        '{"workflow": "refund"}',
        '{"workflow": "refund", "request": null}',
        '{"workflow": "refund", "request": []}',
        '{"workflow": 7, "request": {}}',
        '{"workflow": "", "request": {}}',
        '{"workflow": "refund", "request": {"amount_minor": {"value": 1}}}',
        '{"workflow": "refund", "request": {}, "tenant": "globex"}',
        '{"workflow": "refund", "workflow": "refund", "request": {}}',
        '{"workflow": "refund", "request": {"amount_minor": 1, "amount_minor": 2}}',
        "[" * 50_000,
    ],
)
def test_a_body_of_another_form(raw: str, api: Api) -> None:
    """Malformed JSON, wrong types, unknown and repeated fields: 400."""
    answer = post(api, raw)

    assert (answer.status, answer.code) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("amount", "word"),
    [
        ("450.00", "whole"),
        ("1e3", "whole"),
        ("NaN", "whole"),
        ("-0.0", "whole"),
        ("9007199254740993", "exact"),
        ("1" + "0" * 400, "exact"),
        ("0", "amount_minor"),
        ("-45000", "amount_minor"),
        ("100000001", "amount_minor"),
        ('"45000"', "amount_minor"),
        ("true", "amount_minor"),
        ("null", "amount_minor"),
    ],
)
def test_an_amount_that_is_no_positive_bounded_integer(amount: str, word: str, api: Api) -> None:
    """Floats, negative, huge and mistyped amounts: 400, naming the field or the rule."""
    request = f'{{"amount_minor": {amount}, "currency": "EUR", "order_reference": "A-1001"}}'
    raw = f'{{"workflow": "refund", "request": {request}}}'

    answer = post(api, raw)

    assert (answer.status, answer.code) == (400, "invalid_request")
    assert word in answer.json["detail"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("currency", "XXX"),
        ("currency", "eur"),
        ("currency", "EUR "),
        ("currency", None),
        ("order_reference", ""),
        ("order_reference", "A-1#globex"),
        ("order_reference", "A" * 41),
        ("order_reference", "A-1001\n"),
        ("note", 7),
        ("surprise", 1),
        ("tenant", "globex"),
    ],
)
def test_a_request_field_that_the_workflow_does_not_accept(field: str, value: object, api: Api) -> None:
    """Unknown currency, odd references, unknown fields: 400, naming the field and not the value."""
    changed: dict[str, Any] = {field: value}
    answer = api.start(key="k-2", **changed)

    assert (answer.status, answer.code) == (400, "invalid_request")
    assert field in answer.json["detail"]


def test_a_workflow_that_does_not_exist(api: Api) -> None:
    """An unknown task type: 400."""
    answer = api.start(key="k-2", workflow="vendor_payments")

    assert (answer.status, answer.code) == (400, "invalid_request")


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("character", ["x", "€"])
def test_a_body_of_too_many_bytes(character: str, encoded: bool, api: Api) -> None:
    """B59: 413 before any task exists, counted in bytes, encoded or not, whether or not it is JSON."""
    raw = character * (BODY_BYTES_MAX // len(character.encode()) + 1)

    answer = post(api, raw, encoded=encoded)

    assert (answer.status, answer.code) == (413, "request_too_large")


def test_an_endless_body_of_a_stranger(api: Api) -> None:
    """B59: size is counted before anybody asks who is there."""
    answer = post(api, "x" * (BODY_BYTES_MAX + 1), who="nobody")

    assert answer.status == 413


@pytest.mark.parametrize("note", ["x" * (UNTRUSTED_BYTES_MAX + 1), "€" * (UNTRUSTED_BYTES_MAX // 3 + 1)])
def test_outside_words_of_too_many_bytes(note: str, api: Api) -> None:
    """B59: the note's own limit counts bytes too: 413 and no task."""
    answer = api.start(key="k-2", note=note)

    assert (answer.status, answer.code) == (413, "request_too_large")


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_another_media_type(content_type: str, api: Api, task: Task) -> None:
    """A form that a page of somebody else could send: 415, also on a decision."""
    body = {"decision": "approve", "version": 1}

    start = post(api, '{"workflow": "refund", "request": {}}', headers={"Content-Type": content_type})
    decide = api.call("manager-7", "POST", decision_of(task), body=body, headers={"Content-Type": content_type})

    assert [(a.status, a.code) for a in (start, decide)] == [(415, "unsupported_media_type")] * 2


@pytest.mark.parametrize("key", [None, "", " ", "   ", " k", "k\t", "k" * 201, "clé", "k\x7f"])
def test_an_idempotency_key_that_protects_nothing(key: str | None, api: Api) -> None:
    """B27: missing, blank, endless or unprintable: 400; there is no default that runs unprotected."""
    for _ in range(2):
        answer = api.call(
            "clerk-1",
            "POST",
            "/tasks",
            body={"workflow": "refund", "request": dict(REFUND)},
            headers={} if key is None else {"Idempotency-Key": key},
        )

        assert (answer.status, answer.code) == (400, "invalid_request")


def test_a_key_that_was_used_for_another_body(api: Api) -> None:
    """B16: the same key with another amount: 422."""
    answer = api.start(key="k-1", amount_minor=46_000)

    assert (answer.status, answer.code) == (422, "idempotency_key_reused")


@pytest.mark.parametrize(
    ("method", "suffix", "body"),
    [
        ("GET", "", None),
        ("PATCH", "", {"request": dict(REFUND), "request_version": 1}),
        ("GET", "/approvals/{approval}", None),
        ("POST", "/approvals/{approval}/decision", {"decision": "approve", "version": 1}),
    ],
)
def test_unknown_and_other_tenants_tasks_answer_alike(
    method: str, suffix: str, body: object, api: Api, task: Task
) -> None:
    """A2 and B16: knowing an id gives nothing: the two answers are the same to the last byte."""
    suffix = suffix.format(approval=task["approvals"][0]["approval_id"])
    who = "manager-g" if "approvals" in suffix else "clerk-g"

    foreign = api.call(who, method, f"/tasks/{task['task_id']}{suffix}", body=body)
    unknown = api.call(who, method, f"/tasks/{UNKNOWN_TASK}{suffix}", body=body)

    assert (foreign.status, foreign.code) == (404, "task_not_found")
    assert (foreign.text, foreign.headers) == (unknown.text, unknown.headers)


@pytest.mark.parametrize(
    "task_id", ["1", "tsk_", "tsk_" + "G" * 32, "tsk_" + "0" * 33, "acme#tsk_" + "0" * 32, "%2e%2e"]
)
def test_something_that_is_no_task_id(task_id: str, api: Api) -> None:
    """An id of another form never becomes part of a key."""
    answer = api.call("clerk-1", "GET", f"/tasks/{task_id}")

    assert (answer.status, answer.code) in {(400, "invalid_request"), (404, "not_found")}


def test_an_unknown_approval_of_a_known_task(api: Api, task: Task) -> None:
    """404 for the page and for the decision."""
    page = api.call("manager-7", "GET", f"/tasks/{task['task_id']}/approvals/apr_{'0' * 32}")
    decision = api.call(
        "manager-7",
        "POST",
        f"/tasks/{task['task_id']}/approvals/apr_{'0' * 32}/decision",
        body={"decision": "approve", "version": 1},
    )

    assert [(a.status, a.code) for a in (page, decision)] == [(404, "task_not_found")] * 2


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"exp": "1"}, id="expired"),
        pytest.param({"iss": "https://issuer.test/other"}, id="of another issuer"),
        pytest.param({"client_id": "app-2"}, id="of another application"),
        pytest.param({"token_use": "id"}, id="an ID token"),
        pytest.param({"client_id": None, "aud": "app-1"}, id="an ID token of a plain issuer"),
        pytest.param({"sub": None}, id="of nobody"),
    ],
)
def test_a_token_that_is_not_ours(changes: dict[str, object], api: Api, task: Task) -> None:
    """B13: expired or foreign tokens: 401 on every route, also with a perfect body and also with a broken one."""
    claims = api.claims("manager-7", **changes)
    for method, path, body in [
        ("POST", "/tasks", {"workflow": "refund", "request": dict(REFUND)}),
        ("GET", "/tasks", None),
        ("GET", f"/tasks/{task['task_id']}", None),
        ("PATCH", f"/tasks/{task['task_id']}", {"nonsense": 1}),
        ("GET", page_of(task), None),
        ("POST", decision_of(task), {"decision": "approve", "version": 1}),
    ]:
        answer = api.send(an_event(method, path, claims=claims, body=body, headers={"Idempotency-Key": "k-2"}))
        assert (answer.status, answer.code) == (401, "not_authenticated")
        assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_no_token_at_all(api: Api, task: Task) -> None:
    """B02: without an authenticated principal nothing is read and nothing is decided."""
    decision = an_event("POST", decision_of(task), body={"decision": "approve", "version": 1})
    answers = [api.send(an_event("GET", page_of(task))), api.send(decision)]

    assert [(a.status, a.code) for a in answers] == [(401, "not_authenticated")] * 2


def test_somebody_whom_the_authority_store_does_not_know(api: Api, task: Task) -> None:
    """A good token of an unknown subject: 403."""
    answer = api.call("clerk-404", "GET", f"/tasks/{task['task_id']}")

    assert (answer.status, answer.code) == (403, "not_authorised")


@pytest.mark.parametrize(
    "body",
    [
        {"decision": "approve", "version": 1, "by": "manager-7"},
        {"decision": "approve", "version": 1, "amount_minor": 9_000},
        {"decision": "approve", "version": 1, "status": "ready"},
        {"decision": "approve", "version": 1, "state": "eyJzdGF0dXMiOiJyZWFkeSJ9"},
        {"decision": "approve", "version": 1, "reason": {"text": "fine"}},
        {"decision": "approve", "version": 1, "reason": ""},
        {"decision": "approve", "version": 1, "reason": "x" * 501},
        {"decision": "approve"},
        {"decision": "approve", "version": "1"},
        {"decision": "approve", "version": 0},
        {"decision": "approve", "version": True},
        {"version": 1},
    ],
)
def test_a_decision_with_other_fields(body: object, api: Api, task: Task) -> None:
    """B31: a decision carries a word, a version and perhaps a reason; everything else is refused: 400."""
    answer = api.call("manager-7", "POST", decision_of(task), body=body)

    assert (answer.status, answer.code) == (400, "invalid_request")


@pytest.mark.parametrize(
    "word",
    [
        "no",
        "yes",
        "false",
        "true",
        "approve ",
        " approve",
        "APPROVE",
        "Approve",
        "approved",
        "rejected",
        "аpprove",  # noqa: RUF001 - begins with a Cyrillic letter
        "approve\u200b",
        "",
        None,
        0,
        1,
        True,
        False,
        {"approved": False},
        ["approve"],
        "maybe",
    ],
)
def test_a_decision_in_other_words(word: object, api: Api, task: Task) -> None:
    """B55: only the two exact words decide; nothing is guessed from truthiness, case or free text: 400."""
    answer = api.call("manager-7", "POST", decision_of(task), body={"decision": word, "version": 1})

    assert (answer.status, answer.code) == (400, "invalid_request")


@pytest.mark.parametrize("version", [2, 7, 2**31 - 1])
def test_a_decision_about_another_version(version: int, api: Api, task: Task) -> None:
    """L7: a version that is not the current one: 409, with the task as it is."""
    answer = api.call("manager-7", "POST", decision_of(task), body={"decision": "approve", "version": version})

    assert (answer.status, answer.code) == (409, "stale_approval")
    assert answer.json["current"]["request_version"] == 1
    assert answer.json["current"]["status"] == "waiting_approval"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"request": {**REFUND, "amount_minor": 46_000}, "request_version": 2}, 409),
        ({"request": {**REFUND, "amount_minor": 46_000}}, 400),
        ({"request": {**REFUND, "amount_minor": 460.5}, "request_version": 1}, 400),
        ({"request": {**REFUND, "amount_minor": -1}, "request_version": 1}, 400),
        ({"request": {"amount_minor": 46_000}, "request_version": 1}, 400),
        ({"request": {**REFUND, "owner": "clerk-2"}, "request_version": 1}, 400),
        ({"request": dict(REFUND), "request_version": 1, "status": "ready"}, 400),
    ],
)
def test_an_amendment_that_cannot_be(body: object, status: int, api: Api, task: Task) -> None:
    """Stale versions are told what is current; everything malformed is refused whole."""
    answer = api.call("clerk-1", "PATCH", f"/tasks/{task['task_id']}", body=body)

    assert answer.status == status
    if status == 409:
        assert answer.json["current"]["request_version"] == 1


@pytest.mark.parametrize(
    "query",
    [
        None,
        {"status": "waiting"},
        {"status": "WAITING_APPROVAL"},
        {"status": "waiting_approval,ready"},
        {"status": "waiting_approval", "limit": "0"},
        {"status": "waiting_approval", "limit": "101"},
        {"status": "waiting_approval", "limit": "ten"},
        {"status": "waiting_approval", "cursor": "nonsense"},
        {"status": "waiting_approval", "cursor": "globex|waiting_approval|2026"},
        {"status": "waiting_approval", "cursor": ""},
    ],
)
def test_a_list_that_cannot_be(query: Mapping[str, str] | None, api: Api) -> None:
    """Unknown statuses, odd limits, foreign cursors: 400."""
    answer = api.call("clerk-1", "GET", "/tasks", query=query)

    assert (answer.status, answer.code) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("GET", "/", 404, None),
        ("GET", "/task", 404, None),
        ("GET", "/tasks/", 404, None),
        ("GET", "/tasks/{task}/tokens", 404, None),
        ("POST", "/openapi.json/", 404, None),
        ("DELETE", "/tasks", 405, "GET, POST"),
        ("PUT", "/tasks/{task}", 405, "GET, PATCH"),
        ("DELETE", "/tasks/{task}", 405, "GET, PATCH"),
        ("POST", "/tasks/{task}", 405, "GET, PATCH"),
        ("OPTIONS", "/tasks", 405, "GET, POST"),
        ("POST", "/tasks/{task}/approvals/{approval}", 405, "GET"),
        ("PUT", "/tasks/{task}/approvals/{approval}/decision", 405, "POST"),
    ],
)
def test_an_address_or_method_that_there_is_not(
    method: str, path: str, status: int, allow: str | None, api: Api, task: Task
) -> None:
    """Unknown routes are 404; known ones with another method are 405 and name what is possible."""
    where = path.format(task=task["task_id"], approval=task["approvals"][0]["approval_id"])

    answer = api.call("clerk-1", method, where, body={"decision": "approve", "version": 1})

    assert answer.status == status
    assert answer.code == ("not_found" if status == 404 else "method_not_allowed")
    assert answer.headers.get("Allow") == allow
