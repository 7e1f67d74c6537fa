"""The contract of `ActionLedger`, on the fake and on DynamoDB Local."""

from datetime import datetime, timedelta

import pytest

from shared.domain.action import SETTLED, ActionRow, ActionStatus, EffectClass, Settlement, Verb
from shared.domain.errors import InvariantBroken, LeaseLost
from shared.domain.identity import TaskKey
from shared.ports.action_ledger import Claim
from tests.builders import a_checkpoint, a_commit, a_task_key, an_action_row
from tests.contract.stores import Stores, race
from tests.fakes.clock import NOON

LEASE = timedelta(seconds=25)
DONE = Settlement(
    status=ActionStatus.DONE,
    reference="re_1001",
    facts={"amount_minor": 45_000, "currency": "EUR", "instant": True, "note": None},
    reason="carried out",
)
UNCLEAR = Settlement(status=ActionStatus.OUTCOME_UNKNOWN, reference=None, facts={}, reason="no answer")
UNSENT = Settlement(status=ActionStatus.INTENT, reference=None, facts={}, reason="never left us")


@pytest.fixture
def key(tenant: str) -> TaskKey:
    """Make the key of the test's task."""
    return a_task_key(tenant=tenant)


def intend(stores: Stores, key: TaskKey, **changes: object) -> ActionRow:
    """Commit a task with one intent."""
    row = an_action_row(key).model_copy(update=changes)
    stores.records.commit(a_commit(a_checkpoint(key), intents=[row]))
    return row


def claim(
    stores: Stores, row: ActionRow, *, fence: int = 0, verb: Verb = Verb.SEND, now: datetime = NOON
) -> Claim | None:
    """Claim an action."""
    key = TaskKey(tenant=row.tenant, task_id=row.task_id)
    return stores.ledger.claim(key, row.operation, expected_fence=fence, verb=verb, now=now, lease_ends_at=now + LEASE)


def won(answer: Claim | None) -> ActionRow:
    """Return the row of a claim that was won."""
    assert answer is not None
    assert answer.won
    return answer.row


def test_a_row_is_read_back_as_it_was_written(stores: Stores, key: TaskKey) -> None:
    """Every field survives, text as text and counts as counts."""
    row = intend(
        stores,
        key,
        effect=EffectClass.REVERSIBLE_WRITE,
        undoes="another:operation",
        facts={"amount_minor": 1, "sure": False, "nothing": None, "text": "ü"},
        reason="because",
        approval_id=None,
    )
    assert stores.ledger.get(key, row.operation) == row


def test_an_unheard_of_operation_has_no_row(stores: Stores, key: TaskKey) -> None:
    """B64: nothing is read, claimed or settled into being."""
    row = an_action_row(key)
    assert stores.ledger.get(key, row.operation) is None
    assert claim(stores, row) is None
    with pytest.raises(InvariantBroken):
        stores.ledger.settle(key, row.operation, DONE, fence=1, now=NOON)
    assert stores.ledger.get(key, row.operation) is None


def test_another_tenants_operation_is_not_there(stores: Stores, key: TaskKey) -> None:
    """B16: the same task id and operation under another tenant answer nothing."""
    row = intend(stores, key)
    assert stores.ledger.get(a_task_key(tenant=f"{key.tenant}-other"), row.operation) is None


def test_a_claim_counts_before_anything_is_done(stores: Stores, key: TaskKey) -> None:
    """B63: winning sets the row in flight, raises the fence, counts the attempt and keeps the first instant."""
    row = intend(stores, key)

    claimed = won(claim(stores, row))

    assert claimed == row.model_copy(
        update={
            "status": ActionStatus.IN_FLIGHT,
            "fence": 1,
            "attempts": 1,
            "first_sent_at": NOON,
            "lease_ends_at": NOON + LEASE,
        }
    )
    assert stores.ledger.get(key, row.operation) == claimed


def test_a_live_lease_keeps_others_away(stores: Stores, key: TaskKey) -> None:
    """B22: while the first attempt is at work, another one gets the row and no right, whatever fence it expects."""
    row = intend(stores, key)
    claimed = won(claim(stores, row))
    just_before = NOON + LEASE - timedelta(milliseconds=1)

    for fence in (0, 1):
        answer = claim(stores, row, fence=fence, now=just_before)
        assert answer == Claim(won=False, row=claimed)


def test_a_lapsed_lease_can_be_taken_over_with_the_known_fence_only(stores: Stores, key: TaskKey) -> None:
    """B20: the next attempt has to have seen the row; the first instant stays, the count goes on."""
    row = intend(stores, key)
    won(claim(stores, row))
    later = NOON + LEASE

    assert claim(stores, row, fence=0, now=later) == Claim(won=False, row=_row(stores, row))
    again = won(claim(stores, row, fence=1, now=later))

    assert (again.fence, again.attempts, again.first_sent_at) == (2, 2, NOON)
    assert again.status is ActionStatus.IN_FLIGHT


