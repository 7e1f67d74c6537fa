"""The contract of `TaskRecords`, on the fake and on DynamoDB Local."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from shared.domain.action import ActionStatus
from shared.domain.checkpoint import head_columns, watch_shard
from shared.domain.errors import (
    ActionInFlight,
    DuplicateEvent,
    EngineError,
    InvalidRequest,
    InvariantBroken,
    LeaseLost,
    StaleVersion,
    WaitSettled,
)
from shared.domain.identity import TaskKey
from shared.domain.outbox import AnswerWait, OutboxRow, PublishEvent, StartExecution
from shared.domain.status import TERMINAL, Status
from shared.domain.wait import Wait, WaitSettlement, WaitStatus
from shared.ports.task_records import Commit, Head
from tests.builders import a_checkpoint, a_commit, a_task_key, a_wait, an_action_row, an_inbox_row, sealed
from tests.contract.stores import Stores, race
from tests.fakes.clock import NOON

START = StartExecution(workflow="refund", run=1, version=1)
TOMORROW = NOON + timedelta(days=1)
ALARM = PublishEvent(event="task.quarantined", version=1, detail={"reason": "a test", "count": 1, "sure": True})


@pytest.fixture
def key(tenant: str) -> TaskKey:
    """Make the key of the test's task."""
    return a_task_key(tenant=tenant)


def settlement_of(wait: Wait, status: WaitStatus = WaitStatus.SETTLED) -> WaitSettlement:
    """Make the end of a wait."""
    return WaitSettlement(tenant=wait.tenant, correlation_id=wait.correlation_id, wait_id=wait.wait_id, status=status)


def nothing_of(stores: Stores, commit: Commit) -> bool:
    """Whether nothing of a refused commit was written."""
    event = commit.inbox
    stored = stores.records.load(commit.key)
    return (
        (stored.head.attempt_id if stored else None) != commit.attempt_id
        and (event is None or stores.inbox.get(event.tenant, event.source, event.event_id) is None)
        and all(stores.waits.get(w.tenant, w.correlation_id) is None for w in commit.opened)
        and all(stores.ledger.get(commit.key, row.operation) is None for row in commit.intents)
        and commit.checkpoint.version not in {row.version for row in stores.back_door.staged(commit.key)}
    )


def test_a_commit_is_read_back_as_it_was_written(stores: Stores, key: TaskKey) -> None:
    """A new task's head and checkpoint come back byte for byte, whatever version the reader expects."""
    commit = a_commit(a_checkpoint(key))

    stores.records.commit(commit)

    for hint in (None, 1, 2):
        stored = stores.records.load(key, version_hint=hint)
        assert stored is not None
        assert stored.checkpoint == commit.checkpoint
        assert stored.head.key == key
        assert stored.head.version == 1
        assert stored.head.attempt_id == commit.attempt_id
        assert stored.head.columns == head_columns(a_checkpoint(key))
        assert stored.head.quarantine is None


def test_a_commit_writes_everything_that_belongs_together(stores: Stores, key: TaskKey) -> None:
    """Event, wait, intent and messages are there once the commit is, each as it was given."""
    event, wait, intent = an_inbox_row(key), a_wait(key), an_action_row(key)
    answer = AnswerWait(wait_id=wait.wait_id, correlation_id=wait.correlation_id, version=1)

    stores.records.commit(
        a_commit(a_checkpoint(key), inbox=event, opened=[wait], intents=[intent], messages=[START, answer, ALARM])
    )

    assert stores.inbox.get(event.tenant, event.source, event.event_id) == event
    assert stores.waits.get(wait.tenant, wait.correlation_id) == wait
    assert stores.ledger.get(key, intent.operation) == intent
    assert stores.back_door.staged(key) == [OutboxRow(key=key, version=1, messages=(START, answer, ALARM))]


def test_a_head_keeps_nothing_of_the_head_before(stores: Stores, key: TaskKey) -> None:
    """A column that the next version does not have is gone: a closed task is due at no time."""
    stores.records.commit(a_commit(a_checkpoint(key)))
    closed = a_checkpoint(key, version=2, status=Status.COMPLETED)

    stores.records.commit(a_commit(closed, attempt=2))

    stored = stores.records.load(key, version_hint=2)
    assert stored is not None
    assert stored.head.columns == head_columns(closed)
    assert "due_at" not in stored.head.columns


def test_a_commit_without_messages_stages_nothing(stores: Stores, key: TaskKey) -> None:
    """The stream wakes nobody for nothing."""
    stores.records.commit(a_commit(a_checkpoint(key)))
    assert stores.back_door.staged(key) == []


