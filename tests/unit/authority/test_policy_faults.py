"""Whatever goes wrong with a policy, the answer is a deny that somebody can see."""

from dataclasses import replace
from pathlib import Path

import cedarpy
import pytest

from shared.adapters.cedar import policy_set
from shared.adapters.cedar.authoriser import CedarAuthoriser, require_valid_policies
from shared.domain.action import Scalar
from shared.domain.authority import Operation
from shared.domain.errors import InvariantBroken
from shared.workflows.registry import discover
from tests.unit.authority.conftest import Bench, a_question

PERMIT_ALL = '@id("permit-all") permit (principal, action, resource);'
FORBID_LARGE = (
    '@id("forbid-large") forbid (principal, action == Action::"start", resource) when { context.amount_minor > 100 };'
)


@pytest.mark.parametrize(
    ("attributes", "named"),
    [
        ({}, "amount_minor is missing"),
        ({"currency": "EUR"}, "amount_minor is missing"),
        ({"amount_minor": None, "currency": "EUR"}, "amount_minor is missing"),
        ({"amount_minor": "450", "currency": "EUR"}, "amount_minor is not of type int"),
        ({"amount_minor": True, "currency": "EUR"}, "amount_minor is not of type int"),
        ({"amount_minor": 50, "currency": 978}, "currency is not of type str"),
    ],
)
def test_a_missing_or_mistyped_attribute_denies(attributes: dict[str, Scalar], named: str, bench: Bench) -> None:
    """B04: the library would skip the forbid that cannot be evaluated and let the permit win."""
    ruling = bench.authoriser(PERMIT_ALL + FORBID_LARGE).rule(a_question(attributes=attributes))

    assert not ruling.allowed
    assert named in ruling.reason
    assert [named in fault.detail for fault in bench.audited] == [True]


def test_the_same_policies_allow_what_they_should(bench: Bench) -> None:
    """B04: with every attribute in place the permit does win, below the limit and not above it."""
    authoriser = bench.authoriser(PERMIT_ALL + FORBID_LARGE)

    below = authoriser.rule(a_question(attributes={"amount_minor": 100, "currency": "EUR"}))
    above = authoriser.rule(a_question(attributes={"amount_minor": 101, "currency": "EUR"}))

    assert (below.allowed, below.policies) == (True, ("permit-all",))
    assert (above.allowed, above.policies) == (False, ("forbid-large",))
    assert above.reason == "forbidden by forbid-large"
    assert bench.audited == []


def test_a_forbid_that_errs_while_it_is_evaluated_denies(bench: Bench) -> None:
    """B04: it passes the schema and overflows on this amount; the library answers Allow, and is not believed."""
    errs = (
        '@id("forbid-overflow") forbid (principal, action == Action::"start", resource) '
        "when { context.amount_minor * 9223372036854775807 > 0 };"
    )
    raw = cedarpy.is_authorized(
        {
            "principal": 'Principal::"p"',
            "action": 'Action::"start"',
            "resource": 'Task::"t"',
            "context": {"amount_minor": 45_000},
        },
        PERMIT_ALL + errs,
        [],
    )
    assert raw.decision is cedarpy.Decision.Allow

    ruling = bench.authoriser(PERMIT_ALL + errs).rule(a_question())

    assert not ruling.allowed
    assert [("`forbid-overflow`" in fault.detail, "overflow" in fault.detail) for fault in bench.audited] == [
        (True, True)
    ]


@pytest.mark.parametrize(
    "policies",
    [
        pytest.param('@id("half") permit (principal, action', id="half-written"),
        pytest.param(PERMIT_ALL + '@id("t") permit (principal == ?principal, action, resource);', id="template"),
        pytest.param("permit (principal, action, resource);", id="without a name"),
        pytest.param(PERMIT_ALL + PERMIT_ALL, id="two of one name"),
        pytest.param('@id("tenant") forbid (principal, action == Action::"fly", resource);', id="unknown action"),
        pytest.param(
            PERMIT_ALL + '@id("x") forbid (principal, action, resource) when { principal.rolez.contains("x") };',
            id="unknown attribute",
        ),
        pytest.param(
            PERMIT_ALL + '@id("x") forbid (principal, action, resource) when { context.amount_minor > 100 };',
            id="attribute that some questions do not have",
        ),
        pytest.param(
            PERMIT_ALL + '@id("x") forbid (principal, action, resource) when { resource.stage in ["a", "b"] };',
            id="text used with in",
        ),
    ],
)
@pytest.mark.parametrize("operation", list(Operation))
def test_broken_policies_deny_everything(policies: str, operation: Operation, bench: Bench) -> None:
    """B04: policies that cannot be parsed or do not fit the schema are never evaluated, not even in part."""
    question = a_question(operation, roles=frozenset({"refund_clerk", "operator"}), who=a_question().principal.ref)

    ruling = bench.authoriser(policies).rule(question)

    assert not ruling.allowed
    assert ruling.reason == "denied for safety: the policies cannot be used"
    assert [fault.workflow for fault in bench.audited] == ["refund"]


