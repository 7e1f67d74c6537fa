"""How a task leaves quarantine: the contract of `TaskRecords.release`, on the fake and on DynamoDB Local."""

from dataclasses import replace
from datetime import timedelta

import pytest

from shared.domain.action import ActionStatus
from shared.domain.checkpoint import Checkpoint, head_columns
from shared.domain.errors import ActionInFlight, EngineError, InvariantBroken, StaleVersion, WaitSettled
from shared.domain.identity import TaskKey
from shared.domain.outbox import OutboxRow, PublishEvent, StartExecution
from shared.domain.status import Status
from shared.domain.wait import Wait, WaitSettlement, WaitStatus
from shared.ports.task_records import Commit
from tests.builders import a_checkpoint, a_commit, a_task_key, a_wait, an_action_row
from tests.contract.stores import Stores, race
from tests.fakes.clock import NOON

REASON = "the seal of version 2 does not match"
START = StartExecution(workflow="refund", run=2, version=3)
ALARM = PublishEvent(event="task.quarantined", version=2, detail={"reason": REASON})


@pytest.fixture
def key(tenant: str) -> TaskKey:
    """Make the key of the test's task."""
    return a_task_key(tenant=tenant)


def review_of(key: TaskKey) -> Wait:
    """Make the review that a quarantine at version 2 opens."""
    return a_wait(key, 99, correlation_id=f"qua-{key.task_id}-2")


def quarantined(stores: Stores, key: TaskKey, **rows: object) -> None:
    """Store a task of two versions and distrust the second."""
    stores.records.commit(a_commit(a_checkpoint(key), **rows))  # type: ignore[arg-type]
    stores.records.commit(a_commit(a_checkpoint(key, version=2), attempt=2))
    stores.records.quarantine(
        key, version=2, reason=REASON, review=review_of(key), messages=(ALARM,), now=NOON, remind_at=NOON
    )


def a_release(key: TaskKey, *, version: int = 3, attempt: int = 3, **more: object) -> Commit:
    """Make the commit that releases the task, its review settled with it."""
    task = a_checkpoint(key, version=version, status=Status.RESUME_VALIDATION)
    review = review_of(key)
    settled = WaitSettlement(
        tenant=review.tenant,
        correlation_id=review.correlation_id,
        wait_id=review.wait_id,
        status=WaitStatus.SETTLED,
    )
    made = a_commit(task, attempt=attempt, settled=[settled], messages=[START], **more)  # type: ignore[arg-type]
    return replace(made, previous=2)


def head_of(stores: Stores, key: TaskKey) -> tuple[int, str | None]:
    """Read the version and the mark."""
    stored = stores.records.load(key)
    assert stored is not None
    return stored.head.version, stored.head.quarantine


def test_a_release_lifts_the_mark_with_a_new_version(stores: Stores, key: TaskKey) -> None:
    """B19: the distrusted version stays as evidence; the head is whole and new; the review ends; the task may go on."""
    quarantined(stores, key)
    distrusted = stores.records.checkpoint(key, 2)
    release = a_release(key)

    stores.records.release(release, quarantine=REASON)

    stored = stores.records.load(key, version_hint=3)
    assert stored is not None
    assert stored.checkpoint == release.checkpoint
    assert (stored.head.version, stored.head.quarantine) == (3, None)
    assert stored.head.columns == head_columns(a_checkpoint(key, version=3, status=Status.RESUME_VALIDATION))
    assert stores.records.checkpoint(key, 2) == distrusted
    review = stores.waits.get(key.tenant, review_of(key).correlation_id)
    assert review is not None
    assert review.status is WaitStatus.SETTLED
    assert stores.back_door.staged(key) == [
        OutboxRow(key=key, version=2, part=1, messages=(ALARM,)),
        OutboxRow(key=key, version=3, messages=(START,)),
    ]
    assert stores.records.queue(key.tenant, "quarantined", limit=5).entries == ()
    stores.records.commit(a_commit(a_checkpoint(key, version=4), attempt=4))
    assert head_of(stores, key) == (4, None)