def test_an_unknown_task_and_another_tenants_task_read_the_same(stores: Stores, key: TaskKey) -> None:
    """B16: knowing an id gives nothing; both are simply not there."""
    stores.records.commit(a_commit(a_checkpoint(key)))
    stranger = TaskKey(tenant=f"{key.tenant}-other", task_id=key.task_id)

    assert stores.records.load(stranger) is None
    assert stores.records.load(stranger, version_hint=1) is None
    assert stores.records.load(a_task_key(2, tenant=key.tenant)) is None


def test_a_lost_race_writes_nothing(stores: Stores, key: TaskKey) -> None:
    """A commit on a version that is no longer the last one is refused as a whole."""
    stores.records.commit(a_commit(a_checkpoint(key)))
    stores.records.commit(a_commit(a_checkpoint(key, version=2), attempt=2))
    late = a_commit(
        a_checkpoint(key, version=2, status=Status.COMPLETED),
        attempt=3,
        inbox=an_inbox_row(key),
        opened=[a_wait(key)],
        intents=[an_action_row(key)],
    )

    with pytest.raises(StaleVersion):
        stores.records.commit(late)

    assert nothing_of(stores, late)


def test_a_task_is_created_once(stores: Stores, key: TaskKey) -> None:
    """Two creations of one task: the second comes too late."""
    stores.records.commit(a_commit(a_checkpoint(key)))
    with pytest.raises(StaleVersion):
        stores.records.commit(a_commit(a_checkpoint(key), attempt=2))


def test_no_update_makes_a_task(stores: Stores, key: TaskKey) -> None:
    """B64: a late commit for a task that is gone, or never was, leaves no phantom behind."""
    late = a_commit(a_checkpoint(key, version=4), messages=[START])

    with pytest.raises(StaleVersion):
        stores.records.commit(late)

    assert stores.records.load(key, version_hint=4) is None
    assert nothing_of(stores, late)


def test_the_same_attempt_again_is_the_same_commit(stores: Stores, key: TaskKey) -> None:
    """B11: a repeat of our own commit succeeds and changes nothing, also after somebody else went on."""
    first = a_commit(a_checkpoint(key), inbox=an_inbox_row(key), messages=[START])
    stores.records.commit(first)
    stores.records.commit(first)
    stores.records.commit(a_commit(a_checkpoint(key, version=2), attempt=2))
    stores.records.commit(first)

    stored = stores.records.load(key)
    assert stored is not None
    assert stored.head.version == 2
    assert len(stores.back_door.staged(key)) == 1


def test_an_event_is_accepted_once(stores: Stores, key: TaskKey) -> None:
    """B05: a second delivery is told apart from a lost race, whether or not the task has moved on since."""
    stores.records.commit(a_commit(a_checkpoint(key), inbox=an_inbox_row(key)))
    again = a_commit(a_checkpoint(key, version=2), attempt=2, inbox=an_inbox_row(key))
    with pytest.raises(DuplicateEvent):
        stores.records.commit(again)

    stores.records.commit(a_commit(a_checkpoint(key, version=2), attempt=3))
    with pytest.raises(DuplicateEvent):
        stores.records.commit(again)

    elsewhere = a_task_key(2, tenant=key.tenant)
    with pytest.raises(DuplicateEvent):
        stores.records.commit(a_commit(a_checkpoint(elsewhere), attempt=4, inbox=an_inbox_row(elsewhere)))
    assert stores.records.load(elsewhere) is None


def test_the_same_event_id_of_two_tenants_are_two_events(stores: Stores, key: TaskKey) -> None:
    """B16: an idempotency key is worth nothing outside its tenant."""
    stores.records.commit(a_commit(a_checkpoint(key), inbox=an_inbox_row(key)))
    other = a_task_key(tenant=f"{key.tenant}-other")

    stores.records.commit(a_commit(a_checkpoint(other), inbox=an_inbox_row(other)))

    row = stores.inbox.get(other.tenant, "api", "evt-1")
    assert row == an_inbox_row(other)


def test_a_wait_is_settled_once(stores: Stores, key: TaskKey) -> None:
    """The first answer ends the wait; the second writes nothing and is told so."""
    wait = a_wait(key)
    stores.records.commit(a_commit(a_checkpoint(key), opened=[wait]))
    settled_at = NOON + timedelta(hours=1)
    stores.records.commit(
        a_commit(a_checkpoint(key, version=2), attempt=2, settled=[settlement_of(wait)], now=settled_at)
    )

    stored = stores.waits.get(wait.tenant, wait.correlation_id)
    assert stored == wait.model_copy(update={"status": WaitStatus.SETTLED, "settled_at": settled_at})
    late = a_commit(
        a_checkpoint(key, version=3), attempt=3, settled=[settlement_of(wait, WaitStatus.EXPIRED)], messages=[START]
    )
    with pytest.raises(WaitSettled):
        stores.records.commit(late)
    assert nothing_of(stores, late)
    assert stores.waits.get(wait.tenant, wait.correlation_id) == stored


