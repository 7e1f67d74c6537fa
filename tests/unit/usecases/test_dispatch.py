"""The last look before anything leaves the system: the same question at every wake-up and right before the call."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from shared.domain.action import ActionStatus, EffectClass
from shared.domain.approval import ApprovalStatus
from shared.domain.authority import Operation, Question, Ruling
from shared.domain.errors import EngineError, GateFailed, InvariantBroken
from shared.ports.tool_gateway import ToolOperation
from tests.fakes.downstream import Downstream, Kind, Mishap
from tests.fakes.errand import Do, a_rule, a_tool, run_errand
from tests.fakes.story import CLERK, MANAGER, SECOND_MANAGER, Story, by_role

LATE = timedelta(days=8)


def approved_and(mishap: Callable[[Story], None]) -> Story:
    """Approve a refund, let the wake-up commit the intent, and let something happen before the action is performed."""
    story = Story()
    story.start()
    story.calls.step_in = _once(story, mishap)
    story.click()
    story.machine.settle(patience=False)
    return story


def _once(story: Story, mishap: Callable[[Story], None]) -> Callable[[str], None]:
    struck: list[str] = []

    def step_in(call: str) -> None:
        at_work = story.machine.current
        if call == "task_records.load" and at_work is not None and at_work.function == "perform" and not struck:
            struck.append(call)
            mishap(story)

    return step_in


def cancel(story: Story) -> None:
    """The owner asks to stop."""
    story.ask_to_cancel()


def disable_owner(story: Story) -> None:
    """The owner loses every right."""
    story.world.authority.disable(CLERK)


def disable_approver(story: Story) -> None:
    """The approver loses every right."""
    story.world.authority.disable(MANAGER)


def deny(operation: Operation) -> Callable[[Story], None]:
    """Make the mishap that a policy changes."""

    def mishap(story: Story) -> None:
        def rule(question: Question) -> Ruling:
            if question.operation is operation:
                return Ruling(allowed=False, reason="the limit was lowered")
            return by_role(question)

        story.world.policies.rule = rule

    return mishap


def let_pass(time: timedelta) -> Callable[[Story], None]:
    """Make the mishap that time passes."""

    def mishap(story: Story) -> None:
        story.world.clock.advance(time)

    return mishap


@pytest.mark.parametrize(
    ("mishap", "status"),
    [
        (cancel, "canceled"),
        (disable_owner, "needs_review"),
        (deny(Operation.DISPATCH), "needs_review"),
        (disable_approver, "waiting_approval"),
        (deny(Operation.DECIDE), "waiting_approval"),
        (let_pass(LATE), "waiting_approval"),
        (let_pass(timedelta(days=31)), "expired"),
    ],
    ids=["canceled", "owner gone", "owner may not", "approver gone", "limit lowered", "approval over", "task over"],
)
def test_what_no_longer_holds_is_not_sent(mishap: Callable[[Story], None], status: str) -> None:
    """B06, A3 and I4: whatever changed after the decision, nothing leaves, and the task is in a known place."""
    story = approved_and(mishap)

    assert story.refunds == []
    assert story.bank.requests == []
    assert story.status == status
    assert all(row.status == "void" for row in story.rows)


def test_what_was_withdrawn_is_asked_for_again() -> None:
    """B06: the approval that no longer holds is void; another person can give a new one, and it pays once."""
    story = approved_and(disable_approver)
    assert [a.status for a in story.task.security.approvals] == [ApprovalStatus.VOID, ApprovalStatus.OPEN]

    story.decide(by=SECOND_MANAGER)

    assert story.status == "completed"
    assert len(story.refunds) == 1


@pytest.mark.parametrize("scope", ["all", "tenant#acme", "workflow#refund", "tool#issue_refund"])
def test_a_freeze_stops_what_has_not_left(scope: str) -> None:
    """A6: within one step nothing goes on, the machine rests, and lifting the freeze resumes the task."""
    story = approved_and(lambda s: s.world.authority.freezes.update({scope: "incident 7"}))

    assert story.refunds == []
    assert story.states[-1] == "await_retry"
    assert len(story.states) < 8

    story.world.authority.freezes.clear()
    story.machine.settle()

    assert story.status == "completed"
    assert len(story.refunds) == 1


@pytest.mark.parametrize("scope", ["tenant#globex", "workflow#payment", "tool#send_letter"])
def test_a_freeze_of_something_else_stops_nothing(scope: str) -> None:
    """A6: a freeze reaches as far as it says."""
    story = approved_and(lambda s: s.world.authority.freezes.update({scope: "incident 7"}))

    assert story.status == "completed"


def test_rights_that_cannot_be_read_allow_nothing() -> None:
    """B06: fail closed: no effect, the task waits where it is, and goes on when the store answers."""
    story = approved_and(lambda s: setattr(s.world.authority, "unreadable", True))
    assert story.refunds == []
    assert story.states[-1] == "await_retry"

    story.world.authority.unreadable = False
    story.machine.settle()

    assert story.status == "completed"


@pytest.mark.parametrize(
    "mishap",
    [cancel, disable_owner, deny(Operation.DISPATCH), disable_approver, deny(Operation.DECIDE), let_pass(LATE)],
    ids=["canceled", "owner gone", "owner may not", "approver gone", "limit lowered", "approval over"],
)
@pytest.mark.parametrize("happened", [True, False])
def test_what_may_have_left_is_found_out_all_the_same(*, happened: bool, mishap: Callable[[Story], None]) -> None:
    """I3 and I4: asking what happened needs nobody's permission; sending again does."""
    story = Story()
    story.start()
    story.bank.mishaps.append(Mishap.RECORDED_NO_ANSWER if happened else Mishap.LOST)
    story.click()
    story.machine.settle(patience=False)
    assert story.status == "outcome_unknown"

    mishap(story)
    story.machine.settle()

    asked = [operation for operation, _ in story.bank.requests]
    assert asked == [ToolOperation.PERFORM, ToolOperation.LOOKUP]
    assert len(story.refunds) == happened
    if happened:
        assert story.status in {"completed", "canceled"}
        assert story.rows[0].status == "done"
    else:
        assert story.status in {"canceled", "needs_review", "waiting_approval"}


