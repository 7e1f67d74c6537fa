"""The lifecycle is one table: what is not in it is impossible."""

import pytest

from shared.domain.errors import IllegalTransition
from shared.domain.status import NEXT, TERMINAL, WAITING, Status, permit_status

LIVE = [status for status in Status if status not in TERMINAL]
EDGES = [(before, after) for before in Status for after in Status if after in NEXT[before]]
NO_EDGES = [(before, after) for before in Status for after in Status if after not in NEXT[before]]


def test_the_table_speaks_of_every_status() -> None:
    """No status is without a row."""
    assert set(NEXT) == set(Status)


@pytest.mark.parametrize(("before", "after"), EDGES)
def test_an_edge_of_the_table_may_be_taken(before: Status, after: Status) -> None:
    """What the table lists is permitted."""
    assert permit_status(before, after) is after


@pytest.mark.parametrize(("before", "after"), NO_EDGES)
def test_what_the_table_does_not_list_is_refused(before: Status, after: Status) -> None:
    """Unlisted means impossible, whoever asks."""
    with pytest.raises(IllegalTransition):
        permit_status(before, after)


@pytest.mark.parametrize("ended", sorted(TERMINAL))
def test_an_ended_task_stays_ended(ended: Status) -> None:
    """B61: a terminal status can never be changed by anybody who comes late."""
    assert NEXT[ended] == frozenset()


@pytest.mark.parametrize("live", LIVE)
def test_every_live_status_can_be_canceled(live: Status) -> None:
    """I4: whatever a task is doing, it can be asked to stop."""
    assert Status.CANCEL_REQUESTED in NEXT[live]


@pytest.mark.parametrize("live", LIVE)
def test_every_live_status_can_be_quarantined(live: Status) -> None:
    """R6: wherever trust is lost, there is an edge to quarantine."""
    assert Status.QUARANTINED in NEXT[live]


@pytest.mark.parametrize("live", LIVE)
def test_from_every_live_status_an_end_can_be_reached(live: Status) -> None:
    """No task can get into a corner of the lifecycle that has no way out."""
    reached, frontier = {live}, [live]
    while frontier:
        fresh = NEXT[frontier.pop()] - reached
        reached |= fresh
        frontier += fresh

    assert reached & TERMINAL


def test_a_canceled_task_never_completes() -> None:
    """B17: a cancellation that met an effect in flight never ends as plain completed."""
    assert Status.COMPLETED not in NEXT[Status.CANCEL_REQUESTED]
    assert Status.READY not in NEXT[Status.CANCEL_REQUESTED]


def test_compensation_never_ends_green() -> None:
    """A task that is being undone ends as what it is, never as completed."""
    assert Status.COMPLETED not in NEXT[Status.COMPENSATING]


@pytest.mark.parametrize("waiting", sorted(WAITING))
def test_a_waiting_task_does_not_become_unknown(waiting: Status) -> None:
    """Nothing is in flight while a task waits, so no outcome can be lost there; a retry window is the exception."""
    assert (Status.OUTCOME_UNKNOWN in NEXT[waiting]) == (waiting is Status.WAITING_RETRY)