@pytest.mark.parametrize("change", [{"wait_id": "wai_other"}, {"correlation_id": "apr_unheard_of"}])
def test_only_the_wait_that_was_meant_is_settled(stores: Stores, key: TaskKey, change: dict[str, str]) -> None:
    """B64, B67: an answer for an older wait, or for one that is not there, settles nothing and makes no row."""
    wait = a_wait(key)
    stores.records.commit(a_commit(a_checkpoint(key), opened=[wait]))
    end = settlement_of(wait).model_copy(update=change)

    with pytest.raises(WaitSettled):
        stores.records.commit(a_commit(a_checkpoint(key, version=2), attempt=2, settled=[end]))

    assert stores.waits.get(wait.tenant, wait.correlation_id) == wait
    if end.correlation_id != wait.correlation_id:
        assert stores.waits.get(end.tenant, end.correlation_id) is None


def test_a_task_settles_its_own_waits_only(stores: Stores, key: TaskKey) -> None:
    """Another task of the same tenant cannot end the wait, even knowing everything about it."""
    wait = a_wait(key)
    other = a_task_key(2, tenant=key.tenant)
    stores.records.commit(a_commit(a_checkpoint(key), opened=[wait]))

    with pytest.raises(WaitSettled):
        stores.records.commit(a_commit(a_checkpoint(other), attempt=2, settled=[settlement_of(wait)]))


def test_a_wait_climbs_one_rung_at_a_time(stores: Stores, key: TaskKey) -> None:
    """B67: the rung that was armed is climbed once; late, repeated and skipping climbs change nothing."""
    wait = a_wait(key)
    higher = wait.model_copy(update={"rung": 1})
    stores.records.commit(a_commit(a_checkpoint(key), opened=[wait]))
    with pytest.raises(WaitSettled):
        stores.records.commit(
            a_commit(a_checkpoint(key, version=2), attempt=2, climbed=[wait.model_copy(update={"rung": 2})])
        )

    stores.records.commit(a_commit(a_checkpoint(key, version=2), attempt=3, climbed=[higher], messages=[START]))

    assert stores.waits.get(wait.tenant, wait.correlation_id) == higher
    with pytest.raises(WaitSettled):
        stores.records.commit(a_commit(a_checkpoint(key, version=3), attempt=4, climbed=[higher]))
    assert stores.waits.get(wait.tenant, wait.correlation_id) == higher


@pytest.mark.parametrize("gone", ["settled", "never there", "another wait"])
def test_only_an_open_wait_climbs(stores: Stores, key: TaskKey, gone: str) -> None:
    """B64, B67: a reminder for a wait that has ended, or for none, is refused and makes no row."""
    wait = a_wait(key)
    stores.records.commit(a_commit(a_checkpoint(key), opened=[] if gone == "never there" else [wait]))
    if gone == "settled":
        stores.records.commit(a_commit(a_checkpoint(key, version=2), attempt=2, settled=[settlement_of(wait)]))
    before = stores.waits.get(wait.tenant, wait.correlation_id)
    version = 3 if gone == "settled" else 2
    higher = wait.model_copy(update={"rung": 1} | ({"wait_id": "wai_other"} if gone == "another wait" else {}))

    with pytest.raises(WaitSettled):
        stores.records.commit(a_commit(a_checkpoint(key, version=version), attempt=3, climbed=[higher]))

    assert stores.waits.get(wait.tenant, wait.correlation_id) == before


def test_a_commit_holds_only_under_its_lease(stores: Stores, key: TaskKey) -> None:
    """B20: once another attempt took the lease, the first one's commit is refused; the holder's releases it."""
    stores.records.commit(a_commit(a_checkpoint(key)))
    later = NOON + timedelta(minutes=5)
    old = stores.leases.acquire(
        key, version=1, holder="att_a", presented_fence=None, now=NOON, ends_at=NOON + timedelta(minutes=1)
    )
    new = stores.leases.acquire(
        key, version=1, holder="att_b", presented_fence=None, now=later, ends_at=later + timedelta(minutes=1)
    )

    with pytest.raises(LeaseLost):
        stores.records.commit(a_commit(a_checkpoint(key, version=2), attempt=2, lease_fence=old.fence, now=later))
    stores.records.commit(a_commit(a_checkpoint(key, version=2), attempt=3, lease_fence=new.fence, now=later))

    free = stores.leases.acquire(
        key, version=2, holder="att_c", presented_fence=None, now=later, ends_at=later + timedelta(minutes=1)
    )
    assert free.fence == new.fence + 1


