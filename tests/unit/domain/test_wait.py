"""Nothing waits without what for, which, until when and who is next."""

from datetime import timedelta

import pytest
from pydantic import ValidationError

from shared.domain.wait import (
    STATE_TIMEOUT_MARGIN,
    WAIT_SECONDS_MAX,
    OnDeadline,
    Rung,
    Wait,
    WaitRule,
    state_timeout_seconds,
)
from tests.builders import a_wait
from tests.fakes.clock import NOON

REMIND = Rung(after_seconds=10, do=OnDeadline.REMIND, to="approver")
ESCALATE = Rung(after_seconds=20, do=OnDeadline.ESCALATE, to="lead")
EXPIRE = Rung(after_seconds=30, do=OnDeadline.EXPIRE, to="lead")


@pytest.mark.parametrize(
    "ladder",
    [
        (),
        (REMIND,),
        (REMIND, ESCALATE),
        (EXPIRE, REMIND),
        (EXPIRE, EXPIRE.model_copy(update={"after_seconds": 40})),
        (ESCALATE, REMIND, EXPIRE),
        (REMIND, ESCALATE.model_copy(update={"after_seconds": 10}), EXPIRE),
    ],
    ids=["empty", "no end", "no end either", "end first", "two ends", "out of order", "two at once"],
)
def test_a_ladder_that_does_not_end_cannot_be_written(ladder: tuple[Rung, ...]) -> None:
    """B15: every wait climbs in time, and its last rung, and only that, ends it."""
    with pytest.raises(ValidationError):
        WaitRule(ladder=ladder)


@pytest.mark.parametrize("end", [OnDeadline.EXPIRE, OnDeadline.FAIL, OnDeadline.REVIEW])
def test_a_ladder_may_end_in_three_ways(end: OnDeadline) -> None:
    """The last rung expires the task, fails it, or hands it to a person."""
    rule = WaitRule(ladder=(REMIND, ESCALATE, EXPIRE.model_copy(update={"do": end})))

    assert rule.deadline_at(NOON) == NOON + timedelta(seconds=30)


@pytest.mark.parametrize("field", ["kind", "correlation_id", "request_version", "rule", "deadline_at", "answered_by"])
def test_a_wait_without_one_of_its_parts_cannot_exist(field: str) -> None:
    """Kind, correlation, bound version, deadline, ladder and who may answer have no defaults."""
    parts = {name: value for name, value in a_wait() if name != field}

    with pytest.raises(ValidationError):
        Wait.model_validate(parts)


def test_the_next_rung_owns_the_deadline() -> None:
    """At every moment somebody is named who acts next, also after the last rung."""
    wait = a_wait()
    owners = [wait.model_copy(update={"rung": rung}).owner for rung in range(5)]

    assert owners == ["refund_approver", "operator", "operator", "operator", "operator"]
    assert wait.next_rung_at == NOON + timedelta(hours=24)


def test_the_sealed_record_remembers_how_a_wait_ends() -> None:
    """The deadline is acted on from the sealed record alone."""
    wait = a_wait()
    pending = wait.pending()

    assert (pending.wait_id, pending.correlation_id, pending.deadline_at) == (
        wait.wait_id,
        wait.correlation_id,
        wait.deadline_at,
    )
    assert pending.ends_by is OnDeadline.EXPIRE


def test_the_machine_s_own_timeout_comes_after_the_deadline() -> None:
    """The row owns the deadline; the state's timeout is a net under it."""
    deadline = NOON + timedelta(days=3)

    assert state_timeout_seconds(deadline, now=NOON) == (timedelta(days=3) + STATE_TIMEOUT_MARGIN).total_seconds()


@pytest.mark.parametrize("late_by", [timedelta(0), timedelta(minutes=5), timedelta(days=400)])
def test_a_missed_deadline_still_gives_the_machine_a_valid_timeout(late_by: timedelta) -> None:
    """B49: a deadline in the past is acted on at once, never an error and never an endless wait."""
    assert 60 <= state_timeout_seconds(NOON - late_by, now=NOON) <= STATE_TIMEOUT_MARGIN.total_seconds()


def test_the_longest_wait_fits_into_a_state() -> None:
    """The service accepts no longer timeout than this."""
    assert state_timeout_seconds(NOON + timedelta(days=5_000), now=NOON) == WAIT_SECONDS_MAX


FRIDAY_FIVE = NOON + timedelta(days=7, hours=3)


def test_a_rung_may_name_an_instant() -> None:
    """I1: where business days or a local time count, the workflow computes the instant, and the wait keeps that one."""
    rule = WaitRule(
        ladder=(
            Rung(at=FRIDAY_FIVE, do=OnDeadline.ESCALATE, to="lead"),
            Rung(at=FRIDAY_FIVE + timedelta(days=3), do=OnDeadline.EXPIRE, to="lead"),
        )
    )
    wait = a_wait().model_copy(update={"rule": rule, "deadline_at": rule.deadline_at(NOON)})

    for opened_at in (NOON, NOON + timedelta(seconds=7), NOON + timedelta(days=40)):
        opened = wait.model_copy(update={"opened_at": opened_at})
        assert opened.next_rung_at == FRIDAY_FIVE
        assert rule.deadline_at(opened_at) == FRIDAY_FIVE + timedelta(days=3)
    assert WaitRule.model_validate_json(rule.model_dump_json()) == rule


@pytest.mark.parametrize(
    "times",
    [{}, {"after_seconds": 10, "at": FRIDAY_FIVE}, {"at": FRIDAY_FIVE.replace(tzinfo=None)}, {"at": "Friday"}],
    ids=["none", "two", "no offset", "a word"],
)
def test_a_rung_has_exactly_one_time(times: dict[str, object]) -> None:
    """B50: a time that could mean two instants, or none, is no time."""
    with pytest.raises(ValidationError):
        Rung.model_validate({"do": OnDeadline.REMIND, "to": "approver", **times})


@pytest.mark.parametrize(
    "ladder",
    [
        (REMIND, Rung(at=FRIDAY_FIVE, do=OnDeadline.EXPIRE, to="lead")),
        (
            Rung(at=FRIDAY_FIVE, do=OnDeadline.REMIND, to="lead"),
            Rung(at=FRIDAY_FIVE, do=OnDeadline.EXPIRE, to="lead"),
        ),
        (
            Rung(at=FRIDAY_FIVE, do=OnDeadline.REMIND, to="lead"),
            Rung(at=FRIDAY_FIVE - timedelta(hours=1), do=OnDeadline.EXPIRE, to="lead"),
        ),
    ],
    ids=["mixed", "two at once", "out of order"],
)
def test_instants_climb_too_and_are_not_mixed(ladder: tuple[Rung, ...]) -> None:
    """B15: whether one rung comes before another never depends on when the wait opens."""
    with pytest.raises(ValidationError):
        WaitRule(ladder=ladder)
