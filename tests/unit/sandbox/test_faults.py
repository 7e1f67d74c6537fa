"""Faults on order: counted, bounded, and seen by every worker process."""

from http import HTTPStatus

import pytest

from tests.unit.sandbox.conftest import Bank, wire

REFUND = {"order_reference": "ord-1001", "amount_minor": 45_000, "currency": "EUR"}
LETTER = {"recipient": "emp-7", "template": "welcome"}


def test_a_held_answer_comes_after_the_refund_is_recorded(bank: Bank) -> None:
    """L5: while the answer is held the ledger already shows the refund."""
    bank.ask("PUT", "/faults", {"hold_after_recording_seconds": 20, "times": 1})
    seen_while_held: list[int] = []
    bank.while_held = lambda: seen_while_held.append(len(bank.ledger("refunds")))

    answer = bank.ask("POST", "/refunds", REFUND, key="k1")

    assert seen_while_held == [1]
    assert answer.status == 201


def test_the_ordered_times_are_used_up_by_accepted_requests_only(bank: Bank) -> None:
    """A refused request suffers nothing and uses nothing up; a repeat counts like the first."""
    bank.ask("PUT", "/faults", {"hold_after_recording_seconds": 7, "times": 2})

    bank.ask("POST", "/refunds", {**REFUND, "amount_minor": 0}, key="k0")
    assert bank.holds == []
    for _ in range(3):
        bank.ask("POST", "/refunds", REFUND, key="k1")

    assert bank.holds == [7, 7]
    assert bank.ask("GET", "/faults").body == {"hold_after_recording_seconds": 7, "times": 0}


def test_another_process_suffers_the_fault(bank: Bank) -> None:
    """The order is in the table: a worker that starts later knows it."""
    bank.ask("PUT", "/faults", {"hold_after_recording_seconds": 3, "times": 1})
    bank.serve(wire())

    bank.ask("POST", "/refunds", REFUND, key="k1")

    assert bank.holds == [3]


def test_an_error_after_recording_hides_an_effect(bank: Bank) -> None:
    """An error status proves nothing: the refund stands behind the 500."""
    bank.ask("PUT", "/faults", {"answer_status_after_recording": 500, "times": 1})
    refused = bank.ask("POST", "/refunds", REFUND, key="k1")

    assert (refused.status, refused.body["code"]) == (500, "fault_on_order")
    assert len(bank.ledger("refunds")) == 1


def test_an_error_before_recording_leaves_nothing(bank: Bank) -> None:
    """The same status can also stand for nothing at all."""
    bank.ask("PUT", "/faults", {"answer_status_before_recording": 503, "times": 1})

    assert bank.ask("POST", "/refunds", REFUND, key="k1").status == 503
    assert bank.ledger("refunds") == []
    assert bank.ask("POST", "/refunds", REFUND, key="k1").status == 201


def test_a_fault_can_spare_other_collections(bank: Bank) -> None:
    """One effect of several can be struck."""
    bank.ask("PUT", "/faults", {"hold_after_recording_seconds": 5, "times": 1, "collection": "letters"})

    bank.ask("POST", "/refunds", REFUND, key="k1")
    assert bank.holds == []
    bank.ask("POST", "/letters", LETTER)
    assert bank.holds == [5]


def test_an_order_can_be_replaced_and_taken_back(bank: Bank) -> None:
    """There is at most one fault on order, and taking it back twice is no mistake."""
    bank.ask("PUT", "/faults", {"hold_after_recording_seconds": 5, "times": 9, "collection": "letters"})
    replaced = bank.ask("PUT", "/faults", {"answer_status_after_recording": 500, "times": 1})
    assert (replaced.status, replaced.body) == (200, {"answer_status_after_recording": 500, "times": 1})

    for _ in range(2):
        cleared = bank.ask("DELETE", "/faults")
        assert (cleared.status, cleared.body) == (200, {"times": 0})
    assert bank.ask("POST", "/refunds", REFUND, key="k1").status == 201
    assert bank.holds == []


@pytest.mark.parametrize(
    "order",
    [
        {},
        {"times": 1},
        {"hold_after_recording_seconds": 5},
        {"hold_after_recording_seconds": 0, "times": 1},
        {"hold_after_recording_seconds": 26, "times": 1},
        {"hold_after_recording_seconds": 1.5, "times": 1},
        {"hold_after_recording_seconds": True, "times": 1},
        {"hold_after_recording_seconds": 5, "times": 0},
        {"hold_after_recording_seconds": 5, "times": 101},
        {"hold_after_recording_seconds": 5, "times": "1"},
        {"hold_after_recording_seconds": 5, "answer_status_after_recording": 500, "times": 1},
        {"hold_after_recording_seconds": 5, "times": 1, "collection": "faults"},
        {"hold_after_recording_seconds": 5, "times": 1, "collection": None},
        {"hold_after_recording_seconds": 5, "times": 1, "collection": ["refunds"]},
        {"hold_after_recording_seconds": 5, "times": 1, "note": "x"},
        {"answer_status_after_recording": 200, "times": 1},
        {"answer_status_after_recording": 499, "times": 1},
        {"answer_status_before_recording": 600, "times": 1},
    ],
)
def test_an_order_for_no_fault_that_exists_is_refused(bank: Bank, order: object) -> None:
    """A mistaken order changes nothing about the one in force."""
    bank.ask("PUT", "/faults", {"hold_after_recording_seconds": 5, "times": 1})
    refused = bank.ask("PUT", "/faults", order)

    assert (refused.status, refused.body["code"]) == (HTTPStatus.BAD_REQUEST, "invalid_body")
    assert bank.ask("GET", "/faults").body == {"hold_after_recording_seconds": 5, "times": 1}
