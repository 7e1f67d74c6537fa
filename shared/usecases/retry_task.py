"""Retry: a person has looked at a task in review and lets it try again."""

from shared.domain.action import SETTLED, Action, ActionRow, Verb, next_ledger_step
from shared.domain.authority import Operation
from shared.domain.change import Change, Ground, publish
from shared.domain.checkpoint import Checkpoint
from shared.domain.directive import unsettled_action
from shared.domain.errors import GateFailed, IllegalTransition, LeaseHeld, OutcomeUnknown
from shared.domain.review import retried
from shared.domain.status import Status
from shared.usecases.engine import ApiDeps
from shared.usecases.operator_command import OperatorCommand, ground_of, load_operated
from shared.usecases.stored_task import commit_change
from shared.usecases.summary import TaskSummary, summarise


def retry_task(command: OperatorCommand, deps: ApiDeps) -> TaskSummary:
    """End the review and let the task go on with fresh counts of refusals, attempts and look-ups.

    What was definitely refused is asked for and tried anew, under a new key; what was sent keeps its key.

    Raises:
        TaskNotFound, NotAuthorised, StaleCommand: nothing was changed.
        IllegalTransition: the task is not in review.
        LeaseHeld: an attempt is at work on the open action; come again.
        OutcomeUnknown: nobody can be asked about the open action; only settling it helps.
        GateFailed: the ledger does not agree with the record.

    If killed here:
        The action has its tries back and the task is still in review, which changes nothing; or all of it is done.
    """
    loaded = load_operated(command, Operation.RETRY, deps)
    task = loaded.task
    if task.business.status is not Status.NEEDS_REVIEW:
        msg = f"the task is {task.business.status} and not in review"
        raise IllegalTransition(msg)
    ground = ground_of(task, deps)
    action = unsettled_action(task)
    row = _renewed(task, action, ground, deps) if action else None
    change = retried(task, row, ground, because=command.sentence("retried"))
    return summarise(commit_change(_told(change, command), deps.tasks, previous=loaded).task)


def _told(change: Change, command: OperatorCommand) -> Change:
    return publish(change, "task.operated", command="retry", by=command.principal.ref.key)


def _renewed(task: Checkpoint, action: Action, ground: Ground, deps: ApiDeps) -> ActionRow:
    """Give the open action its tries back, if more tries could tell anything."""
    row = row_of(task, action, deps)
    if row.status in SETTLED:
        return row
    if row.lease_ends_at is not None and ground.now < row.lease_ends_at:
        msg = "an attempt is at work on the open action"
        raise LeaseHeld(msg)
    fresh = row.model_copy(update={"attempts": 0, "lookups": 0})
    step = next_ledger_step(fresh, ground.workflow.tools[action.spec.tool].rules, now=ground.now)
    if step.verb is Verb.REVIEW:
        msg = f"{action.operation}: {step.reason}; ask the provider and settle it"
        raise OutcomeUnknown(msg)
    return deps.ledger.renew(task.key, action.operation, fence=row.fence, now=ground.now)


def row_of(task: Checkpoint, action: Action, deps: ApiDeps) -> ActionRow:
    """Read the ledger's row of the record's open action.

    Raises:
        GateFailed: there is none, or it is of another action.
    """
    row = deps.ledger.get(task.key, action.operation)
    if row is None or row.digest != action.digest:
        msg = f"the ledger's row for {action.operation} is missing or differs from the record"
        raise GateFailed(msg)
    return row
