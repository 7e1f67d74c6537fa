"""The refund tool's real function against the real sandbox provider: the two agree on every code they rely on."""

import json
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from functions.tools import provider as wiring
from functions.tools.http_call import serve
from functions.tools.http_tool import HttpTool, Lookup, Refusal
from functions.tools.issue_refund import handler as issue_refund
from sandbox import handler as sandbox
from sandbox.resources import RESOURCES
from shared.domain.action import ToolOutcome
from shared.domain.errors import OutcomeUnknown
from shared.domain.records import Record
from tests.unit.sandbox.conftest import API_KEY, SECRET, Bank, bank, cloud

__all__ = ["bank", "cloud"]

KEY = "acme:tsk_00112233445566778899aabbccddeeff:v1:1:issue_refund"
ARGUMENTS = {"order_reference": "ord-1001", "amount_minor": 45_000, "currency": "EUR"}
PERFORM = {"operation": "perform", "key": KEY, "arguments": ARGUMENTS}
LOOKUP = {**PERFORM, "operation": "lookup"}


class Gateway(BaseHTTPRequestHandler):
    """Hands requests to the sandbox's function as an HTTP API does."""

    protocol_version = "HTTP/1.1"

    def _pass_on(self) -> None:
        path, _, query = self.path.partition("?")
        length = int(self.headers.get("Content-Length", "0"))
        event: dict[str, Any] = {
            "rawPath": path.removeprefix("/base").replace("%3A", ":"),
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "requestContext": {"http": {"method": self.command}},
            "isBase64Encoded": False,
            "body": self.rfile.read(length).decode(),
        }
        if query:
            name, _, value = query.partition("=")
            event["queryStringParameters"] = {name: value.replace("%3A", ":")}
        reply = sandbox.handler(event, object())
        body = reply["body"].encode()
        self.send_response(reply["statusCode"])
        for name, value in reply["headers"].items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = _pass_on  # noqa: N815 -- the base class's word
    do_POST = _pass_on  # noqa: N815 -- the same

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def settings(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bank]:
    """Point the tool's own settings at the sandbox."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    monkeypatch.setenv("PAYMENTS_URL", f"http://127.0.0.1:{server.server_address[1]}/base")
    monkeypatch.setenv("PAYMENTS_SECRET_NAME", SECRET)
    wiring.provider.cache_clear()
    yield bank
    wiring.provider.cache_clear()
    server.shutdown()
    server.server_close()
    thread.join(timeout=10)


def call(event: dict[str, Any]) -> dict[str, Any]:
    """Call the tool's function."""
    return issue_refund.handler(event, object())


def test_a_refund_is_made_once_however_often_it_is_sent(settings: Bank) -> None:
    """B01: the same key again gives the refund that exists."""
    assert call(LOOKUP)["outcome"] == "absent"
    first = call(PERFORM)
    again = call(PERFORM)
    found = call(LOOKUP)

    assert first["outcome"] == "done"
    assert first == again == found
    [row] = settings.ledger("refunds")
    assert (row["id"], row["key"]) == (first["reference"], KEY)


def test_an_answer_that_is_lost_after_recording_is_found_again(settings: Bank) -> None:
    """C-C: the error answer is unknown, the look-up finds the refund, and no second one is made."""
    settings.ask("PUT", "/faults", {"answer_status_after_recording": 500, "times": 1})

    with pytest.raises(OutcomeUnknown):
        call(PERFORM)
    assert call(LOOKUP)["outcome"] == "done"
    assert len(settings.ledger("refunds")) == 1


def test_an_error_before_recording_is_found_absent(settings: Bank) -> None:
    """C-B: the same error answer, and the look-up proves that nothing happened."""
    settings.ask("PUT", "/faults", {"answer_status_before_recording": 500, "times": 1})

    with pytest.raises(OutcomeUnknown):
        call(PERFORM)
    assert call(LOOKUP)["outcome"] == "absent"
    assert settings.ledger("refunds") == []


def test_a_key_that_stands_for_another_refund_is_no_failure(settings: Bank) -> None:
    """The provider holds something under this key: "failed, nothing happened" would be a lie."""
    call(PERFORM)
    other = {**ARGUMENTS, "amount_minor": 90_000}

    with pytest.raises(OutcomeUnknown, match="422 idempotency_key_reused"):
        call({**PERFORM, "arguments": other})
    with pytest.raises(OutcomeUnknown):
        call({**LOOKUP, "arguments": other})
    assert [row["amount_minor"] for row in settings.ledger("refunds")] == [45_000]


