"""The resume protocol after the record is loaded: rules in gate order; the first that has something to say wins.

Gate 1 (the trigger is this task's execution) and gate 3 (the record is intact) are passed before the rules see a
task; `superseded` and `closed` are what is left of gate 1. Gate 2 is `owner_may_resume` and `not_frozen`, gate 4
`versions_in_force`, gate 5 everything that re-validates: deadlines, the ledger, approvals. Gate 6 follows a
move that asks the model; gate 7 is `proposal` here and the ledger in `perform`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
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
from shared.domain.approval import ApprovalStatus
from shared.domain.authority import Operation, Question
from shared.domain.change import (
    Change,
    Ground,
    begin,
    count_attempts,
    explain,
    move_to,
    publish,
    record_outcome,
    restamp,
    settle_waits,
    start_run,
    void_approvals,
    void_consumed,
    withdraw,
)
from shared.domain.checkpoint import Checkpoint
from shared.domain.compensation import not_undone
from shared.domain.deadline import end_wait
from shared.domain.directive import Directive, Next, directive_for, unsettled_action, until
from shared.domain.dispatch import Hindrance, LiveRights, Obstacle, approval_flaw, obstacle_to_sending, resource_of
from shared.domain.errors import InvalidRequest
from shared.domain.proposal import REFUSALS_MAX, Proposal, Refusal, Residue, read_proposal
from shared.domain.status import Status
from shared.domain.steps import plan, take
from shared.domain.wait import WaitStatus
from shared.domain.workflow import AskModel, Compensate, PerformAction, Review, Step, Workflow

# An execution's history ends at 25,000 events. A pass of the hub that uses up every retry adds some 75 of them.
HOPS_MAX: Final = 300
# Wake-ups in a row that moved nothing. The longest legal story of one action, every attempt and look-up killed and
# paused for, stays below; past it something keeps failing before it can be counted anywhere else (B63).
IDLE_MAX: Final = 60
# The gate whose pauses are no idleness: a freeze may last as long as it likes.
FREEZE_GATE: Final = 2
# How soon a task that has to stand still looks again whether it may go on.
STANDSTILL_PAUSE: Final = timedelta(minutes=5)

# Statuses that already say that something is open; reconciling does not move a task out of them.
SAYS_UNKNOWN: Final = frozenset({Status.OUTCOME_UNKNOWN, Status.CANCEL_REQUESTED, Status.COMPENSATING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """What was read for this wake-up, beside the record: authority, the ledger's row, the model's answer."""

    run: int
    hops: int
    idle: int
    rights: LiveRights
    freeze: str | None
    row: ActionRow | None
    residue: Residue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A verified task and everything live that the rules may look at."""

    task: Checkpoint
    ground: Ground
    live: Live

    @property
    def workflow(self) -> Workflow:
        """The task's workflow."""
        return self.ground.workflow

    @property
    def now(self) -> datetime:
        """The instant of this wake-up."""
        return self.ground.now


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What a wake-up comes to: a change to commit, if any; what the machine does next; a model turn, if one is due."""

    gate: int
    reason: str
    directive: Directive
    change: Change | None = None
    ask: AskModel | None = None


def decide(situation: Situation) -> Move:
    """Return the move of the first rule that has something to say."""
    for rule in RULES:
        move = rule(situation)
        if move is not None:
            return move
    return _next_step(situation)


def superseded(s: Situation) -> Move | None:
    """Gate 1: only the execution that owns the task may move it; an older run ends quietly (B61)."""
    if s.live.run == s.task.execution.run:
        return None
    directive = directive_for(s.task, now=s.now).model_copy(
        update={"next": Next.SUPERSEDED, "run": s.live.run, "reason": "another run owns the task"}
    )
    return Move(gate=1, reason=directive.reason, directive=directive)


def closed(s: Situation) -> Move | None:
    """Gate 1: a task that has ended stays ended."""
    if not s.task.closed:
        return None
    return Move(gate=1, reason="the task has ended", directive=directive_for(s.task, now=s.now))


def handed_over(s: Situation) -> Move | None:
    """Hand the task to a new execution before the history limit, under the same task and keys."""
    if s.live.hops < HOPS_MAX:
        return None
    change = begin(s.task, because="a new execution takes over before the history limit", ground=s.ground)
    change = start_run(change, s.task.execution.run + 1)
    directive = directive_for(change.task, now=s.now).model_copy(
        update={"next": Next.CONTINUE_AS_NEW, "run": s.task.execution.run}
    )
    return Move(gate=1, reason="history limit", directive=directive, change=change)


def not_frozen(s: Situation) -> Move | None:
    """Gate 2: a freeze stops every step until it is lifted; the task keeps its status."""
    if s.live.freeze is None:
        return None
    directive = until(directive_for(s.task, now=s.now), s.now + STANDSTILL_PAUSE, f"frozen: {s.live.freeze}")
    return Move(gate=FREEZE_GATE, reason=directive.reason, directive=directive)


def owner_may_resume(s: Situation) -> Move | None:
    """Gate 2: the owner's right is read live; without it the task goes to a person."""
    owner = s.live.rights.owner
    if owner is None:
        return _review(s, 2, "the owner is unknown to the authority store or disabled")
    ruling = s.live.rights.rule(Question(principal=owner, operation=Operation.RESUME, resource=resource_of(s.task)))
    if ruling.allowed:
        return None
    return _review(s, 2, f"the owner may not go on with this task: {ruling.reason}")


