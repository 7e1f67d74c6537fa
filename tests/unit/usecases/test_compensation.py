"""An undo is a new action; a task that is being undone ends as what is true, and never in green."""

from collections import deque

import pytest

from shared.domain.action import EffectClass
from shared.domain.approval import DecisionWord
from shared.domain.workflow import UndoApproval
from tests.fakes.downstream import Downstream, Kind, Mishap
from tests.fakes.errand import Do, WaitFor, a_ladder, a_rule, a_tool, an_undo, run_errand
from tests.fakes.story import MANAGER, SECOND_MANAGER, Story

HOLD = a_tool("book_hold", undo="drop_hold")
GUARDED_HOLD = a_tool("book_hold", undo="drop_hold", undo_approval=UndoApproval(rule=a_rule(), wait=a_ladder()))
DROP = an_undo("drop_hold")
STAMP = a_tool("buy_stamp", undo="sell_stamp")
SELL = an_undo("sell_stamp")
NOTICE = a_tool("send_notice", no_undo_because="a notice that was read stays read")
PARCEL = a_tool("send_parcel")
ASKED = Do(tool=PARCEL, rule=a_rule())


def failing(*mishaps: Mishap, kind: Kind = Kind.HONOURS_KEYS) -> Downstream:
    """Make a downstream that these mishaps befall."""
    return Downstream(kind=kind, mishaps=deque(mishaps))


def happened(story: Story) -> list[str]:
    """What was really done, over all downstreams, by tool."""
    return sorted(effect.tool for downstream in story.world.downstreams.values() for effect in downstream.effects)


def test_a_rejection_undoes_what_was_done_before_it() -> None:
    """I7: the approver says no to the second step, so the first is undone under its own key."""
    story = run_errand(Do(tool=HOLD), ASKED, undos=[DROP])

    story.decide(DecisionWord.REJECT)

    assert (story.status, happened(story)) == ("failed", ["book_hold", "drop_hold"])
    done, undone = story.rows
    assert (undone.undoes, undone.status) == (done.operation, "done")
    assert undone.operation != done.operation
    assert story.world.downstreams["drop_hold"].effects[0].arguments == {"reference": done.reference}


def test_a_wait_that_runs_out_undoes_what_was_done_before_it() -> None:
    """I7: nobody answers, the task expires, and nothing is left standing in silence."""
    story = run_errand(Do(tool=HOLD), ASKED, undos=[DROP])

    story.later(days=8)

    assert (story.status, happened(story)) == ("expired", ["book_hold", "drop_hold"])


@pytest.mark.parametrize("person", [True, False])
def test_an_unanswered_question_undoes_what_was_done_before_it(person: bool) -> None:
    """I7: whoever did not answer, a person or a partner, what was done for them is taken back."""
    story = run_errand(Do(tool=HOLD), WaitFor(name="signed", ladder=a_ladder(), person=person), undos=[DROP])

    story.later(days=8)

    assert (story.status, happened(story)) == ("expired", ["book_hold", "drop_hold"])


def test_a_refusal_undoes_newest_first() -> None:
    """I7: the third step is refused for good; the second is undone before the first."""
    story = run_errand(
        Do(tool=HOLD),
        Do(tool=STAMP),
        Do(tool=PARCEL),
        undos=[DROP, SELL],
        downstreams={"send_parcel": failing(Mishap.REFUSED)},
    )

    assert story.status == "failed"
    assert [row.tool for row in story.rows] == ["book_hold", "buy_stamp", "send_parcel", "sell_stamp", "drop_hold"]


def test_a_failed_undo_is_never_green() -> None:
    """B28: one undo is refused, one cannot exist, one works: a person gets a list of exactly what is open."""
    story = run_errand(
        Do(tool=HOLD),
        Do(tool=NOTICE),
        Do(tool=STAMP),
        Do(tool=PARCEL),
        undos=[DROP, SELL],
        downstreams={"send_parcel": failing(Mishap.REFUSED), "drop_hold": failing(Mishap.REFUSED)},
    )

    assert story.status == "needs_review"
    because = story.task.business.because
    assert "book_hold (undo failed)" in because
    assert "send_notice (a notice that was read stays read)" in because
    assert "buy_stamp" not in because
    assert happened(story) == ["book_hold", "buy_stamp", "sell_stamp", "send_notice"]


