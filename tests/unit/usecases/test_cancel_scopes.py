"""How far a request to stop reaches, and what is true afterwards."""

from collections import deque
from collections.abc import Callable
from typing import Final

import pytest

from shared.domain.approval import DecisionWord
from shared.domain.checkpoint import CancelScope
from shared.domain.errors import CheckpointQuarantined, DecisionClosed, NoChildTasks, NothingToCancel, TaskClosed
from shared.ports.tool_gateway import ToolOperation
from shared.usecases.cancel_task import CancelTask, cancel_task
from shared.usecases.summary import TaskSummary
from tests.fakes.calls import Calls
from tests.fakes.downstream import Downstream, Kind, Mishap
from tests.fakes.errand import Do, a_rule, a_tool, an_undo, run_errand
from tests.fakes.story import CLERK, MANAGER, Story

PARCEL: Final = a_tool("send_parcel")
HOLD: Final = a_tool("book_hold", undo="drop_hold")
DROP: Final = an_undo("drop_hold")
CLAIM: Final = "action_ledger.claim"
SEND: Final = "tool_gateway.perform"
TURN: Final = "model.ask"


def stop(story: Story, scope: CancelScope = CancelScope.TASK) -> TaskSummary:
    """Ask to stop, and leave the machine where it is."""
    command = CancelTask(principal=story.person(CLERK), task_id=story.task.task_id, scope=scope)
    return cancel_task(command, story.machine.api())


def approved(
    *after: Do, proposed: bool = False, mishaps: tuple[Mishap, ...] = (), kind: Kind = Kind.LOOKUP_ONLY
) -> Story:
    """Start an errand that waits for the approval of its first call; whatever comes of that call is planned."""
    asked = Do(tool=PARCEL, rule=a_rule(), proposed=proposed)
    parcels = Downstream(kind=kind, mishaps=deque(mishaps))
    return run_errand(asked, *after, downstreams={"send_parcel": parcels}, calls=Calls())


def meanwhile(story: Story, call: str, act: Callable[[], object]) -> None:
    """Do something right before the next call of this name."""

    def step_in(name: str) -> None:
        if name == call:
            story.calls.step_in = lambda _: None
            act()

    story.calls.step_in = step_in


def parcels(story: Story) -> int:
    """How many parcels were really sent."""
    return len(story.world.downstreams["send_parcel"].effects)


# --- a tool call ------------------------------------------------------------------------------------------------------


def test_a_call_that_has_not_left_is_taken_back() -> None:
    """I4: canceled between intent and claim, nothing leaves, now or later; a person says how to go on."""
    story = approved(Do(tool=a_tool("send_letter")))
    answers: list[TaskSummary] = []
    meanwhile(story, CLAIM, lambda: answers.append(stop(story, CancelScope.TOOL_CALL)))

    story.decide()

    assert answers[0].status == story.status == "needs_review"
    assert story.task.business.because == "the call of send_parcel was canceled by clerk-1 before it was sent"
    assert (parcels(story), story.rows[0].status) == (0, "void")
    assert story.task.execution.actions == ()
    assert story.task.execution.cancel is None
    assert [a.status for a in story.task.security.approvals] == ["void"]


@pytest.mark.parametrize("mishap", [None, Mishap.RECORDED_NO_ANSWER, Mishap.LOST, Mishap.PENDING])
def test_a_call_in_flight_is_found_out_and_nothing_new_is_begun(mishap: Mishap | None) -> None:
    """I4, B17: it had left when it was canceled: it is asked about, not sent again, and what is true is said."""
    story = approved(Do(tool=a_tool("send_letter")), mishaps=(mishap,) if mishap else ())
    meanwhile(story, SEND, lambda: stop(story, CancelScope.TOOL_CALL))

    story.decide()

    happened = mishap is not Mishap.LOST
    assert parcels(story) == happened
    assert [operation for operation, _ in story.world.downstreams["send_parcel"].requests].count(
        ToolOperation.PERFORM
    ) == 1
    assert story.status == "needs_review"
    found = "send_parcel is done" if happened else "not performed: it was canceled"
    assert story.task.business.because == f"{found}; the call was canceled by clerk-1"
    assert story.rows[0].status == ("done" if happened else "void")
    assert story.task.execution.cancel is None
    assert story.world.downstreams["send_letter"].requests == []


