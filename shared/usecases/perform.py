"""Perform: the action ledger. One operation, one step at a time: judge, claim, call, settle."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from shared.domain.action import (
    ACTION_LEASE,
    SETTLED,
    Action,
    ActionRow,
    ActionStatus,
    Verb,
    next_ledger_step,
    settlement_of,
)
from shared.domain.approval import Approval, Basis, approval_digest
from shared.domain.checkpoint import Checkpoint
from shared.domain.errors import ApprovalVoid, GateFailed, InvariantBroken, LeaseHeld
from shared.domain.evidence import evidence_digest
from shared.domain.identity import TaskKey
from shared.domain.resume import approver_flaw
from shared.domain.workflow import Workflow
from shared.ports.tool_gateway import ToolOperation
from shared.usecases.engine import PerformDeps
from shared.usecases.stored_task import load_task
from shared.usecases.wake import freeze_scopes

_CALLS: Final = {Verb.SEND: ToolOperation.PERFORM, Verb.LOOK_UP: ToolOperation.LOOKUP}


@dataclass(frozen=True, slots=True, kw_only=True)
class PerformAction:
    """The machine's request to bring one operation forward."""

    key: TaskKey
    operation: str
    version_hint: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Performed:
    """How the ledger stands after this attempt. The machine carries it for its reader; `Wake` reads the ledger."""

    operation: str
    status: ActionStatus
    reason: str


def perform(command: PerformAction, deps: PerformDeps) -> Performed:
    """Bring an operation as far as its rules allow: send it, ask for its outcome, or answer with what is known.

    Raises:
        LeaseHeld: another attempt is at work; nothing was dispatched (B22).
        ApprovalVoid: the approval does not hold at the moment of use; nothing was dispatched.
        GateFailed: a freeze applies, or the record does not ask for this operation; nothing was dispatched.
        Untrusted: the record is quarantined or has to be; nothing was dispatched.

    If killed here:
        Before the claim nothing happened. After it the row is in flight under a lease that lapses, and the next
        attempt asks or repeats as the effect class allows. After the settlement the outcome is known.
    """
    loaded = load_task(command.key, deps.tasks, version_hint=command.version_hint)
    task = loaded.task
    action = _action(task, command.operation)
    workflow = deps.tasks.workflows[task.business.workflow]
    _judge_again(task, action, workflow, deps)
    held, verb = _claim(command.key, action, workflow, deps)
    if held.status in SETTLED or verb is Verb.ANSWER:
        return Performed(operation=action.operation, status=held.status, reason=held.reason)
    if verb is Verb.REVIEW:
        return Performed(operation=action.operation, status=held.status, reason="a person has to decide")
    reply = deps.tools.call(action.spec.tool, _CALLS[verb], key=action.operation, arguments=dict(action.spec.arguments))
    settled = deps.ledger.settle(
        command.key,
        action.operation,
        settlement_of(reply, held, asked=verb),
        fence=held.fence,
        now=deps.tasks.clock.now(),
    )
    return Performed(operation=action.operation, status=settled.status, reason=settled.reason)


def _action(task: Checkpoint, operation: str) -> Action:
    action = task.action(operation)
    if action is None or action.status in SETTLED:
        msg = f"the record does not ask for {operation}"
        raise GateFailed(msg)
    return action


def _judge_again(task: Checkpoint, action: Action, workflow: Workflow, deps: PerformDeps) -> None:
    """The last look before dispatch: freezes, and the approval with its approvers' rights, all read live (B06)."""
    approval = task.approval(action.approval_id) if action.approval_id else None
    approvers = approval.approvers if approval else ()
    scopes = (*freeze_scopes(task), f"tool#{action.spec.tool}")
    live = deps.rights.authority.read(approvers, freezes=scopes)
    if live.freeze is not None:
        msg = f"frozen: {live.freeze}"
        raise GateFailed(msg)
    if action.approval_id is None:
        return
    if approval is None:
        msg = "the action's approval is not in the record"
        raise ApprovalVoid(msg)
    flaw = approval.flaw(
        expected_digest=_digest(task, action, approval, workflow), now=deps.tasks.clock.now()
    ) or approver_flaw(task, approval, live.principals, deps.rights.authoriser.rule, workflow)
    if flaw is None and approval.used_by != action.ordinal:
        flaw = "the approval was used by another operation"
    if flaw is not None:
        raise ApprovalVoid(flaw)


def _digest(task: Checkpoint, action: Action, approval: Approval, workflow: Workflow) -> str:
    basis = Basis(
        request_version=approval.basis.request_version,
        evidence=evidence_digest(task.references.evidence),
        policy=workflow.policy,
        catalogue=workflow.catalogue,
    )
    return approval_digest(task.key, workflow.name, action.spec, basis)


def _claim(key: TaskKey, action: Action, workflow: Workflow, deps: PerformDeps) -> tuple[ActionRow, Verb]:
    """Claim the row for the one verb its rules allow now.

    The first try assumes a fresh intent, which is the usual case and saves a read; a lost claim answers with the row.
    """
    now = deps.tasks.clock.now()
    row = _try(key, action.operation, 0, Verb.SEND, now, deps) if action.status is ActionStatus.INTENT else None
    if row is not None and row[0]:
        return row[1], Verb.SEND
    current = row[1] if row is not None else deps.ledger.get(key, action.operation)
    if current is None or current.digest != action.digest:
        msg = f"the ledger's row for {action.operation} is missing or differs from the record"
        raise InvariantBroken(msg)
    step = next_ledger_step(current, workflow.tools[action.spec.tool].rules, now=now)
    if step.verb in {Verb.ANSWER, Verb.REVIEW}:
        return current, step.verb
    if step.verb is Verb.BUSY:
        raise LeaseHeld(step.reason)
    won, claimed = _try(key, action.operation, current.fence, step.verb, now, deps)
    if not won:
        msg = "another attempt claimed the operation first"
        raise LeaseHeld(msg)
    return claimed, step.verb


def _try(
    key: TaskKey, operation: str, fence: int, verb: Verb, now: datetime, deps: PerformDeps
) -> tuple[bool, ActionRow]:
    claim = deps.ledger.claim(
        key, operation, expected_fence=fence, verb=verb, now=now, lease_ends_at=now + ACTION_LEASE
    )
    if claim is None:
        msg = f"the ledger has no row for {operation}"
        raise InvariantBroken(msg)
    return claim.won, claim.row
