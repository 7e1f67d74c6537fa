"""Deciding: a person's exact word, bound to the version they saw, once, while they still may."""

from dataclasses import replace
from datetime import timedelta

import pytest

from shared.domain.action import EffectClass
from shared.domain.approval import ApprovalRule, ApprovalStatus, DecisionWord
from shared.domain.authority import Operation, Question, Ruling
from shared.domain.errors import DecisionClosed, NotAuthorised, StaleApproval, TaskClosed, TaskNotFound
from shared.domain.workflow import AskModel, Finish, PerformAction, Step, TaskView, Workflow
from shared.usecases.decide_approval import DecideApproval, decide_approval
from shared.workflows.registry import discover
from tests.fakes.calls import Calls, Fault, When
from tests.fakes.downstream import Downstream
from tests.fakes.errand import Do, a_rule, a_tool, run_errand
from tests.fakes.model import proposes
from tests.fakes.story import CLERK, INTERN, MANAGER, REFUND, SECOND_MANAGER, Story, by_role

PAY = a_tool("pay")


def a_refund(calls: Calls | None = None) -> Story:
    """Start a refund that waits for an approval."""
    story = Story(calls=calls)
    story.start()
    return story


@pytest.mark.parametrize("word", list(DecisionWord))
def test_the_same_word_again_answers_with_what_is(word: DecisionWord) -> None:
    """B12 and R2: the second click, and the one a week later, change nothing and get the current state."""
    story = a_refund()
    approval = story.open_approval
    story.decide(word)
    after = story.task

    again = story.click(word, approval_id=approval, request_version=1)
    story.later(days=9)
    late = story.click(word, approval_id=approval, request_version=1)

    assert again.status == late.status == story.status
    assert story.task == after


@pytest.mark.parametrize(("first", "second"), [("approve", "reject"), ("reject", "approve")])
def test_the_other_word_comes_too_late(first: str, second: str) -> None:
    """B12: once decided it is decided; the caller is told so and nothing moves."""
    story = a_refund()
    approval = story.open_approval
    story.decide(DecisionWord(first))
    after = story.task

    with pytest.raises(DecisionClosed):
        story.click(DecisionWord(second), by=SECOND_MANAGER, approval_id=approval, request_version=1)

    assert story.task == after


@pytest.mark.parametrize("version", [0, 2, 7])
def test_a_word_about_another_version_moves_nothing(version: int) -> None:
    """R3: only the version that was seen can be decided."""
    story = a_refund()
    before = story.task
    command = DecideApproval(
        principal=story.person(MANAGER),
        task_id=story.key.task_id,
        approval_id=story.open_approval,
        word=DecisionWord.APPROVE,
        request_version=version,
    )

    with pytest.raises(StaleApproval):
        decide_approval(command, story.machine.api())

    assert story.task == before


def test_an_unknown_approval_is_not_found() -> None:
    """A2: an id that is not this task's opens nothing."""
    story = a_refund()

    with pytest.raises(TaskNotFound):
        story.click(approval_id="apr_" + "0" * 32)


def test_whoever_asked_may_not_approve() -> None:
    """A7: the requester is excluded by the engine, whatever role they hold and whatever a policy permits."""
    story = a_refund()
    story.world.authority.grant(CLERK, tenant="acme", roles={"refund_clerk", "refund_approver"})
    story.world.policies.rule = None

    with pytest.raises(NotAuthorised):
        story.click(by=CLERK)

    assert story.status == "waiting_approval"


def test_two_people_are_needed_where_the_rule_says_two() -> None:
    """A7: one person, however often, is one; the second one opens the way."""
    story = run_errand(Do(tool=PAY, rule=a_rule(quorum=2)))

    story.decide()
    story.decide()
    assert (story.status, story.world.downstreams["pay"].effects) == ("waiting_approval", [])

    story.decide(by=SECOND_MANAGER)
    assert story.status == "completed"


def test_the_second_of_two_people_may_say_no() -> None:
    """A7: until all have agreed, one doubt ends it."""
    story = run_errand(Do(tool=PAY, rule=a_rule(quorum=2)))
    story.decide()

    story.decide(DecisionWord.REJECT, by=SECOND_MANAGER)

    assert story.status == "failed"
    assert story.world.downstreams["pay"].effects == []


def test_the_first_approver_s_lost_right_counts_when_the_second_decides() -> None:
    """B06: two people are needed at the moment of use, not at their clicks."""
    story = run_errand(Do(tool=PAY, rule=a_rule(quorum=2)))
    story.decide()
    story.world.authority.disable(MANAGER)

    story.decide(by=SECOND_MANAGER)

    assert story.status == "waiting_approval"
    assert story.world.downstreams["pay"].effects == []


def test_a_removed_approver_is_refused_at_the_click() -> None:
    """B06: removed on day 2, clicks on day 3 with a token that still works: refused, and the task waits on."""
    story = a_refund()
    token = story.person(MANAGER)
    story.later(days=2)
    story.world.authority.grant(MANAGER, tenant="acme", roles={"viewer"})

    with pytest.raises(NotAuthorised):
        story.click(by=MANAGER)

    assert token.roles == frozenset({"refund_approver"})
    assert story.status == "waiting_approval"


