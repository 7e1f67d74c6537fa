"""The sandbox provider: what it remembers, what it refuses, what it can undo."""

import json

import pytest

from sandbox.fields import AMOUNT_MINOR_MAX, BODY_BYTES_MAX
from tests.unit.sandbox.conftest import Bank

REFUND = {"order_reference": "ord-1001", "amount_minor": 45_000, "currency": "EUR"}
RESERVATION = {"budget": "cc-12", "amount_minor": 120_000, "currency": "EUR"}
PAYMENT = {"vendor": "V-204", "account": "acc-4471", "invoice": "inv-9", "amount_minor": 120_000, "currency": "EUR"}
TRANSFER = {"reference": "acme:tsk_1:v1", "payee": "V-204", "amount_minor": 100, "currency": "EUR"}
LETTER = {"recipient": "emp-7", "template": "welcome"}


def test_a_key_acts_once_and_answers_the_same_ever_after(bank: Bank) -> None:
    """B01: the same key with the same body gives the refund that exists: 201 once, 200 from then on."""
    first = bank.ask("POST", "/refunds", REFUND, key="acme:tsk_1:v1:0:issue_refund")
    again = bank.ask("POST", "/refunds", REFUND, key="acme:tsk_1:v1:0:issue_refund")

    assert (first.status, again.status) == (201, 200)
    assert first.body == again.body
    assert first.body.items() >= {**REFUND, "key": "acme:tsk_1:v1:0:issue_refund", "status": "recorded"}.items()
    assert bank.ledger("refunds") == [first.body]


def test_a_body_is_the_same_whatever_its_spacing_and_order(bank: Bank) -> None:
    """A repeat that was serialised otherwise is still the same request."""
    bank.ask("POST", "/refunds", REFUND, key="k1")
    again = bank.ask(
        "POST", "/refunds", '{ "currency":"EUR",\n "amount_minor": 45000, "order_reference": "ord-1001"}', key="k1"
    )

    assert again.status == 200
    assert len(bank.ledger("refunds")) == 1


@pytest.mark.parametrize(
    "other",
    [
        {**REFUND, "amount_minor": 45_001},
        {**REFUND, "currency": "USD"},
        {"nonsense": True},
        "{",
        {**REFUND, "amount_minor": -1},
    ],
)
def test_a_key_with_another_body_is_refused(bank: Bank, other: object) -> None:
    """A used key never acts for another body; that is said before the body is judged for itself."""
    first = bank.ask("POST", "/refunds", REFUND, key="k1")
    refused = bank.ask("POST", "/refunds", other, key="k1")

    assert (refused.status, refused.body["code"]) == (422, "idempotency_key_reused")
    assert refused.content_type == "application/problem+json"
    assert bank.ledger("refunds") == [first.body]


def test_two_keys_are_two_refunds(bank: Bank) -> None:
    """The provider does not guess: equal bodies under two keys are two wishes."""
    ids = {bank.ask("POST", "/refunds", REFUND, key=key).body["id"] for key in ("k1", "k2")}

    assert len(ids) == 2
    assert len(bank.ledger("refunds")) == 2


def test_a_key_can_be_asked_for(bank: Bank) -> None:
    """A lookup answers the record of the key, or that the key has never been used."""
    made = bank.ask("POST", "/refunds", REFUND, key="acme:tsk_1:v1:0:issue_refund")
    found = bank.ask("GET", "/refunds/acme:tsk_1:v1:0:issue_refund")
    absent = bank.ask("GET", "/refunds/acme:tsk_1:v2:0:issue_refund")

    assert (found.status, found.body) == (200, made.body)
    assert (absent.status, absent.body["code"]) == (404, "not_found")
    assert bank.ask("GET", "/payments/acme:tsk_1:v1:0:issue_refund").status == 404


@pytest.mark.parametrize("key", ["", " ", "-k", "a/b", "a%2Fb", "a b", "a\n", "ключ", "k" * 201])
def test_a_malformed_key_is_refused(bank: Bank, key: str) -> None:
    """B27: no key in the grammar, no effect."""
    refused = bank.ask("POST", "/refunds", REFUND, key=key)

    assert (refused.status, refused.body["code"]) == (400, "key_malformed")
    assert bank.rows() == 0


