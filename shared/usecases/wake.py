"""Wake: the resume protocol. Every path that continues a task comes through here, also the one two milliseconds old."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from shared.domain.action import Action
from shared.domain.approval import ApprovalStatus
from shared.domain.change import begin, stamps_of
from shared.domain.checkpoint import Checkpoint
from shared.domain.directive import AWAITS, Directive, Next, directive_for, unsettled_action, until
from shared.domain.dispatch import freeze_scopes, live_rights
from shared.domain.errors import (
    ActionInFlight,
    AuthorityUnreadable,
    EvidenceStale,
    InvariantBroken,
    LeaseHeld,
    RequestTooLarge,
    StaleVersion,
    WaitSettled,
)
from shared.domain.identity import TaskKey
from shared.domain.proposal import ObjectRef, Residue
from shared.domain.resume import FREEZE_GATE, IDLE_MAX, STANDSTILL_PAUSE, decide
from shared.domain.situation import Live, Move, Situation
from shared.domain.steps import take
from shared.domain.wait import WaitStatus, state_timeout_seconds
from shared.domain.window import Excerpt, assemble_window
from shared.domain.workflow import AskModel, Review
from shared.ports.authority import AuthoritySnapshot
from shared.ports.leases import Lease
from shared.usecases.engine import WakeDeps
from shared.usecases.quarantine import quarantine_task
from shared.usecases.receive_event import consume_early
from shared.usecases.stored_task import Loaded, Untrusted, commit_change, ended_child, load_task

# Longer than the function that asks the model may live (60 s), so that a lapsed lease means a dead turn.
TURN_LEASE: Final = timedelta(seconds=75)
# Turns tried without any progress of the task: a worker that dies or a model that never answers (B63).
TURN_ATTEMPTS_MAX: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeUp:
    """What the machine brings along. None of it decides anything but which record to read and which lease is ours."""

    key: TaskKey
    run: int
    version_hint: int | None
    hops: int
    fence: int | None
    residue: ObjectRef | None
    # Wake-ups in a row that found nothing to move, as the last directive counted them.
    idle: int = 0
    # Which version to read together with the head; a wrong guess costs a second read and nothing else.
    likely_version: int | None = None


def wake(trigger: WakeUp, deps: WakeDeps) -> Directive:
    """Load, verify, decide, commit at most once, and say what the machine does next.

    Raises:
        TaskNotFound: there is no such task.
        Redecide: somebody committed first; wake again.
        Retry: a store or the key service asks for patience.

    If killed here:
        Before the commit nothing happened. After it, the next wake-up reads what was committed and goes on from there.
    """
    try:
        loaded = load_task(trigger.key, deps.tasks, version_hint=trigger.likely_version or trigger.version_hint)
        return _pass_gates(trigger, loaded, deps)
    except Untrusted as untrusted:
        return _quarantine(trigger, untrusted.head.version, untrusted.message, deps)
    except ActionInFlight as claimed:
        # A worker claimed the intent that was to be taken back; what to do about that is decided anew.
        raise StaleVersion(claimed.message) from claimed


def _pass_gates(trigger: WakeUp, loaded: Loaded, deps: WakeDeps) -> Directive:
    situation = _situation(trigger, loaded, deps)
    move = decide(situation)
    try:
        if move.change is not None:
            fence = _fence_to_release(trigger, situation)
            loaded = commit_change(move.change, deps.tasks, previous=loaded, lease_fence=fence)
        directive = move.directive
        if move.change is None and directive.next in AWAITS.values():
            _require_stored_wait(loaded.task, deps)
        if move.ask is not None:
            directive = _ask(trigger, loaded, move, move.ask, situation, deps)
    except RequestTooLarge as large:
        directive = _outgrown(trigger, loaded, large, situation, deps)
    except (InvariantBroken, WaitSettled) as broken:
        return _contradicted(trigger, loaded, broken, deps)
    if directive.next is Next.AWAIT_EVENT:
        early = consume_early(loaded, tasks=deps.tasks, waits=deps.waits, inbox=deps.inbox, alarm=deps.alarm)
        if early is not None:
            # What was waited for is here already: the task has moved, so it wakes again.
            return wake(replace(trigger, version_hint=early.task.version, likely_version=None, residue=None), deps)
    moved = move.change is not None or move.gate == FREEZE_GATE or trigger.version_hint != situation.task.version
    return _counted(trigger, directive, moved=moved, now=situation.now)


def _contradicted(trigger: WakeUp, loaded: Loaded, broken: InvariantBroken | WaitSettled, deps: WakeDeps) -> Directive:
    """Something is stored that the record knows nothing of: somebody went on meanwhile, or the record was put back.

    A record that was put back, or that this code is wrong about, is quarantined: nothing more may run on it (B19).

    Raises:
        StaleVersion: this worker hung, and another wake-up went on in its place.
    """
    stored = deps.tasks.records.load(trigger.key)
    if stored is None or stored.head.version != loaded.task.version:
        msg = "another wake-up went on meanwhile"
        raise StaleVersion(msg) from broken
    return _quarantine(trigger, stored.head.version, broken.message, deps)


def _counted(trigger: WakeUp, directive: Directive, *, moved: bool, now: datetime) -> Directive:
    idle = 0 if moved else trigger.idle + 1
    if idle >= IDLE_MAX and idle % 2 and directive.next in AWAITS.values():
        # The machine keeps coming back from a wait at once. The wait stands; only the machine is slowed down.
        directive = until(directive, now + STANDSTILL_PAUSE, "the wait could not be entered")
    return directive.model_copy(update={"hops": trigger.hops + 1, "idle": idle})


def _require_stored_wait(task: Checkpoint, deps: WakeDeps) -> None:
    """Check that the wait which the record says is open is stored as open.

    A machine sent to a wait that is not there would come back at once, for ever. Both were written in one commit, so a
    difference means that the task has moved on, or that one of them was put back or lost (B19).
    """
    pending = task.execution.waits[0]
    wait = deps.waits.get(task.security.tenant, pending.correlation_id)
    if wait is not None and wait.wait_id == pending.wait_id and wait.status is WaitStatus.OPEN:
        return
    msg = f"the wait {pending.wait_id} is not stored as open, although the record says that it is"
    raise InvariantBroken(msg)


def _outgrown(
    trigger: WakeUp, loaded: Loaded, large: RequestTooLarge, situation: Situation, deps: WakeDeps
) -> Directive:
    """The task has outgrown its checkpoint: nothing more is begun on it, and a person looks."""
    change = begin(loaded.task, because=large.message, ground=situation.ground)
    change = take(Review(stage=loaded.task.business.stage, reason=large.message), change, situation.ground)
    fence = _fence_to_release(trigger, situation)
    committed = commit_change(change, deps.tasks, previous=loaded, lease_fence=fence)
    return directive_for(committed.task, now=situation.now)


def _situation(trigger: WakeUp, loaded: Loaded, deps: WakeDeps) -> Situation:
    task = loaded.task
    workflow = deps.tasks.workflows[task.business.workflow]
    action = unsettled_action(task)
    read = _authority(task, action, deps)
    row = deps.ledger.get(task.key, action.operation) if action else None
    live = Live(
        run=trigger.run,
        hops=trigger.hops,
        idle=trigger.idle,
        rights=live_rights(task, read.principals, deps.rights.authoriser.rule),
        freeze=read.freeze,
        row=row,
        residue=_residue(trigger, task, deps),
        ended_child=ended_child(task, deps.tasks),
    )
    ground = deps.tasks.ground(workflow, stamps_of(workflow, deps.model_id))
    return Situation(task=task, ground=ground, live=live)


def _authority(task: Checkpoint, action: Action | None, deps: WakeDeps) -> AuthoritySnapshot:
    # Only approvals that something may still be done on: what they were used for long ago needs nobody's right.
    in_use = [
        a
        for a in task.security.approvals
        if a.status is ApprovalStatus.GRANTED or (action is not None and a.approval_id == action.approval_id)
    ]
    approvers = tuple(p for a in in_use for p in a.approvers)
    people = tuple(dict.fromkeys((task.business.owner, *approvers)))
    try:
        return deps.rights.authority.read(people, freezes=freeze_scopes(task, action))
    except AuthorityUnreadable as unreadable:
        # Nothing is allowed, so the task stands still as under a freeze and looks again later (B06).
        return AuthoritySnapshot(principals={}, freeze=unreadable.message)


def _residue(trigger: WakeUp, task: Checkpoint, deps: WakeDeps) -> Residue | None:
    # Advice that was given on an older version is not looked at.
    if trigger.residue is None or trigger.fence is None or trigger.version_hint != task.version:
        return None
    return deps.artifacts.get_residue(task.key, trigger.residue)


def _fence_to_release(trigger: WakeUp, situation: Situation) -> int | None:
    """A commit that follows from a model turn holds only while the turn's lease does."""
    return trigger.fence if situation.live.residue is not None else None


