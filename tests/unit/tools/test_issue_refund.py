"""The refund tool: what it sends, and what it concludes from every way in which that can end."""

import json
import logging
import socket
from typing import Any

import pytest

from functions.tools.http_call import Provider, serve
from functions.tools.http_tool import Lookup
from functions.tools.issue_refund.handler import AMOUNT_MINOR_MAX, TOOL
from shared.adapters.http.endpoint import Answer, Endpoint
from shared.adapters.secretsmanager.live_secret import KEPT_SECONDS
from shared.domain.action import EffectClass, ToolReply
from shared.domain.errors import OutcomeUnknown
from shared.workflows.refund.workflow import WORKFLOW
from tests.unit.tools.conftest import (
    API_KEY,
    Clock,
    Counterparty,
    Request,
    SecretStore,
    problem,
    provider_at,
    respond,
)

KEY = "acme:tsk_00112233445566778899aabbccddeeff:v1:1:issue_refund"
ARGUMENTS = {"order_reference": "ord-1001", "amount_minor": 45_000, "currency": "EUR"}
RECORD = {"id": "rf_1", "key": KEY, **ARGUMENTS, "status": "recorded", "recorded_at": "2026-10-09T09:00:00.000Z"}
PERFORM = {"operation": "perform", "key": KEY, "arguments": ARGUMENTS}
LOOKUP = {**PERFORM, "operation": "lookup"}
COMPENSATE = {**PERFORM, "operation": "compensate"}
FACTS = {"amount_minor": 45_000, "currency": "EUR", "recorded_at": "2026-10-09T09:00:00.000Z"}


def call(event: dict[str, Any], provider: Provider) -> dict[str, Any]:
    """Call the tool as its function does, and hold every answer against the contract."""
    answer = serve(TOOL, event, provider=provider)
    ToolReply.model_validate_json(json.dumps(answer))
    return answer


@pytest.mark.parametrize("status", [200, 201])
def test_a_refund_is_asked_for_with_the_key_and_confirmed(
    counterparty: Counterparty, provider: Provider, status: int
) -> None:
    """The key travels as given, the body is the arguments, and the answer carries reference and facts."""
    counterparty.script = respond(status, RECORD)

    assert call(PERFORM, provider) == {
        "outcome": "done",
        "reference": "rf_1",
        "facts": FACTS,
        "reason": "the provider's record is recorded",
    }
    [request] = counterparty.requests
    assert (request.method, request.target) == ("POST", "/base/$default/refunds")
    assert json.loads(request.body) == ARGUMENTS
    assert request.headers["idempotency-key"] == KEY
    assert request.headers["authorization"] == f"Bearer {API_KEY}"
    assert request.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"key": "another"}, "key"),
        ({"amount_minor": 450_000}, "amount_minor"),
        ({"amount_minor": 45_000.0}, "amount_minor"),
        ({"amount_minor": "45000"}, "amount_minor"),
        ({"currency": "USD"}, "currency"),
        ({"order_reference": "ord-1002"}, "order_reference"),
        ({"key": None}, "key"),
        ({"id": ""}, "id"),
        ({"id": 7}, "id"),
        ({"id": "x" * 101}, "id"),
        ({"status": None}, "status"),
        ({"status": "in dispute"}, "status"),
    ],
)
@pytest.mark.parametrize("event", [PERFORM, LOOKUP])
def test_a_record_of_something_else_is_no_success(
    counterparty: Counterparty, provider: Provider, event: dict[str, Any], change: dict[str, object], differs: str
) -> None:
    """Done means done as asked: a record that says anything else has to be looked at."""
    counterparty.script = respond(200, {**RECORD, **change})

    with pytest.raises(OutcomeUnknown, match=differs):
        call(event, provider)


@pytest.mark.parametrize("code", ["invalid_body", "invalid_json"])
def test_a_refusal_on_record_is_a_failure(counterparty: Counterparty, provider: Provider, code: str) -> None:
    """Only the provider's own promise that it did nothing is a definite failure."""
    counterparty.script = problem(400, code)

    answer = call(PERFORM, provider)

    assert (answer["outcome"], answer["reason"]) == ("failed", f"the provider refuses: {code}")


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_credential_sends_nothing_and_is_read_anew(
    counterparty: Counterparty, provider: Provider, secrets: SecretStore, status: int
) -> None:
    """Who asks is judged before what is asked; the next call shows the rotated key at once."""
    counterparty.script = problem(status, "not_authenticated")
    assert call(PERFORM, provider)["outcome"] == "not_sent"

    secrets.text = "the-next-key"
    counterparty.script = respond(201, RECORD)
    assert call(PERFORM, provider)["outcome"] == "done"
    assert counterparty.requests[1].headers["authorization"] == "Bearer the-next-key"