def test_an_approver_removed_before_the_effect_no_longer_counts() -> None:
    """B06 and R4: approved on day 1, removed on day 2, due on day 3: no effect, asked again."""
    story = a_refund()
    story.click()
    story.world.authority.disable(MANAGER)

    story.machine.settle()

    assert story.refunds == []
    assert story.status == "waiting_approval"


def test_a_lowered_limit_counts_before_the_effect() -> None:
    """B06: the policy's limit went down between the click and the effect: no effect, asked again."""
    story = a_refund()
    story.click()

    def lowered(question: Question) -> Ruling:
        if question.operation is Operation.DECIDE and question.attributes["amount_minor"] != 0:
            return Ruling(allowed=False, reason="above the limit")
        return by_role(question)

    story.world.policies.rule = lowered
    story.machine.settle()

    assert story.refunds == []
    assert story.status == "waiting_approval"


def test_a_click_after_the_deadline_decides_nothing() -> None:
    """B12: at the deadline the time is over, also if no timer has fired yet."""
    story = a_refund()
    story.world.clock.advance(timedelta(days=7))
    before = story.task

    with pytest.raises(DecisionClosed):
        story.click()

    assert story.task == before
    story.machine.settle()
    assert story.refunds == []


def test_a_click_in_the_last_millisecond_counts() -> None:
    """B12: until the deadline the click is in time; its effect still needs an approval that holds."""
    story = a_refund()
    story.world.clock.advance(timedelta(days=7) - timedelta(milliseconds=1))

    story.decide()

    assert story.status in {"completed", "waiting_approval"}
    assert len(story.refunds) == (story.status == "completed")


def test_a_decision_on_a_closed_task_is_too_late() -> None:
    """B17: an approval of a canceled task is void."""
    story = a_refund()
    approval = story.open_approval
    story.cancel()

    with pytest.raises((DecisionClosed, TaskClosed)):
        story.click(approval_id=approval)

    assert story.status == "canceled"
    assert story.refunds == []


def test_a_recent_log_in_can_be_demanded() -> None:
    """Step-up: a decision about much money asks for a log-in within the last minutes."""
    rule = a_rule().model_copy(update={"authenticated_within_seconds": 300})
    story = run_errand(Do(tool=PAY, rule=rule))
    approval = story.open_approval

    def click(seconds_ago: int | None) -> None:
        person = story.person(MANAGER).model_copy(update={"authenticated_seconds_ago": seconds_ago})
        command = DecideApproval(
            principal=person,
            task_id=story.key.task_id,
            approval_id=approval,
            word=DecisionWord.APPROVE,
            request_version=1,
        )
        decide_approval(command, story.machine.api())

    for too_long_ago in (None, 301):
        with pytest.raises(NotAuthorised, match="log in again"):
            click(too_long_ago)
    click(300)

    assert story.status != "waiting_approval"


def test_a_changed_policy_asks_again_instead_of_approving() -> None:
    """R5: the click meets another policy version than the request did: it is refused and asked anew."""
    story = a_refund()
    first = story.open_approval
    refund = discover()["refund"]
    story.machine.workflows["refund"] = _renewed(refund, policies=refund.policies + "\n// stricter")

    with pytest.raises(StaleApproval):
        story.click()
    assert story.open_approval != first
    assert story.status == "waiting_approval"

    story.decide()
    assert story.status == "completed"


def test_a_new_workflow_version_asks_again_instead_of_approving() -> None:
    """R5: nobody's approval is taken and then thrown away: it is asked for under the version in force."""
    story = a_refund()
    story.machine.workflows["refund"] = _renewed(discover()["refund"], version=2)

    with pytest.raises(StaleApproval):
        story.click()
    story.decide()

    assert story.status == "completed"
    assert len(story.refunds) == 1


def _renewed(workflow: Workflow, **fields: object) -> Workflow:
    return replace(workflow, **fields)  # type: ignore[arg-type]


def test_an_approved_action_runs_once_however_often_the_model_repeats_itself() -> None:
    """B25: the same proposal with the same and with another id, duplicate clicks, later wake-ups: one payment."""
    story = run_errand(Do(tool=PAY, rule=a_rule(), proposed=True), workflow=_forgetful)
    approval = story.open_approval
    story.world.model.always = proposes("pay", {"subject": "S-1", "memo": None})

    story.decide()
    story.click(approval_id=approval)
    story.later(days=1)
    story.wake()

    assert len(story.world.downstreams["pay"].effects) == 1
    assert story.status == "needs_review"
    assert "consumed" in story.task.business.because


def _forgetful(workflow: Workflow) -> Workflow:
    """Make the workflow ask the model for the same payment again although it has happened."""

    def next_step(view: TaskView) -> Step:
        step = workflow.next_step(view)
        if isinstance(step, Finish):
            return AskModel(stage=view.stage, record={"subject": "S-1", "memo": None})
        return step

    return replace(workflow, next_step=next_step)


