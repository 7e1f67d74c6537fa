"""Perform: the action ledger. One operation, one step at a time: judge, claim, call, settle."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, NoReturn

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
from shared.domain.checkpoint import Checkpoint
from shared.domain.dispatch import Hindrance, Obstacle, freeze_scopes, live_rights, obstacle_to_sending
from shared.domain.errors import ApprovalVoid, GateFailed, InvariantBroken, LeaseHeld
from shared.domain.identity import TaskKey
from shared.domain.workflow import Workflow
from shared.ports.tool_gateway import ToolOperation
from shared.usecases.engine import PerformDeps
from shared.usecases.stored_task import load_task

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
        GateFailed: a freeze, a cancellation, the task's deadline or its owner's rights stand in the way, or the record
            does not ask for this operation; nothing was dispatched.
        Untrusted: the record is quarantined or has to be; nothing was dispatched.

    If killed here:
        Before the claim nothing happened. After it the row is in flight under a lease that lapses, and the next
        attempt asks or repeats as the effect class allows. After the settlement the outcome is known.
    """
    loaded = load_task(command.key, deps.tasks, version_hint=command.version_hint)
    task = loaded.task
    action = _action(task, command.operation)
    workflow = deps.tasks.workflows[task.business.workflow]
    obstacle = _judge_again(task, action, workflow, deps)
    held, verb = _claim(command.key, action, workflow, obstacle, deps)
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
    if action is None or action.status in SETTLED or task.execution.waits:
        # An open wait says that the task stands still: whoever comes now is late.
        msg = f"the record does not ask for {operation}"
        raise GateFailed(msg)
    return action


def _judge_again(task: Checkpoint, action: Action, workflow: Workflow, deps: PerformDeps) -> Obstacle | None:
    """The last look before dispatch: freezes, the owner's right, the approval and its approvers, read live (B06)."""
    approval = task.approval(action.approval_id) if action.approval_id else None
    people = (task.business.owner, *(approval.approvers if approval else ()))
    read = deps.rights.authority.read(tuple(dict.fromkeys(people)), freezes=freeze_scopes(task, action))
    if read.freeze is not None:
        msg = f"frozen: {read.freeze}"
        raise GateFailed(msg)
    rights = live_rights(task, read.principals, deps.rights.authoriser.rule)
    return obstacle_to_sending(task, action, workflow, rights, now=deps.tasks.clock.now())


def _refuse(obstacle: Obstacle) -> NoReturn:
    if obstacle.kind is Hindrance.APPROVAL:
        raise ApprovalVoid(obstacle.reason)
    raise GateFailed(obstacle.reason)


def _claim(
    key: TaskKey, action: Action, workflow: Workflow, obstacle: Obstacle | None, deps: PerformDeps
) -> tuple[ActionRow, Verb]:
    """Claim the row for the one verb its rules allow now.

    The first try assumes a fresh intent, which is the usual case and saves a read; a lost claim answers with the row.
    """
    now = deps.tasks.clock.now()
    fresh = action.status is ActionStatus.INTENT and obstacle is None
    row = _try(key, action.operation, 0, Verb.SEND, now, deps) if fresh else None
    if row is not None and row[0]:
        return row[1], Verb.SEND
    current = row[1] if row is not None else deps.ledger.get(key, action.operation)
    if current is None or current.digest != action.digest:
        msg = f"the ledger's row for {action.operation} is missing or differs from the record"
        raise InvariantBroken(msg)
    rules = workflow.tools[action.spec.tool].rules
    step = next_ledger_step(current, rules, now=now, may_send=obstacle is None)
    if step.verb in {Verb.ANSWER, Verb.REVIEW}:
        return current, step.verb
    if step.verb is Verb.BUSY:
        raise LeaseHeld(step.reason)
    if step.verb is Verb.WITHHOLD and obstacle is not None:
        _refuse(obstacle)
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
