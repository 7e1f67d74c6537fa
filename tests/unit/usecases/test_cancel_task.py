"""Cancelling is a request to stop: new work stops, what is in flight is found out, and what stands is named."""

from collections import deque

import pytest

from shared.domain.action import EffectClass
from shared.domain.errors import NotAuthorised, TaskClosed, TaskNotFound
from shared.ports.tool_gateway import ToolOperation
from tests.fakes.calls import Calls, Fault, When
from tests.fakes.downstream import Downstream, Kind, Mishap
from tests.fakes.errand import Do, WaitFor, a_ladder, a_rule, a_tool, an_undo, run_errand
from tests.fakes.story import INTERN, STRANGER, Story


def a_refund() -> Story:
    """Start a refund that waits for an approval."""
    story = Story()
    story.start()
    return story


def test_a_waiting_task_is_canceled_at_once() -> None:
    """I4: nothing was in flight; the wait is void and the approval with it."""
    story = a_refund()

    story.cancel()

    assert (story.status, story.task.business.outcome) == ("canceled", "canceled on request")
    assert {str(wait.status) for wait in story.world.waits.values()} == {"void"}
    assert [str(approval.status) for approval in story.task.security.approvals] == ["void"]


@pytest.mark.parametrize("person", [True, False])
def test_every_kind_of_wait_can_be_canceled(person: bool) -> None:
    """I4: a question and an event are given up like an approval."""
    story = run_errand(WaitFor(name="signed", ladder=a_ladder(), person=person))

    story.cancel()

    assert story.status == "canceled"


def test_canceling_twice_is_canceling_once() -> None:
    """B17: the second request answers with the current state and writes nothing."""
    story = a_refund()
    story.cancel()
    after = story.task

    assert story.cancel().status == "canceled"
    assert story.task == after
    assert story.published.count("task.closed") == 1


def test_a_finished_task_cannot_be_canceled() -> None:
    """B17: the caller is told how it ended."""
    story = Story()
    story.start(amount_minor=5_000)

    with pytest.raises(TaskClosed, match="refund was issued"):
        story.cancel()


@pytest.mark.parametrize(("who", "refusal"), [(INTERN, NotAuthorised), (STRANGER, TaskNotFound)])
def test_canceling_needs_the_right_to_it(who: object, refusal: type[Exception]) -> None:
    """A2 and A3: seeing a task is not enough, and another tenant does not even see it."""
    story = a_refund()

    with pytest.raises(refusal):
        story.ask_to_cancel(by=who)  # type: ignore[arg-type]

    assert story.status == "waiting_approval"


def test_a_payment_in_flight_is_never_hidden_by_a_cancel() -> None:
    """B17: dispatched, canceled, confirmed: the end names the payment that stands, and it is not plain completed."""
    story = a_refund()
    canceled: list[str] = []

    def cancel_meanwhile(call: str) -> None:
        if call == "action_ledger.settle" and not canceled:
            canceled.append(call)
            story.ask_to_cancel()

    story.calls.step_in = cancel_meanwhile
    story.decide()

    assert story.status == "canceled"
    assert "issue_refund" in str(story.task.business.outcome)
    assert story.rows[0].status == "done"
    assert len(story.refunds) == 1


@pytest.mark.parametrize("mishap", [Mishap.RECORDED_NO_ANSWER, Mishap.LOST, Mishap.PENDING])
def test_a_canceled_task_first_finds_out_what_happened(mishap: Mishap) -> None:
    """I4: not knowing comes before the end: the bank is asked, and nothing is sent again."""
    story = a_refund()
    story.bank.mishaps.append(mishap)
    story.click()
    story.machine.settle(patience=False)

    story.cancel()

    assert story.status == "canceled"
    assert [operation for operation, _ in story.bank.requests] == [ToolOperation.PERFORM, ToolOperation.LOOKUP]
    stands = mishap is not Mishap.LOST
    assert len(story.refunds) == stands
    assert ("not undone" in str(story.task.business.outcome)) == stands