def versions_in_force(s: Situation) -> Move | None:
    """Gate 4: policy, tools, prompt or model changed; approvals given under the old ones are void and asked again."""
    if s.task.stamps == s.ground.stamps:
        return None
    change = begin(s.task, because="versions changed; the task is judged again under those in force", ground=s.ground)
    change = restamp(change, s.ground.stamps)
    old, new = s.task.stamps, s.ground.stamps
    if (old.policy, old.catalogue, old.workflow) == (new.policy, new.catalogue, new.workflow):
        return _plan(s, 4, change)
    return _plan(s, 4, void_approvals(settle_waits(change, WaitStatus.VOID)))


def outcome_of_action(s: Situation) -> Move | None:
    """Gate 5: an action's outcome is what the ledger says, and the ledger's rules say what may be done about it."""
    action = unsettled_action(s.task)
    if action is None:
        return None
    row = s.live.row
    if row is None or row.digest != action.digest:
        return _review(s, 5, f"the ledger's row for {action.operation} is missing or differs from the record")
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
        return _review(s, 5, _what_is_open(s, action, row, step))
    if step.verb is Verb.BUSY and row.lease_ends_at is not None:
        directive = until(directive_for(s.task, now=s.now), row.lease_ends_at, step.reason)
        return Move(gate=5, reason=step.reason, directive=directive)
    if row.status is ActionStatus.INTENT:
        return _send(s, row)
    return _reconcile(s, action, row, step.reason)


def _what_is_open(s: Situation, action: Action, row: ActionRow, step: LedgerStep) -> str:
    """Say what nobody knows, and for a task that is to end also everything else that still stands (B28)."""
    said = f"{action.operation}: {step.reason}" + (f" ({row.reason})" if row.reason else "")
    if not s.task.execution.is_ending:
        return said
    left = not_undone(s.task, s.workflow)
    return said + (f"; not undone: {'; '.join(left)}" if left else "")


def cancellation(s: Situation) -> Move | None:
    """Nothing is in flight any more: undo what can be undone, and end by naming what could not."""
    if s.task.business.status is not Status.CANCEL_REQUESTED:
        return None
    return _plan(s, 5, begin(s.task, because="nothing is in flight any more", ground=s.ground))


def compensation(s: Situation) -> Move | None:
    """Go on undoing, newest first."""
    if s.task.business.status is not Status.COMPENSATING:
        return None
    return _plan(s, 5, begin(s.task, because="compensation goes on", ground=s.ground))


def released(s: Situation) -> Move | None:
    """Gate 5: a task that was on its way to an end or to a person when it was quarantined goes on there."""
    execution = s.task.execution
    headed = execution.is_ending or execution.cancel is not None or execution.hold is not None
    if s.task.business.status is not Status.RESUME_VALIDATION or not headed:
        return None
    return _plan(s, 5, begin(s.task, because="released from quarantine", ground=s.ground))


