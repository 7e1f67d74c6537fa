"""Changes: the next version of a task in the making, with everything that has to be committed together with it.

Every function takes a change and returns a new one; nothing is stored here, and an exception leaves nothing behind.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from shared.domain.action import Action, ActionRow, ActionSpec, ActionStatus, EffectClass, Scalar
from shared.domain.approval import Approval, ApprovalRule, ApprovalStatus, approval_digest
from shared.domain.checkpoint import (
    BECAUSE_CHARACTERS_MAX,
    Attempts,
    Checkpoint,
    Fact,
    RecentEvent,
    Stamps,
    recent_with,
)
from shared.domain.events import detail_of, schema_version_of
from shared.domain.evidence import EvidenceRef
from shared.domain.identity import operation_key
from shared.domain.outbox import AnswerWait, ArmTimer, DisarmTimer, Message, PublishEvent, StartExecution
from shared.domain.status import TERMINAL, Status, permit_status
from shared.domain.wait import Wait, WaitKind, WaitRule, WaitSettlement, WaitStatus
from shared.domain.workflow import Workflow

# Approvals of earlier requests stay just long enough to tell a late click that it is stale.
SPENT_APPROVALS_KEPT: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What rules stand on: the workflow, the instant, the versions in force, and a source of unguessable ids."""

    workflow: Workflow
    now: datetime
    stamps: Stamps
    new_id: Callable[[str], str]
    # Every workflow by name: what a child task may be started of.
    workflows: Mapping[str, Workflow]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The next version of a task and what belongs to it."""

    task: Checkpoint
    before: Status
    opened: tuple[Wait, ...] = ()
    settled: tuple[WaitSettlement, ...] = ()
    climbed: tuple[Wait, ...] = ()
    intents: tuple[ActionRow, ...] = ()
    withdrawn: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    # The first versions of child tasks that it starts.
    children: tuple["Change", ...] = ()


def stamps_of(workflow: Workflow, model_id: str) -> Stamps:
    """The versions that are in force now."""
    return Stamps(
        workflow=workflow.version,
        policy=workflow.policy,
        catalogue=workflow.catalogue,
        prompt=workflow.prompt,
        model=model_id,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a task moves: code's own words, and those of a person or a provider, which people read and no model does."""

    says: str
    quotes: str = ""

    def __str__(self) -> str:
        return f"{self.says}: {self.quotes}" if self.quotes else self.says


def begin(task: Checkpoint, *, because: str | Reason, ground: Ground) -> Change:
    """Start the next version of a task. The log that a model is shown has code's own words only (M5)."""
    reason = because if isinstance(because, Reason) else Reason(says=because)
    business = task.business.model_copy(update={"because": str(reason)[:BECAUSE_CHARACTERS_MAX]})
    execution = task.execution.model_copy(
        update={"recent": recent_with(task, RecentEvent(at=ground.now, what=reason.says[:300]))}
    )
    following = task.model_copy(
        update={
            "version": task.version + 1,
            # Whatever moves a task proves that it can move; only `count_attempts` after this says otherwise.
            "attempts": task.attempts.model_copy(update={"restarts": 0}),
            "business": business,
            "execution": execution,
            "updated_at": ground.now,
        }
    )
    return Change(task=following, before=task.business.status)


def move_to(change: Change, *, status: Status, stage: str, ground: Ground) -> Change:
    """Move status and stage along their two tables.

    Raises:
        IllegalTransition: one of the tables has no such edge.
    """
    business = change.task.business
    permit_status(change.before, status)
    moved = business.model_copy(update={"status": status, "stage": ground.workflow.permit_stage(business.stage, stage)})
    since = change.task.status_since if status is change.before else ground.now
    # A task that has ended has no next window; its moves are in its earlier versions.
    execution = change.task.execution.model_copy(update={"recent": ()} if status in TERMINAL else {})
    return _with_task(change, business=moved, execution=execution, status_since=since)


def explain(change: Change, because: str) -> Change:
    """Replace the sentence that says why the task is where it is."""
    return _with_task(
        change, business=change.task.business.model_copy(update={"because": because[:BECAUSE_CHARACTERS_MAX]})
    )


def publish(change: Change, event: str, **detail: Scalar) -> Change:
    """Stage a business event.

    Raises:
        InvariantBroken: the event does not have its published form.
    """
    return replace(change, messages=(*change.messages, _event(change, event, detail)))


def prompt(change: Change, wait: Wait, event: str, **detail: Scalar) -> Change:
    """Stage a business event that asks somebody to end a wait; it is never published once the wait has ended (B72).

    Raises:
        InvariantBroken: the event does not have its published form.
    """
    about: dict[str, Scalar] = {"wait_id": wait.wait_id, "wait": wait.name, "request_version": wait.request_version}
    message = _event(change, event, {**about, **detail})
    bound = message.model_copy(update={"wait_id": wait.wait_id, "correlation_id": wait.correlation_id})
    return replace(change, messages=(*change.messages, bound))