def _ask(trigger: WakeUp, loaded: Loaded, move: Move, ask: AskModel, situation: Situation, deps: WakeDeps) -> Directive:
    """Gate 6: take the lease, count the attempt before the work, assemble the window, send the machine to the model."""
    task, now = loaded.task, situation.now
    try:
        lease = deps.leases.acquire(
            task.key,
            version=task.version,
            holder=deps.tasks.ids.new("att"),
            presented_fence=trigger.fence,
            now=now,
            ends_at=now + TURN_LEASE,
        )
    except LeaseHeld as held:
        # Its holder may be dead, and only the clock can tell: a pause that outlasts the lease, not a failed execution.
        return until(move.directive, now + TURN_LEASE, held.message)
    if lease.fence - task.execution.fence > TURN_ATTEMPTS_MAX:
        return _give_up(loaded, lease, situation, deps)
    try:
        excerpts = [Excerpt(ref=ref, text=deps.evidence.read(task.key, ref)) for ref in task.references.evidence]
    except EvidenceStale as stale:
        return _commit_review(loaded, stale.message, lease, situation, deps)
    window = assemble_window(task, situation.workflow, ask, model_id=deps.model_id, excerpts=excerpts, memories=())
    ref = deps.artifacts.put_window(task.key, f"{task.version}-{lease.fence}", window)
    return move.directive.model_copy(update={"window": ref, "fence": lease.fence, "version": task.version})