def test_no_commit_makes_a_lease(stores: Stores, key: TaskKey) -> None:
    """B64: a fence without a lease row is a lost lease."""
    stores.records.commit(a_commit(a_checkpoint(key)))
    with pytest.raises(LeaseLost):
        stores.records.commit(a_commit(a_checkpoint(key, version=2), attempt=2, lease_fence=1))


def test_an_intent_is_withdrawn_before_anything_was_sent(stores: Stores, key: TaskKey) -> None:
    """What was only intended becomes void in the commit that changes the request."""
    row = an_action_row(key)
    stores.records.commit(a_commit(a_checkpoint(key), intents=[row]))

    stores.records.commit(a_commit(a_checkpoint(key, version=2), attempt=2, withdrawn=[row.operation]))

    void = stores.ledger.get(key, row.operation)
    assert void is not None
    assert void.status is ActionStatus.VOID
    assert void.settled_at == NOON


@pytest.mark.parametrize("status", [s for s in ActionStatus if s is not ActionStatus.INTENT])
def test_a_claimed_intent_cannot_be_withdrawn(stores: Stores, key: TaskKey, status: ActionStatus) -> None:
    """An effect under way, or settled, stops the commit that would take it back."""
    row = an_action_row(key, status=status)
    stores.records.commit(a_commit(a_checkpoint(key), intents=[row]))
    late = a_commit(a_checkpoint(key, version=2), attempt=2, withdrawn=[row.operation], messages=[START])

    with pytest.raises(ActionInFlight):
        stores.records.commit(late)

    assert nothing_of(stores, late)
    assert stores.ledger.get(key, row.operation) == row


def test_no_withdrawal_makes_an_intent(stores: Stores, key: TaskKey) -> None:
    """B64: withdrawing an intent that is not stored is loud and leaves no row."""
    stores.records.commit(a_commit(a_checkpoint(key)))
    operation = an_action_row(key).operation
    with pytest.raises(InvariantBroken):
        stores.records.commit(a_commit(a_checkpoint(key, version=2), attempt=2, withdrawn=[operation]))
    assert stores.ledger.get(key, operation) is None


def test_a_head_that_was_rolled_back_is_noticed(stores: Stores, key: TaskKey) -> None:
    """B19: a checkpoint that the head does not know of is evidence, not something to write over."""
    first = a_commit(a_checkpoint(key))
    stores.records.commit(first)
    stores.back_door.lose_head(key)

    with pytest.raises(InvariantBroken):
        stores.records.commit(a_commit(a_checkpoint(key, status=Status.FAILED), attempt=2))

    assert stores.records.load(key) is None


@pytest.mark.parametrize("kind", ["intent", "wait"])
def test_a_row_that_the_head_does_not_know_of_is_noticed(stores: Stores, key: TaskKey, kind: str) -> None:
    """B19, B25: restored to before an intent or wait, a task cannot write it again as if nothing had happened."""
    rows = {"intents": [an_action_row(key)]} if kind == "intent" else {"opened": [a_wait(key)]}
    stores.records.commit(a_commit(a_checkpoint(key), **rows))
    again = a_commit(a_checkpoint(key, version=2), attempt=2, **rows)

    with pytest.raises(InvariantBroken):
        stores.records.commit(again)

    stores.records.commit(a_commit(a_checkpoint(key, version=2), attempt=3))
    with pytest.raises(StaleVersion):
        stores.records.commit(again)


def _foreign_wait(key: TaskKey, other: TaskKey) -> Commit:
    return a_commit(a_checkpoint(key), opened=[a_wait(other)])


def _foreign_climb(key: TaskKey, other: TaskKey) -> Commit:
    return a_commit(a_checkpoint(key), climbed=[a_wait(other)])


def _foreign_settlement(key: TaskKey, other: TaskKey) -> Commit:
    return a_commit(a_checkpoint(key), settled=[settlement_of(a_wait(other))])


def _foreign_intent(key: TaskKey, other: TaskKey) -> Commit:
    return a_commit(a_checkpoint(key), intents=[an_action_row(other)])


def _foreign_event(key: TaskKey, other: TaskKey) -> Commit:
    return a_commit(a_checkpoint(key), inbox=an_inbox_row(other))


def _twice(key: TaskKey, _: TaskKey) -> Commit:
    return a_commit(a_checkpoint(key), opened=[a_wait(key), a_wait(key)])


