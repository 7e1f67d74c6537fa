"""What the ledger says about the open action, and what that means for its task (gate 5 and the last of gate 7)."""

from datetime import datetime
from typing import Final

from shared.domain.action import (
    Action,
    ActionRow,
    ActionStatus,
    EffectClass,
    LedgerStep,
    Verb,
    next_ledger_step,
    retry_pause,
)
from shared.domain.change import Reason, begin, move_to, publish, record_outcome, void_consumed, withdraw
from shared.domain.compensation import not_undone
from shared.domain.directive import Next, directive_for, unsettled_action, until
from shared.domain.dispatch import Hindrance, Obstacle, obstacle_to_sending
from shared.domain.situation import Move, Situation, committed, expiry, planned, to_review
from shared.domain.status import Status
from shared.domain.steps import take
from shared.domain.workflow import Review

# Statuses that already say that something is open; reconciling does not move a task out of them.
SAYS_UNKNOWN: Final = frozenset({Status.OUTCOME_UNKNOWN, Status.CANCEL_REQUESTED, Status.COMPENSATING})


def outcome_of_action(s: Situation) -> Move | None:
    """Gate 5: an action's outcome is what the ledger says, and the ledger's rules say what may be done about it."""
    action = unsettled_action(s.task)
    if action is None:
        return None
    row = s.live.row
    if row is None or row.digest != action.digest:
        return to_review(s, 5, f"the ledger's row for {action.operation} is missing or differs from the record")
    obstacle = obstacle_to_sending(s.task, action, s.workflow, s.live.rights, now=s.now)
    rules = s.workflow.tools[action.spec.tool].rules
    step = next_ledger_step(row, rules, now=s.now, may_send=obstacle is None)
    if step.verb is Verb.ANSWER:
        return _settled(s, action, row)
    return _unsettled(s, action, row, step, obstacle)


def _unsettled(s: Situation, action: Action, row: ActionRow, step: LedgerStep, obstacle: Obstacle | None) -> Move:
    if step.verb is Verb.WITHHOLD and obstacle is not None:
        return _withheld(s, action, obstacle)
    if step.verb is Verb.REVIEW:
        return to_review(s, 5, _what_is_open(s, action, row, step))
    if step.verb is Verb.BUSY and row.lease_ends_at is not None:
        directive = until(directive_for(s.task, now=s.now), row.lease_ends_at, step.reason)
        return Move(gate=5, reason=step.reason, directive=directive)
    if row.status is ActionStatus.INTENT:
        return _send(s, row)
    return _reconcile(s, action, row, step.reason)


def _what_is_open(s: Situation, action: Action, row: ActionRow, step: LedgerStep) -> Reason:
    """Say what nobody knows, and for a task that is to end also everything else that still stands (B28)."""
    left = not_undone(s.task, s.workflow) if s.task.execution.is_ending else ()
    quotes = [*([row.reason] if row.reason else []), *([f"not undone: {'; '.join(left)}"] if left else [])]
    return Reason(says=f"{action.operation}: {step.reason}", quotes="; ".join(quotes))


def _settled(s: Situation, action: Action, row: ActionRow) -> Move:
    tool = s.workflow.tools[action.spec.tool]
    done = row.status is ActionStatus.DONE
    because = Reason(
        says=f"{action.spec.tool} {'is done' if done else 'was refused'}", quotes="" if done else row.reason
    )
    change = begin(s.task, because=because, ground=s.ground)
    change = record_outcome(change, action, row, fact=tool.fact)
    return planned(s, 5, change)


def _withheld(s: Situation, action: Action, obstacle: Obstacle) -> Move:
    """Nothing was sent and the reason to send it is gone: take the intent back and go on from there."""
    change = withdraw(begin(s.task, because=f"not performed: {obstacle.reason}", ground=s.ground), action)
    change = void_consumed(change, action)
    stage = s.task.business.stage
    match obstacle.kind:
        case Hindrance.OWNER:
            return committed(s, 2, take(Review(stage=stage, reason=obstacle.reason), change, s.ground))
        case Hindrance.DEADLINE:
            return committed(s, 5, take(expiry(stage), change, s.ground))
        case _:
            return planned(s, 5, change)


def _send(s: Situation, row: ActionRow) -> Move:
    """Nothing was sent yet: send it, after a pause that grows with every try."""
    if row.attempts > 0 and row.settled_at is not None:
        not_before = row.settled_at + retry_pause(row.attempts)
        if s.now < not_before:
            return _paused(s, row, not_before)
    return Move(gate=5, reason="the action is due", directive=directive_for(s.task, now=s.now))


def _paused(s: Situation, row: ActionRow, not_before: datetime) -> Move:
    """Wait for the next try. A task that was on its way says so, so that the queue shows who waits for what."""
    change, task = None, s.task
    if task.business.status is Status.READY:
        change = begin(task, because=Reason(says=f"{row.tool} could not be sent", quotes=row.reason), ground=s.ground)
        change = move_to(change, status=Status.WAITING_RETRY, stage=task.business.stage, ground=s.ground)
        task = change.task
    directive = until(directive_for(task, now=s.now), not_before, row.reason)
    return Move(gate=5, reason=row.reason, directive=directive, change=change)


def _reconcile(s: Situation, action: Action, row: ActionRow, reason: str) -> Move:
    """An effect was dispatched and its outcome is not known: say so in the record, then ask, with growing pauses."""
    tries = row.attempts + row.lookups
    not_before = row.settled_at + retry_pause(tries) if row.settled_at is not None else s.now
    change = None
    task = s.task
    if action.effect is not EffectClass.READ and s.task.business.status not in SAYS_UNKNOWN:
        change = begin(s.task, because=f"{action.spec.tool}: outcome unknown; {reason}"[:500], ground=s.ground)
        change = move_to(change, status=Status.OUTCOME_UNKNOWN, stage=s.task.business.stage, ground=s.ground)
        change = publish(change, "action.outcome_unknown", operation=action.operation)
        task = change.task
    directive = directive_for(task, now=s.now).model_copy(update={"next": Next.RECONCILE, "reason": reason})
    if s.now < not_before:
        directive = until(directive, not_before, reason)
    return Move(gate=5, reason=reason, directive=directive, change=change)