UNCLEAR = [
    respond(400, b"Bad Request", content_type="text/html"),
    respond(400, {"code": "invalid_body"}),
    problem(400, "key_malformed"),
    problem(422, "invalid_body"),
    problem(422, "idempotency_key_reused"),
    respond(404, {"message": "Not Found"}),
    respond(405, {}),
    respond(408, {}),
    respond(409, {}),
    respond(410, {}),
    respond(413, {}),
    respond(425, {}),
    respond(429, {}),
    respond(400, b"{", content_type="application/problem+json"),
    respond(400, {"code": ["invalid_body"]}, content_type="application/problem+json"),
    problem(400, "invalid_body\n"),
    respond(300, {}),
    respond(301, {}, extra="Location: /refunds\r\n"),
    respond(307, {}, extra="Location: /refunds\r\n"),
    respond(500, {"message": "Internal Server Error"}),
    problem(500, "invalid_body"),
    respond(502, {}),
    respond(503, {}),
    respond(504, {"message": "Endpoint request timed out"}),
    respond(200, b""),
    respond(201, b"not json"),
    respond(201, []),
    respond(201, b"[" * 50_000),
    respond(204, b""),
    respond(206, RECORD),
]


@pytest.mark.parametrize("script", UNCLEAR)
def test_what_proves_nothing_is_unknown(counterparty: Counterparty, provider: Provider, script: Any) -> None:
    """B07: an answer that neither confirms nor refuses leaves it open whether the money moved; nothing is repeated."""
    counterparty.script = script

    with pytest.raises(OutcomeUnknown):
        call(PERFORM, provider)
    assert len(counterparty.requests) == 1


def test_accepted_is_pending(counterparty: Counterparty, provider: Provider) -> None:
    """A provider may take its time; it is asked later."""
    counterparty.script = respond(202, {})

    assert call(PERFORM, provider)["outcome"] == "pending"


def test_silence_is_unknown(counterparty: Counterparty, provider: Provider) -> None:
    """B01: a timeout after sending proves nothing, and the tool does not try again by itself."""
    counterparty.script = counterparty.stay_silent

    with pytest.raises(OutcomeUnknown):
        call(PERFORM, provider)
    assert len(counterparty.requests) == 1


def test_a_broken_connection_is_unknown(counterparty: Counterparty, provider: Provider) -> None:
    """B01: a reset after sending proves nothing either."""
    counterparty.script = lambda connection, _: connection.close()

    with pytest.raises(OutcomeUnknown):
        call(PERFORM, provider)
    assert counterparty.connections == 1


def test_no_connection_is_not_sent(secrets: SecretStore, clock: Clock) -> None:
    """What never left us may be sent again."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    answer = call(PERFORM, provider_at(f"http://127.0.0.1:{port}", secrets, clock))

    assert (answer["outcome"], answer["reference"], answer["facts"]) == ("not_sent", None, {})


@pytest.mark.parametrize("text", [None, "", "two words", "line\nbreak", "schlüssel"])
def test_an_unusable_secret_is_not_sent(
    counterparty: Counterparty, provider: Provider, secrets: SecretStore, text: str | None
) -> None:
    """Without a credential to show nothing leaves us."""
    secrets.text = text

    assert call(PERFORM, provider)["outcome"] == "not_sent"
    assert counterparty.connections == 0


def test_a_secret_store_that_is_down_is_not_sent(
    counterparty: Counterparty, provider: Provider, secrets: SecretStore, clock: Clock
) -> None:
    """A kept secret is used for its time and no longer, whatever the store is up to."""
    counterparty.script = respond(201, RECORD)
    assert call(PERFORM, provider)["outcome"] == "done"
    secrets.down = True
    clock.seconds += KEPT_SECONDS - 1
    assert call(PERFORM, provider)["outcome"] == "done"
    assert secrets.reads == 1

    clock.seconds += 1
    assert call(PERFORM, provider)["outcome"] == "not_sent"
    assert len(counterparty.requests) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"amount_minor": 0},
        {"amount_minor": -1},
        {"amount_minor": AMOUNT_MINOR_MAX + 1},
        {"amount_minor": 450.0},
        {"amount_minor": "45000"},
        {"amount_minor": True},
        {"amount_minor": None},
        {"currency": "eur"},
        {"currency": "EUR\n"},
        {"currency": "EURO"},
        {"order_reference": "../payments"},
        {"order_reference": ""},
        {"order_reference": "ord-1001\n"},
        {"order_reference": 1001},
        {"idempotency_key": "mine"},
        {"expedite": True},
    ],
)
def test_unusable_arguments_fail_before_anything_is_sent(
    counterparty: Counterparty, provider: Provider, change: dict[str, object]
) -> None:
    """B26: arguments are exactly the tool's own, strictly typed; a key among them is refused."""
    answer = call({**PERFORM, "arguments": {**ARGUMENTS, **change}}, provider)

    assert answer["outcome"] == "failed"
    assert next(iter(change)) in answer["reason"]
    assert counterparty.connections == 0


