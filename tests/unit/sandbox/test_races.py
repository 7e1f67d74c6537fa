"""Concurrent requests: real threads on a store whose calls are atomic."""

import itertools
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import pytest

from sandbox.credentials import Credentials
from sandbox.faults import Faults, Moment
from sandbox.fields import digest
from sandbox.ledger import AlreadyRecorded, Ledger, Record
from sandbox.problems import Problem
from sandbox.provider import Provider, Request
from sandbox.resources import RESOURCES
from tests.unit.sandbox.conftest import API_KEY, SECRET, TABLE, Bank, OneCallAtATime

WORKERS = 8
REFUND = b'{"order_reference": "ord-1001", "amount_minor": 45000, "currency": "EUR"}'


@pytest.fixture
def provider(bank: Bank) -> Provider:
    """Wire a provider whose store takes one call at a time."""
    client: Any = OneCallAtATime(bank.dynamodb)
    numbers = itertools.count()
    return Provider(
        ledger=Ledger(client, TABLE, pause=lambda _: None),
        faults=Faults(client, TABLE),
        credentials=Credentials(bank.secrets, SECRET, clock=time.monotonic),
        now=lambda: datetime(2026, 10, 9, 9, 0, tzinfo=UTC),
        new_id=lambda prefix: f"{prefix}_{next(numbers)}",
        sleep=lambda _: None,
    )


def post(collection: str, body: bytes, key: str) -> Request:
    """Ask for an effect under a key."""
    return Request(
        method="POST",
        path=(collection,),
        query={},
        headers={"authorization": f"Bearer {API_KEY}", "idempotency-key": key},
        body=body,
    )


def at_once(provider: Provider, requests: list[Request]) -> list[int]:
    """Send the requests from several threads and answer the statuses in their order."""
    provider.answer(post("refunds", b"", "warm-up"))
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        return [int(response.status) for response in pool.map(provider.answer, requests)]


def test_racing_requests_with_one_key_make_one_refund(provider: Provider) -> None:
    """B01: whoever comes first records; everyone else is answered what was recorded."""
    statuses = at_once(provider, [post("refunds", REFUND, "k1")] * 32)

    assert Counter(statuses) == {201: 1, 200: 31}
    assert len(provider.ledger.everything("refunds")) == 1


def test_racing_requests_with_one_key_and_two_bodies_make_one_refund(provider: Provider) -> None:
    """The loser with another body is told so, however close the race was."""
    other = REFUND.replace(b"45000", b"90000")
    statuses = at_once(provider, [post("refunds", body, "k1") for body in (REFUND, other) * 8])

    assert Counter(statuses) == {201: 1, 200: 7, 422: 8}
    assert len(provider.ledger.everything("refunds")) == 1


def test_racing_undos_end_a_reservation_once(provider: Provider) -> None:
    """Of several undos with keys of their own exactly one ends the reservation, in one piece with its record."""
    reservation = b'{"budget": "cc-12", "amount_minor": 1, "currency": "EUR"}'
    provider.answer(post("budget-reservations", reservation, "k1"))
    statuses = at_once(provider, [post("budget-releases", b'{"reservation_key": "k1"}', f"undo-{n}") for n in range(8)])

    assert Counter(statuses) == {201: 1, 409: 7}
    assert len(provider.ledger.everything("budget-releases")) == 1
    assert [row.status for row in provider.ledger.everything("budget-reservations")] == ["released"]


def test_a_fault_strikes_as_often_as_ordered(provider: Provider) -> None:
    """Each ordered time goes to exactly one of the requests that race for it."""
    provider.faults.order({"answer_status_after_recording": 500, "times": 3})
    statuses = at_once(provider, [post("refunds", REFUND, f"k{n}") for n in range(16)])

    assert Counter(statuses) == {500: 3, 201: 13}
    assert len(provider.ledger.everything("refunds")) == 16


