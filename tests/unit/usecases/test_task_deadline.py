"""The whole task has a deadline of its own, apart from every wait's."""

from datetime import timedelta

import pytest

from shared.domain.approval import DecisionWord
from shared.domain.deadline import act_on_rung
from shared.domain.errors import DecisionClosed
from shared.domain.wait import OnDeadline, Rung, WaitRule
from shared.domain.workflow import UndoApproval
from tests.builders import a_ground
from tests.fakes.downstream import Mishap
from tests.fakes.errand import DAY_SECONDS, Do, WaitFor, a_ladder, a_rule, a_tool, an_errand, an_undo, run_errand
from tests.fakes.story import Story

SHORT = timedelta(days=2)
PAY = a_tool("pay")
QUESTION = WaitFor(name="signed", ladder=a_ladder(days=20))


@pytest.mark.parametrize(
    "thing",
    [QUESTION, WaitFor(name="signed", ladder=a_ladder(days=20), person=True), Do(tool=PAY, rule=a_rule())],
    ids=["event", "input", "approval"],
)
def test_no_wait_outlasts_its_task(thing: Do | WaitFor) -> None:
    """A wait of twenty days in a task of two ends after two, and the queue says so from the start."""
    story = run_errand(thing, task_deadline=SHORT)
    (wait,) = story.task.execution.waits
    assert wait.deadline_at == story.task.business.deadline_at

    story.later(days=2, minutes=6)

    assert story.status == "expired"


@pytest.mark.parametrize("end", [OnDeadline.PROCEED, OnDeadline.REVIEW, OnDeadline.FAIL])
def test_whatever_the_ladder_says_an_overdue_task_expires(end: OnDeadline) -> None:
    """The task's deadline is the task's: no rung of a wait can stretch or bend it."""
    story = run_errand(WaitFor(name="signed", ladder=a_ladder(days=20, end=end)), task_deadline=SHORT)

    story.later(days=2, minutes=6)

    assert story.status == "expired"


def test_a_reminder_after_the_end_is_the_end() -> None:
    """A rung that would come after the task's deadline acts at the deadline, and it ends the wait."""
    ladder = WaitRule(
        ladder=(
            Rung(after_seconds=5 * DAY_SECONDS, do=OnDeadline.REMIND, to="clerk"),
            Rung(after_seconds=9 * DAY_SECONDS, do=OnDeadline.EXPIRE, to="operator"),
        )
    )
    question = WaitFor(name="signed", ladder=ladder)
    story = run_errand(question, task_deadline=SHORT)
    (wait,) = story.world.waits.values()
    assert wait.next_rung_at == story.task.business.deadline_at

    change = act_on_rung(story.task, wait, a_ground(an_errand(question), now=wait.deadline_at))

    assert change is not None
    assert str(change.task.business.status) == "expired"


def test_a_wait_that_a_person_must_end_is_not_cut_short() -> None:
    """A review of what nobody knows outlasts the task's deadline: a task may not end while an effect is open."""
    story = Story()
    story.start()
    story.bank.mishaps.extend([Mishap.RECORDED_NO_ANSWER] * 3)
    story.bank.lookups_unclear = 99
    story.decide()
    assert story.status == "needs_review"
    (wait,) = story.task.execution.waits
    assert wait.deadline_at > story.task.business.deadline_at

    story.later(days=40)

    assert story.status == "needs_review"
    assert len(story.refunds) == 1


def test_an_undo_gets_its_full_time() -> None:
    """The task is over; the people who have to approve its undo still have the time that their rule gives them."""
    hold = a_tool("book_hold", undo="drop_hold", undo_approval=UndoApproval(rule=a_rule(), wait=a_ladder(days=7)))
    story = run_errand(Do(tool=hold), QUESTION, undos=[an_undo("drop_hold")], task_deadline=SHORT)

    story.later(days=2, minutes=6)
    assert story.status == "waiting_approval"
    story.later(days=6)
    story.decide()

    assert story.status == "expired"
    assert len(story.world.downstreams["drop_hold"].effects) == 1


def test_a_click_on_an_overdue_task_decides_nothing() -> None:
    """B12: the approval is still good for days, the task is not."""
    story = run_errand(Do(tool=PAY, rule=a_rule()), task_deadline=SHORT)
    story.world.clock.advance(SHORT)

    with pytest.raises(DecisionClosed):
        story.click(DecisionWord.APPROVE)

    story.machine.settle()
    assert story.world.downstreams["pay"].effects == []


def test_a_task_that_is_on_its_way_expires_too() -> None:
    """Gate 5: nothing is waited for and nothing was sent; the deadline ends the task before the model is asked."""
    story = Story()
    story.start()
    story.click()

    story.later(days=31)

    assert story.status in {"expired", "waiting_approval"}
    assert story.refunds == []
    assert story.world.model.windows == []