@pytest.mark.parametrize("missing", sorted(ARGUMENTS))
def test_missing_arguments_fail_before_anything_is_sent(
    counterparty: Counterparty, provider: Provider, missing: str
) -> None:
    """Nothing has a default."""
    arguments = {name: value for name, value in ARGUMENTS.items() if name != missing}

    assert call({**PERFORM, "arguments": arguments}, provider)["outcome"] == "failed"
    assert counterparty.connections == 0


@pytest.mark.parametrize("key", [None, "", "   ", "a b", "a/b", "a%2Fb", "a\r\nX: y", "k" * 201, 7, ["k"]])
def test_no_key_no_effect(counterparty: Counterparty, provider: Provider, key: object) -> None:
    """B27: an effect without a usable key is refused before anything is sent; there is no default that runs it bare."""
    for event in ({**PERFORM, "key": key}, {"operation": "perform", "arguments": ARGUMENTS}):
        answer = call(event, provider)
        assert answer["outcome"] == "failed"
        assert "key" in answer["reason"]
    assert counterparty.connections == 0


@pytest.mark.parametrize(
    "event",
    [
        {},
        {**PERFORM, "operation": None},
        {**PERFORM, "operation": "PERFORM"},
        {**PERFORM, "operation": ["perform"]},
        {**LOOKUP, "key": ""},
        {**LOOKUP, "arguments": {}},
        {**LOOKUP, "arguments": {**ARGUMENTS, "amount_minor": 0}},
        {**LOOKUP, "note": "x"},
    ],
)
def test_what_is_no_call_is_an_error(counterparty: Counterparty, provider: Provider, event: dict[str, Any]) -> None:
    """A look-up that cannot be made says nothing about the action: it is never answered as failed or not sent."""
    with pytest.raises(OutcomeUnknown):
        call(event, provider)
    assert counterparty.connections == 0


def test_a_refund_has_no_undo(counterparty: Counterparty, provider: Provider) -> None:
    """Nothing pretends to have undone what cannot be undone."""
    answer = call(COMPENSATE, provider)

    assert (answer["outcome"], answer["reference"]) == ("failed", None)
    assert "undo" in answer["reason"]
    assert counterparty.connections == 0


def test_a_lookup_finds_the_record_of_the_key(counterparty: Counterparty, provider: Provider) -> None:
    """C-C: the provider's own record decides what became of a call."""
    counterparty.script = respond(200, RECORD)

    answer = call(LOOKUP, provider)

    assert (answer["outcome"], answer["reference"], answer["facts"]) == ("done", "rf_1", FACTS)
    [request] = counterparty.requests
    assert (request.method, request.target, request.body) == (
        "GET",
        f"/base/$default/refunds/{KEY.replace(':', '%3A')}",
        b"",
    )


def test_a_lookup_of_an_unused_key_is_absent(counterparty: Counterparty, provider: Provider) -> None:
    """C-B: only the provider itself can say that it has no record."""
    counterparty.script = problem(404, "not_found")

    assert call(LOOKUP, provider)["outcome"] == "absent"


