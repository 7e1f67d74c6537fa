"""What is left of a task that is undone: which effects rest on which, and the list that a person gets."""

from collections import deque
from dataclasses import replace

from shared.domain.action import Action, Arguments
from shared.domain.approval import DecisionWord
from shared.domain.workflow import UndoApproval
from tests.fakes.downstream import Downstream, Mishap
from tests.fakes.errand import Do, a_ladder, a_rule, a_tool, an_undo, run_errand
from tests.fakes.story import Story

DROP = an_undo("drop_hold")
SELL = an_undo("sell_stamp")
HOLD = replace(a_tool("book_hold", undo="drop_hold"), kept_for=("buy_stamp",))
STAMP = a_tool("buy_stamp", undo="sell_stamp", undo_approval=UndoApproval(rule=a_rule(), wait=a_ladder()))
ASKED = Do(tool=a_tool("send_parcel"), rule=a_rule())


def happened(story: Story) -> list[str]:
    """What was really done, over all downstreams, by tool."""
    return sorted(effect.tool for downstream in story.world.downstreams.values() for effect in downstream.effects)


def a_stamp_on_a_hold(*mishaps: Mishap) -> Story:
    """Book a hold, buy a stamp that rests on it, and wait for an approval; selling the stamp suffers the mishaps."""
    seller = Downstream(mishaps=deque(mishaps))
    return run_errand(Do(tool=HOLD), Do(tool=STAMP), ASKED, undos=[DROP, SELL], downstreams={"sell_stamp": seller})


def test_what_an_effect_rests_on_is_undone_after_it() -> None:
    """I7: newest first: the stamp is sold, and then nothing rests on the hold any more."""
    story = a_stamp_on_a_hold()
    story.decide(DecisionWord.REJECT)

    story.decide()

    assert story.status == "failed"
    assert [row.tool for row in story.rows] == ["book_hold", "buy_stamp", "sell_stamp", "drop_hold"]


def test_what_a_standing_effect_rests_on_is_kept() -> None:
    """B28: people want the stamp kept, so the hold under it stays, and both are named."""
    story = a_stamp_on_a_hold()
    story.decide(DecisionWord.REJECT)

    story.decide(DecisionWord.REJECT)

    hold, stamp = story.rows
    assert (story.status, happened(story)) == ("needs_review", ["book_hold", "buy_stamp"])
    assert story.task.business.because == (
        f"not undone: {stamp.operation} (its undo was not approved); {hold.operation} (kept while buy_stamp stands)"
    )


def test_a_refused_undo_keeps_what_rests_under_it() -> None:
    """B28: the stamp cannot be sold any more: it and the hold are what a person has to look at."""
    story = a_stamp_on_a_hold(Mishap.REFUSED)
    story.decide(DecisionWord.REJECT)

    story.decide()

    hold, stamp, _ = story.rows
    assert story.status == "needs_review"
    assert story.task.business.because == (
        f"not undone: {stamp.operation} (undo failed); {hold.operation} (kept while buy_stamp stands)"
    )


def test_an_undo_with_no_clear_outcome_names_everything_that_is_open() -> None:
    """B28: nobody knows whether the stamp was sold; a person is told that, and what else stands."""
    story = a_stamp_on_a_hold(*[Mishap.LOST] * 3)
    story.world.downstreams["sell_stamp"].lookups_unclear = 20
    story.decide(DecisionWord.REJECT)

    story.decide()

    hold, stamp, sale = story.rows
    assert story.status == "needs_review"
    assert sale.status == "outcome_unknown"
    assert story.task.business.because == (
        f"{sale.operation}: no clear answer in 5 look-ups: no answer; "
        f"not undone: {stamp.operation} (nobody knows whether its undo happened); "
        f"{hold.operation} (kept while buy_stamp stands)"
    )


def test_a_canceled_task_with_an_unknown_effect_names_what_else_stands() -> None:
    """I4: whoever looks at the unknown parcel is told that the hold is booked too."""
    lost = Downstream(mishaps=deque([Mishap.LOST] * 3), lookups_unclear=20)
    story = run_errand(Do(tool=HOLD), ASKED, undos=[DROP, SELL], downstreams={"send_parcel": lost})
    story.click()
    story.machine.settle(patience=False)
    assert story.status == "outcome_unknown"

    story.cancel()

    hold, parcel = story.rows
    assert story.status == "needs_review"
    assert story.task.business.because == (
        f"{parcel.operation}: no clear answer in 5 look-ups: no answer; not undone: {hold.operation} (not undone yet)"
    )


def test_an_undo_can_name_the_key_that_the_effect_was_made_under() -> None:
    """B26: the operation is what both sides know the effect by, also where the provider gave no reference."""

    def by_key(action: Action, _reference: str | None) -> Arguments:
        return {"reference": action.operation}

    hold = replace(a_tool("book_hold", undo="drop_hold"), undo_arguments=by_key)
    story = run_errand(Do(tool=hold), ASKED, undos=[DROP])

    story.decide(DecisionWord.REJECT)

    [effect] = story.world.downstreams["drop_hold"].effects
    assert effect.arguments == {"reference": story.rows[0].operation}
