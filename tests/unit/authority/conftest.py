"""Questions about a refund of 450.00, and an authoriser whose audit lines can be read."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from shared.adapters.cedar.authoriser import CedarAuthoriser, PolicyFault
from shared.domain.action import Scalar
from shared.domain.authority import Operation, Principal, Question, Resource, Ruling
from shared.domain.identity import PrincipalRef
from shared.domain.workflow import Workflow
from shared.workflows.registry import discover

ISSUER = "https://issuer.test/pool"
CLERK = PrincipalRef(issuer=ISSUER, subject="clerk-1")
SOMEBODY = PrincipalRef(issuer=ISSUER, subject="somebody")

Ask = Callable[..., Ruling]


def a_question(
    operation: Operation = Operation.START,
    *,
    roles: frozenset[str] = frozenset({"refund_clerk"}),
    who: PrincipalRef = SOMEBODY,
    tenant: str = "acme",
    task_tenant: str = "acme",
    owner: PrincipalRef = CLERK,
    required_role: str = "",
    requester_excluded: bool = True,
    workflow: str = "refund",
    groups: frozenset[str] = frozenset(),
    attributes: dict[str, Scalar] | None = None,
) -> Question:
    """Ask about a refund of 450.00 that clerk-1 owns."""
    return Question(
        principal=Principal(ref=who, tenant=tenant, roles=roles, groups=groups),
        operation=operation,
        resource=Resource(
            tenant=task_tenant,
            workflow=workflow,
            task_id="tsk_1",
            stage="received",
            owner=owner.key,
            required_role=required_role,
            requester_excluded=requester_excluded,
        ),
        attributes={"amount_minor": 45_000, "currency": "EUR"} if attributes is None else attributes,
    )


@dataclass
class Bench:
    """Refund policies of the test's own making, and everything that was audited."""

    audited: list[PolicyFault] = field(default_factory=list)

    def authoriser(self, policies: str | None = None, **changes: object) -> CedarAuthoriser:
        refund = discover()["refund"]
        workflow = refund if policies is None else replace(refund, policies=policies)
        changed: Workflow = replace(workflow, **changes)  # type: ignore[arg-type]
        return CedarAuthoriser({"refund": changed}, audit=self.audited.append)


@pytest.fixture
def bench() -> Bench:
    """Make a bench that nothing was audited on."""
    return Bench()
