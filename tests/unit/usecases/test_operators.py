"""What operators may do about a task in review, about an effect that nobody knows of, and about a wait."""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest

from shared.domain.action import ActionStatus, EffectClass, Settlement
from shared.domain.approval import DecisionWord
from shared.domain.change import stamps_of
from shared.domain.errors import (
    DecisionClosed,
    GateFailed,
    IllegalTransition,
    InvalidRequest,
    LeaseHeld,
    LeaseLost,
    NotAuthorised,
    OutcomeUnknown,
    StaleCommand,
    TaskClosed,
)
from shared.domain.identity import PrincipalRef
from shared.domain.recovery import Finding, mend
from shared.domain.wait import OnDeadline, Rung, WaitRule
from shared.domain.workflow import UndoApproval
from shared.usecases.stored_task import commit_change, load_task
from tests.fakes.calls import Fault, Killed, When
from tests.fakes.downstream import Downstream, Kind, Mishap
from tests.fakes.errand import DAY_SECONDS, Do, WaitFor, a_ladder, a_rule, a_tool, an_undo, run_errand
from tests.fakes.model import proposes
from tests.fakes.operating import OPERATOR, escalate, retry, settle, with_operators
from tests.fakes.story import CLERK, INTERN, MANAGER, SECOND_MANAGER, Story

PARCEL: Final = a_tool("send_parcel")
LETTER: Final = a_tool("send_letter")
HOLD: Final = a_tool("book_hold", undo="drop_hold")
GUARDED_HOLD: Final = a_tool("book_hold", undo="drop_hold", undo_approval=UndoApproval(rule=a_rule(), wait=a_ladder()))
DROP: Final = an_undo("drop_hold")
NONSENSE: Final = proposes("send_parcel", {"subject": "somebody else's"})


def failing(*mishaps: Mishap, kind: Kind = Kind.HONOURS_KEYS, unclear: int = 0) -> Downstream:
    """Make a downstream that these mishaps befall."""
    return Downstream(kind=kind, mishaps=deque(mishaps), lookups_unclear=unclear)


def in_doubt(
    *, kind: Kind = Kind.NEITHER, mishap: Mishap = Mishap.RECORDED_NO_ANSWER, after: tuple[Do, ...] = ()
) -> Story:
    """Bring an errand to where a parcel may have been sent and nobody can say so."""
    tool = a_tool("send_parcel", effect=EffectClass.REVERSIBLE_WRITE, can_look_up=kind is not Kind.NEITHER)
    unclear = 100 if kind is Kind.LOOKUP_ONLY else 0
    story = run_errand(
        Do(tool=tool, rule=a_rule()), *after, downstreams={"send_parcel": failing(mishap, kind=kind, unclear=unclear)}
    )
    story.decide()
    assert (story.status, story.rows[0].status) == ("needs_review", "outcome_unknown")
    return with_operators(story)


def sent(story: Story, tool: str = "send_parcel") -> int:
    """How often something really happened."""
    return len(story.world.downstreams[tool].effects)


def go_on(story: Story) -> Story:
    """Let the machine go on."""
    story.machine.settle()
    assert story.machine.errors == []
    return story


# --- retry ------------------------------------------------------------------------------------------------------------


def test_a_blocked_proposal_is_asked_for_again() -> None:
    """O2: the model is asked anew, the review has ended, and who did it and why stays in the record."""
    story = with_operators(run_errand(Do(tool=PARCEL, rule=a_rule(), proposed=True)))
    story.world.model.answers.append(NONSENSE)
    story.decide()
    assert (story.status, sent(story)) == ("needs_review", 0)

    answer = retry(story)
    retried = story.task
    go_on(story)

    assert answer.status == "ready"
    assert answer.waits == ()
    assert (story.status, sent(story)) == ("completed", 1)
    assert retried.business.because == "retried by operator-1: I looked at it"
    assert retried.execution.recent[-1].what == "retried by operator-1"
    assert "task.operated" in story.published


def test_what_the_provider_refused_is_asked_for_and_tried_anew() -> None:
    """O2: a definite refusal is forgotten; people approve again, and the new try has a key of its own."""
    story = with_operators(_refused())

    answer = retry(story)
    assert answer.status == "waiting_approval"
    go_on(story).decide()

    assert (story.status, sent(story)) == ("completed", 1)
    assert [row.status for row in story.rows] == ["failed", "done"]
    assert len({row.operation for row in story.rows}) == 2
    used = [a.used_by for a in story.task.security.approvals if a.status == "consumed"]
    assert used == [2]