def test_an_approval_of_one_action_opens_no_other() -> None:
    """B03: code that brings the wrong approval to an action is stopped before anything is sent."""
    other = a_tool("pay_more")

    def mixed_up(workflow: Workflow) -> Workflow:
        def next_step(view: TaskView) -> Step:
            step = workflow.next_step(view)
            if isinstance(step, PerformAction):
                return replace(step, action=other.normalise(view.request.model_dump()))
            return step

        return replace(workflow, next_step=next_step)

    story = run_errand(Do(tool=PAY, rule=a_rule()), undos=[other], workflow=mixed_up)

    story.decide()

    assert story.status == "needs_review"
    assert all(downstream.effects == [] for downstream in story.world.downstreams.values())


def test_an_irreversible_effect_never_leaves_without_an_approval() -> None:
    """An effect that nobody can take back is not performed on code's word alone; a workflow that tries is stopped."""
    story = run_errand(Do(tool=a_tool("wire_money", effect=EffectClass.IRREVERSIBLE_WRITE)))

    assert story.status == "needs_review"
    assert story.world.downstreams["wire_money"].effects == []


def test_approving_repeats_nothing_that_was_done_before() -> None:
    """B24: the mail went out before the pause; approving performs the payment and nothing else."""
    story = run_errand(Do(tool=a_tool("send_mail")), Do(tool=PAY, rule=a_rule(), proposed=True))
    assert len(story.world.downstreams["send_mail"].effects) == 1

    story.decide()

    assert story.status == "completed"
    assert [len(d.requests) for d in story.world.downstreams.values() if d.requests] == [1, 1]
    assert len(story.world.model.windows) == 1


def test_a_decision_survives_the_loss_of_its_answer() -> None:
    """B11: our own commit whose reply was lost is not somebody else's: the click again answers with what is."""
    story = a_refund(Calls(Fault(when=When.DROP_REPLY, at=2, name="task_records.commit")))
    approval = story.open_approval

    with pytest.raises(Exception, match="answer was lost"):
        story.click()
    again = story.click(approval_id=approval, request_version=1)
    story.machine.settle()

    assert again.status == "ready"
    assert story.status == "completed"
    assert len(story.refunds) == 1
    assert story.published.count("approval.decided") == 1


def test_a_decision_is_published_once() -> None:
    """R2: one request and one decision on the bus, however often people click."""
    story = a_refund()
    approval = story.open_approval
    for _ in range(3):
        story.decide(approval_id=approval, request_version=1)

    assert story.published.count("approval.requested") == 1
    assert story.published.count("approval.decided") == 1


def test_a_lost_race_is_decided_again_on_fresh_facts() -> None:
    """B17: cancel and approve in the same second: one wins, and the loser hears how it really stands."""
    story = a_refund()
    approval = story.open_approval
    raced: list[str] = []

    def cancel_first(call: str) -> None:
        if call == "task_records.commit" and not raced:
            raced.append(call)
            story.ask_to_cancel()

    story.calls.step_in = cancel_first
    with pytest.raises((DecisionClosed, TaskClosed)):
        story.click(approval_id=approval)
    story.machine.settle()

    assert story.status == "canceled"
    assert story.refunds == []


def test_an_intern_sees_and_cannot_decide() -> None:
    """L3: reading is one right, deciding another."""
    story = a_refund()

    assert story.read(by=INTERN).status == "waiting_approval"
    with pytest.raises(NotAuthorised):
        story.click(by=INTERN)


def test_the_record_names_who_decided() -> None:
    """The decision stands in the sealed record with its principal, word and instant."""
    story = a_refund()

    story.click()

    (approval,) = story.task.security.approvals
    assert approval.status is ApprovalStatus.GRANTED
    assert [(d.principal, d.word, d.decided_at) for d in approval.decisions] == [
        (MANAGER, DecisionWord.APPROVE, story.world.clock.now())
    ]


def test_a_rule_can_let_the_requester_decide() -> None:
    """Where a workflow says so, whoever asked may also decide; the default is that they may not."""
    rule: ApprovalRule = a_rule(role="refund_clerk").model_copy(update={"requester_excluded": False})
    story = run_errand(Do(tool=PAY, rule=rule))

    story.decide(by=CLERK)

    assert story.status == "completed"


def test_a_decision_needs_no_second_answer_from_the_model() -> None:
    """B03: what was approved runs from the record; the model's new words cannot change it."""
    story = a_refund()
    story.world.model.always = proposes("issue_refund", REFUND | {"amount_minor": 820_000})

    story.decide()

    assert story.refunds == []
    assert story.status == "needs_review"


def test_a_downstream_is_only_reached_through_the_ledger() -> None:
    """Every effect of a whole task has a row under the very key that the provider saw."""
    story = run_errand(Do(tool=PAY, rule=a_rule()), downstreams={"pay": Downstream()})
    story.decide()

    assert [effect.key for effect in story.world.downstreams["pay"].effects] == [row.operation for row in story.rows]