def test_a_look_up_is_counted_apart_and_keeps_the_status(stores: Stores, key: TaskKey) -> None:
    """Asking is not sending: the row stays unknown, and the limit on sends is untouched."""
    row = intend(stores, key)
    won(claim(stores, row))
    stores.ledger.settle(key, row.operation, UNCLEAR, fence=1, now=NOON)

    asking = won(claim(stores, row, fence=1, verb=Verb.LOOK_UP))

    assert (asking.fence, asking.attempts, asking.lookups) == (2, 1, 1)
    assert asking.status is ActionStatus.OUTCOME_UNKNOWN
    assert asking.first_sent_at == NOON


@pytest.mark.parametrize("verb", [Verb.ANSWER, Verb.BUSY, Verb.REVIEW])
def test_nothing_else_is_claimed(stores: Stores, key: TaskKey, verb: Verb) -> None:
    """A claim is for sending or asking."""
    row = intend(stores, key)
    with pytest.raises(InvariantBroken):
        claim(stores, row, verb=verb)
    assert _row(stores, row) == row


@pytest.mark.parametrize("status", sorted(SETTLED))
def test_what_is_settled_is_never_claimed(stores: Stores, key: TaskKey, status: ActionStatus) -> None:
    """B25: a done, failed or void action is answered, not repeated, by whatever fence."""
    row = intend(stores, key, status=status)
    assert claim(stores, row) == Claim(won=False, row=row)
    assert _row(stores, row) == row


def test_a_settlement_is_kept_with_its_facts(stores: Stores, key: TaskKey) -> None:
    """What the provider said comes back typed as it was said, and the lease has ended."""
    row = intend(stores, key)
    claimed = won(claim(stores, row))
    then = NOON + timedelta(seconds=3)

    settled = stores.ledger.settle(key, row.operation, DONE, fence=1, now=then)

    assert settled == claimed.model_copy(
        update={
            "status": ActionStatus.DONE,
            "reference": "re_1001",
            "facts": dict(DONE.facts),
            "reason": "carried out",
            "settled_at": then,
            "lease_ends_at": None,
        }
    )
    assert _row(stores, row) == settled


def test_an_unclear_outcome_says_since_when(stores: Stores, key: TaskKey) -> None:
    """O4: not knowing is dated too, frees the row for the next attempt, and forgets no send."""
    row = intend(stores, key)
    won(claim(stores, row))

    settled = stores.ledger.settle(key, row.operation, UNCLEAR, fence=1, now=NOON)

    assert settled.status is ActionStatus.OUTCOME_UNKNOWN
    assert settled.settled_at == NOON
    assert settled.lease_ends_at is None
    assert settled.first_sent_at == NOON
    assert won(claim(stores, row, fence=1)).attempts == 2


def test_what_was_proved_unsent_forgets_that_it_was_sent(stores: Stores, key: TaskKey) -> None:
    """B01: only proof that nothing left resets a row, and then wholly; its attempts stay counted."""
    row = intend(stores, key)
    won(claim(stores, row))

    settled = stores.ledger.settle(key, row.operation, UNSENT, fence=1, now=NOON)

    assert settled.status is ActionStatus.INTENT
    assert settled.first_sent_at is None
    assert settled.attempts == 1
    later = NOON + timedelta(minutes=1)
    assert won(claim(stores, row, fence=1, now=later)).first_sent_at == later


def test_a_reference_that_is_no_longer_known_is_gone(stores: Stores, key: TaskKey) -> None:
    """A settlement replaces the one before it; nothing of an older answer shines through."""
    row = intend(stores, key, reference="re_0", facts={"old": 1})
    won(claim(stores, row))
    settled = stores.ledger.settle(key, row.operation, UNCLEAR, fence=1, now=NOON)
    assert settled.reference is None
    assert settled.facts == {}
    assert _row(stores, row) == settled


def test_the_stalled_attempt_cannot_settle(stores: Stores, key: TaskKey) -> None:
    """B20: after another attempt took the row over, the first one's result is discarded, before and after the end."""
    row = intend(stores, key)
    won(claim(stores, row))
    won(claim(stores, row, fence=1, now=NOON + LEASE))

    with pytest.raises(LeaseLost):
        stores.ledger.settle(key, row.operation, UNCLEAR, fence=1, now=NOON + LEASE)
    settled = stores.ledger.settle(key, row.operation, DONE, fence=2, now=NOON + LEASE)
    with pytest.raises(LeaseLost):
        stores.ledger.settle(key, row.operation, UNCLEAR, fence=1, now=NOON + LEASE)

    assert _row(stores, row) == settled