def task_deadline(s: Situation) -> Move | None:
    """Gate 5: the whole task's deadline, apart from any wait's."""
    if s.now < s.task.business.deadline_at or s.task.execution.ending is not None:
        return None
    change = begin(s.task, because="the task's deadline has passed", ground=s.ground)
    return _committed(s, 5, take(_expiry(s.task.business.stage), change, s.ground))


def _expiry(stage: str) -> Compensate:
    return Compensate(stage=stage, status=Status.EXPIRED, outcome="expired at the task's deadline")


def wait_still_open(s: Situation) -> Move | None:
    """Gate 5: a wait is open: keep waiting, or act on its deadline, which the wait owns and no timer does."""
    if not s.task.execution.waits:
        return None
    wait = s.task.execution.waits[0]
    if s.now < wait.deadline_at:
        return Move(gate=5, reason="the wait is open", directive=directive_for(s.task, now=s.now))
    return None


def not_stuck(s: Situation) -> Move | None:
    """Gate 5: a step that fails before it can even be counted is not tried for ever; a person looks."""
    if s.live.idle < IDLE_MAX:
        return None
    return _review(s, 5, f"{s.live.idle} wake-ups in a row moved nothing")


def past_wait(s: Situation) -> Move | None:
    """Gate 5: the wait's deadline has passed and nobody acted on it yet; its last rung acts now, once."""
    if not s.task.execution.waits:
        return None
    return _committed(s, 5, end_wait(s.task, s.task.execution.waits[0], s.ground))


def approvals_hold(s: Situation) -> Move | None:
    """Gate 5: a granted approval whose basis, term or approver's right is gone is void, and is asked for again."""
    flaws = {
        a.approval_id: flaw
        for a in s.task.security.approvals
        if a.status is ApprovalStatus.GRANTED
        and (flaw := approval_flaw(s.task, a, a.spec, s.workflow, s.live.rights, now=s.now)) is not None
    }
    if not flaws:
        return None
    change = begin(s.task, because=f"approval no longer holds: {next(iter(flaws.values()))}", ground=s.ground)
    return _plan(s, 5, void_approvals(change, lambda a: a.approval_id in flaws))


def proposal(s: Situation) -> Move | None:
    """Gate 7: take the model's advice through the workflow's judgement, or count a refusal."""
    if s.live.residue is None:
        return None
    step = s.workflow.next_step(s.workflow.view(s.task, now=s.now))
    if not isinstance(step, AskModel):
        return None
    read = read_proposal(s.live.residue, frozenset(s.workflow.stages[step.stage].tools))
    if isinstance(read, Refusal):
        return _refused(s, read)
    return _judged(s, read)


def _judged(s: Situation, read: Proposal) -> Move:
    try:
        step = s.workflow.judge(s.workflow.view(s.task, now=s.now), read)
    except InvalidRequest as error:
        return _refused(s, Refusal(reason=error.message[:300], worth_asking_again=True))
    if isinstance(step, PerformAction) and step.approval is not None and step.approval.status is ApprovalStatus.GRANTED:
        flaw = approval_flaw(s.task, step.approval, step.action, s.workflow, s.live.rights, now=s.now)
        if flaw is not None:
            return _review(s, 7, flaw)
    because = step.reason if isinstance(step, Review) else f"{read.tool} was proposed and judged"
    change = begin(s.task, because=because, ground=s.ground)
    change = count_attempts(
        change, change.task.attempts.model_copy(update={"refusals": 0, "turns": s.task.attempts.turns + 1})
    )
    return _committed(s, 7, take(step, change, s.ground))


def _refused(s: Situation, refusal: Refusal) -> Move:
    refusals = s.task.attempts.refusals + 1
    if refusals >= REFUSALS_MAX or not refusal.worth_asking_again:
        return _review(s, 7, f"no usable proposal after {refusals} answers: {refusal.reason}")
    change = begin(s.task, because=f"the proposal was refused: {refusal.reason}", ground=s.ground)
    turns = s.task.attempts.turns + 1
    change = count_attempts(change, change.task.attempts.model_copy(update={"refusals": refusals, "turns": turns}))
    return _plan(s, 7, change)