def test_a_key_is_not_sent_again_without_a_right_to_send() -> None:
    """B06: the provider honours keys and cannot be asked; the approval is over: a person decides, nothing is sent."""
    tool = a_tool("send_parcel", can_look_up=False)
    downstream = Downstream(kind=Kind.NEITHER)
    downstream.mishaps.append(Mishap.LOST)
    story = run_errand(Do(tool=tool, rule=a_rule()), downstreams={"send_parcel": downstream})
    story.click()
    story.machine.settle(patience=False)

    story.later(days=8)

    assert story.status == "needs_review"
    assert len(downstream.requests) == 1


def test_the_owner_is_asked_about_the_very_action() -> None:
    """A3: the policies hear who asks, for what, with the amounts that are about to leave."""
    story = Story()
    story.start()
    story.decide()

    asked = [q for q in story.world.policies.questions if q.operation is Operation.DISPATCH]

    assert asked
    assert {q.principal.ref for q in asked} == {CLERK}
    assert all(q.attributes["amount_minor"] == 45_000 for q in asked)


def test_an_approval_that_was_used_long_ago_needs_nobody_s_right() -> None:
    """B06: whoever approved an earlier action that is done may leave the company; the task goes on."""
    story = run_errand(Do(tool=a_tool("pay_1"), rule=a_rule()), Do(tool=a_tool("pay_2"), rule=a_rule()))
    story.decide()
    story.world.authority.disable(MANAGER)

    story.decide(by=SECOND_MANAGER)

    assert story.status == "completed"


@pytest.mark.parametrize("operation", ["", "   ", "acme", "acme:tsk_1:v1:1:issue_refund", "globex:x:v1:1:issue_refund"])
def test_an_operation_that_the_record_does_not_name_is_refused(operation: str) -> None:
    """B27: without the right key nothing is done; there is no unprotected way."""
    story = Story()
    story.start()

    for _ in range(2):
        with pytest.raises(GateFailed):
            story.perform(operation)

    assert story.bank.requests == []


def test_a_settled_operation_is_not_performed_again() -> None:
    """B25: whoever comes with the key of a finished action is refused, as often as it likes."""
    story = Story()
    story.start()
    story.decide()

    with pytest.raises(GateFailed):
        story.perform(story.rows[0].operation)

    assert len(story.bank.requests) == 1


def test_a_parked_task_performs_nothing() -> None:
    """B25: while a task waits for a person, a stale machine cannot make it act."""
    story = Story()
    story.start()
    story.bank.mishaps.extend([Mishap.NOT_SENT] * 3)
    story.decide()
    assert story.status == "needs_review"

    with pytest.raises(GateFailed):
        story.perform(story.rows[0].operation)

    assert story.refunds == []


def test_arguments_come_from_the_sealed_record_alone() -> None:
    """B03: a ledger row that was tampered with is noticed and nothing is sent."""
    story = Story()
    story.start()
    story.bank.mishaps.append(Mishap.NOT_SENT)
    story.click()
    story.machine.settle(patience=False)
    where, row = next(iter(story.world.actions.items()))
    story.world.actions[where] = row.model_copy(update={"digest": "0" * 64})

    with pytest.raises(InvariantBroken):
        story.perform(row.operation)
    story.machine.settle()

    assert story.status == "needs_review"
    assert story.refunds == []


def test_a_row_that_is_gone_is_noticed() -> None:
    """R7: if the ledger's row is lost, nobody guesses: the task goes to a person."""
    story = Story()
    story.start()
    story.bank.mishaps.append(Mishap.RECORDED_NO_ANSWER)
    story.click()
    story.machine.settle(patience=False)
    story.world.actions.clear()

    story.machine.settle()

    assert story.status == "needs_review"
    assert len(story.refunds) == 1


def test_a_read_may_be_repeated_whatever_became_of_the_approval() -> None:
    """C-C: a read changes nothing, so not knowing is answered by reading again."""
    tool = a_tool("read_price", effect=EffectClass.READ)
    downstream = Downstream()
    downstream.mishaps.append(Mishap.LOST)

    story = run_errand(Do(tool=tool), downstreams={"read_price": downstream})

    assert story.status == "completed"
    assert story.rows[0].status is ActionStatus.DONE
    assert len(downstream.requests) == 2


def test_every_refusal_is_one_of_ours() -> None:
    """Whatever stands in the way, the machine gets an error that it knows."""
    story = approved_and(disable_owner)

    with pytest.raises(EngineError):
        story.perform(story.rows[0].operation)