def test_a_missing_key_is_refused(bank: Bank) -> None:
    """B27: a keyed effect without a key does not run unprotected."""
    refused = bank.ask("POST", "/refunds", REFUND)

    assert (refused.status, refused.body["code"]) == (400, "key_required")
    assert bank.rows() == 0


@pytest.mark.parametrize(
    "change",
    [
        {"amount_minor": 0},
        {"amount_minor": -45_000},
        {"amount_minor": 450.0},
        {"amount_minor": "45000"},
        {"amount_minor": True},
        {"amount_minor": None},
        {"amount_minor": AMOUNT_MINOR_MAX + 1},
        {"currency": "eur"},
        {"currency": "EURO"},
        {"currency": "EUR\n"},
        {"currency": "€€€"},
        {"order_reference": ""},
        {"order_reference": "ord 1001"},
        {"order_reference": "o" * 65},
        {"order_reference": "../faults"},
        {"order_reference": ["ord-1001"]},
        {"note": "extra"},
    ],
)
def test_a_bad_body_is_refused_and_leaves_nothing(bank: Bank, change: dict[str, object]) -> None:
    """Each field obeys its rule, and no other field is tolerated."""
    refused = bank.ask("POST", "/refunds", {**REFUND, **change}, key="k1")

    assert (refused.status, refused.body["code"]) == (400, "invalid_body")
    assert refused.content_type == "application/problem+json"
    assert bank.rows() == 0


@pytest.mark.parametrize("missing", sorted(REFUND))
def test_a_missing_field_is_refused(bank: Bank, missing: str) -> None:
    """Every field is needed."""
    refused = bank.ask("POST", "/refunds", {k: v for k, v in REFUND.items() if k != missing}, key="k1")

    assert (refused.status, refused.body["code"]) == (400, "invalid_body")
    assert missing in refused.body["detail"]
    assert bank.rows() == 0


@pytest.mark.parametrize(
    "raw",
    ["", "{", "[]", "null", '"refund"', '{"amount_minor": NaN}', '{"currency": "EUR", "currency": "USD"}', "[" * 9_000],
)
def test_ambiguous_json_is_refused(bank: Bank, raw: str) -> None:
    """What two parsers could read in two ways is read in none."""
    refused = bank.ask("POST", "/refunds", raw, key="k1")

    assert (refused.status, refused.body["code"]) == (400, "invalid_json")
    assert bank.rows() == 0


def test_an_oversize_body_is_refused(bank: Bank) -> None:
    """A body beyond the limit is not even parsed."""
    refused = bank.ask("POST", "/refunds", json.dumps(REFUND) + " " * BODY_BYTES_MAX, key="k1")

    assert (refused.status, refused.body["code"]) == (413, "body_too_large")
    assert bank.rows() == 0


def test_a_body_may_come_as_base64(bank: Bank) -> None:
    """B45: the gateway's flag changes the wrapping and not the meaning."""
    plain = bank.ask("POST", "/refunds", REFUND, key="k1")
    wrapped = bank.ask("POST", "/refunds", REFUND, key="k1", as_base64=True)

    assert (plain.status, wrapped.status) == (201, 200)
    assert plain.body == wrapped.body


def test_a_transfer_can_be_looked_up_by_its_reference_only(bank: Bank) -> None:
    """B01: a provider that knows no keys acts on every call; asking first is the only protection."""
    reference = TRANSFER["reference"]
    before = bank.ask("GET", f"/transfers?reference={reference}")
    first = bank.ask("POST", "/transfers", TRANSFER, key="k1")
    second = bank.ask("POST", "/transfers", TRANSFER, key="k1")
    bank.ask("POST", "/transfers", {**TRANSFER, "reference": f"{reference}0"})
    found = bank.ask("GET", f"/transfers?reference={reference}")

    assert before.body == {"items": []}
    assert (first.status, second.status) == (201, 201)
    assert {item["id"] for item in found.body["items"]} == {first.body["id"], second.body["id"]}
    assert len(bank.ledger("transfers")) == 3
    assert bank.ask("GET", f"/transfers/{reference}").body["code"] == "no_such_route"


@pytest.mark.parametrize("reference", ["acme%3Atsk_1%23", "acme%3Atsk_1%2F", "%20", "%25"])
def test_a_malformed_reference_is_refused(bank: Bank, reference: str) -> None:
    """A reference that could match the start of another one is no question that can be answered."""
    bank.ask("POST", "/transfers", TRANSFER)

    assert bank.ask("GET", f"/transfers?reference={reference}").body["code"] == "key_malformed"