def test_an_attribute_of_a_type_that_the_schema_cannot_have_denies_everything(bench: Bench) -> None:
    """B04: an invalid schema is as bad as an invalid policy."""
    ruling = bench.authoriser(PERMIT_ALL, attribute_types={"amount_minor": float}).rule(a_question())

    assert not ruling.allowed
    assert "attributes of no known type: amount_minor" in bench.audited[0].detail


@pytest.mark.parametrize("name", ["core.cedar", "schema.cedarschema"])
@pytest.mark.parametrize("content", [None, "entity Principal = {", 'forbid (principal, action == Action::"'])
def test_half_written_or_missing_files_deny_everything(
    name: str, content: str | None, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B04: a deployment that lost a file, or half of it, denies instead of falling back to fewer rules."""
    for file in ("core.cedar", "schema.cedarschema"):
        whole = (policy_set._HERE / file).read_text()
        if file != name:
            (tmp_path / file).write_text(whole)
        elif content is not None:
            (tmp_path / file).write_text(content)
    monkeypatch.setattr(policy_set, "_HERE", tmp_path)

    ruling = bench.authoriser(PERMIT_ALL).rule(a_question())

    assert not ruling.allowed
    assert len(bench.audited) == 1


def test_a_question_that_the_library_cannot_take_denies(bench: Bench) -> None:
    """B04: no decision at all is a deny; here a group's name is not text that can be encoded."""
    ruling = bench.authoriser().rule(a_question(groups=frozenset({"\ud800"})))

    assert not ruling.allowed
    assert ruling.reason.startswith("denied for safety")
    assert len(bench.audited) == 1


def test_a_library_that_fails_denies(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """B04: an exception out of the evaluation is an answer too: no."""

    def fail(*_: object, **__: object) -> None:
        msg = "out of memory"
        raise MemoryError(msg)

    authoriser = bench.authoriser()
    assert authoriser.rule(a_question()).allowed
    monkeypatch.setattr(cedarpy, "is_authorized", fail)

    ruling = authoriser.rule(a_question())

    assert not ruling.allowed
    assert "MemoryError" in bench.audited[0].detail


def test_an_unknown_workflow_is_denied(bench: Bench) -> None:
    """A question about a workflow that this release does not have is not answered by another one's policies."""
    ruling = bench.authoriser().rule(a_question(workflow="vendor_payment"))

    assert not ruling.allowed
    assert bench.audited[0].detail == "there is no workflow vendor_payment"


def test_one_workflows_broken_policies_leave_the_others_alone(bench: Bench) -> None:
    """A team that breaks its own policies stops its own tasks and nobody else's."""
    refund = discover()["refund"]
    broken = replace(refund, name="broken", policies="permit (")
    authoriser = CedarAuthoriser({"refund": refund, "broken": broken}, audit=bench.audited.append)

    assert not authoriser.rule(a_question(workflow="broken")).allowed
    assert authoriser.rule(a_question()).allowed


def test_audit_lines_name_who_asked_for_what_and_no_values(bench: Bench) -> None:
    """B04: the audit line is for whoever mends the policy; what the request said is not its business."""
    bench.authoriser().rule(a_question(attributes={"amount_minor": "4711", "currency": "EUR"}))

    (fault,) = bench.audited
    assert (fault.operation, fault.principal, fault.tenant) == ("start", "24:https://issuer.test/pool:somebody", "acme")
    assert "4711" not in fault.detail


def test_all_deployed_policies_are_valid() -> None:
    """B04: policies are validated against the schema before they are deployed."""
    require_valid_policies(discover())


def test_invalid_policies_are_named_before_they_are_deployed() -> None:
    """B04: the check that guards a deployment says which workflow is broken and how."""
    refund = discover()["refund"]
    workflows = {
        "refund": replace(
            refund, policies=refund.policies + '@id("x") permit (principal == Team::"a", action, resource);'
        )
    }

    with pytest.raises(InvariantBroken, match=r"refund do not fit the schema: x: .*Team"):
        require_valid_policies(workflows)