def test_nothing_but_a_release_lifts_the_mark(stores: Stores, key: TaskKey) -> None:
    """B19: a commit of whoever loaded the task before finds the mark and writes nothing."""
    quarantined(stores, key)
    with pytest.raises(StaleVersion):
        stores.records.commit(a_commit(a_checkpoint(key, version=3), attempt=3))
    assert head_of(stores, key) == (2, REASON)


@pytest.mark.parametrize("other", ["reason", "version", "not quarantined", "not there"])
def test_a_release_is_of_exactly_the_quarantine_that_was_seen(stores: Stores, key: TaskKey, other: str) -> None:
    """B64: another reason, another version, no mark or no task at all: refused, and nothing is written."""
    if other == "not quarantined":
        stores.records.commit(a_commit(a_checkpoint(key)))
        stores.records.commit(a_commit(a_checkpoint(key, version=2), attempt=2))
    elif other != "not there":
        quarantined(stores, key)
    release = a_release(key)
    if other == "version":
        release = replace(a_release(key, version=2), previous=1)
    before = stores.records.load(key)

    with pytest.raises((StaleVersion, WaitSettled)):
        stores.records.release(release, quarantine="another reason" if other == "reason" else REASON)

    assert stores.records.load(key) == before
    assert stores.records.checkpoint(key, 3) is None
    assert [row.part for row in stores.back_door.staged(key)] == ([1] if before and before.head.quarantine else [])


def test_of_many_releases_one_wins(stores: Stores, key: TaskKey) -> None:
    """B17: eight operators at once; seven are told that another came first, and one new version is there."""
    quarantined(stores, key)
    releases = [a_release(key, attempt=n) for n in range(3, 11)]

    outcomes = race([lambda c=release: stores.records.release(c, quarantine=REASON) for release in releases])  # type: ignore[misc]

    won = [release for release, outcome in zip(releases, outcomes, strict=True) if outcome is None]
    assert len(won) == 1
    assert all(isinstance(o, EngineError) and o.code in {"stale_version", "throttled"} for o in outcomes if o)
    stored = stores.records.load(key)
    assert stored is not None
    assert (stored.head.version, stored.head.attempt_id) == (3, won[0].attempt_id)
    assert stores.records.checkpoint(key, 4) is None


def test_the_same_release_again_is_the_same_release(stores: Stores, key: TaskKey) -> None:
    """B11: a repeat of our own release succeeds and changes nothing, also after the task has moved on."""
    quarantined(stores, key)
    release = a_release(key)
    stores.records.release(release, quarantine=REASON)
    stores.records.release(release, quarantine=REASON)
    stores.records.commit(a_commit(a_checkpoint(key, version=4), attempt=4))
    stores.records.release(release, quarantine=REASON)

    assert head_of(stores, key) == (4, None)


def test_a_release_goes_beyond_checkpoints_that_the_head_forgot(stores: Stores, key: TaskKey) -> None:
    """B19: a head that was put back does not make a release write over what is there."""
    quarantined(stores, key)
    with pytest.raises(InvariantBroken):
        stores.records.release(a_release(key, version=2), quarantine=REASON)

    stores.records.release(a_release(key, version=7, attempt=4), quarantine=REASON)

    assert head_of(stores, key) == (7, None)


def test_no_ordinary_commit_skips_a_version(stores: Stores, key: TaskKey) -> None:
    """Only a release may go further than the next version."""
    stores.records.commit(a_commit(a_checkpoint(key)))
    with pytest.raises(InvariantBroken):
        stores.records.commit(replace(a_commit(a_checkpoint(key, version=4), attempt=2), previous=1))


def test_a_release_that_meets_a_claimed_intent_writes_nothing(stores: Stores, key: TaskKey) -> None:
    """B17: an effect that left meanwhile stops the commit that would call it unsent."""
    row = an_action_row(key, status=ActionStatus.IN_FLIGHT)
    quarantined(stores, key, intents=[row])

    with pytest.raises(ActionInFlight):
        stores.records.release(a_release(key, withdrawn=[row.operation]), quarantine=REASON)

    assert head_of(stores, key) == (2, REASON)


