"""Settle: a person has asked the provider what became of an action, and says so with evidence."""

from dataclasses import dataclass
from typing import Final, Literal

from shared.domain.action import ACTION_LEASE, SETTLED, ActionRow, ActionStatus, EffectClass, Settlement, Verb
from shared.domain.authority import Operation
from shared.domain.change import publish
from shared.domain.checkpoint import Checkpoint
from shared.domain.errors import IllegalTransition, InvalidRequest, LeaseHeld, TaskClosed
from shared.domain.review import settled
from shared.usecases.engine import ApiDeps
from shared.usecases.operator_command import OperatorCommand, ground_of, load_operated
from shared.usecases.retry_task import row_of
from shared.usecases.stored_task import commit_change
from shared.usecases.summary import TaskSummary, summarise

_STATUSES: Final = {"done": ActionStatus.DONE, "failed": ActionStatus.FAILED}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleAction(OperatorCommand):
    """A person's word about one action.

    `reference` is the provider's own for what was done. `evidence` says where the word can be checked: a statement, a
    case of the provider's support.
    """

    operation: str
    outcome: Literal["done", "failed"]
    reference: str | None
    evidence: str


def settle_action(command: SettleAction, deps: ApiDeps) -> TaskSummary:
    """Record in the ledger what a person has found out, as their word, and let the task go on from there.

    The row is claimed like by any attempt, so that a late worker can no longer settle it otherwise.

    Raises:
        InvalidRequest: what was done has no reference.
        TaskNotFound, NotAuthorised, StaleCommand: nothing was changed.
        TaskClosed: the task has ended with what was true then; nothing is settled after it.
        IllegalTransition: there is no such action, its outcome is not unknown, or the ledger knows another one.
        LeaseHeld: an attempt is at work on it; come again.
        GateFailed: the ledger does not agree with the record.

    If killed here:
        Between claim and word the outcome is as unknown as before. With the word in the ledger the command may be
        repeated, and whoever wakes the task takes it from there.
    """
    if command.outcome == "done" and command.reference is None:
        msg = "body.reference: what was done has a reference of the provider's"
        raise InvalidRequest(msg)
    loaded = load_operated(command, Operation.SETTLE, deps)
    if loaded.task.closed:
        msg = f"the task has ended: {loaded.task.business.outcome}"
        raise TaskClosed(msg)
    row = _say(command, loaded.task, deps)
    sentence = command.sentence(f"{row.tool} settled as {command.outcome}")
    change = settled(loaded.task, row, ground_of(loaded.task, deps), because=sentence)
    change = publish(change, "task.operated", command="settle", by=command.principal.ref.key)
    return summarise(commit_change(change, deps.tasks, previous=loaded).task)


def _say(command: SettleAction, task: Checkpoint, deps: ApiDeps) -> ActionRow:
    """Put a person's word into the row; a repeat finds it there."""
    action = task.action(command.operation)
    if action is None or action.status in SETTLED:
        msg = f"the record has no open action {command.operation}"
        raise IllegalTransition(msg)
    row = row_of(task, action, deps)
    if row.status is _STATUSES[command.outcome] and row.reference == command.reference:
        return row
    if row.status in SETTLED or row.status is ActionStatus.INTENT or row.effect is EffectClass.READ:
        msg = f"{command.operation} is {row.status}, so there is nothing for a person to settle"
        raise IllegalTransition(msg)
    return _settle(command, task, row, deps)


def _settle(command: SettleAction, task: Checkpoint, row: ActionRow, deps: ApiDeps) -> ActionRow:
    now = deps.tasks.clock.now()
    claim = deps.ledger.claim(
        task.key,
        row.operation,
        expected_fence=row.fence,
        # A person looked it up, as far as the ledger is concerned: nothing is sent.
        verb=Verb.LOOK_UP,
        now=now,
        lease_ends_at=now + ACTION_LEASE,
    )
    if claim is None or not claim.won:
        msg = "an attempt is at work on the action"
        raise LeaseHeld(msg)
    word = Settlement(
        status=_STATUSES[command.outcome],
        reference=command.reference,
        facts={"settled_by": command.principal.ref.key, "evidence": command.evidence},
        reason=str(command.sentence(f"settled as {command.outcome}")),
    )
    return deps.ledger.settle(task.key, row.operation, word, fence=claim.row.fence, now=now)