def _give_up(loaded: Loaded, lease: Lease, situation: Situation, deps: WakeDeps) -> Directive:
    tried = lease.fence - loaded.task.execution.fence - 1
    return _commit_review(loaded, f"{tried} model turns brought no answer", lease, situation, deps)


def _commit_review(loaded: Loaded, reason: str, lease: Lease, situation: Situation, deps: WakeDeps) -> Directive:
    change = begin(loaded.task, because=reason, ground=situation.ground)
    change = take(Review(stage=loaded.task.business.stage, reason=reason), change, situation.ground)
    committed = commit_change(change, deps.tasks, previous=loaded, lease_fence=lease.fence)
    return directive_for(committed.task, now=situation.now)


def _quarantine(trigger: WakeUp, version: int, reason: str, deps: WakeDeps) -> Directive:
    """Gate 3 failed: mark the head, open a review, touch nothing else. No step runs on what cannot be trusted."""
    now, key = deps.tasks.clock.now(), trigger.key
    review = quarantine_task(key, version, reason, deps.tasks)
    directive = Directive(
        next=Next.NEEDS_REVIEW,
        tenant=key.tenant,
        task_id=key.task_id,
        run=trigger.run,
        version=version,
        reason=f"quarantined: {reason}",
        wait_id=review.wait_id,
        correlation_id=review.correlation_id,
        wait_seconds=state_timeout_seconds(review.deadline_at, now=now),
    )
    return _counted(trigger, directive, moved=False, now=now)