def test_one_version_is_read_whatever_the_head_says(stores: Stores, key: TaskKey) -> None:
    """B19: history can be looked at one version at a time, also beyond the head, and of no other task."""
    first, second = a_commit(a_checkpoint(key)), a_commit(a_checkpoint(key, version=2), attempt=2)
    stores.records.commit(first)
    stores.records.commit(second)
    stores.back_door.lose_head(key)

    assert [stores.records.checkpoint(key, n) for n in (1, 2, 3)] == [first.checkpoint, second.checkpoint, None]
    assert stores.records.checkpoint(a_task_key(2, tenant=key.tenant), 1) is None


def test_the_queue_says_why_a_task_is_quarantined(stores: Stores, key: TaskKey) -> None:
    """O1: an operator sees owner, since when and why in the list; the reason is cut where it would fill the index."""
    stores.records.commit(a_commit(a_checkpoint(key)))
    reason = "x" * 500
    review = a_wait(key, 99, correlation_id=f"qua-{key.task_id}-1")
    stores.records.quarantine(
        key, version=1, reason=reason, review=review, messages=(), now=NOON + timedelta(minutes=5), remind_at=NOON
    )

    (entry,) = stores.records.queue(key.tenant, "quarantined", limit=5).entries

    assert (entry.reason, entry.since) == ("x" * 200, "2026-10-09T12:05:00.000Z")
    assert head_of(stores, key) == (1, reason)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (Status.NEEDS_REVIEW, "a test wanted it so"),
        (Status.OUTCOME_UNKNOWN, "a test wanted it so"),
        (Status.READY, None),
    ],
)
def test_the_queue_says_why_a_person_has_to_look(
    stores: Stores, key: TaskKey, status: Status, reason: str | None
) -> None:
    """O1: a reason where somebody has to look, and no words in the index where nobody has to."""
    stores.records.commit(a_commit(a_checkpoint(key, status=status)))

    (entry,) = stores.records.queue(key.tenant, str(status), limit=5).entries

    assert entry.reason == reason


def again(task: Checkpoint, wait: Wait) -> Commit:
    """Make the commit that opens another wait for the same matter."""
    following = wait.model_copy(update={"wait_id": "wai_again", "version": task.version, "opened_at": NOON})
    return a_commit(task, attempt=9, opened=[following])


@pytest.mark.parametrize("status", [WaitStatus.SETTLED, WaitStatus.VOID, WaitStatus.EXPIRED])
def test_a_task_may_wait_again_for_the_same_matter(stores: Stores, key: TaskKey, status: WaitStatus) -> None:
    """What a partner knows an order by is the same the second time the task waits for it, once the first is over."""
    wait = a_wait(key, correlation_id="order:A-1001")
    stores.records.commit(a_commit(a_checkpoint(key), opened=[wait]))
    end = WaitSettlement(tenant=key.tenant, correlation_id="order:A-1001", wait_id=wait.wait_id, status=status)
    stores.records.commit(a_commit(a_checkpoint(key, version=2), attempt=2, settled=[end]))

    stores.records.commit(again(a_checkpoint(key, version=3), wait))

    found = stores.waits.get(key.tenant, "order:A-1001")
    assert found is not None
    assert (found.wait_id, found.status) == ("wai_again", WaitStatus.OPEN)


@pytest.mark.parametrize("whose", ["open", "another task's"])
def test_nobody_takes_an_open_or_a_foreign_matter_over(stores: Stores, key: TaskKey, whose: str) -> None:
    """B19, B64: an open wait is never written over, and another task's stays that task's even when it is over."""
    other = key if whose == "open" else a_task_key(2, tenant=key.tenant)
    wait = a_wait(other, correlation_id="order:A-1001")
    stores.records.commit(a_commit(a_checkpoint(other), opened=[wait]))
    if whose != "open":
        end = WaitSettlement(
            tenant=key.tenant, correlation_id="order:A-1001", wait_id=wait.wait_id, status=WaitStatus.SETTLED
        )
        stores.records.commit(a_commit(a_checkpoint(other, version=2), attempt=2, settled=[end]))
        stores.records.commit(a_commit(a_checkpoint(key), attempt=3))
    before = stores.waits.get(key.tenant, "order:A-1001")

    with pytest.raises(InvariantBroken):
        stores.records.commit(again(a_checkpoint(key, version=2), a_wait(key, correlation_id="order:A-1001")))

    assert stores.waits.get(key.tenant, "order:A-1001") == before