class Colliding:
    """A DynamoDB that cancels transactions for a while, with the reasons it is told."""

    def __init__(self, client: Any, reasons: list[list[dict[str, Any]]]) -> None:
        self._client = client
        self._reasons = reasons
        self.exceptions = client.exceptions
        self.calls = 0

    def transact_write_items(self, **arguments: Any) -> Any:
        self.calls += 1
        if not self._reasons:
            return self._client.transact_write_items(**arguments)
        response = {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": self._reasons.pop(0)}
        raise self._client.exceptions.TransactionCanceledException(response, "TransactWriteItems")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


RELEASE = Record(
    id="bx_1",
    key="undo",
    digest=digest(b"{}"),
    fields={"reservation_key": "k1"},
    status="recorded",
    recorded_at="2026-10-09T09:00:00.000Z",
)
NOTHING: dict[str, Any] = {"Code": "None"}


def reserve(bank: Bank) -> None:
    """Make the reservation that the tests below undo."""
    bank.ask("POST", "/budget-reservations", {"budget": "cc-12", "amount_minor": 1, "currency": "EUR"}, key="k1")


def test_a_collision_passes_by_itself(bank: Bank) -> None:
    """B43: a conflict or a throttle is no answer; the transaction is tried again, unchanged."""
    reserve(bank)
    client: Any = Colliding(
        bank.dynamodb, [[NOTHING, {"Code": "TransactionConflict"}], [{"Code": "ThrottlingError"}, NOTHING]]
    )

    Ledger(client, TABLE, pause=lambda _: None).add(RESOURCES["budget-releases"], RELEASE)

    assert client.calls == 3
    assert len(bank.ledger("budget-releases")) == 1


def test_a_lasting_collision_ends_in_an_honest_answer(bank: Bank) -> None:
    """B43: after bounded tries the caller is told that the provider is busy."""
    client: Any = Colliding(bank.dynamodb, [[{"Code": "TransactionConflict"}, NOTHING] for _ in range(99)])

    with pytest.raises(Problem) as refusal:
        Ledger(client, TABLE, pause=lambda _: None).add(RESOURCES["budget-releases"], RELEASE)

    assert (refusal.value.status, refusal.value.code) == (HTTPStatus.SERVICE_UNAVAILABLE, "busy")
    assert client.calls == 5


def test_a_failed_condition_decides_over_a_collision(bank: Bank) -> None:
    """B43: of mixed reasons the failed condition is the answer; a malformed write is loud."""
    item = {
        "collection": {"S": "budget-releases"},
        "record": {"S": "key#undo"},
        "id": {"S": "bx_0"},
        "key": {"S": "undo"},
        "digest": {"S": "d"},
        "fields": {"S": "{}"},
        "status": {"S": "recorded"},
        "recorded_at": {"S": "2026-10-09T09:00:00.000Z"},
    }
    mixed: Any = Colliding(
        bank.dynamodb, [[{"Code": "ConditionalCheckFailed", "Item": item}, {"Code": "TransactionConflict"}]]
    )
    with pytest.raises(AlreadyRecorded) as already:
        Ledger(mixed, TABLE).add(RESOURCES["budget-releases"], RELEASE)
    assert already.value.record.id == "bx_0"

    malformed: Any = Colliding(bank.dynamodb, [[NOTHING, {"Code": "ValidationError"}]])
    with pytest.raises(malformed.exceptions.TransactionCanceledException):
        Ledger(malformed, TABLE).add(RESOURCES["budget-releases"], RELEASE)
    assert malformed.calls == 1


def test_a_lost_reply_is_recognised_as_the_own_write(bank: Bank) -> None:
    """B11: the put was applied and its reply lost; the repeat finds the record and says so."""
    ledger = Ledger(bank.dynamodb, TABLE)
    record = Record(
        id="rf_1", key="k1", digest="d", fields={}, status="recorded", recorded_at="2026-10-09T09:00:00.000Z"
    )
    ledger.add(RESOURCES["refunds"], record)

    with pytest.raises(AlreadyRecorded) as already:
        ledger.add(RESOURCES["refunds"], record)
    assert already.value.record == record


def test_no_fault_on_order_strikes_nobody(bank: Bank) -> None:
    """Without an order nothing is written either."""
    assert Faults(bank.dynamodb, TABLE).strike("refunds", Moment.AFTER_RECORDING) is None
    assert bank.rows() == 0