def _climbed_and_settled(key: TaskKey, _: TaskKey) -> Commit:
    wait = a_wait(key)
    return a_commit(a_checkpoint(key), climbed=[wait], settled=[settlement_of(wait)])


def _intended_and_withdrawn(key: TaskKey, _: TaskKey) -> Commit:
    row = an_action_row(key)
    return a_commit(a_checkpoint(key), intents=[row], withdrawn=[row.operation])


@pytest.mark.parametrize(
    "make",
    [
        _foreign_wait,
        _foreign_climb,
        _foreign_settlement,
        _foreign_intent,
        _foreign_event,
        _twice,
        _climbed_and_settled,
        _intended_and_withdrawn,
    ],
)
def test_a_commit_writes_its_own_rows_once(
    stores: Stores, key: TaskKey, make: Callable[[TaskKey, TaskKey], Commit]
) -> None:
    """B16: rows of another tenant, or one row twice, are a bug of ours and never reach the store."""
    with pytest.raises(InvariantBroken):
        stores.records.commit(make(key, a_task_key(tenant=f"{key.tenant}-other")))
    assert stores.records.load(key) is None


def test_a_run_never_goes_back(stores: Stores, key: TaskKey) -> None:
    """B61: an older execution cannot take a task back from the run that replaced it."""
    second_run = a_checkpoint(key, version=2)
    second_run = second_run.model_copy(update={"execution": second_run.execution.model_copy(update={"run": 2})})
    stores.records.commit(a_commit(a_checkpoint(key)))
    stores.records.commit(a_commit(second_run, attempt=2))

    with pytest.raises(StaleVersion):
        stores.records.commit(a_commit(a_checkpoint(key, version=3), attempt=3))


def test_of_many_commits_on_one_version_one_wins(stores: Stores, key: TaskKey) -> None:
    """B61, R8: sixteen attempts at once; fifteen are told that another came first, and nothing of theirs is stored."""
    stores.records.commit(a_commit(a_checkpoint(key)))
    commits = [
        a_commit(a_checkpoint(key, version=2), attempt=n, inbox=an_inbox_row(key, f"evt-{n}"), messages=[START])
        for n in range(2, 18)
    ]

    outcomes = race([lambda c=commit: stores.records.commit(c) for commit in commits])  # type: ignore[misc]

    won = [commit for commit, outcome in zip(commits, outcomes, strict=True) if outcome is None]
    assert len(won) == 1
    assert all(isinstance(o, EngineError) and o.code in {"stale_version", "throttled"} for o in outcomes if o)
    stored = stores.records.load(key)
    assert stored is not None
    assert stored.head.attempt_id == won[0].attempt_id
    assert [row.version for row in stores.back_door.staged(key)] == [2]
    events = [stores.inbox.get(key.tenant, "api", f"evt-{n}") for n in range(2, 18)]
    assert len([event for event in events if event]) == 1


def _quarantine(stores: Stores, key: TaskKey, version: int = 1, reason: str = "the seal does not match") -> None:
    review = a_wait(key, 99, correlation_id=f"qua-{key.task_id}-{version}")
    stores.records.quarantine(
        key, version=version, reason=reason, review=review, messages=(ALARM,), now=NOON, remind_at=TOMORROW
    )


def _marked(stores: Stores, key: TaskKey) -> Head:
    stored = stores.records.load(key)
    assert stored is not None
    return stored.head


def _listed(stores: Stores, key: TaskKey, *, at: datetime) -> bool:
    return key in stores.records.overdue(watch_shard(key.task_id), before=at, limit=5_000)


@pytest.mark.parametrize("status", [Status.WAITING_APPROVAL, Status.COMPLETED])
def test_a_quarantined_task_is_listed_when_people_have_to_be_reminded(
    stores: Stores, key: TaskKey, status: Status
) -> None:
    """O3: also one that had ended; and it leaves the list with its release."""
    stores.records.commit(a_commit(a_checkpoint(key)))
    stores.records.commit(a_commit(a_checkpoint(key, version=2, status=status), attempt=2))
    _quarantine(stores, key, version=2)

    assert not _listed(stores, key, at=TOMORROW - timedelta(seconds=1))
    assert _listed(stores, key, at=TOMORROW)

    ended = a_checkpoint(key, version=3, status=Status.FAILED)
    stores.records.release(a_commit(ended, attempt=3), quarantine="the seal does not match")
    assert not _listed(stores, key, at=TOMORROW)


