"""What a wake-up finds, and the moves that the rules of resuming answer it with."""

from dataclasses import dataclass
from datetime import datetime

from shared.domain.action import ActionRow
from shared.domain.change import Change, Ground, Reason, begin
from shared.domain.checkpoint import Checkpoint
from shared.domain.directive import Directive, directive_for
from shared.domain.dispatch import LiveRights
from shared.domain.proposal import Residue
from shared.domain.status import Status
from shared.domain.steps import plan, take
from shared.domain.workflow import AskModel, Compensate, Review, Step, Workflow


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """What was read for this wake-up, beside the record: authority, the ledger's row, a child, the model's answer."""

    run: int
    hops: int
    idle: int
    rights: LiveRights
    freeze: str | None
    row: ActionRow | None
    residue: Residue | None
    # A child task that has ended, by its own verified record, and whose end is not in this record yet.
    ended_child: Checkpoint | None = None


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


def planned(s: Situation, gate: int, change: Change) -> Move:
    """Commit a change and what the task needs after it."""
    return step_taken(s, gate, change, plan(change, s.ground))


def step_taken(s: Situation, gate: int, change: Change, step: Step) -> Move:
    """Commit a change and a step; a model that was asked often enough is not asked again."""
    if isinstance(step, AskModel) and change.task.attempts.turns >= s.workflow.turns_max:
        reason = f"{change.task.attempts.turns} model turns have not brought this task to an end"
        step = Review(stage=change.task.business.stage, reason=reason)
    ask = step if isinstance(step, AskModel) else None
    return committed(s, gate, take(step, change, s.ground), ask=ask)


def to_review(s: Situation, gate: int, reason: str | Reason) -> Move:
    """Hand the task to a person."""
    change = begin(s.task, because=reason, ground=s.ground)
    return committed(s, gate, take(Review(stage=s.task.business.stage, reason=str(reason)), change, s.ground))


def committed(s: Situation, gate: int, change: Change, *, ask: AskModel | None = None) -> Move:
    """Commit a change and go on from it."""
    return Move(
        gate=gate,
        reason=change.task.business.because,
        directive=directive_for(change.task, now=s.now),
        change=change,
        ask=ask,
    )


def expiry(stage: str) -> Compensate:
    """The end of a task whose own deadline has passed."""
    return Compensate(stage=stage, status=Status.EXPIRED, outcome="expired at the task's deadline")
