"""A tool that reads one record by its name, and arguments that are for people alone."""

import json
from typing import Any

import pytest

from functions.tools.cancel_payment.handler import TOOL as CANCEL_PAYMENT
from functions.tools.http_call import Provider, serve
from functions.tools.read_vendor.handler import TOOL as READ_VENDOR
from shared.domain.errors import OutcomeUnknown
from tests.unit.tools.conftest import Counterparty, SecretStore, problem, respond

KEY = "acme:tsk_00112233445566778899aabbccddeeff:v1:1:read_vendor"
PERFORM = {"operation": "perform", "key": KEY, "arguments": {"vendor": "V-204"}}
RECORD = {"id": "vn_1", "vendor": "V-204", "account_reference": "ACC-204-1881", "verified": True, "status": "listed"}


def read(provider: Provider, **changes: Any) -> dict[str, Any]:
    """Call the tool as its function does."""
    return serve(READ_VENDOR, PERFORM | changes, provider=provider)


def test_a_record_is_read_by_its_name(counterparty: Counterparty, provider: Provider) -> None:
    """M1: nothing is sent to be done; the facts are the provider's, with their types."""
    counterparty.script = respond(200, RECORD)

    assert read(provider) == {
        "outcome": "done",
        "reference": "vn_1",
        "facts": {"account_reference": "ACC-204-1881", "verified": True},
        "reason": "the provider's record is listed",
    }
    [request] = counterparty.requests
    assert (request.method, request.target, request.body) == ("GET", "/base/$default/vendors/V-204", b"")
    assert "idempotency-key" not in request.headers


@pytest.mark.parametrize(
    "change", [{"vendor": "V-205"}, {"vendor": None}, {"status": "under dispute"}, {"id": ""}, {"id": None}]
)
def test_another_record_is_no_answer(counterparty: Counterparty, provider: Provider, change: dict[str, object]) -> None:
    """M1: details of anybody else, or of a vendor in a state that nobody here knows, are never taken."""
    counterparty.script = respond(200, RECORD | change)

    with pytest.raises(OutcomeUnknown):
        read(provider)


def test_a_name_that_the_provider_does_not_know_is_definite(counterparty: Counterparty, provider: Provider) -> None:
    """M1: the provider itself says that there is no such vendor."""
    counterparty.script = problem(404, "not_found")

    answer = read(provider)

    assert (answer["outcome"], answer["facts"]) == ("failed", {})


@pytest.mark.parametrize(
    "script",
    [
        respond(404, {"message": "Not Found"}),
        problem(404, "no_such_route"),
        problem(409, "not_found"),
        respond(500, {}),
    ],
)
def test_everything_else_says_nothing(counterparty: Counterparty, provider: Provider, script: Any) -> None:
    """B27: a gateway's 404 is not the provider's, and an error is no news about a vendor."""
    counterparty.script = script

    with pytest.raises(OutcomeUnknown):
        read(provider)


def test_a_refused_credential_is_not_sent_and_read_anew(
    counterparty: Counterparty, provider: Provider, secrets: SecretStore
) -> None:
    """Whoever is not let in has read nothing, and the next read shows the rotated key."""
    counterparty.script = problem(401, "not_authenticated")
    assert read(provider)["outcome"] == "not_sent"

    secrets.text = "the-next-key"
    counterparty.script = respond(200, RECORD)
    assert read(provider)["outcome"] == "done"
    assert counterparty.requests[1].headers["authorization"] == "Bearer the-next-key"


def test_a_read_is_never_asked_about(counterparty: Counterparty, provider: Provider) -> None:
    """A read is repeated; a look-up of one would be news about nothing."""
    with pytest.raises(OutcomeUnknown, match="cannot be asked"):
        read(provider, operation="lookup")
    assert counterparty.requests == []


@pytest.mark.parametrize("vendor", ["", "V 204", "../payments", "V-204/x", "V-204\n", 204, None])
def test_a_name_that_is_none_is_refused(counterparty: Counterparty, provider: Provider, vendor: object) -> None:
    """B27: nothing is asked for what cannot be a vendor's name."""
    assert read(provider, arguments={"vendor": vendor})["outcome"] == "failed"
    assert counterparty.requests == []


def test_what_only_people_need_is_not_sent(counterparty: Counterparty, provider: Provider) -> None:
    """B62: whoever approves a cancellation sees what is taken back; the bank is told the key and nothing beside it."""
    key = KEY.replace("read_vendor", "cancel_payment")
    payment = {"payment_key": "acme:tsk_1:v1:3:create_payment"}
    shown = {"vendor": "V-204", "account": "ACC-204-1881", "invoice": "INV-7", "amount_minor": 100, "currency": "EUR"}
    counterparty.script = respond(201, {"id": "px_1", "key": key, **payment, "status": "recorded"})

    answer = serve(
        CANCEL_PAYMENT, {"operation": "perform", "key": key, "arguments": payment | shown}, provider=provider
    )

    assert answer["outcome"] == "done"
    assert json.loads(counterparty.requests[0].body) == payment