def test_nobody_settles_without_a_claim(stores: Stores, key: TaskKey) -> None:
    """A fence that nobody was given holds nothing."""
    row = intend(stores, key)
    with pytest.raises(LeaseLost):
        stores.ledger.settle(key, row.operation, DONE, fence=0, now=NOON)
    assert _row(stores, row) == row


def test_a_settlement_again_answers_what_is_stored(stores: Stores, key: TaskKey) -> None:
    """B11: the holder's second try finds its own work; what is settled stays settled."""
    row = intend(stores, key)
    won(claim(stores, row))
    first = stores.ledger.settle(key, row.operation, DONE, fence=1, now=NOON)

    assert stores.ledger.settle(key, row.operation, DONE, fence=1, now=NOON + LEASE) == first
    assert stores.ledger.settle(key, row.operation, UNCLEAR, fence=1, now=NOON + LEASE) == first
    assert _row(stores, row) == first


@pytest.mark.parametrize("status", [ActionStatus.INTENT, ActionStatus.IN_FLIGHT, ActionStatus.OUTCOME_UNKNOWN])
def test_an_operation_gets_its_tries_back(stores: Stores, key: TaskKey, status: ActionStatus) -> None:
    """B63: a person's look renews what attempts may use up; what was sent, and when, stays on record."""
    row = intend(stores, key, status=status, attempts=3, lookups=5, fence=8, first_sent_at=NOON, reason="no answer")

    renewed = stores.ledger.renew(key, row.operation, fence=8, now=NOON)

    assert renewed == row.model_copy(update={"attempts": 0, "lookups": 0})
    assert stores.ledger.renew(key, row.operation, fence=8, now=NOON) == renewed == _row(stores, row)


@pytest.mark.parametrize("status", sorted(SETTLED))
def test_what_is_settled_has_no_tries_to_get_back(stores: Stores, key: TaskKey, status: ActionStatus) -> None:
    """B17: nothing that a person does to the counts opens a known outcome again."""
    row = intend(stores, key, status=status, attempts=3, fence=1)
    with pytest.raises(LeaseLost):
        stores.ledger.renew(key, row.operation, fence=1, now=NOON)
    assert _row(stores, row) == row


def test_an_operation_under_way_is_not_renewed(stores: Stores, key: TaskKey) -> None:
    """B22: while an attempt holds the row, and after one took it over, a look that is older counts for nothing."""
    row = intend(stores, key)
    won(claim(stores, row))
    for fence in (0, 1):
        with pytest.raises(LeaseLost):
            stores.ledger.renew(key, row.operation, fence=fence, now=NOON)

    assert stores.ledger.renew(key, row.operation, fence=1, now=NOON + LEASE).attempts == 0


def test_no_renewal_makes_a_row(stores: Stores, key: TaskKey) -> None:
    """B64: an operation that is not there stays not there."""
    stores.records.commit(a_commit(a_checkpoint(key)))
    operation = an_action_row(key).operation
    with pytest.raises(LeaseLost):
        stores.ledger.renew(key, operation, fence=0, now=NOON)
    assert stores.ledger.get(key, operation) is None


def test_all_rows_of_a_task_are_listed(stores: Stores, key: TaskKey) -> None:
    """B19: every operation a task ever intended, in the order of its versions, and no other task's."""
    rows = [an_action_row(key, n, version=n, tool=tool) for n, tool in ((1, "notify"), (2, "pay"), (3, "mail"))]
    other = a_task_key(2, tenant=key.tenant)
    for version, row in enumerate(rows, start=1):
        stores.records.commit(a_commit(a_checkpoint(key, version=version), attempt=version, intents=[row]))
    stores.records.commit(a_commit(a_checkpoint(other), attempt=9, intents=[an_action_row(other)]))

    assert stores.ledger.rows(key) == tuple(rows)
    assert stores.ledger.rows(a_task_key(3, tenant=key.tenant)) == ()


def test_of_many_claims_one_wins(stores: Stores, key: TaskKey) -> None:
    """B01, B22: sixteen attempts at once; one may send, fifteen see it at work, and one send is counted."""
    row = intend(stores, key)

    answers = race([lambda: claim(stores, row)] * 16)

    claims = [answer for answer in answers if isinstance(answer, Claim)]
    assert len(claims) == 16
    assert len([answer for answer in claims if answer.won]) == 1
    assert all(answer.row.status is ActionStatus.IN_FLIGHT for answer in claims)
    stored = _row(stores, row)
    assert stored is not None
    assert (stored.fence, stored.attempts) == (1, 1)


def _row(stores: Stores, row: ActionRow) -> ActionRow:
    stored = stores.ledger.get(TaskKey(tenant=row.tenant, task_id=row.task_id), row.operation)
    assert stored is not None
    return stored