def test_a_call_that_nobody_can_be_asked_about_goes_to_a_person_as_unknown() -> None:
    """I4: no answer and nobody to ask: it is not called canceled, and it is not sent again."""
    story = approved(mishaps=(Mishap.RECORDED_NO_ANSWER,), kind=Kind.NEITHER)
    meanwhile(story, SEND, lambda: stop(story, CancelScope.TOOL_CALL))

    story.decide()

    assert (story.status, parcels(story)) == ("needs_review", 1)
    assert "no clear answer" in story.task.business.because
    assert story.rows[0].status == "outcome_unknown"


def test_the_whole_task_can_be_canceled_after_a_call_was() -> None:
    """I4: the wider request follows the narrower one, and the outcome names what stands."""
    story = approved(mishaps=(Mishap.RECORDED_NO_ANSWER,), kind=Kind.NEITHER)
    meanwhile(story, SEND, lambda: stop(story, CancelScope.TOOL_CALL))
    story.decide()

    whole = stop(story)
    again = stop(story, CancelScope.TOOL_CALL)

    assert whole.status == "cancel_requested"
    assert again == whole


def test_canceling_a_call_twice_answers_the_current_state() -> None:
    """B17: the second request finds the first one and changes nothing."""
    story = approved(mishaps=(Mishap.RECORDED_NO_ANSWER,))
    answers: list[TaskSummary] = []

    def twice() -> None:
        answers.extend([stop(story, CancelScope.TOOL_CALL), stop(story, CancelScope.TOOL_CALL)])

    meanwhile(story, SEND, twice)

    story.decide()

    assert answers[0] == answers[1]
    assert answers[0].status == "cancel_requested"


def test_a_worker_that_claims_first_makes_it_a_call_in_flight() -> None:
    """B17: the cancel saw an intent, the claim came before its commit: decided anew, and the effect is found out."""
    story = approved()
    answers: list[TaskSummary] = []

    def cancel_and_be_overtaken() -> None:
        operation = story.rows[0].operation
        meanwhile(story, "task_records.commit", lambda: story.perform(operation))
        answers.append(stop(story, CancelScope.TOOL_CALL))

    meanwhile(story, CLAIM, cancel_and_be_overtaken)

    story.decide()

    assert answers[0].status == "cancel_requested"
    assert (story.status, parcels(story), story.rows[0].status) == ("needs_review", 1, "done")


@pytest.mark.parametrize("scope", [CancelScope.TOOL_CALL, CancelScope.MODEL_TURN])
def test_a_task_that_waits_does_nothing_that_could_be_stopped(scope: CancelScope) -> None:
    """I4: while people are asked, neither a call nor a model turn is under way; the task goes on waiting."""
    story = approved()
    before = story.task

    with pytest.raises(NothingToCancel, match="the task is waiting_approval"):
        stop(story, scope)

    assert story.task == before


def test_an_undo_is_not_called_back() -> None:
    """I4, B28: what ends the task is left to end it."""
    story = run_errand(
        Do(tool=HOLD),
        Do(tool=PARCEL, rule=a_rule()),
        undos=[DROP],
        downstreams={"drop_hold": Downstream()},
        calls=Calls(),
    )
    refused: list[str] = []

    def try_to_stop() -> None:
        try:
            stop(story, CancelScope.TOOL_CALL)
        except NothingToCancel as nothing:
            refused.append(nothing.message)

    meanwhile(story, CLAIM, try_to_stop)
    story.decide(DecisionWord.REJECT)

    assert refused == ["the call under way undoes an effect and serves to end the task"]
    assert story.status == "failed"
    assert len(story.world.downstreams["drop_hold"].effects) == 1


# --- a model turn -----------------------------------------------------------------------------------------------------


def test_the_answer_of_a_canceled_turn_is_not_heard() -> None:
    """I4: the model answers for a version that is no longer the current one; nothing is done with it."""
    story = approved(proposed=True)
    answers: list[TaskSummary] = []
    meanwhile(story, TURN, lambda: answers.append(stop(story, CancelScope.MODEL_TURN)))

    story.decide()

    assert answers[0].status == story.status == "needs_review"
    assert story.task.business.because == "the model turn was canceled by clerk-1"
    assert len(story.world.model.windows) == 1
    assert (parcels(story), story.rows) == (0, [])
    assert story.machine.errors == []


