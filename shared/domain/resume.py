"""The resume protocol after the record is loaded: rules in gate order; the first that has something to say wins.

Gate 1 (the trigger is this task's execution) and gate 3 (the record is intact) are passed before the rules see a
task; `superseded` and `closed` are what is left of gate 1. Gate 2 is `not_frozen`, `owner_may_resume` and
`owner_may_start`, gate 4 `versions_in_force`, gate 5 everything that re-validates: deadlines, child tasks, the ledger,
approvals. Gate 6 follows a move that asks the model; gate 7 is `proposal` here and the ledger in `perform`.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from shared.domain.answer import child_ended
from shared.domain.approval import ApprovalStatus
from shared.domain.authority import Operation, Question
from shared.domain.change import begin, count_attempts, restamp, settle_waits, start_run, void_approvals
from shared.domain.child import wait_of
from shared.domain.deadline import end_wait
from shared.domain.directive import Next, directive_for, unsettled_action, until
from shared.domain.dispatch import approval_flaw, question_on_workflow, resource_of
from shared.domain.errors import InvalidRequest
from shared.domain.outcome import outcome_of_action
from shared.domain.proposal import REFUSALS_MAX, Proposal, Refusal, read_proposal
from shared.domain.situation import Move, Situation, committed, expiry, planned, step_taken, to_review
from shared.domain.status import Status
from shared.domain.steps import take
from shared.domain.wait import WaitStatus
from shared.domain.workflow import AskModel, Finish, PerformAction, Review, Step

# An execution's history ends at 25,000 events. A pass of the hub that uses up every retry adds some 75 of them.
HOPS_MAX: Final = 300
# Wake-ups in a row that moved nothing. The longest legal story of one action, every attempt and look-up killed and
# paused for, stays below; past it something keeps failing before it can be counted anywhere else (B63).
IDLE_MAX: Final = 60
# The gate whose pauses are no idleness: a freeze may last as long as it likes.
FREEZE_GATE: Final = 2
# How soon a task that has to stand still looks again whether it may go on.
STANDSTILL_PAUSE: Final = timedelta(minutes=5)


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


def child_has_ended(s: Situation) -> Move | None:
    """Gate 5: a child task's end is what its own record says. It is taken in where nothing else is waited for."""
    child = s.live.ended_child
    if child is None or unsettled_action(s.task) is not None:
        return None
    if s.task.execution.waits and wait_of(s.task, child) is None:
        return None
    return committed(s, 5, child_ended(s.task, child, s.ground))


def owner_may_resume(s: Situation) -> Move | None:
    """Gate 2: the owner's right is read live; without it the task goes to a person."""
    owner = s.live.rights.owner
    if owner is None:
        return to_review(s, 2, "the owner is unknown to the authority store or disabled")
    ruling = s.live.rights.rule(Question(principal=owner, operation=Operation.RESUME, resource=resource_of(s.task)))
    if ruling.allowed:
        return None
    return to_review(s, 2, f"the owner may not go on with this task: {ruling.reason}")


def owner_may_start(s: Situation) -> Move | None:
    """Gate 2: a child task was started by another's rules; its owner has to have the right to start it, live."""
    owner, task = s.live.rights.owner, s.task
    if task.execution.parent is None or task.version > 1 or owner is None:
        return None
    attributes = s.workflow.attributes(task.business.request)
    ruling = s.live.rights.rule(question_on_workflow(owner, Operation.START, s.workflow, attributes))
    if ruling.allowed:
        return None
    outcome = f"not started: {ruling.reason}"
    change = begin(task, because=outcome, ground=s.ground)
    return committed(
        s, 2, take(Finish(stage=task.business.stage, status=Status.FAILED, outcome=outcome[:500]), change, s.ground)
    )


def versions_in_force(s: Situation) -> Move | None:
    """Gate 4: policy, tools, prompt or model changed; approvals given under the old ones are void and asked again."""
    if s.task.stamps == s.ground.stamps:
        return None
    change = begin(s.task, because="versions changed; the task is judged again under those in force", ground=s.ground)
    change = restamp(change, s.ground.stamps)
    old, new = s.task.stamps, s.ground.stamps
    if (old.policy, old.catalogue, old.workflow) == (new.policy, new.catalogue, new.workflow):
        return planned(s, 4, change)
    return planned(s, 4, void_approvals(settle_waits(change, WaitStatus.VOID)))


