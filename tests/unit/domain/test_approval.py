"""Approvals are objects: bound to what was shown, given by distinct people, for a while, once."""

from datetime import datetime, timedelta
from itertools import product

import pytest
from pydantic import ValidationError

from shared.domain.action import ActionSpec
from shared.domain.approval import (
    Approval,
    ApprovalRule,
    ApprovalStatus,
    Basis,
    Decision,
    DecisionWord,
    approval_digest,
)
from shared.domain.errors import DecisionClosed, StaleApproval
from shared.domain.identity import PrincipalRef
from tests.builders import a_task_key
from tests.fakes.clock import NOON

ALICE = PrincipalRef(issuer="https://issuer.test/pool", subject="alice")
BOB = PrincipalRef(issuer="https://issuer.test/pool", subject="bob")
OTHER_ALICE = PrincipalRef(issuer="https://elsewhere.test/pool", subject="alice")
SPEC = ActionSpec(tool="refund", arguments={"amount_minor": 820, "payee": "V-204", "currency": "EUR"})
BASIS = Basis(request_version=1, evidence="e" * 32, policy="p" * 32, catalogue="c" * 32)
RULE = ApprovalRule(role="manager", valid_for_seconds=86_400, because="it is much money")
DIGEST = approval_digest(a_task_key(), "refund", SPEC, BASIS, RULE)


def an_approval(*, quorum: int = 1, valid_for: timedelta = timedelta(days=1)) -> Approval:
    """Make an open approval, requested at noon."""
    rule = RULE.model_copy(update={"quorum": quorum, "valid_for_seconds": int(valid_for.total_seconds())})
    return Approval(
        approval_id="apr_1",
        spec=SPEC,
        basis=BASIS,
        digest=DIGEST,
        rule=rule,
        requested_at=NOON,
        expires_at=NOON + valid_for,
    )


def says(word: DecisionWord, who: PrincipalRef = ALICE, at: datetime = NOON) -> Decision:
    """Make a decision."""
    return Decision(principal=who, word=word, decided_at=at)


YES, NO = DecisionWord.APPROVE, DecisionWord.REJECT


def granted(*, quorum: int = 1) -> Approval:
    """Make a granted approval."""
    approval = an_approval(quorum=quorum)
    for who in (ALICE, BOB)[:quorum]:
        approval = approval.decided(says(YES, who), request_version=1)
    return approval


@pytest.mark.parametrize(
    "word",
    ["no", "false", "approve ", " approve", "APPROVE", "Approve", "rejected", "", "maybe", "0", "yes", "approve\n"],
)
def test_only_the_exact_words_decide(word: str) -> None:
    """B55: nothing is guessed from truthiness, case or free text."""
    with pytest.raises(ValueError, match=r".+"):
        DecisionWord(word)


@pytest.mark.parametrize("word", [None, 0, 1, True, False, ["approve"], {"approved": False}, "approve", "reject"])
def test_a_stored_decision_holds_a_word_and_nothing_else(word: object) -> None:
    """B55: a decision made in code takes no look-alike; text becomes a word only where it is parsed."""
    with pytest.raises(ValidationError):
        Decision(principal=ALICE, word=word, decided_at=NOON)  # type: ignore[arg-type]


def test_one_person_grants_what_needs_one() -> None:
    """L4: the right person's word opens the way."""
    assert an_approval().decided(says(YES), request_version=1).status is ApprovalStatus.GRANTED


def test_two_people_are_two_subjects() -> None:
    """A7: the same person twice is one person; the same subject elsewhere is somebody else."""
    first = an_approval(quorum=2).decided(says(YES), request_version=1)

    assert first.status is ApprovalStatus.OPEN
    assert first.decided(says(YES, at=NOON + timedelta(hours=1)), request_version=1) == first
    assert first.decided(says(YES, BOB), request_version=1).status is ApprovalStatus.GRANTED
    assert first.decided(says(YES, OTHER_ALICE), request_version=1).status is ApprovalStatus.GRANTED


@pytest.mark.parametrize("quorum", [1, 2])
def test_anyone_s_rejection_ends_it(quorum: int) -> None:
    """B55: a rejection is a decision, and the last one."""
    rejected = an_approval(quorum=quorum).decided(says(NO), request_version=1)

    assert rejected.status is ApprovalStatus.REJECTED
    with pytest.raises(DecisionClosed):
        rejected.decided(says(YES, BOB), request_version=1)


def test_a_second_person_can_still_reject() -> None:
    """A7: until everybody has approved, one doubt is enough."""
    half = an_approval(quorum=2).decided(says(YES), request_version=1)

    assert half.decided(says(NO, BOB), request_version=1).status is ApprovalStatus.REJECTED


@pytest.mark.parametrize(("first", "second"), [(YES, NO), (NO, YES)])
def test_a_person_decides_once(first: DecisionWord, second: DecisionWord) -> None:
    """A changed mind is a new question, not a second answer."""
    decided = an_approval(quorum=2).decided(says(first), request_version=1)

    with pytest.raises(DecisionClosed):
        decided.decided(says(second), request_version=1)


@pytest.mark.parametrize("version", [0, 2, 99])
@pytest.mark.parametrize("word", list(DecisionWord))
def test_a_decision_speaks_of_the_version_it_saw(word: DecisionWord, version: int) -> None:
    """L7 and R3: a word about another version of the request is refused as stale."""
    with pytest.raises(StaleApproval):
        an_approval().decided(says(word), request_version=version)


