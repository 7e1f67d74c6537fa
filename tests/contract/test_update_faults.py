"""Claims, settlements and leases on DynamoDB when a reply is lost or rivals are at the same row (B11, B43, 3)."""

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from shared.adapters.dynamodb.store_calls import TRIES_MAX, UNANSWERED_MAX
from shared.domain.action import ActionRow, ActionStatus, Settlement, Verb
from shared.domain.errors import DependencyTimeout, LeaseHeld, Throttled
from shared.domain.identity import TaskKey
from shared.ports.action_ledger import Claim
from shared.ports.leases import Lease
from tests.builders import a_checkpoint, a_commit, a_task_key, an_action_row
from tests.contract.faults import Faults, Lost, Refusal, Unreachable
from tests.contract.stores import Stores, real_stores
from tests.fakes.clock import NOON

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

UPDATE = "UpdateItem"
LASTS = timedelta(seconds=25)
DONE = Settlement(status=ActionStatus.DONE, reference="re_1", facts={"n": 1}, reason="carried out")


@pytest.fixture
def healthy(dynamodb: "DynamoDBClient") -> Stores:
    """Make the adapters over a healthy client; their ids differ from those of the failing one."""
    return real_stores(dynamodb, seed=1)


@pytest.fixture
def shaken(faults: Faults) -> Stores:
    """Make the adapters over the failing client."""
    return real_stores(faults.client, seed=2)


@pytest.fixture
def row(tenant: str, healthy: Stores) -> ActionRow:
    """Commit a task with one intent."""
    key = a_task_key(tenant=tenant)
    intent = an_action_row(key)
    healthy.records.commit(a_commit(a_checkpoint(key), intents=[intent]))
    return intent


def key_of(row: ActionRow) -> TaskKey:
    """Name the task of a row."""
    return TaskKey(tenant=row.tenant, task_id=row.task_id)


def claim(stores: Stores, row: ActionRow) -> Claim | None:
    """Claim a fresh intent."""
    return stores.ledger.claim(
        key_of(row), row.operation, expected_fence=0, verb=Verb.SEND, now=NOON, lease_ends_at=NOON + LASTS
    )


def acquire(stores: Stores, key: TaskKey, holder: str) -> Lease:
    """Take the task's lease."""
    return stores.leases.acquire(key, version=1, holder=holder, presented_fence=None, now=NOON, ends_at=NOON + LASTS)


def test_a_claim_whose_reply_was_lost_is_our_claim(faults: Faults, shaken: Stores, row: ActionRow) -> None:
    """B11: applied, reply lost, and the repeat meets a live lease: it is our own, counted once."""
    faults.plan(UPDATE, Lost())

    answer = claim(shaken, row)

    assert answer is not None
    assert answer.won
    assert (answer.row.fence, answer.row.attempts) == (1, 1)
    assert len(faults.sent[UPDATE]) == 2


def test_a_claim_that_somebody_else_won_meanwhile_is_lost(
    faults: Faults, shaken: Stores, healthy: Stores, row: ActionRow
) -> None:
    """B11, run 2: the same row with another claim's name on it gives no right."""
    rivals = claim(healthy, row)
    faults.plan(UPDATE, Unreachable())

    answer = claim(shaken, row)

    assert rivals is not None
    assert answer == Claim(won=False, row=rivals.row)


def test_a_settlement_whose_reply_was_lost_is_settled(
    faults: Faults, shaken: Stores, healthy: Stores, row: ActionRow
) -> None:
    """B07, B11: the outcome is written once and the holder hears it, not that it lost its lease."""
    claim(healthy, row)
    faults.plan(UPDATE, Lost())

    settled = shaken.ledger.settle(key_of(row), row.operation, DONE, fence=1, now=NOON)

    assert settled.status is ActionStatus.DONE
    assert settled == healthy.ledger.get(key_of(row), row.operation)


def test_a_lease_whose_reply_was_lost_is_our_lease(faults: Faults, shaken: Stores, tenant: str) -> None:
    """B11: the row names the attempt that took it."""
    key = a_task_key(tenant=tenant)
    faults.plan(UPDATE, Lost())
    assert acquire(shaken, key, "att_mine").fence == 1
    with pytest.raises(LeaseHeld):
        acquire(shaken, key, "att_other")


def test_a_lease_that_somebody_else_took_meanwhile_is_held(
    faults: Faults, shaken: Stores, healthy: Stores, tenant: str
) -> None:
    """B11, run 2: no answer to us, and a rival's name on the row."""
    key = a_task_key(tenant=tenant)
    acquire(healthy, key, "att_rival")
    faults.plan(UPDATE, Unreachable())
    with pytest.raises(LeaseHeld):
        acquire(shaken, key, "att_mine")


@pytest.mark.parametrize("code", ["TransactionConflictException", "ThrottlingException"])
def test_a_conflict_with_a_transaction_is_waited_out(faults: Faults, shaken: Stores, row: ActionRow, code: str) -> None:
    """B43, 3: a plain update that meets a commit on the same row is repeated, not reported as a lost claim."""
    faults.plan(UPDATE, Refusal(code=code), Refusal(code=code))
    answer = claim(shaken, row)
    assert answer is not None
    assert answer.won

    faults.plan(UPDATE, *[Refusal(code=code)] * TRIES_MAX)
    with pytest.raises(Throttled):
        shaken.ledger.settle(key_of(row), row.operation, DONE, fence=1, now=NOON)


Call = Callable[[Stores, ActionRow], object]


def _settle(stores: Stores, row: ActionRow) -> object:
    return stores.ledger.settle(key_of(row), row.operation, DONE, fence=1, now=NOON)


def _lease(stores: Stores, row: ActionRow) -> object:
    return acquire(stores, key_of(row), "att_mine")


@pytest.mark.parametrize("call", [claim, _settle, _lease], ids=["claim", "settle", "lease"])
def test_a_write_that_is_never_answered_says_so(faults: Faults, shaken: Stores, row: ActionRow, call: Call) -> None:
    """B11: neither won nor lost is claimed when nobody answered."""
    faults.plan(UPDATE, *[Unreachable()] * UNANSWERED_MAX)
    with pytest.raises(DependencyTimeout):
        call(shaken, row)