def _settled(s: Situation, action: Action, row: ActionRow) -> Move:
    tool = s.workflow.tools[action.spec.tool]
    said = "is done" if row.status is ActionStatus.DONE else f"was refused: {row.reason}"
    change = begin(s.task, because=f"{action.spec.tool} {said}"[:500], ground=s.ground)
    change = record_outcome(change, action, row, fact=tool.fact)
    return _plan(s, 5, change)


def _withheld(s: Situation, action: Action, obstacle: Obstacle) -> Move:
    """Nothing was sent and the reason to send it is gone: take the intent back and go on from there."""
    change = withdraw(begin(s.task, because=f"not performed: {obstacle.reason}", ground=s.ground), action)
    change = void_consumed(change, action)
    stage = s.task.business.stage
    match obstacle.kind:
        case Hindrance.OWNER:
            return _committed(s, 2, take(Review(stage=stage, reason=obstacle.reason), change, s.ground))
        case Hindrance.DEADLINE:
            return _committed(s, 5, take(_expiry(stage), change, s.ground))
        case _:
            return _plan(s, 5, change)


def _send(s: Situation, row: ActionRow) -> Move:
    """Nothing was sent yet: send it, after a pause that grows with every try."""
    directive = directive_for(s.task, now=s.now)
    if row.attempts > 0 and row.settled_at is not None:
        not_before = row.settled_at + retry_pause(row.attempts)
        if s.now < not_before:
            return Move(gate=5, reason=row.reason, directive=until(directive, not_before, row.reason))
    return Move(gate=5, reason="the action is due", directive=directive)


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


def _next_step(s: Situation) -> Move:
    step = s.workflow.next_step(s.workflow.view(s.task, now=s.now))
    business = s.task.business
    if isinstance(step, AskModel) and s.task.attempts.turns >= s.workflow.turns_max:
        return _review(s, 7, f"{s.task.attempts.turns} model turns have not brought this task to an end")
    if isinstance(step, AskModel) and (step.stage, Status.READY) == (business.stage, business.status):
        return Move(gate=7, reason="a proposal is due", directive=directive_for(s.task, now=s.now), ask=step)
    return _step(s, 7, begin(s.task, because=_reason_of(step), ground=s.ground), step)


def _plan(s: Situation, gate: int, change: Change) -> Move:
    return _step(s, gate, change, plan(change, s.ground))


def _step(s: Situation, gate: int, change: Change, step: Step) -> Move:
    if isinstance(step, AskModel) and change.task.attempts.turns >= s.workflow.turns_max:
        reason = f"{change.task.attempts.turns} model turns have not brought this task to an end"
        step = Review(stage=change.task.business.stage, reason=reason)
    ask = step if isinstance(step, AskModel) else None
    return _committed(s, gate, take(step, change, s.ground), ask=ask)


def _review(s: Situation, gate: int, reason: str) -> Move:
    change = explain(begin(s.task, because=reason[:500], ground=s.ground), reason)
    return _committed(s, gate, take(Review(stage=s.task.business.stage, reason=reason), change, s.ground))


def _committed(s: Situation, gate: int, change: Change, *, ask: AskModel | None = None) -> Move:
    return Move(
        gate=gate,
        reason=change.task.business.because,
        directive=directive_for(change.task, now=s.now),
        change=change,
        ask=ask,
    )


def _reason_of(step: Step) -> str:
    return step.reason if isinstance(step, Review) else "the next step is due"


RULES: Final[tuple[Callable[[Situation], Move | None], ...]] = (
    superseded,
    closed,
    handed_over,
    not_frozen,
    wait_still_open,
    past_wait,
    not_stuck,
    outcome_of_action,
    cancellation,
    compensation,
    released,
    owner_may_resume,
    task_deadline,
    versions_in_force,
    approvals_hold,
    proposal,
)
