"""The tools of a vendor payment, by their real functions, against the real sandbox provider."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from functions.tools.cancel_payment import handler as cancel_payment
from functions.tools.create_payment import handler as create_payment
from functions.tools.http_tool import Lookup
from functions.tools.notify_vendor import handler as notify_vendor
from functions.tools.read_vendor import handler as read_vendor
from functions.tools.release_budget import handler as release_budget
from functions.tools.reserve_budget import handler as reserve_budget
from sandbox.resources import RESOURCES
from shared.domain.errors import OutcomeUnknown
from tests.unit.sandbox.conftest import Bank, bank, cloud
from tests.unit.tools.test_issue_refund_on_sandbox import settings

__all__ = ["bank", "cloud", "settings"]

MONEY = {"amount_minor": 450_000, "currency": "EUR"}
RESERVATION = {"budget": "accounts-payable", **MONEY}
PAYMENT = {"vendor": "V-204", "account": "ACC-204-1881", "invoice": "INV-2026-7", **MONEY}
NOTICE = {"vendor": "V-204", "template": "payment_created", "invoice": "INV-2026-7"}
RESERVED = "acme:tsk_1:v1:2:reserve_budget"
PAID = "acme:tsk_1:v1:3:create_payment"
RELEASE = {"reservation_key": RESERVED}
CANCELLATION = {"payment_key": PAID, **PAYMENT}
WRITING = [
    (reserve_budget, RESERVATION),
    (release_budget, RELEASE),
    (create_payment, PAYMENT),
    (cancel_payment, CANCELLATION),
    (notify_vendor, NOTICE),
]
KEYED = [each for each in WRITING if each[0].TOOL.lookup is Lookup.KEY]


def call(tool: ModuleType, operation: str, arguments: dict[str, Any], *, key: str = "k1") -> dict[str, Any]:
    """Call a tool's function."""
    handler: Callable[..., dict[str, Any]] = tool.handler
    return handler({"operation": operation, "key": key, "arguments": arguments}, object())


def prepare(bank: Bank) -> None:
    """Reserve and pay, so that there is something to undo."""
    call(reserve_budget, "perform", RESERVATION, key=RESERVED)
    call(create_payment, "perform", PAYMENT, key=PAID)


@pytest.mark.parametrize(("tool", "arguments"), KEYED)
def test_an_effect_happens_once_however_often_it_is_sent(
    settings: Bank, tool: ModuleType, arguments: dict[str, Any]
) -> None:
    """B01: the same key again gives the record that exists, and so does the look-up."""
    prepare(settings)
    before = len(settings.ledger(tool.TOOL.collection))
    assert call(tool, "lookup", arguments)["outcome"] == "absent"

    first = call(tool, "perform", arguments)

    assert first["outcome"] == "done"
    assert call(tool, "perform", arguments) == first
    assert call(tool, "lookup", arguments) == first
    assert len(settings.ledger(tool.TOOL.collection)) == before + 1


@pytest.mark.parametrize(("tool", "arguments"), KEYED)
def test_a_lost_answer_is_found_again(settings: Bank, tool: ModuleType, arguments: dict[str, Any]) -> None:
    """C-C: it was recorded, the answer is an error, and the look-up finds it."""
    prepare(settings)
    fault = {"answer_status_after_recording": 500, "times": 1, "collection": tool.TOOL.collection}
    settings.ask("PUT", "/faults", fault)

    with pytest.raises(OutcomeUnknown):
        call(tool, "perform", arguments)
    assert call(tool, "lookup", arguments)["outcome"] == "done"


def test_a_vendor_s_details_come_from_the_master(settings: Bank) -> None:
    """M1: the master says where a vendor is paid and whether anybody verified it."""
    verified = call(read_vendor, "perform", {"vendor": "V-204"})
    unverified = call(read_vendor, "perform", {"vendor": "V-410"})
    unknown = call(read_vendor, "perform", {"vendor": "V-999"})

    assert (verified["outcome"], verified["facts"]) == (
        "done",
        {"account_reference": "ACC-204-1881", "verified": True},
    )
    assert (unverified["outcome"], unverified["facts"]["verified"]) == ("done", False)
    assert (unknown["outcome"], unknown["facts"]) == ("failed", {})