def test_an_undo_with_an_unknown_outcome_is_asked_about() -> None:
    """B28: an undo is an effect like any other: not knowing leads to asking, and then on."""
    story = run_errand(
        Do(tool=HOLD), ASKED, undos=[DROP], downstreams={"drop_hold": failing(Mishap.RECORDED_NO_ANSWER)}
    )

    story.decide(DecisionWord.REJECT)

    assert (story.status, happened(story)) == ("failed", ["book_hold", "drop_hold"])


def test_an_undo_that_nobody_can_ask_about_goes_to_a_person() -> None:
    """B28: an unknown undo is never read as done."""
    dead_end = an_undo("drop_hold", effect=EffectClass.REVERSIBLE_WRITE, can_look_up=False)
    story = run_errand(
        Do(tool=HOLD),
        ASKED,
        undos=[dead_end],
        downstreams={"drop_hold": failing(Mishap.RECORDED_NO_ANSWER, kind=Kind.NEITHER)},
    )

    story.decide(DecisionWord.REJECT)

    assert story.status == "needs_review"
    assert len(story.world.downstreams["drop_hold"].effects) == 1


def test_an_undo_that_cannot_be_put_into_words_is_named() -> None:
    """B28: the provider gave no reference, so no undo can be made; that is said, and nothing crashes on it."""

    class Forgetful(Downstream):
        def _done(self, effect):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
            return super()._done(effect).model_copy(update={"reference": None})

    story = run_errand(Do(tool=HOLD), ASKED, undos=[DROP], downstreams={"book_hold": Forgetful()})

    story.cancel()

    assert story.status == "canceled"
    assert "book_hold" in str(story.task.business.outcome)
    assert story.machine.errors == []


def test_an_undo_can_demand_an_approval() -> None:
    """I7: where policy says so, people approve the undo before it is performed."""
    story = run_errand(Do(tool=GUARDED_HOLD), ASKED, undos=[DROP])
    story.cancel()
    assert (story.status, happened(story)) == ("waiting_approval", ["book_hold"])

    story.decide()

    assert (story.status, happened(story)) == ("canceled", ["book_hold", "drop_hold"])


def test_an_undo_that_is_not_approved_is_named() -> None:
    """I4: a cancellation says what stands because nobody wanted it undone."""
    story = run_errand(Do(tool=GUARDED_HOLD), ASKED, undos=[DROP])
    story.cancel()

    story.decide(DecisionWord.REJECT)

    assert (story.status, happened(story)) == ("canceled", ["book_hold"])
    assert "its undo was not approved" in str(story.task.business.outcome)


def test_an_undo_that_nobody_approves_in_time_goes_to_an_end() -> None:
    """I7: the question about an undo has a deadline of its own."""
    story = run_errand(Do(tool=GUARDED_HOLD), ASKED, undos=[DROP])
    story.cancel()

    story.later(days=8)

    assert story.status == "canceled"
    assert "not undone" in str(story.task.business.outcome)


def test_whoever_said_no_is_not_asked_again() -> None:
    """I4: many undos, each of them refused by people: each is asked about once, and the task ends."""
    guarded = [
        a_tool(f"book_{n}", undo="drop_hold", undo_approval=UndoApproval(rule=a_rule(), wait=a_ladder()))
        for n in range(6)
    ]
    story = run_errand(*(Do(tool=tool) for tool in guarded), ASKED, undos=[DROP])
    story.cancel()

    asked = 0
    while story.status == "waiting_approval":
        asked += 1
        story.decide(DecisionWord.REJECT)

    assert (story.status, asked) == ("canceled", len(guarded))


def test_an_undo_whose_approver_lost_the_right_is_asked_again() -> None:
    """B06: the right to approve is read live for an undo too, and its loss leads to another question."""
    story = run_errand(Do(tool=GUARDED_HOLD), ASKED, undos=[DROP])
    story.cancel()
    story.click()
    story.world.authority.disable(MANAGER)

    story.machine.settle()
    assert (story.status, happened(story)) == ("waiting_approval", ["book_hold"])

    story.decide(by=SECOND_MANAGER)
    assert (story.status, happened(story)) == ("canceled", ["book_hold", "drop_hold"])


def test_canceling_what_is_being_undone_lets_the_undo_finish() -> None:
    """I4: a cancel that meets a compensation on its way changes nothing about what has to be undone."""
    story = run_errand(Do(tool=HOLD), ASKED, undos=[DROP], downstreams={"drop_hold": failing(Mishap.LOST)})
    story.click(DecisionWord.REJECT)
    story.machine.settle(patience=False)
    assert story.status == "compensating"

    story.cancel()

    assert story.status in {"failed", "canceled"}
    assert happened(story) == ["book_hold", "drop_hold"]
    assert story.machine.errors == []
