"""Amending: a new version of the request; whatever was given for the old one is void."""

import pytest

from shared.domain.approval import DecisionWord
from shared.domain.authority import Operation, Question, Ruling
from shared.domain.errors import (
    ActionInFlight,
    InvalidRequest,
    NotAuthorised,
    StaleApproval,
    TaskClosed,
    TaskNotFound,
)
from shared.domain.identity import PrincipalRef
from tests.fakes.calls import Calls, Fault, When
from tests.fakes.downstream import Mishap
from tests.fakes.errand import Do, a_rule, a_tool, run_errand
from tests.fakes.model import proposes
from tests.fakes.story import CLERK, INTERN, MANAGER, REFUND, STRANGER, Story, by_role


def a_refund() -> Story:
    """Start a refund that waits for an approval."""
    story = Story()
    story.start(note="the first letter")
    return story


def test_an_amendment_is_a_new_version_of_the_request() -> None:
    """L7: version 2, the approval void, the wait void, asked anew."""
    story = a_refund()
    first = story.open_approval

    amended = story.amend(amount_minor=90_000)

    assert (amended.request_version, amended.status) == (2, "waiting_approval")
    assert story.open_approval != first
    assert sorted(str(wait.status) for wait in story.world.waits.values()) == ["open", "void"]
    assert story.published.count("approval.requested") == 2


def test_an_approval_given_before_the_amendment_pays_nothing() -> None:
    """R3: approved, changed, used: the granted approval is void with the request that it was for."""
    story = a_refund()
    story.click()
    story.amend(amount_minor=90_000)

    story.machine.settle()

    assert story.status == "waiting_approval"
    assert story.refunds == []


def test_below_the_limit_nobody_is_asked_any_more() -> None:
    """What the new version needs is planned anew from its own values."""
    story = a_refund()

    story.amend(amount_minor=9_000)

    assert story.status == "completed"
    assert [effect.arguments["amount_minor"] for effect in story.refunds] == [9_000]


def test_somebody_who_saw_an_older_version_is_told() -> None:
    """Two people amend: the second one saw version 1 and has to look again."""
    story = a_refund()
    story.amend(amount_minor=90_000)

    with pytest.raises(StaleApproval):
        story.amend(amount_minor=70_000, request_version=1)

    assert story.task.business.request["amount_minor"] == 90_000


def test_two_amendments_at_once_are_one() -> None:
    """Compare and set: the loser of the race is judged on what is there now, and is told that it is stale."""
    story = a_refund()
    raced: list[str] = []

    def amend_first(call: str) -> None:
        if call == "task_records.commit" and not raced:
            raced.append(call)
            story.amend_quietly(amount_minor=90_000)

    story.calls.step_in = amend_first
    with pytest.raises(StaleApproval):
        story.amend_quietly(amount_minor=70_000)

    assert story.task.business.request["amount_minor"] == 90_000


@pytest.mark.parametrize(
    "changes",
    [{"amount_minor": 0}, {"amount_minor": "1"}, {"currency": "XXX"}, {"status": "ready"}, {"tenant": "globex"}],
)
def test_a_bad_amendment_changes_nothing(changes: dict[str, object]) -> None:
    """A1: the same strictness as at the start."""
    story = a_refund()
    before = story.task

    with pytest.raises(InvalidRequest):
        story.amend(**changes)  # type: ignore[arg-type]

    assert story.task == before


@pytest.mark.parametrize(
    ("who", "refusal"), [(INTERN, NotAuthorised), (MANAGER, NotAuthorised), (STRANGER, TaskNotFound)]
)
def test_amending_needs_the_right_to_it(who: PrincipalRef, refusal: type[Exception]) -> None:
    """A2 and A3: deciding is not amending, and another tenant sees no task."""
    story = a_refund()

    with pytest.raises(refusal):
        story.amend(by=who, amount_minor=1_000)


def test_nobody_amends_to_what_they_could_not_start() -> None:
    """A3: a limit on starting cannot be walked around by starting small."""
    story = a_refund()

    def limited(question: Question) -> Ruling:
        if question.operation is Operation.START and int(question.attributes["amount_minor"] or 0) > 50_000:
            return Ruling(allowed=False, reason="above the clerk's limit")
        return by_role(question)

    story.world.policies.rule = limited
    with pytest.raises(NotAuthorised):
        story.amend(amount_minor=90_000)
    story.amend(amount_minor=50_000)

    assert story.task.business.request["amount_minor"] == 50_000


@pytest.mark.parametrize(
    "mishap", [Mishap.RECORDED_NO_ANSWER, Mishap.LOST], ids=["it happened", "it did not, but who knows"]
)
def test_what_may_have_happened_cannot_be_amended_away(mishap: Mishap) -> None:
    """I4: while the outcome of the old request is open, the request stands."""
    story = a_refund()
    story.bank.mishaps.append(mishap)
    story.click()
    story.machine.settle(patience=False)
    before = story.task

    with pytest.raises(ActionInFlight):
        story.amend(amount_minor=90_000)

    assert story.task == before