def _event(change: Change, event: str, detail: Mapping[str, Scalar]) -> PublishEvent:
    business = change.task.business
    fields = {"workflow": business.workflow, "stage": business.stage, **detail}
    return PublishEvent(
        event=event,
        schema_version=schema_version_of(event),
        version=change.task.version,
        detail=detail_of(event, fields),
    )


def start_run(change: Change, run: int) -> Change:
    """Stage the start of an execution and make it the one that owns the task."""
    message = StartExecution(workflow=change.task.business.workflow, run=run, version=change.task.version)
    execution = change.task.execution.model_copy(update={"run": run})
    return replace(_with_task(change, execution=execution), messages=(*change.messages, message))


def open_wait(
    change: Change,
    *,
    kind: WaitKind,
    name: str,
    rule: WaitRule,
    answered_by: tuple[str, ...],
    ground: Ground,
    correlation_id: str | None = None,
) -> Change:
    """Open a wait bound to this version; its correlation id is unguessable unless the outside world has one already.

    No wait outlasts the task's own deadline, but those that end a task: a review, an undo's approval, a child's stop.
    """
    task = change.task
    wait_id = ground.new_id("wai")
    ends_a_task = kind is WaitKind.REVIEW or task.execution.is_ending
    own_deadline = rule.deadline_at(ground.now)
    wait = Wait(
        tenant=task.security.tenant,
        task_id=task.task_id,
        wait_id=wait_id,
        kind=kind,
        name=name,
        correlation_id=correlation_id or wait_id,
        request_version=task.business.request_version,
        version=task.version,
        answered_by=answered_by,
        rule=rule,
        opened_at=ground.now,
        deadline_at=own_deadline if ends_a_task else min(own_deadline, task.business.deadline_at),
    )
    execution = task.execution.model_copy(update={"waits": (*task.execution.waits, wait.pending())})
    return replace(
        _with_task(change, execution=execution),
        opened=(*change.opened, wait),
        messages=(*change.messages, timer_of(wait)),
    )


def timer_of(wait: Wait) -> ArmTimer:
    """The timer for the wait's next rung."""
    return ArmTimer(wait_id=wait.wait_id, correlation_id=wait.correlation_id, rung=wait.rung, at=wait.next_rung_at)


def climb(change: Change, wait: Wait) -> Change:
    """Move an open wait one rung up its ladder and set its timer to the next."""
    higher = wait.model_copy(update={"rung": wait.rung + 1})
    waits = tuple(higher.pending() if w.wait_id == wait.wait_id else w for w in change.task.execution.waits)
    moved = set_execution(change, waits=waits)
    return replace(moved, climbed=(*change.climbed, higher), messages=(*change.messages, timer_of(higher)))


def settle_waits(change: Change, status: WaitStatus, *, only: str | None = None, but: WaitKind | None = None) -> Change:
    """End the task's open waits, or only the one named, or all but those of a kind; stage the answers that wake it."""
    ended = [w for w in change.task.execution.waits if only in {None, w.wait_id} and w.kind is not but]
    kept = tuple(w for w in change.task.execution.waits if w not in ended)
    settled = tuple(
        WaitSettlement(
            tenant=change.task.security.tenant, correlation_id=w.correlation_id, wait_id=w.wait_id, status=status
        )
        for w in ended
    )
    answers: list[Message] = []
    for wait in ended:
        answers.append(
            AnswerWait(wait_id=wait.wait_id, correlation_id=wait.correlation_id, version=change.task.version)
        )
        answers.append(DisarmTimer(wait_id=wait.wait_id))
    execution = change.task.execution.model_copy(update={"waits": kept})
    return replace(
        _with_task(change, execution=execution),
        settled=(*change.settled, *settled),
        messages=(*change.messages, *answers),
    )


def request_approval(
    change: Change, spec: ActionSpec, rule: ApprovalRule, *, ground: Ground
) -> tuple[Change, Approval]:
    """Make the approval object for one executable action, bound to everything consequential."""
    task = change.task
    basis = ground.workflow.basis_of(task, spec.tool)
    approval = Approval(
        approval_id=ground.new_id("apr"),
        spec=spec,
        basis=basis,
        digest=approval_digest(task.key, task.business.workflow, spec, basis, rule),
        rule=rule,
        requested_at=ground.now,
        expires_at=ground.now + timedelta(seconds=rule.valid_for_seconds),
    )
    return replace_approvals(change, (*task.security.approvals, approval)), approval


def replace_approvals(change: Change, approvals: tuple[Approval, ...]) -> Change:
    """Store approvals, dropping spent ones beyond the last few.

    A rejection, or silence, counts for as long as its request is the current one, and an answer about an undo until
    the task ends: whoever has said no is not asked again.
    """
    task = change.task
    said_no = {ApprovalStatus.REJECTED, ApprovalStatus.EXPIRED}
    spent = [
        a
        for a in approvals
        if a.status is ApprovalStatus.VOID
        or (
            task.execution.ending is None
            and a.status in said_no
            and a.basis.request_version != task.business.request_version
        )
    ]
    dropped = spent[:-SPENT_APPROVALS_KEPT]
    kept = tuple(a for a in approvals if a not in dropped)
    return _with_task(change, security=change.task.security.model_copy(update={"approvals": kept}))