def _refused() -> Story:
    """Bring a refund to where the bank has refused it."""
    story = Story()
    story.bank.mishaps.append(Mishap.REFUSED)
    story.start()
    story.decide()
    assert story.status == "needs_review"
    story.world.downstreams["send_parcel"] = story.bank
    return story


def test_an_undo_that_failed_is_tried_again() -> None:
    """B28: until it succeeds the task stays with a person; then it ends as failed, with nothing left standing."""
    story = with_operators(
        run_errand(
            Do(tool=HOLD),
            Do(tool=PARCEL, rule=a_rule()),
            undos=[DROP],
            downstreams={"drop_hold": failing(Mishap.REFUSED, Mishap.REFUSED)},
        )
    )
    story.decide(DecisionWord.REJECT)
    assert story.status == "needs_review"
    assert "book_hold (undo failed)" in story.task.business.because

    retry(story)
    go_on(story)
    assert story.status == "needs_review"
    assert "book_hold (undo failed)" in story.task.business.because

    retry(story)
    go_on(story)

    assert story.status == "failed"
    assert sent(story, "drop_hold") == 1
    assert [row.status for row in story.rows if row.undoes] == ["failed", "failed", "done"]


def test_an_undo_that_nobody_approved_in_time_is_asked_about_again() -> None:
    """B28: silence about an undo is no answer: a retry asks once more, and a no is not asked again."""
    story = with_operators(run_errand(Do(tool=GUARDED_HOLD), Do(tool=PARCEL, rule=a_rule()), undos=[DROP]))
    story.decide(DecisionWord.REJECT)
    story.later(days=8)
    assert story.status == "needs_review"

    assert retry(story).status == "waiting_approval"
    go_on(story).decide(DecisionWord.REJECT, by=SECOND_MANAGER)
    assert story.status == "needs_review"
    assert retry(story).status == "needs_review"

    assert sent(go_on(story), "drop_hold") == 0


@pytest.mark.parametrize("person", [True, False])
def test_an_unanswered_question_is_asked_again(person: bool) -> None:
    """O2: the same matter is waited for once more, under the name that the outside knows it by."""
    wait = WaitFor(name="papers", ladder=a_ladder(end=OnDeadline.REVIEW), person=person)
    story = with_operators(run_errand(wait))
    first = story.task.execution.waits[0]
    story.later(days=8)
    assert story.status == "needs_review"

    retry(story)
    go_on(story)

    again = story.task.execution.waits[0]
    assert story.status == ("waiting_input" if person else "waiting_event")
    assert again.wait_id != first.wait_id
    assert (again.correlation_id == first.correlation_id) is not person
    assert [fact.name for fact in story.task.business.facts] == []


def test_what_was_read_is_read_again() -> None:
    """O2: what a system of record said before somebody looked is old; it is asked anew."""
    lookup = a_tool("read_rate", effect=EffectClass.READ)
    story = with_operators(
        run_errand(Do(tool=lookup), Do(tool=PARCEL, rule=a_rule(), proposed=True), downstreams={"read_rate": failing()})
    )
    story.world.model.answers.append(NONSENSE)
    story.decide()
    assert story.status == "needs_review"
    reads = len(story.world.downstreams["read_rate"].requests)

    retry(story)
    go_on(story)

    assert len(story.world.downstreams["read_rate"].requests) == reads + 1
    assert story.status == "completed"


def test_an_outcome_that_stayed_unknown_is_asked_about_again() -> None:
    """O2, B63: the look-ups begin at none; nothing is sent a second time, and the provider's answer counts."""
    story = in_doubt(kind=Kind.LOOKUP_ONLY)
    assert story.rows[0].lookups == 5
    story.world.downstreams["send_parcel"].lookups_unclear = 0

    answer = retry(story)
    go_on(story)

    assert answer.status == "outcome_unknown"
    assert (story.status, sent(story)) == ("completed", 1)
    assert story.rows[0].lookups == 1


def test_what_nobody_can_be_asked_about_is_not_retried() -> None:
    """O2: trying again could only send it twice, so it is refused and points at settling."""
    story = in_doubt()
    before = story.task

    with pytest.raises(OutcomeUnknown, match="settle it"):
        retry(story)

    assert story.task == before
    assert sent(story) == 1