def test_a_reminder_is_staged_once_and_makes_the_next_one_due(stores: Stores, key: TaskKey) -> None:
    """O3: while the last alarm is on its way nothing is added to it; after its delivery the next one is staged."""
    stores.records.commit(a_commit(a_checkpoint(key)))
    _quarantine(stores, key)
    (first,) = stores.back_door.staged(key)
    again = ALARM.model_copy(update={"detail": {"reason": "still", "count": 2, "sure": True}})
    later = TOMORROW + timedelta(days=1)

    assert not stores.records.remind_of_quarantine(
        _marked(stores, key), messages=(again,), now=TOMORROW, remind_at=later
    )
    assert stores.back_door.staged(key) == [first]

    stores.outbox.remove(first)
    assert stores.records.remind_of_quarantine(_marked(stores, key), messages=(again,), now=TOMORROW, remind_at=later)
    assert stores.back_door.staged(key) == [first.model_copy(update={"messages": (again,)})]
    assert not _listed(stores, key, at=TOMORROW)
    assert _listed(stores, key, at=later)


def test_nobody_is_reminded_of_a_quarantine_that_is_over(stores: Stores, key: TaskKey) -> None:
    """O3: a release that comes first is found out, and nothing is staged about what it has mended."""
    stores.records.commit(a_commit(a_checkpoint(key)))
    _quarantine(stores, key)
    marked = _marked(stores, key)
    stores.records.release(a_commit(a_checkpoint(key, version=2), attempt=2), quarantine="the seal does not match")

    with pytest.raises(StaleVersion):
        stores.records.remind_of_quarantine(marked, messages=(ALARM,), now=TOMORROW, remind_at=TOMORROW)


def test_a_quarantine_marks_the_head_and_leaves_the_checkpoint(stores: Stores, key: TaskKey) -> None:
    """B19: the distrusted record stays as it is; the head says why, a review is open, the queue shows it."""
    commit = a_commit(a_checkpoint(key), messages=[START])
    stores.records.commit(commit)

    _quarantine(stores, key)

    stored = stores.records.load(key)
    assert stored is not None
    assert stored.head.quarantine == "the seal does not match"
    assert stored.head.version == 1
    assert stored.checkpoint == commit.checkpoint
    assert stores.waits.get(key.tenant, f"qua-{key.task_id}-1") is not None
    assert stores.back_door.staged(key) == [
        OutboxRow(key=key, version=1, messages=(START,)),
        OutboxRow(key=key, version=1, part=1, messages=(ALARM,)),
    ]
    (entry,) = stores.records.queue(key.tenant, "quarantined", limit=5).entries
    assert entry.task_id == key.task_id
    assert stores.records.queue(key.tenant, "ready", limit=5).entries == ()


def test_a_quarantine_again_changes_nothing(stores: Stores, key: TaskKey) -> None:
    """Two workers that meet the same bad record quarantine it once, with the first one's reason."""
    stores.records.commit(a_commit(a_checkpoint(key)))
    _quarantine(stores, key)
    before = stores.records.load(key)

    _quarantine(stores, key, reason="seen by somebody else")

    assert stores.records.load(key) == before
    assert len(stores.back_door.staged(key)) == 1


def test_a_quarantine_is_bound_to_its_version(stores: Stores, key: TaskKey) -> None:
    """Somebody went on meanwhile, or the task is not there: nothing is marked and nothing made (B64)."""
    with pytest.raises(StaleVersion):
        _quarantine(stores, key)
    assert stores.records.load(key) is None

    stores.records.commit(a_commit(a_checkpoint(key)))
    stores.records.commit(a_commit(a_checkpoint(key, version=2), attempt=2))
    with pytest.raises(StaleVersion):
        _quarantine(stores, key)

    stored = stores.records.load(key)
    assert stored is not None
    assert stored.head.quarantine is None
    assert stores.waits.get(key.tenant, f"qua-{key.task_id}-1") is None
    assert stores.back_door.staged(key) == []


def test_nothing_is_committed_on_a_quarantined_task(stores: Stores, key: TaskKey) -> None:
    """A worker that loaded before the quarantine cannot carry the task on past it."""
    stores.records.commit(a_commit(a_checkpoint(key)))
    _quarantine(stores, key)
    with pytest.raises(StaleVersion):
        stores.records.commit(a_commit(a_checkpoint(key, version=2), attempt=2))


