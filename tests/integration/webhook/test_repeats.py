"""Events twice, at once, out of order, early, late and against each other: a task moves once, and people are told."""

from collections.abc import Callable, Mapping
from datetime import timedelta

import pytest

from shared.usecases.act_on_deadline import DeadlineFired, act_on_deadline
from shared.usecases.engine import DeadlineDeps
from tests.fakes.calls import Calls
from tests.fakes.paperwork import WAITS_FOR, correlation_of
from tests.fakes.signed_event import SECRET, Sender
from tests.integration.webhook.conftest import NOT_SIGNED, POST, SIGNED, Answer, Door


def facts(door: Door) -> list[tuple[str, object]]:
    """What the task knows."""
    return [(fact.name, fact.values.get("signed")) for fact in door.story.task.business.facts]


def receptions(*answers: Answer) -> list[str]:
    """What senders were told, in short."""
    return [str(answer.json.get("reception", answer.json.get("code"))) for answer in answers]


# --- one after the other ----------------------------------------------------------------------------------------------


def test_the_same_event_again_is_recognised(door: Door) -> None:
    """R2, B05: at once, after the machine went on, and after the task has ended: the current state, and no move."""
    first = door.says()
    second = door.says()
    door.story.machine.settle()
    third = door.says()

    assert receptions(first, second, third) == ["accepted", "duplicate", "duplicate"]
    assert [a.json["task_status"] for a in (first, second, third)] == ["completed"] * 3
    assert facts(door) == [("papers", True)]
    assert door.world.alarms == []


@pytest.mark.parametrize("by", [Sender(), POST])
def test_the_same_answer_under_another_id_moves_nothing(door: Door, by: Sender) -> None:
    """R2: a partner that counts its retries as new events, or a second source that says the same."""
    door.says()
    again = door.says({**SIGNED, "answer": {"signed": True, "pages": 1, "note": None}}, "msg_2", by=by)

    assert (again.status, receptions(again)) == (200, ["duplicate"])
    assert facts(door) == [("papers", True)]
    assert door.world.alarms == []


@pytest.mark.parametrize("event_id", ["msg_1", "msg_2"])
def test_a_contradiction_is_refused_and_people_are_told(door: Door, event_id: str) -> None:
    """B12: under its own id or under one that said something else before; the first answer stands."""
    door.says()
    after = door.story.task

    answer = door.says(NOT_SIGNED, event_id)

    assert (answer.status, answer.json["code"]) == (409, "event_refused")
    assert answer.json["current"]["task_status"] == "completed"
    assert door.story.task == after
    assert len(door.world.alarms) == 1
    assert "papers" in door.world.alarms[0]


def test_an_answer_after_the_wait_was_ended_is_told_what_became_of_it(door: Door) -> None:
    """B12: the deadline has acted; the late answer gets the true state and executes nothing."""
    door.world.clock.advance(WAITS_FOR)
    assert [fire(door) for _ in range(3)] == [True, False, False]
    after = door.story.task

    answer = door.says()

    assert (answer.status, answer.json["current"]["task_status"]) == (409, "expired")
    assert door.story.task == after
    assert len(door.world.alarms) == 1


def test_an_event_about_another_version_is_told_the_current_one(door: Door) -> None:
    """R3: what was said about one version of a request does not count for another."""
    answer = door.says({**SIGNED, "request_version": 2})

    assert (answer.status, answer.json["current"]["request_version"]) == (409, 1)
    assert facts(door) == []
    assert door.says({**SIGNED, "request_version": 1}, "msg_2").json["reception"] == "accepted"


# --- at the same time -------------------------------------------------------------------------------------------------


def fire(door: Door) -> bool:
    """Let the timer of the wait's present rung go off."""
    [wait] = door.world.waits.values()
    process = door.story.machine.process()
    fired = DeadlineFired(tenant=wait.tenant, correlation_id=wait.correlation_id, wait_id=wait.wait_id, rung=wait.rung)
    return act_on_deadline(fired, DeadlineDeps(tasks=door.story.machine.records(process), waits=process.waits))


def calls_of_a_delivery() -> int:
    """How many calls a delivery makes that nobody disturbs."""
    door = Door()
    door.open()
    before = len(door.calls.names)
    door.says()
    return len(door.calls.names) - before


CALLS = range(1, calls_of_a_delivery() + 1)


def disturbed(at: int, meanwhile: Callable[[Door], object], body: Mapping[str, object] = SIGNED) -> tuple[Door, Answer]:
    """Send an event, and let something else happen from start to end just before the `at`-th call that it makes."""
    calls = Calls()
    door = Door(calls=calls)
    door.open()
    made = len(calls.names)

    def step_in(_: str) -> None:
        if len(calls.names) == made + at:
            calls.step_in = lambda _: None
            meanwhile(door)

    calls.step_in = step_in
    return door, door.says(body)


@pytest.mark.parametrize("at", CALLS)
@pytest.mark.parametrize("event_id", ["msg_1", "msg_2"])
def test_copies_at_the_same_time_move_a_task_once(at: int, event_id: str) -> None:
    """B78: an impatient sender's copy overtakes the first at any point; both are told the state that is true then."""
    copies: list[Answer] = []
    door, first = disturbed(at, lambda door: copies.append(door.says(event_id=event_id)))

    assert sorted(receptions(first, *copies)) == ["accepted", "duplicate"]
    assert [a.json["task_status"] for a in (first, *copies)] == ["completed", "completed"]
    assert facts(door) == [("papers", True)]
    assert door.world.alarms == []