def cancellation(s: Situation) -> Move | None:
    """Nothing is in flight any more: undo what can be undone, and end by naming what could not."""
    if s.task.business.status is not Status.CANCEL_REQUESTED:
        return None
    return planned(s, 5, begin(s.task, because="nothing is in flight any more", ground=s.ground))


def compensation(s: Situation) -> Move | None:
    """Go on undoing, newest first."""
    if s.task.business.status is not Status.COMPENSATING:
        return None
    return planned(s, 5, begin(s.task, because="compensation goes on", ground=s.ground))


def released(s: Situation) -> Move | None:
    """Gate 5: a task that was on its way to an end or to a person when it was quarantined goes on there."""
    execution = s.task.execution
    headed = execution.is_ending or execution.cancel is not None or execution.hold is not None
    if s.task.business.status is not Status.RESUME_VALIDATION or not headed:
        return None
    return planned(s, 5, begin(s.task, because="released from quarantine", ground=s.ground))


def task_deadline(s: Situation) -> Move | None:
    """Gate 5: the whole task's deadline, apart from any wait's."""
    if s.now < s.task.business.deadline_at or s.task.execution.ending is not None:
        return None
    change = begin(s.task, because="the task's deadline has passed", ground=s.ground)
    return committed(s, 5, take(expiry(s.task.business.stage), change, s.ground))


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
    return to_review(s, 5, f"{s.live.idle} wake-ups in a row moved nothing")


def past_wait(s: Situation) -> Move | None:
    """Gate 5: the wait's deadline has passed and nobody acted on it yet; its last rung acts now, once."""
    if not s.task.execution.waits:
        return None
    return committed(s, 5, end_wait(s.task, s.task.execution.waits[0], s.ground))


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
    return planned(s, 5, void_approvals(change, lambda a: a.approval_id in flaws))


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
            return to_review(s, 7, flaw)
    because = step.reason if isinstance(step, Review) else f"{read.tool} was proposed and judged"
    change = begin(s.task, because=because, ground=s.ground)
    change = count_attempts(
        change, change.task.attempts.model_copy(update={"refusals": 0, "turns": s.task.attempts.turns + 1})
    )
    return committed(s, 7, take(step, change, s.ground))


def _refused(s: Situation, refusal: Refusal) -> Move:
    refusals = s.task.attempts.refusals + 1
    if refusals >= REFUSALS_MAX or not refusal.worth_asking_again:
        return to_review(s, 7, f"no usable proposal after {refusals} answers: {refusal.reason}")
    change = begin(s.task, because=f"the proposal was refused: {refusal.reason}", ground=s.ground)
    turns = s.task.attempts.turns + 1
    change = count_attempts(change, change.task.attempts.model_copy(update={"refusals": refusals, "turns": turns}))
    return planned(s, 7, change)


def _next_step(s: Situation) -> Move:
    step = s.workflow.next_step(s.workflow.view(s.task, now=s.now))
    business = s.task.business
    if isinstance(step, AskModel) and s.task.attempts.turns >= s.workflow.turns_max:
        return to_review(s, 7, f"{s.task.attempts.turns} model turns have not brought this task to an end")
    if isinstance(step, AskModel) and (step.stage, Status.READY) == (business.stage, business.status):
        return Move(gate=7, reason="a proposal is due", directive=directive_for(s.task, now=s.now), ask=step)
    return step_taken(s, 7, begin(s.task, because=_reason_of(step), ground=s.ground), step)


def _reason_of(step: Step) -> str:
    return step.reason if isinstance(step, Review) else "the next step is due"


RULES: Final[tuple[Callable[[Situation], Move | None], ...]] = (
    superseded,
    closed,
    handed_over,
    not_frozen,
    child_has_ended,
    wait_still_open,
    past_wait,
    not_stuck,
    outcome_of_action,
    cancellation,
    compensation,
    released,
    owner_may_resume,
    owner_may_start,
    task_deadline,
    versions_in_force,
    approvals_hold,
    proposal,
)
