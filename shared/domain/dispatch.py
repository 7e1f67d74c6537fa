"""Dispatch: may this action leave the system now? The same question at every wake-up and right before the call.

Finding out what happened needs nobody's permission; sending, and sending again, does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from shared.domain.action import Action, ActionSpec, Arguments
from shared.domain.approval import Approval, approval_digest
from shared.domain.authority import Operation, Principal, Question, Resource, Ruling
from shared.domain.checkpoint import Checkpoint
from shared.domain.workflow import Workflow


class Hindrance(StrEnum):
    """What kind of thing stands in the way of sending an action."""

    CANCELED = "canceled"
    DEADLINE = "deadline"
    OWNER = "owner"
    APPROVAL = "approval"
    FACTS = "facts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Why an action may not be sent now."""

    kind: Hindrance
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRights:
    """Authority as it was read for this moment: the task's owner, the approvers, and the policies."""

    owner: Principal | None
    principals: Mapping[str, Principal]
    rule: Callable[[Question], Ruling]


def live_rights(
    task: Checkpoint, principals: Mapping[str, Principal], rule: Callable[[Question], Ruling]
) -> LiveRights:
    """Take the principals that were read for a task. Whoever moved to another tenant owns and decides nothing here."""
    here = {key: principal for key, principal in principals.items() if principal.tenant == task.security.tenant}
    return LiveRights(owner=here.get(task.business.owner.key), principals=here, rule=rule)


def freeze_scopes(task: Checkpoint, action: Action | None) -> tuple[str, ...]:
    """The freezes that would stop this task now: everything, its tenant, its workflow, the tool it is about to use."""
    scopes = start_scopes(task.security.tenant, task.business.workflow)
    return scopes if action is None else (*scopes, f"tool#{action.spec.tool}")


def start_scopes(tenant: str, workflow: str) -> tuple[str, ...]:
    """The freezes that would stop a tenant's task of a workflow from starting."""
    return ("all", f"tenant#{tenant}", f"workflow#{workflow}")


def obstacle_to_sending(
    task: Checkpoint, action: Action, workflow: Workflow, rights: LiveRights, *, now: datetime
) -> Obstacle | None:
    """Say what stands in the way of sending an action now, or None.

    An undo serves to end a task, so neither its cancellation, its deadline nor its owner's rights keep it back.
    """
    if action.undoes is None:
        gone = _reason_gone(task, action, workflow, rights, now=now)
        if gone is not None:
            return gone
    if action.approval_id is None:
        return None
    flaw = _used_approval_flaw(task, action, workflow, rights, now=now)
    if flaw is not None:
        return Obstacle(kind=Hindrance.APPROVAL, reason=flaw)
    stale = None if action.undoes else workflow.stale_reading(task, action.spec.tool, now=now)
    return None if stale is None else Obstacle(kind=Hindrance.FACTS, reason=f"{stale} has to be read again")


def approval_flaw(
    task: Checkpoint, approval: Approval, spec: ActionSpec, workflow: Workflow, rights: LiveRights, *, now: datetime
) -> str | None:
    """Say why an approval does not cover an action now, or None.

    Its term, its digest over everything in force, and every approver's right are judged, all of them as they are now.
    """
    expected = approval_digest(task.key, workflow.name, spec, workflow.basis_of(task, spec.tool), approval.rule)
    flaw = approval.flaw(expected_digest=expected, now=now)
    return flaw or _approver_flaw(task, approval, workflow, rights)


def decide_question(task: Checkpoint, approval: Approval, principal: Principal, workflow: Workflow) -> Question:
    """May this principal decide this approval? The same question at the click, at every gate and at dispatch."""
    return Question(
        principal=principal,
        operation=Operation.DECIDE,
        resource=resource_of(task).model_copy(
            update={"required_role": approval.rule.role, "requester_excluded": approval.rule.requester_excluded}
        ),
        attributes=_attributes(task, approval.spec, workflow),
    )


def question_on_workflow(
    principal: Principal, operation: Operation, workflow: Workflow, attributes: Arguments
) -> Question:
    """May this principal do something that is not about one task, such as starting one?"""
    resource = Resource(
        tenant=principal.tenant,
        workflow=workflow.name,
        task_id="",
        stage=workflow.first_stage,
        owner=principal.ref.key,
    )
    return Question(principal=principal, operation=operation, resource=resource, attributes=attributes)


def resource_of(task: Checkpoint) -> Resource:
    """The task as policies see it."""
    return Resource(
        tenant=task.security.tenant,
        workflow=task.business.workflow,
        task_id=task.task_id,
        stage=task.business.stage,
        owner=task.business.owner.key,
    )


def _reason_gone(
    task: Checkpoint, action: Action, workflow: Workflow, rights: LiveRights, *, now: datetime
) -> Obstacle | None:
    if task.execution.cancel is not None:
        return Obstacle(kind=Hindrance.CANCELED, reason="it was canceled")
    if now >= task.business.deadline_at:
        return Obstacle(kind=Hindrance.DEADLINE, reason="the task's deadline has passed")
    refused = _owner_flaw(task, action, workflow, rights)
    return None if refused is None else Obstacle(kind=Hindrance.OWNER, reason=refused)


def _used_approval_flaw(
    task: Checkpoint, action: Action, workflow: Workflow, rights: LiveRights, *, now: datetime
) -> str | None:
    approval = task.approval(action.approval_id or "")
    if approval is None:
        return "the action's approval is not in the record"
    if approval.used_by != action.ordinal:
        return "the approval was used by another action"
    return approval_flaw(task, approval, action.spec, workflow, rights, now=now)


def _owner_flaw(task: Checkpoint, action: Action, workflow: Workflow, rights: LiveRights) -> str | None:
    if rights.owner is None:
        return "the owner is unknown to the authority store or disabled"
    ruling = rights.rule(
        Question(
            principal=rights.owner,
            operation=Operation.DISPATCH,
            resource=resource_of(task),
            attributes=_attributes(task, action.spec, workflow),
        )
    )
    return None if ruling.allowed else f"the owner may not have this done: {ruling.reason}"


def _approver_flaw(task: Checkpoint, approval: Approval, workflow: Workflow, rights: LiveRights) -> str | None:
    for ref in approval.approvers:
        principal = rights.principals.get(ref.key)
        if principal is None:
            return f"approver {ref.subject} is unknown or disabled"
        ruling = rights.rule(decide_question(task, approval, principal, workflow))
        if not ruling.allowed:
            return f"approver {ref.subject} may no longer approve this: {ruling.reason}"
    return None


def _attributes(task: Checkpoint, spec: ActionSpec, workflow: Workflow) -> Arguments:
    # The action's own values, and the request's where the action says nothing about them.
    return workflow.attributes({**task.business.request, **spec.arguments})