def test_the_queue_lists_the_longest_waiting_first(stores: Stores, tenant: str) -> None:
    """O1: one tenant's tasks of one status, in pages, each task once and with what an operator needs."""
    for number in (3, 1, 2):
        task = a_checkpoint(a_task_key(number, tenant=tenant), now=NOON + timedelta(minutes=number))
        stores.records.commit(a_commit(task, attempt=number))
    other = a_task_key(9, tenant=f"{tenant}-other")
    stores.records.commit(a_commit(a_checkpoint(other), attempt=9))

    first = stores.records.queue(tenant, "ready", limit=2)
    second = stores.records.queue(tenant, "ready", limit=2, cursor=first.cursor)

    assert [entry.task_id for entry in (*first.entries, *second.entries)] == [a_task_key(n).task_id for n in (1, 2, 3)]
    assert second.cursor is None
    entry = first.entries[0]
    assert (entry.workflow, entry.status, entry.stage) == ("refund", "ready", "received")
    assert entry.since == "2026-10-09T12:01:00.000Z"
    assert entry.due_at == "2026-11-08T12:01:00.000Z"
    assert entry.owner == a_checkpoint().business.owner.key
    assert stores.records.queue(tenant, "failed", limit=2).entries == ()


def test_a_full_last_page_has_no_next_one(stores: Stores, tenant: str) -> None:
    """A cursor is given only if there is more."""
    for number in (1, 2):
        stores.records.commit(a_commit(a_checkpoint(a_task_key(number, tenant=tenant)), attempt=number))
    assert stores.records.queue(tenant, "ready", limit=2).cursor is None


def test_a_cursor_fits_its_own_list_only(stores: Stores, tenant: str) -> None:
    """A1: another tenant's cursor, another status's, and plain nonsense are refused."""
    for number in (1, 2):
        stores.records.commit(a_commit(a_checkpoint(a_task_key(number, tenant=tenant)), attempt=number))
    cursor = stores.records.queue(tenant, "ready", limit=1).cursor
    assert cursor is not None

    for bad_tenant, status, bad in (
        (f"{tenant}-other", "ready", cursor),
        (tenant, "failed", cursor),
        (tenant, "ready", "nonsense"),
        (tenant, "ready", "ünïcode"),
        (tenant, "ready", ""),
    ):
        with pytest.raises(InvalidRequest):
            stores.records.queue(bad_tenant, status, limit=1, cursor=bad)


def test_a_task_leaves_the_list_when_its_status_changes(stores: Stores, key: TaskKey) -> None:
    """Once the index has caught up, a task stands in one list only."""
    stores.records.commit(a_commit(a_checkpoint(key)))
    stores.records.commit(a_commit(a_checkpoint(key, version=2, status=Status.NEEDS_REVIEW), attempt=2))

    assert stores.records.queue(key.tenant, "ready", limit=5).entries == ()
    (entry,) = stores.records.queue(key.tenant, "needs_review", limit=5).entries
    assert entry.task_id == key.task_id


def test_the_sweep_is_shown_live_tasks_that_are_due(stores: Stores, tenant: str) -> None:
    """O3: by shard, longest due first, no more than asked for; closed ones are left alone, quarantined ones a day."""
    tasks = {n: a_checkpoint(a_task_key(n * 16 + 7, tenant=tenant), now=NOON + timedelta(hours=n)) for n in range(1, 6)}
    for number, task in sorted(tasks.items(), reverse=True):
        stores.records.commit(a_commit(task, attempt=number))
    closed = a_checkpoint(tasks[2].key, version=2, status=Status.COMPLETED, now=NOON + timedelta(hours=2))
    stores.records.commit(a_commit(closed, attempt=9))
    _quarantine(stores, tasks[3].key)

    def due(before: timedelta, *, limit: int = 1000) -> list[TaskKey]:
        found = stores.records.overdue("live#7", before=NOON + before, limit=limit)
        return [key for key in found if key.tenant == tenant]

    assert due(timedelta(hours=23)) == [tasks[1].key, tasks[4].key, tasks[5].key]
    assert due(timedelta(days=1)) == [tasks[1].key, tasks[4].key, tasks[5].key, tasks[3].key]
    assert due(timedelta(minutes=30)) == []
    first_due = datetime.fromisoformat(str(head_columns(tasks[1])["check_at"])) - NOON
    assert due(first_due) == [tasks[1].key]
    assert due(first_due - timedelta(milliseconds=1)) == []
    assert len(stores.records.overdue("live#7", before=NOON + timedelta(days=1), limit=1)) == 1
    assert stores.records.overdue("live#unheard", before=NOON + timedelta(days=1), limit=5) == ()


def test_a_body_is_stored_as_the_bytes_it_was(stores: Stores, key: TaskKey) -> None:
    """B09: what the seal covers comes back unchanged: spacing, number forms, escapes and all."""
    odd = '{"b":450.00,"a":[2,1],"ü":"\\u00fc","n":null,"e":""}'
    commit = a_commit(a_checkpoint(key))
    reshaped = commit.checkpoint.model_copy(update={"body": odd})
    stores.records.commit(replace(commit, checkpoint=reshaped))

    stored = stores.records.load(key, version_hint=1)
    assert stored is not None
    assert stored.checkpoint is not None
    assert stored.checkpoint.body == odd
    assert sealed(a_checkpoint(key)).body != odd


