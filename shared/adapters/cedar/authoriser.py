"""The authoriser on Cedar. The library's Allow is believed only when nothing at all went wrong on the way to it.

Cedar skips a policy that errors. A `forbid` that errors would then let a broad `permit` win, so any diagnostic denies.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from shared.adapters.cedar.policy_set import BrokenPolicies, PolicySet, load_policies
from shared.domain.authority import Operation, Principal, Question, Resource, Ruling
from shared.domain.errors import InvariantBroken
from shared.domain.workflow import Workflow

# What the schema gives the workflow's attributes to. Other operations are asked without them.
_ABOUT_ATTRIBUTES: Final = frozenset(
    {Operation.START, Operation.READ, Operation.DECIDE, Operation.ANSWER, Operation.DISPATCH}
)
_DETAIL_CHARACTERS_MAX: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFault:
    """A question that the policies could not answer: for the audit, and for whoever has to mend them."""

    operation: str
    principal: str
    tenant: str
    workflow: str
    task_id: str
    detail: str


class CedarAuthoriser:
    """Core policies and each workflow's, parsed and checked at the first question about the workflow.

    Broken policies deny every question about their workflow until a release mends them; other workflows go on.
    """

    def __init__(self, workflows: Mapping[str, Workflow], *, audit: Callable[[PolicyFault], None]) -> None:
        self._workflows = workflows
        self._audit = audit
        self._loaded: dict[str, PolicySet | BrokenPolicies] = {}

    def rule(self, question: Question) -> Ruling:
        """Answer a question; see the port. Every fault is audited before it is answered with a deny."""
        loaded = self._policies_of(question.resource.workflow)
        if isinstance(loaded, BrokenPolicies):
            return self._deny_faulty(question, "the policies cannot be used", detail=str(loaded))
        wrong = _wrong_attributes(question, loaded)
        if wrong:
            return self._deny_faulty(question, f"a policy's attributes are not as declared: {', '.join(wrong)}")
        try:
            return self._evaluate(question, loaded)
        except Exception as error:  # noqa: BLE001 - whatever the library does, the answer is a deny with an audit line
            return self._deny_faulty(question, "the policies could not be evaluated", detail=repr(error))

    def _policies_of(self, workflow: str) -> PolicySet | BrokenPolicies:
        if workflow not in self._loaded:
            self._loaded[workflow] = self._load(workflow)
        return self._loaded[workflow]

    def _load(self, name: str) -> PolicySet | BrokenPolicies:
        workflow = self._workflows.get(name)
        if workflow is None:
            return BrokenPolicies(f"there is no workflow {name}")
        try:
            return load_policies(workflow)
        except BrokenPolicies as broken:
            return broken

    def _evaluate(self, question: Question, loaded: PolicySet) -> Ruling:
        import cedarpy  # noqa: PLC0415 - loaded already, by the policies

        principal = {"type": "Principal", "id": question.principal.ref.key}
        resource = {"type": "Task", "id": question.resource.task_id}
        answer = cedarpy.is_authorized(
            request={
                "principal": principal,
                "action": {"type": "Action", "id": str(question.operation)},
                "resource": resource,
                "context": _context(question, loaded),
            },
            policies=loaded.policies,
            entities=[
                {"uid": principal, "attrs": _principal_attributes(question.principal), "parents": []},
                {"uid": resource, "attrs": _task_attributes(question.resource), "parents": []},
            ],
            schema=loaded.schema,
        )
        errors = answer.diagnostics.errors
        policies = tuple(sorted(loaded.names[number] for number in answer.diagnostics.reasons))
        if errors or answer.decision is cedarpy.Decision.NoDecision:
            return self._deny_faulty(
                question, "a policy could not be evaluated", detail="; ".join(_named(e, loaded) for e in errors)
            )
        if answer.decision is not cedarpy.Decision.Allow:
            reason = f"forbidden by {', '.join(policies)}" if policies else f"no policy permits {question.operation}"
            return Ruling(allowed=False, reason=reason, policies=policies)
        return Ruling(allowed=True, reason=f"permitted by {', '.join(policies)}", policies=policies)

    def _deny_faulty(self, question: Question, reason: str, *, detail: str | None = None) -> Ruling:
        self._audit(
            PolicyFault(
                operation=str(question.operation),
                principal=question.principal.ref.key,
                tenant=question.principal.tenant,
                workflow=question.resource.workflow,
                task_id=question.resource.task_id,
                detail=(detail or reason)[:_DETAIL_CHARACTERS_MAX],
            )
        )
        return Ruling(allowed=False, reason=f"denied for safety: {reason}")


def require_valid_policies(workflows: Mapping[str, Workflow]) -> None:
    """Check the policies of all workflows, before they are deployed.

    Raises:
        InvariantBroken: names every workflow whose policies cannot be used, and why.
    """
    faults = []
    for workflow in workflows.values():
        try:
            load_policies(workflow)
        except BrokenPolicies as broken:
            faults.append(str(broken))
    if faults:
        raise InvariantBroken("; ".join(faults))


def _wrong_attributes(question: Question, loaded: PolicySet) -> list[str]:
    # Cedar checks this too; here the fault gets a name without the value that caused it.
    if question.operation not in _ABOUT_ATTRIBUTES:
        return []
    given = question.attributes
    return [
        f"{name} is missing" if given.get(name) is None else f"{name} is not of type {kind.__name__}"
        for name, kind in sorted(loaded.attributes.items())
        if type(given.get(name)) is not kind
    ]


def _context(question: Question, loaded: PolicySet) -> dict[str, object]:
    if question.operation not in _ABOUT_ATTRIBUTES:
        return {}
    return {name: question.attributes[name] for name in loaded.attributes}


def _principal_attributes(principal: Principal) -> dict[str, object]:
    attributes: dict[str, object] = {
        "tenant": principal.tenant,
        "subject": principal.ref.subject,
        "roles": sorted(principal.roles),
        "groups": sorted(principal.groups),
    }
    if principal.authenticated_seconds_ago is not None:
        attributes["authenticated_seconds_ago"] = principal.authenticated_seconds_ago
    return attributes


def _task_attributes(resource: Resource) -> dict[str, object]:
    return {
        "tenant": resource.tenant,
        "workflow": resource.workflow,
        "task_id": resource.task_id,
        "stage": resource.stage,
        "owner": {"__entity": {"type": "Principal", "id": resource.owner}},
        "required_role": resource.required_role,
        "requester_excluded": resource.requester_excluded,
    }


def _named(error: str, loaded: PolicySet) -> str:
    for number, name in loaded.names.items():
        error = error.replace(f"`{number}`", f"`{name}`")
    return error