def test_a_canceled_task_in_doubt_goes_on_to_its_end() -> None:
    """B17: retrying does not undo the cancel; once the outcome is known the task ends as canceled."""
    story = in_doubt(kind=Kind.LOOKUP_ONLY)
    story.cancel()
    assert story.status == "needs_review"
    story.world.downstreams["send_parcel"].lookups_unclear = 0

    assert retry(story).status == "cancel_requested"
    go_on(story)

    assert story.status == "canceled"
    assert "send_parcel (what is sent is sent)" in str(story.task.business.outcome)


def test_a_task_whose_execution_was_taken_away_goes_on() -> None:
    """O2: whoever retries has looked; the hold is over."""
    story = with_operators(run_errand(Do(tool=PARCEL, rule=a_rule())))
    _hold(story)
    assert story.status == "needs_review"

    retry(story)
    go_on(story)

    assert story.task.execution.hold is None
    assert story.status == "waiting_approval"


def _hold(story: Story) -> None:
    tasks = story.machine.records(story.machine.process())
    loaded = load_task(story.key, tasks)
    workflow = story.machine.workflows["errand"]
    ground = tasks.ground(workflow, stamps_of(workflow, "model-1"))
    change = mend(loaded.task, ground, Finding(running=False, aborted_by_operator=True))
    assert change is not None
    commit_change(change, tasks, previous=loaded)
    story.machine.settle()


def test_only_a_task_in_review_is_retried() -> None:
    """O2: a task that goes on by itself, or waits for people, is left alone."""
    story = with_operators(run_errand(Do(tool=PARCEL, rule=a_rule())))
    before = story.task

    with pytest.raises(IllegalTransition, match="waiting_approval"):
        retry(story)

    assert story.task == before


@pytest.mark.parametrize("command", ["retry", "settle", "escalate"])
def test_a_command_about_another_version_does_nothing(command: str) -> None:
    """B78: the copy of a command that was carried out finds that the task has moved on."""
    story = in_doubt()
    before = story.task
    call: Callable[[], object] = {
        "retry": lambda: retry(story, version=before.version - 1),
        "settle": lambda: settle(story, "failed", version=before.version - 1),
        "escalate": lambda: escalate(story, version=before.version - 1),
    }[command]

    with pytest.raises(StaleCommand):
        call()

    assert story.task == before


@pytest.mark.parametrize("who", [INTERN, MANAGER, CLERK])
@pytest.mark.parametrize("command", ["retry", "settle", "escalate"])
def test_only_an_operator_gives_commands(command: str, who: PrincipalRef) -> None:
    """O2: viewers, approvers and the owner are refused, and nothing is changed."""
    story = in_doubt()
    before = (story.task, story.rows)
    call: Callable[[], object] = {
        "retry": lambda: retry(story, by=who),
        "settle": lambda: settle(story, "failed", by=who),
        "escalate": lambda: escalate(story, by=who),
    }[command]

    with pytest.raises(NotAuthorised):
        call()

    assert (story.task, story.rows) == before


def test_a_retry_that_dies_in_the_middle_can_be_repeated() -> None:
    """B63: the tries are back and the task is still in review; the repeat does the rest, once."""
    story = in_doubt(kind=Kind.LOOKUP_ONLY)
    story.world.downstreams["send_parcel"].lookups_unclear = 0
    story.calls.plan(Fault(when=When.KILL_AFTER, at=1, name="action_ledger.renew"))
    with pytest.raises(Killed):
        retry(story)
    assert story.status == "needs_review"

    retry(story)
    go_on(story)

    assert (story.status, sent(story)) == ("completed", 1)


# --- settle -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("outcome", "reference", "ends"), [("done", "P-77", "completed"), ("failed", None, "failed")])
def test_a_persons_word_settles_an_unknown_outcome(outcome: str, reference: str | None, ends: str) -> None:
    """O2: as their word, with evidence and the provider's reference, under the fence; then the task goes on."""
    story = in_doubt()
    fence = story.rows[0].fence

    answer = settle(story, outcome, reference=reference)
    go_on(story)

    row = story.rows[0]
    assert answer.status == "outcome_unknown"
    assert (row.status, row.reference, row.fence) == (outcome, reference, fence + 1)
    assert row.facts == {"settled_by": OPERATOR.key, "evidence": "case 4711"}
    assert row.reason == f"settled as {outcome} by operator-1: I looked at it"
    assert story.status == ends
    fact = story.task.business.facts[0]
    assert (fact.name, fact.happened, fact.reference) == ("send_parcel_done", outcome == "done", reference)
    assert sent(story) == 1