def test_a_claimed_intent_cannot_be_amended_away() -> None:
    """B22: the worker claims between the read and the commit of the amendment: the commit fails as a whole."""
    story = Story(calls=Calls(Fault(when=When.KILL_AFTER, at=1, name="action_ledger.claim")))
    story.start()
    story.click()
    story.machine.settle(patience=False)

    with pytest.raises(ActionInFlight):
        story.amend(amount_minor=90_000)

    story.machine.settle()
    assert [effect.arguments["amount_minor"] for effect in story.refunds] == [45_000]


def test_an_intent_that_nobody_claimed_goes_with_its_request() -> None:
    """Decided and not sent is not sent: the old row is void, and only the new request is paid."""
    story = Story(calls=Calls(Fault(when=When.KILL_BEFORE, at=1, name="action_ledger.claim")))
    story.start()
    amended: list[str] = []

    def amend_meanwhile(call: str) -> None:
        if call == "action_ledger.claim" and not amended:
            amended.append(call)
            story.amend_quietly(amount_minor=9_000)

    story.calls.step_in = amend_meanwhile
    story.decide()

    assert story.status == "completed"
    assert [(row.operation.split(":")[2], str(row.status)) for row in story.rows] == [("v1", "void"), ("v2", "done")]
    assert [effect.arguments["amount_minor"] for effect in story.refunds] == [9_000]


@pytest.mark.parametrize("end", ["completed", "canceled"])
def test_a_task_that_has_ended_takes_no_amendment(end: str) -> None:
    """B61: what has ended has ended."""
    story = a_refund()
    if end == "completed":
        story.decide()
    else:
        story.cancel()

    with pytest.raises(TaskClosed):
        story.amend(amount_minor=1_000)

    assert story.status == end


def test_a_refused_refund_can_be_mended_by_amending() -> None:
    """A refusal speaks of the old request; the new one is judged by itself."""
    story = a_refund()
    story.bank.mishaps.append(Mishap.REFUSED)
    story.decide()
    assert story.status == "needs_review"

    story.amend(amount_minor=30_000)
    story.decide()

    assert story.status == "completed"
    assert [effect.arguments["amount_minor"] for effect in story.refunds] == [30_000]


def test_a_blocked_refund_can_be_mended_by_amending() -> None:
    """A task in review, its wait open, goes on with the request that people meant."""
    story = a_refund()
    story.world.model.answers.append(proposes("issue_refund", REFUND | {"amount_minor": 500_000}))
    story.decide()
    assert story.status == "needs_review"

    story.amend(amount_minor=50_000)
    story.decide()

    assert story.status == "completed"


def test_a_new_letter_replaces_the_old_one() -> None:
    """Evidence belongs to the request: a new letter is shown instead of the old one; without one the old one stays."""
    story = a_refund()
    kept = story.task.references.evidence
    story.amend(amount_minor=50_000)
    assert story.task.references.evidence == kept

    story.amend(amount_minor=50_000, note="the second letter")
    story.decide()

    shown = str(story.world.model.windows[-1])
    assert "the second letter" in shown
    assert "the first letter" not in shown


def test_a_rejected_task_is_not_amended_back_to_life() -> None:
    """B55: the rejection ended the task."""
    story = a_refund()
    story.decide(DecisionWord.REJECT)

    with pytest.raises(TaskClosed):
        story.amend(amount_minor=1_000)


def test_many_amendments_do_not_make_a_task_grow() -> None:
    """The record holds the current request and the last few void approvals, however often people change their mind."""
    story = a_refund()
    story.amend(amount_minor=20_000)
    for amount in range(30_000, 30_005):
        story.amend(amount_minor=amount)
    few = len(story.world.checkpoints[story.key.key, story.task.version].body)
    for amount in range(40_000, 40_020):
        story.amend(amount_minor=amount)
    many = len(story.world.checkpoints[story.key.key, story.task.version].body)

    assert many - few < 200
    assert len(story.task.security.approvals) <= 5


def test_an_effect_that_was_done_keeps_its_request() -> None:
    """Something of the request has happened: it can be canceled, and undone, but not rewritten."""
    story = run_errand(Do(tool=a_tool("send_mail")), Do(tool=a_tool("pay"), rule=a_rule()))

    with pytest.raises(ActionInFlight):
        story.amend(subject="S-2")

    assert story.status == "waiting_approval"


def test_the_record_says_who_amended() -> None:
    """The transition names the principal; the request names nobody."""
    story = a_refund()
    story.amend_quietly(amount_minor=70_000)

    said = [event.what for event in story.task.execution.recent]
    assert f"the request was amended by {CLERK.subject}" in said