# --- child tasks ------------------------------------------------------------------------------------------------------


@pytest.fixture
def child_key(tenant: str) -> TaskKey:
    """Make the key of a child of the test's task."""
    return a_task_key(tenant=tenant, number=2)


def test_a_child_is_written_with_its_parent(stores: Stores, key: TaskKey, child_key: TaskKey) -> None:
    """Law 6: a new child's head, checkpoint and messages are there with the wait for it."""
    wait = a_wait(key, correlation_id=child_key.task_id)
    child = a_commit(a_checkpoint(child_key), messages=[START])

    stores.records.commit(a_commit(a_checkpoint(key), opened=[wait], messages=[START], children=[child]))

    stored = stores.records.load(child_key)
    assert stored is not None
    assert (stored.checkpoint, stored.head.attempt_id) == (child.checkpoint, child.attempt_id)
    assert stores.back_door.staged(child_key) == [OutboxRow(key=child_key, version=1, messages=(START,))]
    assert stores.waits.get(wait.tenant, wait.correlation_id) == wait


def test_parent_and_child_move_together_or_not_at_all(stores: Stores, key: TaskKey, child_key: TaskKey) -> None:
    """Law 6: where one of the two has moved on, nothing of the other is written."""
    stores.records.commit(a_commit(a_checkpoint(key), children=[a_commit(a_checkpoint(child_key))]))
    told = a_commit(a_checkpoint(child_key, version=2), attempt=2, messages=[START])
    stores.records.commit(a_commit(a_checkpoint(child_key, version=2), attempt=3))

    stops = a_commit(a_checkpoint(key, version=2), attempt=4, children=[told])
    with pytest.raises(StaleVersion):
        stores.records.commit(stops)

    assert nothing_of(stores, stops)
    again = a_commit(a_checkpoint(child_key, version=3), attempt=5)
    stores.records.commit(replace(stops, attempt_id="att_again", children=(again,)))
    for stored in (stores.records.load(key), stores.records.load(child_key)):
        assert stored is not None
        assert stored.head.attempt_id in {"att_again", again.attempt_id}


def test_a_stale_parent_writes_no_child(stores: Stores, key: TaskKey, child_key: TaskKey) -> None:
    """R8: of two workers that start the same child one wins, and the other decides anew."""
    first = a_commit(a_checkpoint(key), children=[a_commit(a_checkpoint(child_key))])
    stores.records.commit(first)
    stores.records.commit(first)

    with pytest.raises(StaleVersion):
        stores.records.commit(
            a_commit(a_checkpoint(key), attempt=2, children=[a_commit(a_checkpoint(child_key), attempt=2)])
        )

    stored = stores.records.load(child_key)
    assert stored is not None
    assert stored.head.attempt_id == first.children[0].attempt_id


def test_a_child_that_the_head_does_not_know_of_is_loud(stores: Stores, key: TaskKey, child_key: TaskKey) -> None:
    """B19: a task whose record was put back would start its child a second time; it finds it there instead."""
    stores.records.commit(a_commit(a_checkpoint(child_key)))
    again = a_commit(a_checkpoint(key), children=[a_commit(a_checkpoint(child_key), attempt=2)])

    with pytest.raises(InvariantBroken):
        stores.records.commit(again)

    assert nothing_of(stores, again)


def test_a_child_is_of_the_same_tenant_and_another_task(stores: Stores, key: TaskKey) -> None:
    """A2: no commit reaches into another tenant."""
    stranger = a_task_key(tenant="globex", number=2)
    for child in (a_commit(a_checkpoint(stranger)), a_commit(a_checkpoint(key), attempt=2)):
        with pytest.raises(InvariantBroken):
            stores.records.commit(a_commit(a_checkpoint(key), children=[child]))
    assert stores.records.load(key) is None


@pytest.mark.parametrize("status", list(Status))
def test_whether_a_task_has_ended_is_read_from_its_head(stores: Stores, key: TaskKey, status: Status) -> None:
    """A hint for whoever waits for it; one that is not there, or quarantined, has not ended."""
    assert not stores.records.has_ended(key)
    stores.records.commit(a_commit(a_checkpoint(key)))
    stores.records.commit(a_commit(a_checkpoint(key, version=2, status=status), attempt=2))
    assert stores.records.has_ended(key) is (status in TERMINAL)

    stores.records.quarantine(
        key, version=2, reason="a test", review=a_wait(key), messages=(), now=NOON, remind_at=NOON
    )
    assert not stores.records.has_ended(key)