def test_a_late_worker_does_not_overwrite_a_persons_word() -> None:
    """B17, B20: whoever comes back with an older fence finds that the row has moved on."""
    story = in_doubt()
    row = story.rows[0]
    settle(story, "done", reference="P-77")
    settled = story.rows[0]

    late = Settlement(status=ActionStatus.FAILED, reference=None, facts={}, reason="refused")
    with pytest.raises(LeaseLost):
        story.machine.process().ledger.settle(
            story.key, row.operation, late, fence=row.fence, now=story.world.clock.now()
        )

    assert story.rows[0] == settled


def test_a_word_in_the_middle_of_an_attempt_has_to_wait() -> None:
    """B22: while a worker holds the row nobody settles it by hand."""
    story = in_doubt()
    row = story.rows[0]
    now = story.world.clock.now()
    story.world.actions[story.key.key, row.operation] = row.model_copy(
        update={"lease_ends_at": now + timedelta(seconds=10)}
    )

    with pytest.raises(LeaseHeld):
        settle(story, "failed")
    with pytest.raises(LeaseHeld):
        retry(story)

    assert story.rows[0].status == "outcome_unknown"


def test_a_word_that_was_not_committed_can_be_repeated() -> None:
    """B11: the ledger has it and the task does not; the same word again does the rest, another is refused."""
    story = in_doubt()
    story.calls.plan(
        Fault(when=When.KILL_BEFORE, at=story.calls.names.count("task_records.commit") + 1, name="task_records.commit")
    )
    with pytest.raises(Killed):
        settle(story, "done", reference="P-77")
    assert (story.status, story.rows[0].status) == ("needs_review", "done")

    with pytest.raises(IllegalTransition, match="done"):
        settle(story, "failed")
    settle(story, "done", reference="P-77")

    assert go_on(story).status == "completed"


def test_a_word_between_claim_and_settlement_leaves_the_outcome_unknown() -> None:
    """B01: the claim of a person who dies is a look-up without an answer, and nothing more."""
    story = in_doubt()
    story.calls.plan(
        Fault(when=When.KILL_AFTER, at=story.calls.names.count("action_ledger.claim") + 1, name="action_ledger.claim")
    )
    with pytest.raises(Killed):
        settle(story, "done", reference="P-77")

    assert (story.status, story.rows[0].status) == ("needs_review", "outcome_unknown")
    story.world.clock.advance(timedelta(minutes=1))
    settle(story, "done", reference="P-77")
    assert go_on(story).status == "completed"


def test_what_was_done_has_a_reference() -> None:
    """O2: the provider's own reference is what makes a word checkable."""
    story = in_doubt()
    with pytest.raises(InvalidRequest, match="reference"):
        settle(story, "done")
    assert story.rows[0].status == "outcome_unknown"


def test_only_an_unknown_outcome_is_settled() -> None:
    """O2: what the ledger knows, what was never sent and what the record does not ask for is none of a person's."""
    story = in_doubt()
    row = story.rows[0]
    with pytest.raises(IllegalTransition, match="no open action"):
        settle(story, "failed", operation="acme:nothing")

    where = (story.key.key, row.operation)
    story.world.actions[where] = row.model_copy(update={"status": ActionStatus.INTENT})
    with pytest.raises(IllegalTransition, match="nothing for a person to settle"):
        settle(story, "failed")

    story.world.actions[where] = row.model_copy(update={"digest": "f" * 64})
    with pytest.raises(GateFailed):
        settle(story, "failed")
    with pytest.raises(GateFailed):
        retry(story)


def test_an_ended_task_is_not_settled() -> None:
    """B17: what was true when it ended is what it says."""
    story = with_operators(run_errand(Do(tool=PARCEL)))
    with pytest.raises(TaskClosed):
        settle(story, "failed")
    with pytest.raises(TaskClosed):
        escalate(story, wait_id="wai_1")