def test_a_letter_knows_neither_key_nor_reference(bank: Bank) -> None:
    """B01: some effects can be neither deduplicated nor asked for; each call posts a letter."""
    for _ in range(2):
        assert bank.ask("POST", "/letters", LETTER, key="k1").status == 201

    assert len(bank.ledger("letters")) == 2
    assert bank.ask("GET", "/letters/k1").body["code"] == "no_such_route"


def test_a_reservation_is_released_once_by_a_keyed_undo(bank: Bank) -> None:
    """I7: an undo is an effect of its own, with its own key; repeating it changes nothing."""
    bank.ask("POST", "/budget-reservations", RESERVATION, key="k1")
    release = bank.ask("POST", "/budget-releases", {"reservation_key": "k1"}, key="k1:undo")
    again = bank.ask("POST", "/budget-releases", {"reservation_key": "k1"}, key="k1:undo")
    other = bank.ask("POST", "/budget-releases", {"reservation_key": "k1"}, key="k1:undo2")

    assert (release.status, again.status) == (201, 200)
    assert release.body == again.body
    assert (other.status, other.body["code"]) == (409, "wrong_status")
    assert [row["status"] for row in bank.ledger("budget-reservations")] == ["released"]
    assert len(bank.ledger("budget-releases")) == 1


def test_a_repeat_of_the_reservation_does_not_revive_it(bank: Bank) -> None:
    """A late repeat after the undo answers the record as it is, and reserves nothing."""
    bank.ask("POST", "/budget-reservations", RESERVATION, key="k1")
    bank.ask("POST", "/budget-releases", {"reservation_key": "k1"}, key="k1:undo")
    late = bank.ask("POST", "/budget-reservations", RESERVATION, key="k1")

    assert (late.status, late.body["status"]) == (200, "released")
    assert len(bank.ledger("budget-reservations")) == 1


def test_an_undo_of_nothing_is_refused(bank: Bank) -> None:
    """An undo names what it undoes; an unknown key leaves no trace of the attempt."""
    refused = bank.ask("POST", "/budget-releases", {"reservation_key": "k9"}, key="k9:undo")

    assert (refused.status, refused.body["code"]) == (404, "unknown_target")
    assert bank.rows() == 0


def test_a_settled_payment_cannot_be_canceled(bank: Bank) -> None:
    """B28: an undo can fail for good, and then nothing says that it happened."""
    bank.ask("POST", "/payments", PAYMENT, key="p1")
    bank.ask("POST", "/payment-settlements", {"payment_key": "p1"}, key="p1:settled")
    refused = bank.ask("POST", "/payment-cancellations", {"payment_key": "p1"}, key="p1:undo")

    assert (refused.status, refused.body["code"]) == (409, "wrong_status")
    assert bank.ledger("payment-cancellations") == []
    assert [row["status"] for row in bank.ledger("payments")] == ["settled"]
    assert bank.ask("GET", "/payment-cancellations/p1:undo").body["code"] == "not_found"


def test_an_open_payment_can_be_canceled(bank: Bank) -> None:
    """Until it is settled a payment can be taken back, and then it cannot be settled any more."""
    bank.ask("POST", "/payments", PAYMENT, key="p1")
    canceled = bank.ask("POST", "/payment-cancellations", {"payment_key": "p1"}, key="p1:undo")
    settled = bank.ask("POST", "/payment-settlements", {"payment_key": "p1"}, key="p1:settled")

    assert canceled.status == 201
    assert settled.body["code"] == "wrong_status"
    assert [row["status"] for row in bank.ledger("payments")] == ["canceled"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/accounts", 404),
        ("GET", "/refunds/k1/items", 404),
        ("POST", "/refunds/k1", 405),
        ("DELETE", "/refunds/k1", 405),
        ("PUT", "/refunds", 405),
        ("POST", "/faults", 405),
        ("PATCH", "/faults", 405),
        ("POST", "/faults/x", 404),
    ],
)
def test_what_does_not_exist_is_refused(bank: Bank, method: str, path: str, status: int) -> None:
    """Nothing can be edited or removed, and no path is guessed."""
    refused = bank.ask(method, path, REFUND, key="k1")

    assert refused.status == status
    assert refused.content_type == "application/problem+json"
    assert bank.rows() == 0