@pytest.mark.parametrize(
    "script",
    [
        respond(404, {"message": "Not Found"}),
        respond(404, {"code": "not_found"}),
        problem(404, "no_such_route"),
        problem(410, "not_found"),
        problem(400, "invalid_body"),
        respond(401, {}),
        respond(403, {}),
        respond(429, {}),
        respond(202, {}),
        respond(201, RECORD),
        respond(302, {}),
        respond(503, {}),
        respond(200, b""),
        respond(200, {"items": []}),
    ],
)
def test_no_other_answer_means_absent(counterparty: Counterparty, provider: Provider, script: Any) -> None:
    """B01: a gateway's 404 during a deployment read as "no such refund" would pay twice."""
    counterparty.script = script

    with pytest.raises(OutcomeUnknown):
        call(LOOKUP, provider)


@pytest.mark.parametrize("trouble", ["secret", "connection", "silence"])
def test_a_lookup_that_cannot_be_made_is_an_error(
    counterparty: Counterparty, provider: Provider, secrets: SecretStore, clock: Clock, trouble: str
) -> None:
    """A look-up is never answered as not sent: that could be read as news about the action."""
    if trouble == "secret":
        secrets.down = True
    elif trouble == "silence":
        counterparty.script = counterparty.stay_silent
    else:
        counterparty.close()

    with pytest.raises(OutcomeUnknown):
        call(LOOKUP, provider)


def test_an_error_of_our_own_after_sending_is_no_refusal(
    counterparty: Counterparty, provider: Provider, secrets: SecretStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B07: whatever breaks while the answer is read, the money may have moved."""

    class Broken(Endpoint):
        def exchange(self, *arguments: Any, **named: Any) -> Answer:
            super().exchange(*arguments, **named)
            return ToolReply.model_validate({"outcome": "no such outcome"})  # type: ignore[return-value]

    counterparty.script = respond(201, RECORD)
    broken = Provider(endpoint=Broken(base_url=counterparty.url, exchange_seconds=5), secret=provider.secret)

    with pytest.raises(Exception, match="outcome"):
        call(PERFORM, broken)


def test_the_log_tells_the_outcome_and_no_more(
    counterparty: Counterparty, provider: Provider, secrets: SecretStore, caplog: pytest.LogCaptureFixture
) -> None:
    """One line for each call, with the key and the outcome; no secret, no argument, nothing that the provider wrote."""
    caplog.set_level(logging.INFO)
    secrets.text = "sesame-1234"
    counterparty.script = respond(201, {**RECORD, "note": "planted-text"})
    call(PERFORM, provider)
    counterparty.script = respond(500, {"message": "planted-text"})
    with pytest.raises(OutcomeUnknown):
        call(PERFORM, provider)
    call({**PERFORM, "arguments": {"order_reference": "ord-secret\n"}}, provider)

    lines = [json.loads(record.message) for record in caplog.records if record.name.startswith("functions.tools")]
    assert [(line["tool"], line["key"], line["outcome"]) for line in lines] == [
        ("issue_refund", KEY, "done"),
        ("issue_refund", KEY, "unknown"),
        ("issue_refund", KEY, "failed"),
    ]
    assert not any(word in caplog.text for word in ("sesame", "planted", "45000", "ord-secret", "ord-1001"))


def test_the_tool_speaks_only_to_its_own_host(counterparty: Counterparty, provider: Provider) -> None:
    """The host is the setting's; nothing in a call can lead elsewhere."""
    seen: list[str] = []

    def note(connection: socket.socket, request: Request) -> None:
        seen.append(request.headers["host"])
        problem(404, "not_found")(connection, request)

    counterparty.script = note
    call({**LOOKUP, "key": "a:b@127.0.0.1:1".replace("@", "~")}, provider)

    assert seen == [f"127.0.0.1:{counterparty.port}"]


def test_the_tool_is_what_the_catalogue_says() -> None:
    """The workflow's entry and the tool agree: keyed, can be looked up, no undo, and nothing permitted is refused."""
    entry = WORKFLOW.tools[TOOL.name]

    assert entry.effect is EffectClass.KEYED_WRITE
    assert (entry.can_look_up, TOOL.lookup) == (True, Lookup.KEY)
    assert (entry.undo, bool(entry.no_undo_because)) == (None, True)
    assert set(entry.arguments.model_fields) == set(TOOL.arguments.model_fields)
    for amount_minor in (1, 100_000_000):
        for reference in ("A-1", "o" * 40):
            spec = entry.normalise({"amount_minor": amount_minor, "currency": "INR", "order_reference": reference})
            assert TOOL.arguments.model_validate(spec.arguments).model_dump() == spec.arguments
