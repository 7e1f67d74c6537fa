"""No wake-up is lost and none counts twice: tokens, messages, and two workers at once."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest

from functions.wake.handler import WakeInput
from shared.domain.approval import DecisionWord
from shared.domain.errors import EngineError
from shared.usecases.engine import OpenWaitDeps
from shared.usecases.open_wait import OpenWait, open_wait
from tests.fakes.calls import Calls, Fault, Killed, When
from tests.fakes.story import SECOND_MANAGER, Story


def a_refund(calls: Calls | None = None) -> Story:
    """Start a refund that waits for an approval."""
    story = Story(calls=calls)
    story.start()
    return story


def stepping_in(story: Story, at: str, act: Callable[[], object], *, number: int = 1) -> list[str]:
    """Let somebody act right before the `number`-th call of a name from now on."""
    seen: list[str] = []

    def step_in(call: str) -> None:
        if call == at:
            seen.append(call)
            if len(seen) == number:
                act()

    story.calls.step_in = step_in
    return seen


def ended(story: Story) -> None:
    """Check that the one legal end was reached, once."""
    assert story.status == "completed"
    assert len(story.refunds) == 1
    assert story.published.count("task.closed") == 1


@pytest.mark.parametrize("call", ["token_store.put", "wait_store.get"])
def test_a_decision_before_the_token_is_not_lost(call: str) -> None:
    """R2: the approval comes before the machine has stored its token, or between token and look: it goes on."""
    story = Story()
    stepping_in(story, call, story.click)
    story.start()

    ended(story)


@pytest.mark.parametrize("when", [When.KILL_BEFORE, When.KILL_AFTER, When.DROP_REPLY, When.LOSE_REQUEST])
@pytest.mark.parametrize(
    "call", ["token_store.get", "executions.answer", "outbox.remove", "event_bus.publish", "executions.start"]
)
def test_a_message_is_delivered_until_it_is(call: str, when: When) -> None:
    """R2: whatever dies in the delivery, the row comes again, and a second answer to a token is harmless."""
    story = a_refund(Calls(Fault(when=when, at=1, name=call)))

    story.decide()

    ended(story)
    assert story.world.undelivered() == ()


@pytest.mark.parametrize("when", [When.KILL_BEFORE, When.KILL_AFTER, When.DROP_REPLY])
@pytest.mark.parametrize("call", ["token_store.put", "wait_store.get"])
def test_a_wait_whose_token_was_lost_is_entered_again(call: str, when: When) -> None:
    """The function dies before, while or after it stores the token: the state fails, and the machine waits again."""
    story = a_refund(Calls(Fault(when=when, at=1, name=call)))

    story.decide()

    ended(story)


def test_a_late_answer_to_an_old_wait_wakes_nobody() -> None:
    """R2: the first wait's answer is delivered after the second wait has opened: it is another token's."""
    story = a_refund()
    rows = list(story.world.undelivered())
    story.amend_quietly(amount_minor=90_000)
    late = [row for row in story.world.undelivered() if row not in rows]
    story.machine.settle()
    states = list(story.states)

    story.world.outbox.update({(row.key.key, row.version, row.part): row for row in late})
    story.machine.settle()

    assert story.status == "waiting_approval"
    assert len(story.states) <= len(states) + 1


def test_every_message_twice_moves_the_task_once() -> None:
    """R2: all that was ever staged is delivered again, in any order, during the task and after it."""
    story = a_refund()
    staged = list(story.world.outbox.values())
    stepping_in(story, "outbox.remove", lambda: staged.extend(story.world.undelivered()), number=1)
    story.decide()

    for row in [*reversed(staged), *staged]:
        story.world.outbox[row.key.key, row.version, row.part] = row
        story.machine.settle()

    assert story.status == "completed"
    assert len(story.refunds) == 1


def test_an_answer_without_a_wait_is_given_at_once() -> None:
    """A machine that asks for a wait nobody knows is not left hanging."""
    story = a_refund()
    p = story.machine.process()
    deps = OpenWaitDeps(tokens=p.tokens, waits=p.waits, tasks=p.records, executions=p.executions, clock=p.clock)
    token = story.world.issue_token()

    answered = open_wait(
        OpenWait(key=story.key, wait_id="wai_unknown", correlation_id="wai_unknown", run=1, hops=1, token=token), deps
    )

    assert answered
    assert token not in story.world.machines.waiting


def test_another_tenant_s_wait_is_not_entered() -> None:
    """A2: a correlation id of another task leads nowhere: the token is answered and nothing waits on it."""
    story = a_refund()
    (pending,) = story.task.execution.waits
    p = story.machine.process()
    deps = OpenWaitDeps(tokens=p.tokens, waits=p.waits, tasks=p.records, executions=p.executions, clock=p.clock)
    other = story.key.model_copy(update={"tenant": "globex"})
    token = story.world.issue_token()

    command = OpenWait(
        key=other,
        wait_id=pending.wait_id,
        correlation_id=pending.correlation_id,
        run=1,
        hops=1,
        token=token,
    )

    assert open_wait(command, deps)


@pytest.mark.parametrize("number", range(1, 12, 2))
@pytest.mark.parametrize(
    "call", ["task_records.load", "authority.read", "task_records.commit", "leases.acquire", "action_ledger.get"]
)
def test_two_workers_wake_the_same_task(call: str, number: int) -> None:
    """R8: a second worker wakes the task right before any call of the first: one of them moves it, once."""
    story = a_refund()

    def rival() -> None:
        with suppress(EngineError):
            story.wake()

    stepping_in(story, call, rival, number=number)
    story.decide()

    ended(story)
    assert all(run.ended == "completed" for run in story.machine.runs.values())


@pytest.mark.parametrize("number", range(1, 6))
def test_a_second_machine_of_the_same_run_does_no_harm(number: int) -> None:
    """B61: the same execution is played twice, out of step: one payment, one end, nothing overwritten."""
    story = a_refund()
    stepping_in(story, "tool_gateway.perform", lambda: None)
    story.click()
    again = Story.__new__(Story)
    again.__dict__ |= story.__dict__
    again.machine = type(story.machine)(story.world, story.calls)
    stepping_in(story, "task_records.load", again.machine.settle, number=number)

    story.machine.settle()
    again.machine.settle()

    assert story.status == "completed"
    assert len(story.refunds) == 1


def test_a_run_that_was_replaced_stops_without_a_trace() -> None:
    """B61: an older run wakes late and finds that another one owns the task."""
    story = a_refund()
    story.wake(hops=10_000)
    before = story.task

    assert story.wake(run=1).next == "superseded"
    assert story.task == before


def test_two_approvers_click_in_the_same_second() -> None:
    """R8: one decision is recorded; the other approver hears that it is decided; one payment follows."""
    story = a_refund()
    approval = story.open_approval
    others: list[object] = []

    def other_clicks() -> None:
        try:
            others.append(story.click(DecisionWord.APPROVE, by=SECOND_MANAGER, approval_id=approval).status)
        except EngineError as error:
            others.append(error.code)

    stepping_in(story, "task_records.commit", other_clicks)
    with pytest.raises(EngineError) as refused:
        story.click()
    story.machine.settle()

    assert others == ["ready"]
    assert refused.value.code == "decision_closed"
    ended(story)


def test_the_state_s_own_timeout_is_a_net() -> None:
    """B15: no timer fires and nobody answers: the state wakes the task after its deadline, and the task ends."""
    story = a_refund()

    story.later(days=7)
    assert story.status == "waiting_approval"
    story.later(minutes=6)

    assert story.status == "expired"


def test_an_early_wake_up_ends_nothing() -> None:
    """B67: whoever wakes a waiting task early finds it waiting."""
    story = a_refund()
    story.world.clock.advance(timedelta(days=6, hours=23))

    assert story.wake().next == "await_approval"
    assert story.status == "waiting_approval"


@pytest.mark.parametrize("at", range(1, 40, 2))
def test_a_worker_killed_at_any_call_changes_nothing_in_the_end(at: int) -> None:
    """R1 and I2: whichever call the worker dies at, the task comes to the same end with the same one payment."""
    story = Story()
    story.start()
    story.calls.plan(Fault(when=When.KILL_AFTER, at=len(story.calls.names) + at))

    try:
        story.decide()
    except Killed:
        story.decide(approval_id=story.task.security.approvals[0].approval_id, request_version=1)

    ended(story)


@pytest.mark.parametrize(
    ("last", "version"),
    [({}, 7), ({"next": "propose"}, 7), ({"next": "await_approval"}, 8), ({"next": "needs_review"}, 8)],
    ids=["first", "turn", "approval", "review"],
)
def test_the_machine_says_which_version_to_read_first(last: dict[str, str], version: int) -> None:
    """After a wait one commit has come between, so that version is read together with the head, in one call."""
    document = {"tenant": "acme", "task_id": f"tsk_{1:032x}", "run": 1, "version": 7, "execution": "e", **last}

    trigger = WakeInput.model_validate(document).trigger()

    assert trigger.likely_version == version
    assert trigger.version_hint == 7


def test_a_wait_that_ended_by_several_commits_is_read_as_well() -> None:
    """A wrong guess costs a read: two people decided one after the other, and a reminder came between."""
    story = a_refund()
    before = story.task.version
    story.amend(amount_minor=70_000)
    story.decide()

    assert story.task.version > before + 1
    ended(story)


def test_an_overdue_wait_that_is_gone_is_quarantined() -> None:
    """R7, B19: it can never be ended, so the machine would come back for ever; an operator is told instead."""
    story = a_refund()
    story.world.waits.clear()
    story.world.clock.advance(timedelta(days=8))

    assert story.wake().next == "needs_review"
    story.machine.settle()

    assert story.status == "quarantined"
