"""A question to people that lapses: it was not answered in time, or it stopped covering anything before it was."""

from dataclasses import replace

import pytest

from shared.domain.approval import ApprovalStatus, DecisionWord
from shared.domain.errors import DecisionClosed, StaleApproval
from shared.domain.status import Status
from shared.domain.wait import OnDeadline
from shared.domain.workflow import Finish, PerformAction, RequestApproval, Step, TaskView, UndoApproval
from tests.fakes.downstream import Downstream
from tests.fakes.errand import Do, a_ladder, a_rule, a_tool, an_errand, an_undo, run_errand
from tests.fakes.story import Story

HOLD = a_tool("book_hold", undo="drop_hold")
GUARDED_HOLD = a_tool("book_hold", undo="drop_hold", undo_approval=UndoApproval(rule=a_rule(), wait=a_ladder()))
DROP = an_undo("drop_hold")
PARCEL = a_tool("send_parcel")
ASKED = Do(tool=PARCEL, rule=a_rule())


def hold_then_maybe_send(view: TaskView) -> Step:
    """Book a hold; send the parcel only if somebody says so within a week."""
    hold, parcel = (tool.normalise(view.request.model_dump()) for tool in (HOLD, PARCEL))
    if not view.happened(HOLD.fact):
        return PerformAction(stage="step_1", action=hold)
    if view.expired(parcel):
        return Finish(stage="closed", status=Status.COMPLETED, outcome="held, and not sent")
    return RequestApproval(stage="step_2", action=parcel, rule=a_rule(), wait=a_ladder(end=OnDeadline.PROCEED))


def happened(story: Story) -> list[str]:
    """What was really done, over all downstreams, by tool."""
    return sorted(effect.tool for downstream in story.world.downstreams.values() for effect in downstream.effects)


def test_a_task_can_go_on_without_an_answer() -> None:
    """B12: the ladder says that silence is no reason to stop, so what was done stands and the workflow decides."""
    errand = replace(an_errand(Do(tool=HOLD), ASKED, undos=[DROP]), next_step=hold_then_maybe_send)
    story = Story(errand, downstreams={name: Downstream() for name in errand.tools})
    story.start(workflow="errand", request={})
    asked = story.open_approval

    story.later(days=8)

    assert (story.status, story.task.business.outcome) == ("completed", "held, and not sent")
    assert happened(story) == ["book_hold"]
    assert [a.status for a in story.task.security.approvals] == [ApprovalStatus.EXPIRED]
    with pytest.raises(DecisionClosed):
        story.decide(approval_id=asked)


def test_an_undo_is_asked_about_again_when_a_cancellation_comes_between() -> None:
    """B28: the open question about an undo is void with the cancellation; void is not a no."""
    story = run_errand(Do(tool=GUARDED_HOLD), ASKED, undos=[DROP])
    story.decide(DecisionWord.REJECT)
    assert story.status == "waiting_approval"
    first = story.open_approval

    story.cancel()

    assert story.status == "waiting_approval"
    assert story.open_approval != first
    story.decide()
    assert happened(story) == ["book_hold", "drop_hold"]


def test_an_undo_is_asked_about_again_when_the_policy_changed() -> None:
    """R5: the answer to a question that was asked under another policy counts for nothing, not as a no."""
    story = run_errand(Do(tool=GUARDED_HOLD), ASKED, undos=[DROP])
    story.decide(DecisionWord.REJECT)
    story.machine.workflows["errand"] = replace(story.machine.workflows["errand"], policies="// somebody may")

    with pytest.raises(StaleApproval):
        story.decide()
    story.machine.settle()

    assert story.status == "waiting_approval"
    story.decide()
    assert (story.status, happened(story)) == ("failed", ["book_hold", "drop_hold"])


def test_an_undo_that_nobody_decided_is_not_asked_about_again() -> None:
    """B28: silence about an undo is an answer: the task goes to a person with what stands."""
    story = run_errand(Do(tool=GUARDED_HOLD), ASKED, undos=[DROP])
    story.decide(DecisionWord.REJECT)

    story.later(days=8)

    assert story.status == "needs_review"
    assert "book_hold (its undo was not approved)" in story.task.business.because
    assert ApprovalStatus.OPEN not in {a.status for a in story.task.security.approvals}