def expire_approval(change: Change, approval_id: str) -> Change:
    """Note that nobody decided an approval in time; another id changes nothing."""
    approvals = change.task.security.approvals
    return replace_approvals(change, tuple(a.expired() if a.approval_id == approval_id else a for a in approvals))


def void_approvals(change: Change, doomed: Callable[[Approval], bool] = lambda _: True) -> Change:
    """Void the approvals that `doomed` names, if they were still good for anything."""
    return replace_approvals(change, tuple(a.voided() if doomed(a) else a for a in change.task.security.approvals))


def intend(
    change: Change, spec: ActionSpec, *, approval: Approval | None, ground: Ground, undoes: str | None = None
) -> Change:
    """Write the intent of an action, consuming its approval in the same commit."""
    task = change.task
    ordinal = task.execution.ordinal + 1
    operation = operation_key(task.key, request_version=task.business.request_version, ordinal=ordinal, tool=spec.tool)
    action = Action(
        operation=operation,
        ordinal=ordinal,
        request_version=task.business.request_version,
        spec=spec,
        effect=ground.workflow.tools[spec.tool].effect,
        approval_id=approval.approval_id if approval else None,
        undoes=undoes,
    )
    row = ActionRow(
        tenant=task.security.tenant,
        task_id=task.task_id,
        operation=operation,
        tool=spec.tool,
        effect=action.effect,
        digest=action.digest,
        version=task.version,
        approval_id=action.approval_id,
        undoes=undoes,
        intended_at=ground.now,
    )
    execution = task.execution.model_copy(update={"ordinal": ordinal, "actions": (*task.execution.actions, action)})
    changed = replace(_with_task(change, execution=execution), intents=(*change.intents, row))
    if approval is None:
        return changed
    approvals = task.security.approvals
    return replace_approvals(changed, tuple(a.consumed(ordinal) if a == approval else a for a in approvals))


def withdraw(change: Change, action: Action) -> Change:
    """Take back an intent that nobody has claimed; the commit fails if somebody has meanwhile."""
    changed = _set_action(change, action.model_copy(update={"status": ActionStatus.VOID}))
    return replace(changed, withdrawn=(*change.withdrawn, action.operation))


def void_consumed(change: Change, action: Action) -> Change:
    """Void the approval that an action used and that nothing came of: what it covered is asked again."""
    approvals = tuple(
        a.model_copy(update={"status": ApprovalStatus.VOID}) if a.approval_id == action.approval_id else a
        for a in change.task.security.approvals
    )
    return replace_approvals(change, approvals)


def record_outcome(change: Change, action: Action, row: ActionRow, *, fact: str) -> Change:
    """Take the ledger's settled outcome into the record: the action's status and a fact in the past tense."""
    changed = _set_action(change, action.model_copy(update={"status": row.status}))
    done = row.status is ActionStatus.DONE
    noted = Fact(
        name=fact,
        happened=done,
        ordinal=action.ordinal,
        settled_at=row.settled_at,
        reference=row.reference,
        values=row.facts,
    )
    # Reads say what was true, not what was done: only the latest of each stays, so that a long task stays small.
    earlier = changed.task.business.facts
    if action.effect is EffectClass.READ:
        earlier = tuple(f for f in earlier if f.name != fact)
    business = changed.task.business.model_copy(update={"facts": (*earlier, noted)})
    return _with_task(changed, business=business)


def note_fact(change: Change, fact: Fact) -> Change:
    """Add a fact that is not an action's outcome, such as an answered wait."""
    business = change.task.business.model_copy(update={"facts": (*change.task.business.facts, fact)})
    return _with_task(change, business=business)


def count_attempts(change: Change, attempts: Attempts) -> Change:
    """Replace the counts that bound loops."""
    return _with_task(change, attempts=attempts)


def restamp(change: Change, stamps: Stamps) -> Change:
    """Judge the task under the versions in force from here on."""
    return _with_task(change, stamps=stamps)


def refer_to(change: Change, evidence: tuple[EvidenceRef, ...]) -> Change:
    """Replace the evidence that the task rests on."""
    return _with_task(change, references=change.task.references.model_copy(update={"evidence": evidence}))


def set_business(change: Change, **fields: object) -> Change:
    """Replace named fields of the business layer."""
    return _with_task(change, business=change.task.business.model_copy(update=fields))


def set_execution(change: Change, **fields: object) -> Change:
    """Replace named fields of the execution layer."""
    return _with_task(change, execution=change.task.execution.model_copy(update=fields))


def _set_action(change: Change, action: Action) -> Change:
    actions = tuple(action if a.operation == action.operation else a for a in change.task.execution.actions)
    # A settled read and a withdrawn intent have no undo and need no answer; the ledger keeps them.
    kept = tuple(
        a
        for a in actions
        if a.status is not ActionStatus.VOID and not (a.effect is EffectClass.READ and a.status is ActionStatus.DONE)
    )
    return _with_task(change, execution=change.task.execution.model_copy(update={"actions": kept}))


def _with_task(change: Change, **fields: object) -> Change:
    return replace(change, task=change.task.model_copy(update=fields))