def test_the_refusals_that_the_tool_lists_are_the_provider_s(settings: Bank) -> None:
    """Each listed refusal is one that the provider makes while it has no record of the key."""
    seen = set()
    for key, body in (("k1", {**ARGUMENTS, "amount_minor": 0}), ("k2", "{")):
        answer = settings.ask("POST", "/refunds", body, key=key)
        seen.add((answer.status, answer.body["code"]))
        assert settings.ask("GET", f"/refunds/{key}").status == 404

    assert seen == {(refusal.status, refusal.code) for refusal in issue_refund.TOOL.refusals}


def test_what_the_tool_lets_pass_is_what_the_provider_takes(settings: Bank) -> None:
    """The limits of both sides meet: the largest refund passes both, and the statuses are the provider's."""
    largest = {**ARGUMENTS, "amount_minor": issue_refund.AMOUNT_MINOR_MAX, "order_reference": "o" * 64}

    assert call({**PERFORM, "arguments": largest})["outcome"] == "done"
    assert RESOURCES["refunds"].status in issue_refund.TOOL.statuses
    assert set(issue_refund.RefundArguments.model_fields) == set(RESOURCES["refunds"].fields)


def test_a_wrong_credential_sends_nothing_and_a_corrected_one_does(
    settings: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The corrected key is picked up by the very next call, without a deployment."""
    settings.secrets.create_secret(Name="another-key", SecretString="wrong")
    monkeypatch.setenv("PAYMENTS_SECRET_NAME", "another-key")

    assert call(PERFORM)["outcome"] == "not_sent"
    assert settings.ledger("refunds") == []
    settings.secrets.put_secret_value(SecretId="another-key", SecretString=API_KEY)
    assert call(PERFORM)["outcome"] == "done"


class TransferArguments(Record):
    payee: str
    amount_minor: int
    currency: str


class LetterArguments(Record):
    recipient: str
    template: str


TRANSFER = HttpTool(
    name="send_transfer",
    collection="transfers",
    arguments=TransferArguments,
    lookup=Lookup.REFERENCE,
    refusals=frozenset({Refusal(status=HTTPStatus.BAD_REQUEST, code="invalid_body")}),
    statuses={"recorded": ToolOutcome.DONE},
)
LETTER = HttpTool(
    name="post_letter",
    collection="letters",
    arguments=LetterArguments,
    lookup=Lookup.NOTHING,
    refusals=frozenset(),
    statuses={"posted": ToolOutcome.DONE},
)


def test_a_provider_without_keys_is_asked_by_reference(settings: Bank) -> None:
    """B01: one record is done, none is absent, and two are for a person to look at."""
    reach = wiring.provider("PAYMENTS")
    arguments = {"payee": "V-204", "amount_minor": 100, "currency": "EUR"}
    perform = {"operation": "perform", "key": KEY, "arguments": arguments}
    lookup = {**perform, "operation": "lookup"}

    assert serve(TRANSFER, lookup, provider=reach)["outcome"] == "absent"
    sent = serve(TRANSFER, perform, provider=reach)
    assert serve(TRANSFER, lookup, provider=reach) == sent
    [row] = settings.ledger("transfers")
    assert row["reference"] == KEY
    assert serve(TRANSFER, {**lookup, "key": f"{KEY}2"}, provider=reach)["outcome"] == "absent"
    with pytest.raises(OutcomeUnknown, match="amount_minor"):
        serve(TRANSFER, {**lookup, "arguments": {**arguments, "amount_minor": 101}}, provider=reach)
    serve(TRANSFER, perform, provider=reach)
    with pytest.raises(OutcomeUnknown, match="2 records"):
        serve(TRANSFER, lookup, provider=reach)


def test_a_provider_that_remembers_nothing_cannot_be_asked(settings: Bank) -> None:
    """B01: where neither key nor look-up exists the tool says so, and the ledger hands it to a person."""
    reach = wiring.provider("PAYMENTS")
    perform = {"operation": "perform", "key": KEY, "arguments": {"recipient": "emp-7", "template": "welcome"}}

    assert serve(LETTER, perform, provider=reach)["outcome"] == "done"
    with pytest.raises(OutcomeUnknown, match="cannot be asked"):
        serve(LETTER, {**perform, "operation": "lookup"}, provider=reach)
    assert len(settings.ledger("letters")) == 1


@pytest.mark.parametrize("missing", ["PAYMENTS_URL", "PAYMENTS_SECRET_NAME"])
def test_a_missing_setting_is_loud(settings: Bank, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """A tool that does not know its provider is our bug and answers nothing."""
    monkeypatch.delenv(missing)

    with pytest.raises(KeyError, match=missing):
        call(PERFORM)


def test_answers_are_json(settings: Bank) -> None:
    """What the function returns is what its caller reads."""
    answer = call(PERFORM)

    assert json.loads(json.dumps(answer)) == answer
    assert set(answer) == {"outcome", "reference", "facts", "reason"}
