"""Who may do what: the core policies and the refund's, as a reviewer reads them."""

from collections.abc import Mapping

import pytest

from shared.domain.authority import Operation
from shared.domain.authority import Operation as Op
from shared.domain.identity import PrincipalRef
from tests.unit.authority.conftest import CLERK, ISSUER, Bench, a_question

COMMANDS = frozenset({Op.RETRY, Op.SETTLE, Op.RELEASE, Op.CLOSE, Op.QUARANTINE, Op.ESCALATE})
# What each role may do with another person's refund of its own tenant.
RIGHTS: Mapping[str, frozenset[Operation]] = {
    "refund_clerk": frozenset({Op.START, Op.READ, Op.LIST, Op.AMEND, Op.CANCEL}),
    "refund_approver": frozenset({Op.READ, Op.LIST, Op.DECIDE}),
    "viewer": frozenset({Op.READ, Op.LIST}),
    "operator": frozenset({Op.READ, Op.LIST}) | COMMANDS,
    "payroll_clerk": frozenset(),
}


@pytest.mark.parametrize("operation", list(Operation))
@pytest.mark.parametrize("role", list(RIGHTS))
def test_rights_of_a_role(role: str, operation: Operation, bench: Bench) -> None:
    """A role may do what the table says and nothing else; every answer names its policy or says that there is none."""
    ruling = bench.authoriser().rule(
        a_question(
            operation, roles=frozenset({role}), required_role="refund_approver" if operation is Op.DECIDE else ""
        )
    )

    assert ruling.allowed is (operation in RIGHTS[role])
    assert ruling.policies or ruling.reason == f"no policy permits {operation}"
    assert bench.audited == []


@pytest.mark.parametrize("operation", list(Operation))
def test_nobody_reaches_another_tenant(operation: Operation, bench: Bench) -> None:
    """B16 and A2: every role at once opens nothing of another tenant, not even to the owner."""
    everything = frozenset({*RIGHTS, "finance_lead"})

    ruling = bench.authoriser().rule(
        a_question(operation, roles=everything, who=CLERK, task_tenant="globex", required_role="refund_approver")
    )

    assert not ruling.allowed
    assert "another-tenant-is-out-of-reach" in ruling.policies


def test_a_workflow_cannot_undo_the_core(bench: Bench) -> None:
    """A workflow that permits everything still permits nothing across tenants."""
    authoriser = bench.authoriser('@id("permit-all") permit (principal, action, resource);')

    assert authoriser.rule(a_question(Op.AMEND, roles=frozenset())).allowed
    assert not authoriser.rule(a_question(Op.AMEND, roles=frozenset(), task_tenant="globex")).allowed


def test_an_owner_reads_their_task_without_any_role(bench: Bench) -> None:
    """Losing a role does not hide one's own task, and gives nothing else."""
    allowed = {o for o in Operation if bench.authoriser().rule(a_question(o, who=CLERK, roles=frozenset())).allowed}

    assert allowed == {Op.READ}


@pytest.mark.parametrize("operation", [Op.RESUME, Op.DISPATCH])
def test_a_task_goes_on_by_its_owners_right_alone(operation: Operation, bench: Bench) -> None:
    """A3: the owner needs the role now, and another clerk's role does not stand in for it."""
    authoriser = bench.authoriser()

    assert authoriser.rule(a_question(operation, who=CLERK)).allowed
    assert not authoriser.rule(a_question(operation, who=CLERK, roles=frozenset({"viewer"}))).allowed
    other = authoriser.rule(a_question(operation))
    assert (other.allowed, other.policies) == (False, ("tasks-go-on-by-the-owners-right",))


@pytest.mark.parametrize(
    ("amount_minor", "allowed"), [(1, True), (1_000_000, True), (1_000_001, False), (2**53 - 1, False)]
)
def test_an_approver_decides_up_to_the_limit(amount_minor: int, allowed: bool, bench: Bench) -> None:
    """B04: amounts reach the policies as integers, to the last unit."""
    question = a_question(
        Op.DECIDE,
        roles=frozenset({"refund_approver"}),
        required_role="refund_approver",
        attributes={"amount_minor": amount_minor, "currency": "EUR"},
    )

    assert bench.authoriser().rule(question).allowed is allowed