def test_an_undo_is_settled_like_any_effect() -> None:
    """B28: a person has seen that the hold is gone; the task ends as failed, with nothing left standing."""
    dead_end = an_undo("drop_hold", effect=EffectClass.REVERSIBLE_WRITE, can_look_up=False)
    story = with_operators(
        run_errand(
            Do(tool=HOLD),
            Do(tool=PARCEL, rule=a_rule()),
            undos=[dead_end],
            downstreams={"drop_hold": failing(Mishap.RECORDED_NO_ANSWER, kind=Kind.NEITHER)},
        )
    )
    story.decide(DecisionWord.REJECT)
    assert story.status == "needs_review"

    assert settle(story, "done", reference="P-77").status == "compensating"
    go_on(story)

    assert story.status == "failed"


def test_a_word_that_it_failed_leads_to_a_new_try_only_by_a_retry() -> None:
    """O2: the task stays with a person as refused; a retry asks for approval and sends under a new key."""
    story = Story()
    with_operators(story)
    story.bank.mishaps.append(Mishap.LOST)
    story.bank.kind = Kind.NEITHER
    refund = story.machine.workflows["refund"]
    keyless = replace(refund.tools["issue_refund"], effect=EffectClass.REVERSIBLE_WRITE, can_look_up=False)
    story.machine.workflows["refund"] = replace(refund, tools={"issue_refund": keyless})
    story.start()
    story.decide()
    assert story.status == "needs_review"

    settle(story, "failed")
    assert go_on(story).status == "needs_review"
    retry(story)
    go_on(story).decide()

    assert (story.status, len(story.refunds)) == ("completed", 1)


# --- escalate ---------------------------------------------------------------------------------------------------------


def a_long_ladder() -> WaitRule:
    """Remind after a day, escalate after three, expire after seven."""
    rungs = [(1, OnDeadline.REMIND, "clerk"), (3, OnDeadline.ESCALATE, "lead"), (7, OnDeadline.EXPIRE, "lead")]
    return WaitRule(ladder=tuple(Rung(after_seconds=n * DAY_SECONDS, do=do, to=to) for n, do, to in rungs))


def test_a_wait_moves_up_one_rung_now() -> None:
    """O2: its next owner is told at once, its deadline stays, and its timer is set to the rung after."""
    story = with_operators(run_errand(WaitFor(name="papers", ladder=a_long_ladder())))
    wait = story.world.waits["acme", "papers-R-88"]

    reminded = escalate(story)
    go_on(story)
    escalated = escalate(story)
    go_on(story)

    now = story.world.waits["acme", "papers-R-88"]
    assert (now.rung, now.owner, now.deadline_at) == (2, "lead", wait.deadline_at)
    assert reminded.because == "papers: reminded clerk: wanted now by operator-1: I looked at it"
    assert escalated.because == "papers: escalated to lead: wanted now by operator-1: I looked at it"
    assert (escalated.status, escalated.waits) == ("waiting_event", reminded.waits)
    assert {"wait.reminded", "task.escalated"} <= set(story.published)
    _, timer = story.world.timers[wait.wait_id]
    assert (timer.rung, timer.at) == (2, wait.deadline_at)


def test_nobody_is_left_to_turn_to() -> None:
    """O2: escalating never ends a wait before its time."""
    story = with_operators(run_errand(WaitFor(name="papers", ladder=a_ladder())))
    before = (story.task, dict(story.world.waits))

    with pytest.raises(IllegalTransition, match="nobody is left to turn to"):
        escalate(story)

    assert (story.task, story.world.waits) == before


def test_a_wait_that_is_none_of_the_tasks_is_not_escalated() -> None:
    """B67: a command about a wait that has ended, or of another task, moves nothing."""
    story = with_operators(run_errand(WaitFor(name="papers", ladder=a_long_ladder())))
    with pytest.raises(IllegalTransition, match="does not wait for this"):
        escalate(story, wait_id="wai_another")


def test_an_answer_and_an_escalation_at_once() -> None:
    """B17: the answer wins; the escalation is told that the task has moved on."""
    story = with_operators(run_errand(Do(tool=PARCEL, rule=a_rule())))
    seen = story.task.version
    story.decide()

    with pytest.raises(StaleCommand):
        escalate(story, wait_id="wai_1", version=seen)
    with pytest.raises(DecisionClosed):
        story.decide(by=SECOND_MANAGER, approval_id=story.task.security.approvals[0].approval_id)
