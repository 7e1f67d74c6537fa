"""The vendor master: read, and never written by a caller."""

import pytest

from tests.unit.sandbox.conftest import Bank


def test_a_vendor_is_read_by_its_name(bank: Bank) -> None:
    """M1: where a vendor is paid, and whether that was verified, is what the master says."""
    assert bank.ask("GET", "/vendors/V-204").body == {
        "id": "vn_V-204",
        "vendor": "V-204",
        "account_reference": "ACC-204-1881",
        "verified": True,
        "status": "listed",
    }
    assert bank.ask("GET", "/vendors/V-410").body["verified"] is False


def test_every_vendor_is_listed(bank: Bank) -> None:
    """Whoever tries things out finds who there is."""
    assert [row["vendor"] for row in bank.ledger("vendors")] == ["V-204", "V-305", "V-410"]


def test_an_unknown_vendor_is_not_found(bank: Bank) -> None:
    """The provider's own 404 has a code of its own."""
    answer = bank.ask("GET", "/vendors/V-999")

    assert (answer.status, answer.body["code"]) == (404, "not_found")
    assert bank.ask("GET", "/vendors/V-204/accounts").body["code"] == "no_such_route"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_no_caller_changes_the_master(bank: Bank, method: str) -> None:
    """M1: payee details have one source, and it is not whoever asks for a payment."""
    changed = bank.ask(method, "/vendors/V-204", {"account_reference": "7730"}, key="k1")

    assert (changed.status, changed.body["code"]) == (405, "method_not_allowed")
    assert bank.ask("GET", "/vendors/V-204").body["account_reference"] == "ACC-204-1881"


def test_a_stranger_reads_no_vendor(bank: Bank) -> None:
    """The master is as guarded as everything else of the provider."""
    assert bank.ask("GET", "/vendors/V-204", headers={"authorization": "Bearer another"}).status == 401