def test_a_cancel_that_meets_what_nobody_knows_waits_for_a_person() -> None:
    """I4: neither canceled nor done is claimed while the outcome is open."""
    tool = a_tool(effect=EffectClass.REVERSIBLE_WRITE, can_look_up=False)
    downstream = Downstream(kind=Kind.NEITHER, mishaps=deque([Mishap.RECORDED_NO_ANSWER]))
    story = run_errand(
        Do(tool=tool, rule=a_rule()),
        downstreams={"send_parcel": downstream},
        calls=Calls(Fault(when=When.KILL_AFTER, at=1, name="tool_gateway.perform")),
    )
    story.click()
    story.machine.settle(patience=False)

    story.cancel()

    assert story.status == "needs_review"
    assert len(downstream.effects) == 1
    assert story.cancel().status == "needs_review"


def test_a_cancel_undoes_what_can_be_undone() -> None:
    """I4 and I7: the hold is dropped by a new action, newest first, and the end is clean."""
    hold = a_tool("book_hold", undo="drop_hold")
    story = run_errand(Do(tool=hold), Do(tool=a_tool("pay"), rule=a_rule()), undos=[an_undo("drop_hold")])

    story.cancel()

    assert (story.status, story.task.business.outcome) == ("canceled", "canceled on request")
    assert len(story.world.downstreams["drop_hold"].effects) == 1


def test_an_intent_that_nobody_claimed_is_taken_back() -> None:
    """I4: decided but not sent is not sent; the ledger's row is void and the used approval with it."""
    story = Story(calls=Calls(Fault(when=When.KILL_BEFORE, at=1, name="action_ledger.claim")))
    story.start()

    def cancel_meanwhile(call: str) -> None:
        if call == "action_ledger.claim" and story.status == "ready":
            story.ask_to_cancel()

    story.calls.step_in = cancel_meanwhile
    story.decide()

    assert story.status == "canceled"
    assert [str(row.status) for row in story.rows] == ["void"]
    assert story.refunds == []


def test_a_cancel_and_an_approval_in_the_same_moment_have_one_winner() -> None:
    """B17: the approval is committed first: the cancel is decided anew on it, and still stops what has not left."""
    story = a_refund()
    raced: list[str] = []

    def approve_first(call: str) -> None:
        if call == "task_records.commit" and not raced:
            raced.append(call)
            story.click()

    story.calls.step_in = approve_first
    story.ask_to_cancel()
    story.machine.settle()

    assert story.status == "canceled"
    assert story.refunds == []


def test_a_canceled_model_turn_has_no_consequence() -> None:
    """I4: the model was being asked when the task was canceled; its advice is thrown away."""
    story = a_refund()
    canceled: list[str] = []

    def cancel_meanwhile(call: str) -> None:
        if call == "model.ask" and not canceled:
            canceled.append(call)
            story.ask_to_cancel()

    story.calls.step_in = cancel_meanwhile
    story.decide()

    assert story.status == "canceled"
    assert story.rows == []
    assert len(story.world.model.windows) == 1


def test_a_task_in_review_can_be_canceled() -> None:
    """I4: whoever asked may give up on a task that waits for an operator."""
    story = a_refund()
    story.bank.mishaps.append(Mishap.REFUSED)
    story.decide()
    assert story.status == "needs_review"

    story.cancel()

    assert story.status == "canceled"


def test_a_frozen_task_can_be_asked_to_stop() -> None:
    """A6: the request is taken in a freeze and carried out when it is lifted."""
    story = a_refund()
    story.world.authority.freezes["all"] = "incident 7"
    story.ask_to_cancel()
    story.machine.settle(patience=False)
    assert story.status == "cancel_requested"

    story.world.authority.freezes.clear()
    story.machine.settle()

    assert story.status == "canceled"


def test_a_cancel_outlives_its_owner_s_rights() -> None:
    """I4: stopping and cleaning up needs no right to go on."""
    hold = a_tool("book_hold", undo="drop_hold")
    story = run_errand(Do(tool=hold), Do(tool=a_tool("pay"), rule=a_rule()), undos=[an_undo("drop_hold")])
    story.ask_to_cancel()
    story.world.authority.disable(story.task.business.owner)

    story.machine.settle()

    assert story.status == "canceled"
    assert len(story.world.downstreams["drop_hold"].effects) == 1


def test_a_lost_reply_does_not_cancel_twice() -> None:
    """B11: the commit happened, its reply was lost; the caller repeats and hears how it stands."""
    story = Story(calls=Calls(Fault(when=When.DROP_REPLY, at=2, name="task_records.commit")))
    story.start()

    with pytest.raises(Exception, match="answer was lost"):
        story.ask_to_cancel()
    story.cancel()

    assert story.status == "canceled"
    assert story.published.count("task.closed") == 1