def test_a_notice_goes_out_on_every_call_and_cannot_be_asked_about(settings: Bank) -> None:
    """B01: that is why the ledger never sends one twice by itself."""
    call(notify_vendor, "perform", NOTICE)
    call(notify_vendor, "perform", NOTICE)

    assert len(settings.ledger("notices")) == 2
    with pytest.raises(OutcomeUnknown):
        call(notify_vendor, "lookup", NOTICE)


def test_what_is_ended_cannot_be_ended_again(settings: Bank) -> None:
    """I7: the release frees the reservation once; another one under another key is refused and changes nothing."""
    prepare(settings)

    assert call(release_budget, "perform", RELEASE, key="u1")["outcome"] == "done"
    again = call(release_budget, "perform", RELEASE, key="u2")

    assert (again["outcome"], again["reason"]) == ("failed", "the provider refuses: wrong_status")
    assert [row["status"] for row in settings.ledger("budget-reservations")] == ["released"]


def test_a_settled_payment_cannot_be_canceled(settings: Bank) -> None:
    """B28: the bank's refusal is definite, and the payment that it settled is still found as made."""
    prepare(settings)
    settings.ask("POST", "/payment-settlements", {"payment_key": PAID}, key="s1")

    refused = call(cancel_payment, "perform", CANCELLATION)

    assert (refused["outcome"], refused["reason"]) == ("failed", "the provider refuses: wrong_status")
    assert call(create_payment, "lookup", PAYMENT, key=PAID)["outcome"] == "done"


def test_a_payment_that_somebody_canceled_is_no_success(settings: Bank) -> None:
    """B17: what was taken back elsewhere is not reported as paid."""
    prepare(settings)
    call(cancel_payment, "perform", CANCELLATION)

    with pytest.raises(OutcomeUnknown, match="status"):
        call(create_payment, "lookup", PAYMENT, key=PAID)


@pytest.mark.parametrize(("tool", "arguments"), [(release_budget, RELEASE), (cancel_payment, CANCELLATION)])
def test_an_undo_of_nothing_is_refused(settings: Bank, tool: ModuleType, arguments: dict[str, Any]) -> None:
    """I7: where there is nothing to undo, the provider says so and nothing happens."""
    answer = call(tool, "perform", arguments)

    assert (answer["outcome"], answer["reason"]) == ("failed", "the provider refuses: unknown_target")


@pytest.mark.parametrize(("tool", "arguments"), WRITING)
def test_what_a_tool_sends_is_what_the_provider_takes(
    settings: Bank, tool: ModuleType, arguments: dict[str, Any]
) -> None:
    """The two sides agree on the fields, and on what a fresh record's status means."""
    sent = set(tool.TOOL.arguments.model_fields) - tool.TOOL.unsent
    resource = RESOURCES[tool.TOOL.collection]

    assert sent == set(resource.fields)
    assert resource.status in tool.TOOL.statuses
    assert set(arguments) == set(tool.TOOL.arguments.model_fields)


@pytest.mark.parametrize(("tool", "arguments"), WRITING)
@pytest.mark.parametrize("body", ["{", {}])
def test_an_unusable_body_is_refused_by_the_provider_before_it_acts(
    settings: Bank, tool: ModuleType, arguments: dict[str, Any], body: object
) -> None:
    """B27: each refusal that a tool believes is one that the provider makes while it has no record of the key."""
    prepare(settings)
    before = settings.rows()
    answer = settings.ask("POST", f"/{tool.TOOL.collection}", body, key="k9")

    assert (answer.status, answer.body["code"]) in {(each.status, each.code) for each in tool.TOOL.refusals}
    assert settings.rows() == before