@pytest.mark.parametrize("required_role", ["", "finance_lead", "refund_approver2", "refund"])
def test_only_the_role_that_the_approval_asks_for_decides(required_role: str, bench: Bench) -> None:
    """A policy that permits a role to decide does not reach approvals that ask for another one, or for none."""
    ruling = bench.authoriser().rule(
        a_question(Op.DECIDE, roles=frozenset({"refund_approver"}), required_role=required_role)
    )

    assert (ruling.allowed, ruling.policies) == (False, ("only-the-required-role-decides",))


def test_whoever_asked_may_not_decide_unless_the_rule_says_so(bench: Bench) -> None:
    """A7: the requester is excluded by policy too, not only by the use case."""
    roles = frozenset({"refund_clerk", "refund_approver"})
    authoriser = bench.authoriser()

    own = authoriser.rule(a_question(Op.DECIDE, roles=roles, who=CLERK, required_role="refund_approver"))
    waived = authoriser.rule(
        a_question(Op.DECIDE, roles=roles, who=CLERK, required_role="refund_approver", requester_excluded=False)
    )

    assert (own.allowed, own.policies) == (False, ("requesters-do-not-decide-their-own",))
    assert waived.allowed


@pytest.mark.parametrize(
    "impostor",
    [
        PrincipalRef(issuer=ISSUER, subject="Clerk-1"),
        PrincipalRef(issuer=ISSUER, subject="\u0441lerk-1"),
        PrincipalRef(issuer="https://issuer.test/other", subject="clerk-1"),
        PrincipalRef(issuer=f"{ISSUER}:clerk-1", subject="x"),
    ],
)
def test_looking_like_the_owner_is_not_being_the_owner(impostor: PrincipalRef, bench: Bench) -> None:
    """B75: identity is issuer and subject, byte by byte."""
    ruling = bench.authoriser().rule(a_question(Op.READ, who=impostor, roles=frozenset()))

    assert not ruling.allowed


ANSWERING = (
    '@id("employees-answer-about-themselves")\n'
    'permit (principal, action in [Action::"read", Action::"answer"], resource)\n'
    "when { context.currency == principal.subject };"
)


@pytest.mark.parametrize(
    ("required_role", "subject", "allowed"),
    [
        ("employee", "EUR", True),
        ("employee", "USD", False),
        ("employee", "eur", False),
        ("hr_clerk", "EUR", False),
        ("", "EUR", False),
    ],
)
def test_only_the_role_that_a_question_asks_for_answers(
    required_role: str, subject: str, allowed: bool, bench: Bench
) -> None:
    """A3: a policy that lets a person answer does not reach questions to another role, nor those about another person.

    The test's refund is about the person whose subject is its currency.
    """
    question = a_question(
        Op.ANSWER,
        roles=frozenset({"employee"}),
        who=PrincipalRef(issuer=ISSUER, subject=subject),
        required_role=required_role,
    )

    assert bench.authoriser(ANSWERING).rule(question).allowed is allowed
    assert bench.audited == []


def test_a_task_can_be_shown_to_whom_it_is_about(bench: Bench) -> None:
    """A2: reading is asked with what the task is about, so a workflow can keep others of the same role out."""
    authoriser = bench.authoriser(ANSWERING)

    def may_read(subject: str) -> bool:
        return authoriser.rule(
            a_question(Op.READ, roles=frozenset(), who=PrincipalRef(issuer=ISSUER, subject=subject))
        ).allowed

    assert may_read("EUR")
    assert not may_read("USD")


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_nobody_operates_on_their_own_task(command: Operation, bench: Bench) -> None:
    """O2: an operator who asked for a refund does not also say what became of it."""
    own = bench.authoriser().rule(a_question(command, who=CLERK, roles=frozenset({"operator", "refund_clerk"})))

    assert (own.allowed, own.policies) == (False, ("owners-do-not-operate-on-their-own",))


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_workflow_may_keep_one_command_from_operators(command: Operation, bench: Bench) -> None:
    """O2: saying what became of money can ask for more than looking after tasks; the other commands stay."""
    policies = (
        '@id("settling-is-for-finance") forbid (principal, action == Action::"settle", resource) '
        'unless { principal.roles.contains("finance") };'
    )

    ruling = bench.authoriser(policies).rule(a_question(command, roles=frozenset({"operator"})))
    both = bench.authoriser(policies).rule(a_question(command, roles=frozenset({"operator", "finance"})))

    assert ruling.allowed is (command is not Op.SETTLE)
    assert both.allowed