def test_time_runs_out_at_its_instant() -> None:
    """B12: the last millisecond still counts, the instant itself is too late."""
    approval = an_approval(valid_for=timedelta(hours=1))
    over = NOON + timedelta(hours=1)

    assert approval.decided(says(YES, at=over - timedelta(milliseconds=1)), request_version=1).status == "granted"
    with pytest.raises(DecisionClosed):
        approval.decided(says(YES, at=over), request_version=1)


def test_a_late_repeat_is_answered_with_what_is() -> None:
    """B12: the same click again, long after, changes nothing and is no error."""
    used = granted().consumed(1)

    assert used.decided(says(YES, at=NOON + timedelta(days=9)), request_version=1) is used


@pytest.mark.parametrize("spent", [granted().consumed(1), granted().voided(), an_approval().voided()])
def test_what_is_spent_takes_no_new_word(spent: Approval) -> None:
    """B25: a used or void approval is decided by nobody any more."""
    with pytest.raises(DecisionClosed):
        spent.decided(says(YES, BOB), request_version=1)


@pytest.mark.parametrize("status", list(ApprovalStatus))
def test_voiding_takes_only_what_was_still_good(status: ApprovalStatus) -> None:
    """R3: an open or granted approval becomes void; what happened stays on record."""
    approval = granted().model_copy(update={"status": status})
    good = {ApprovalStatus.OPEN, ApprovalStatus.GRANTED}

    assert approval.voided().status is (ApprovalStatus.VOID if status in good else status)


def test_an_approval_that_holds_has_no_flaw() -> None:
    """Granted, in time, of the same digest, by enough people."""
    assert granted(quorum=2).flaw(expected_digest=DIGEST, now=NOON) is None


@pytest.mark.parametrize(
    ("approval", "digest", "now"),
    [
        (an_approval(), DIGEST, NOON),
        (an_approval().decided(says(NO), request_version=1), DIGEST, NOON),
        (granted().voided(), DIGEST, NOON),
        (granted(), "0" * 64, NOON),
        (granted(), DIGEST, NOON + timedelta(days=1)),
        (granted().model_copy(update={"decisions": ()}), DIGEST, NOON),
        (granted(quorum=2).model_copy(update={"decisions": (says(YES), says(YES))}), DIGEST, NOON),
    ],
    ids=["open", "rejected", "void", "another digest", "too late", "nobody", "one person twice"],
)
def test_an_approval_that_does_not_hold_says_why(approval: Approval, digest: str, now: datetime) -> None:
    """B03: at the moment of use every part of it is checked again."""
    assert approval.flaw(expected_digest=digest, now=now)


def test_the_flaw_of_another_digest_names_both() -> None:
    """B03: whoever looks into it can tell the approved action from the one that was about to run."""
    other = "f" * 64

    flaw = granted().flaw(expected_digest=other, now=NOON)

    assert flaw is not None
    assert DIGEST[:12] in flaw
    assert other[:12] in flaw


def test_the_digest_covers_everything_consequential() -> None:
    """B03 and R5: tenant, task, workflow, tool, every argument and its type, and everything the request rests on."""
    arguments = SPEC.arguments
    specs = [
        SPEC,
        SPEC.model_copy(update={"tool": "refunds"}),
        *(
            SPEC.model_copy(update={"arguments": arguments | change})
            for change in (
                {"amount_minor": 8_200},
                {"amount_minor": "820"},
                {"payee": "V-205"},
                {"currency": "USD"},
                {"expedite": True},
                {"expedite": None},
            )
        ),
    ]
    bases = [
        BASIS,
        *(BASIS.model_copy(update={field: "x" * 32}) for field in ("evidence", "policy", "catalogue")),
        BASIS.model_copy(update={"request_version": 2}),
    ]
    keys = [a_task_key(1), a_task_key(2), a_task_key(1, tenant="globex")]
    workflows = ["refund", "payment"]
    rules = [
        RULE,
        *(
            RULE.model_copy(update=change)
            for change in (
                {"role": "clerk"},
                {"quorum": 2},
                {"requester_excluded": False},
                {"authenticated_within_seconds": 300},
                {"valid_for_seconds": 600},
            )
        ),
    ]

    digests = {approval_digest(*each) for each in product(keys, workflows, specs, bases, rules)}

    assert len(digests) == len(keys) * len(workflows) * len(specs) * len(bases) * len(rules)


def test_the_digest_does_not_hang_on_the_order_of_arguments() -> None:
    """What the approver saw and what is sent are compared by value."""
    turned = SPEC.model_copy(update={"arguments": dict(reversed(SPEC.arguments.items()))})

    assert approval_digest(a_task_key(), "refund", turned, BASIS, RULE) == DIGEST


@pytest.mark.parametrize("fields", [{"quorum": 0}, {"quorum": 6}, {"valid_for_seconds": 59}, {"role": "Manager"}])
def test_a_rule_has_sensible_limits(fields: dict[str, object]) -> None:
    """A rule that nobody or everybody could meet cannot be written down."""
    rule = {"role": "manager", "valid_for_seconds": 3_600, "because": "money"}

    with pytest.raises(ValidationError):
        ApprovalRule.model_validate(rule | fields)
