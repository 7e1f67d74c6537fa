"""Ladders that go by instants: computed when the wait opens, kept until it ends, acted on also where they are past."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from shared.domain.status import Status
from shared.domain.wait import OnDeadline, Rung, WaitRule
from shared.domain.workflow import AwaitInput, Finish, RequestApproval, Step, TaskView
from tests.fakes.clock import NOON
from tests.fakes.downstream import Downstream
from tests.fakes.errand import Do, WaitFor, a_rule, a_tool, an_errand
from tests.fakes.story import Story
from tests.fakes.tended_machine import TendedMachine

PARCEL = a_tool("send_parcel")


def a_ladder_at(*instants: datetime) -> WaitRule:
    """Make a ladder of reminders with an end."""
    words = [OnDeadline.REMIND] * (len(instants) - 1) + [OnDeadline.EXPIRE]
    return WaitRule(ladder=tuple(Rung(at=at, do=do, to="operator") for at, do in zip(instants, words, strict=True)))


def a_question_until(*instants: datetime) -> Story:
    """Start a task that asks a person something until then, under timers that fire."""
    errand = an_errand(WaitFor(name="size", ladder=a_ladder_at(*instants), person=True))
    story = Story(errand)
    story.machine = TendedMachine(story.world, story.calls, workflows={"errand": errand})
    story.start(workflow="errand", request={})
    return story


def told(story: Story) -> list[str]:
    """Who was reminded, and who was told of the end, in order."""
    return [name for name in story.published if name in {"wait.reminded", "task.closed"}]


@pytest.mark.parametrize("ago", [timedelta(0), timedelta(seconds=2), timedelta(days=2)])
def test_a_deadline_that_has_passed_acts_at_once_and_once(ago: timedelta) -> None:
    """B49: the wait opens after its end: it ends once, nobody is reminded of what is over, and no timer is left."""
    story = a_question_until(NOON - ago - timedelta(hours=1), NOON - ago)

    assert story.status == "expired"
    assert told(story) == ["task.closed"]
    assert story.world.timers == {}


def test_a_rung_that_has_passed_acts_at_once_and_the_rest_in_time() -> None:
    """B49: the first reminder is overdue when the wait opens; the second comes in time, and so does the end."""
    story = a_question_until(NOON - timedelta(hours=1), NOON + timedelta(days=1), NOON + timedelta(days=2))
    assert (story.status, told(story)) == ("waiting_input", ["wait.reminded"])

    story.world.clock.set(NOON + timedelta(days=1))
    story.machine.settle()
    assert (story.status, told(story)) == ("waiting_input", ["wait.reminded"] * 2)

    story.world.clock.set(NOON + timedelta(days=2))
    story.machine.settle()
    assert (story.status, told(story)) == ("expired", ["wait.reminded", "wait.reminded", "task.closed"])


def ask_until_tomorrow(view: TaskView) -> Step:
    """Ask for approval; afterwards ask a person. Both end a day after the wait has opened."""
    tomorrow = a_ladder_at(view.now + timedelta(days=1))
    parcel = PARCEL.normalise(view.request.model_dump())
    if view.happened("size"):
        return Finish(stage="closed", status=Status.COMPLETED, outcome="asked twice")
    if view.approval_of(parcel) is None:
        return RequestApproval(stage="step_1", action=parcel, rule=a_rule(), wait=tomorrow)
    return AwaitInput(stage="step_2", name="size", role="clerk", wait=tomorrow)


def test_a_rule_is_asked_when_its_wait_opens_and_never_again() -> None:
    """I1: each wait ends a day after its own opening, however often the task is woken in between."""
    two_waits = an_errand(Do(tool=PARCEL), WaitFor(name="size", ladder=a_ladder_at(NOON), person=True))
    errand = replace(two_waits, next_step=ask_until_tomorrow)
    story = Story(errand, downstreams={"send_parcel": Downstream()})
    story.start(workflow="errand", request={})
    [approval] = story.task.execution.waits
    assert approval.deadline_at == NOON + timedelta(days=1)

    story.world.clock.advance(timedelta(hours=20))
    story.wake()
    story.machine.settle()
    assert story.task.execution.waits == (approval,)

    story.decide()
    [question] = story.task.execution.waits
    assert question.deadline_at == NOON + timedelta(hours=44)
    story.later(hours=23)
    assert story.task.execution.waits == (question,)