def test_a_turn_that_was_heard_already_is_over() -> None:
    """I4: once its proposal is an action there is no turn to stop, and the answer says so."""
    story = approved(proposed=True)
    refused: list[str] = []

    def try_to_stop() -> None:
        with pytest.raises(NothingToCancel) as nothing:
            stop(story, CancelScope.MODEL_TURN)
        refused.append(nothing.value.message)

    meanwhile(story, CLAIM, try_to_stop)

    story.decide()

    assert refused == ["no model turn is due or under way; the task is ready"]
    assert (story.status, parcels(story)) == ("completed", 1)


# --- child tasks, and where nothing can be stopped --------------------------------------------------------------------


def test_a_task_without_child_tasks_says_so() -> None:
    """I4: there is nothing to stop, and the answer does not pretend that there was."""
    story = approved()
    before = story.task

    with pytest.raises(NoChildTasks):
        stop(story, CancelScope.CHILD_TASKS)

    assert story.task == before


@pytest.mark.parametrize("scope", list(CancelScope))
def test_a_task_that_has_ended_stays_ended(scope: CancelScope) -> None:
    """B17: a late cancel of any reach changes nothing and names how it ended."""
    story = approved()
    story.decide()
    before = story.task

    with pytest.raises(TaskClosed, match="everything is done"):
        stop(story, scope)

    assert story.task == before


@pytest.mark.parametrize("scope", list(CancelScope))
def test_a_distrusted_task_is_not_canceled(scope: CancelScope) -> None:
    """B19: nothing is decided on a record that is not trusted; the answer says why, and nothing is written."""
    story = approved()
    head = story.world.heads[story.key.key]
    sealed = story.world.checkpoints[story.key.key, head.version]
    story.world.checkpoints[story.key.key, head.version] = sealed.model_copy(
        update={"body": sealed.body.replace("S-1", "S-2")}
    )
    before = (dict(story.world.heads), dict(story.world.checkpoints))

    with pytest.raises(CheckpointQuarantined, match="seal"):
        stop(story, scope)

    assert (story.world.heads, story.world.checkpoints) == before


# --- the whole task ---------------------------------------------------------------------------------------------------


def test_what_has_not_left_when_a_task_is_canceled_never_leaves() -> None:
    """B17: the worker had read the task before it was canceled and claims after it: there is nothing left to claim."""
    story = approved()
    meanwhile(story, CLAIM, lambda: stop(story))

    story.decide()

    assert (story.status, parcels(story), story.rows[0].status) == ("canceled", 0, "void")
    assert story.task.business.outcome == "canceled on request"


def test_a_late_success_does_not_overwrite_a_cancel() -> None:
    """B17: dispatched, canceled, confirmed: the task ends as canceled and names the effect that stands."""
    story = approved(mishaps=(Mishap.PENDING,))
    meanwhile(story, SEND, lambda: stop(story))

    story.decide()
    second = stop(story)

    assert story.status == second.status == "canceled"
    assert "not undone: " in str(second.outcome)
    assert "send_parcel (what is sent is sent)" in str(second.outcome)
    assert story.rows[0].status == "done"


def test_an_approval_that_loses_against_a_cancel_is_told_the_truth() -> None:
    """B17: both in the same second; the cancel commits first, the approval is void and decides nothing."""
    story = approved()
    lost: list[str] = []
    meanwhile(story, "task_records.commit", lambda: stop(story))

    with pytest.raises(DecisionClosed) as closed:
        story.click()
    lost.append(closed.value.message)
    story.machine.settle()

    assert lost == ["the approval is void"]
    assert (story.status, parcels(story)) == ("canceled", 0)


def test_a_cancel_that_loses_against_an_approval_still_stops_the_task() -> None:
    """B17: the approval commits first; the cancel is decided anew on the approved task, and nothing leaves."""
    story = approved()
    meanwhile(story, "task_records.commit", lambda: story.click(by=MANAGER))

    answer = stop(story)
    story.machine.settle()

    assert answer.status == "cancel_requested"
    assert (story.status, parcels(story)) == ("canceled", 0)


def test_a_task_in_review_can_be_canceled() -> None:
    """I4: the review ends with the task, and the machine wakes to end it."""
    story = approved(proposed=True)
    meanwhile(story, TURN, lambda: stop(story, CancelScope.MODEL_TURN))
    story.decide()

    stop(story)
    story.machine.settle()

    assert story.status == "canceled"
    assert story.task.execution.waits == ()