@pytest.mark.parametrize("at", CALLS)
def test_contradicting_copies_at_the_same_time_have_one_winner(at: int) -> None:
    """B78, B12: whoever commits first; the other one is refused and people are told."""
    others: list[Answer] = []
    door, first = disturbed(at, lambda door: others.append(door.says(NOT_SIGNED, "msg_2")))

    assert sorted(a.status for a in (first, *others)) == [200, 409]
    assert facts(door) == [("papers", first.status == 200)]
    assert len(door.world.alarms) == 1


@pytest.mark.parametrize("at", CALLS)
def test_an_answer_and_the_deadline_at_the_same_time_have_one_winner(at: int) -> None:
    """B67: the deadline comes between any two calls of the answer: accepted or expired, never both, never neither."""

    def too_late(door: Door) -> None:
        door.world.clock.advance(WAITS_FOR)
        while fire(door):
            pass

    door, answer = disturbed(at, too_late)
    door.story.machine.settle()

    if answer.status == 200:
        assert (door.story.status, facts(door)) == ("completed", [("papers", True)])
    else:
        assert (answer.status, door.story.status) == (409, "expired")
        assert ("papers", True) not in facts(door)


# --- before the wait --------------------------------------------------------------------------------------------------


def test_an_early_event_is_taken_in_when_its_wait_opens(quiet_door: Door) -> None:
    """R2, B05: kept, and consumed by the task that asks for it; the sender's repeat is recognised."""
    door = quiet_door
    early, again = door.says(), door.says()

    door.open()

    assert [(a.status, a.json) for a in (early, again)] == [(202, {"reception": "kept"})] * 2
    assert (door.story.status, facts(door)) == ("completed", [("papers", True)])
    assert receptions(door.says()) == ["duplicate"]
    assert door.world.alarms == []


def test_a_day_between_event_and_wait_loses_nothing(quiet_door: Door) -> None:
    """B05: early by far more than a signature lives."""
    quiet_door.says()
    quiet_door.world.clock.advance(timedelta(days=30))
    quiet_door.open()
    assert quiet_door.story.status == "completed"


def test_an_early_event_of_another_version_waits_for_nothing(quiet_door: Door) -> None:
    """R3: it does not fit the wait that opens; people are told, and the wait goes on."""
    quiet_door.says({**SIGNED, "request_version": 2})
    quiet_door.open()
    assert quiet_door.story.status == "waiting_event"
    [sentence] = quiet_door.world.alarms
    assert sentence.startswith("an event of partner for papers of tsk_")
    assert sentence.endswith("the event is for version 2 of the request, the request is now version 1")
    assert quiet_door.says(event_id="msg_2").json["reception"] == "accepted"


def test_an_early_event_without_the_form_does_not_stand_in_the_way(quiet_door: Door) -> None:
    """Bad input: its wait is not known yet, so its form is checked when it is; the next one that fits counts."""
    quiet_door.says({"correlation_id": correlation_of(), "answer": {"nonsense": 1}}, "msg_1")
    quiet_door.world.clock.advance(timedelta(seconds=1))
    quiet_door.says(event_id="msg_0")
    (contradiction,) = quiet_door.world.alarms
    quiet_door.open()
    assert facts(quiet_door) == [("papers", True)]
    assert quiet_door.world.alarms[0] == contradiction
    assert ["came early and was passed over: answer." in told for told in quiet_door.world.alarms[1:]] == [True]


def test_an_early_event_of_the_wrong_form_is_told_in_a_sentence(quiet_door: Door) -> None:
    """B12: however many wrong fields a sender thinks of; the task is as it was, and its wait open."""
    quiet_door.says({"correlation_id": correlation_of(), "answer": {f"field_{number}": 1 for number in range(100)}})
    quiet_door.open()

    [sentence] = quiet_door.world.alarms
    assert "passed over" in sentence
    assert len(sentence) < 500
    assert (quiet_door.story.status, facts(quiet_door)) == ("waiting_event", [])
    assert quiet_door.says(event_id="msg_2").json["reception"] == "accepted"


def test_contradicting_early_events_are_seen_by_people(quiet_door: Door) -> None:
    """B12: the one that came first counts, whatever the ids are, and people are told before the wait is open."""
    quiet_door.says(SIGNED, "msg_9")
    quiet_door.world.clock.advance(timedelta(seconds=1))
    quiet_door.says(NOT_SIGNED, "msg_1")
    assert len(quiet_door.world.alarms) == 1
    quiet_door.open()
    assert facts(quiet_door) == [("papers", True)]


def test_no_source_crowds_out_another(quiet_door: Door) -> None:
    """What one source says about a wait, however often, does not keep another's answer from it."""
    quiet_door.secrets.stored[("acme", "courier")] = quiet_door.secrets.stored[("acme", "partner")]
    for number in range(30):
        quiet_door.says(event_id=f"a_{number:02}", by=Sender(source="courier", secret=SECRET))
    quiet_door.says(event_id="z")
    quiet_door.open()
    assert facts(quiet_door) == [("papers", True)]


def calls_of_an_early_delivery() -> int:
    """How many calls a delivery makes whose wait is not there yet."""
    door = Door()
    door.says()
    return len(door.calls.names)


@pytest.mark.parametrize("at", range(1, calls_of_an_early_delivery() + 1))
def test_an_event_that_crosses_the_opening_of_its_wait_is_not_lost(at: int) -> None:
    """B05: the task starts between any two calls of the delivery; one of the two sees the other."""
    calls = Calls()
    door = Door(calls=calls)

    def step_in(_: str) -> None:
        if len(calls.names) == at:
            calls.step_in = lambda _: None
            door.open()

    calls.step_in = step_in
    answer = door.says()
    door.story.machine.settle()

    assert answer.status in {200, 202}
    assert (door.story.status, facts(door)) == ("completed", [("papers", True)])
