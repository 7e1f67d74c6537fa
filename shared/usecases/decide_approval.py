"""Decide an approval: a person's exact word, bound to the version they saw, recorded as a transition."""

from dataclasses import dataclass

from shared.domain.approval import Approval, ApprovalStatus, Decision, DecisionWord
from shared.domain.authority import Operation, Principal
from shared.domain.change import (
    Change,
    Ground,
    begin,
    move_to,
    publish,
    replace_approvals,
    restamp,
    settle_waits,
    stamps_of,
    void_approvals,
)
from shared.domain.checkpoint import Checkpoint
from shared.domain.dispatch import decide_question
from shared.domain.errors import DecisionClosed, NotAuthorised, RequestTooLarge, StaleApproval, TaskNotFound
from shared.domain.status import Status
from shared.domain.steps import plan, take
from shared.domain.wait import WaitStatus
from shared.usecases.engine import ApiDeps
from shared.usecases.fresh import decide_on_fresh
from shared.usecases.permission import load_permitted
from shared.usecases.stored_task import Loaded, commit_change
from shared.usecases.summary import TaskSummary, summarise


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideApproval:
    """A decision. Who decides is the authenticated principal, never a field (B31)."""

    principal: Principal
    task_id: str
    approval_id: str
    word: DecisionWord
    request_version: int
    reason: str | None = None


def decide_approval(command: DecideApproval, deps: ApiDeps) -> TaskSummary:
    """Record a decision and move the task on when the quorum is met.

    The same person's same decision again answers with the current state and changes nothing.

    Raises:
        TaskNotFound: no such task or approval for this principal.
        NotAuthorised: the principal may not decide this approval, now.
        StaleApproval: the decision is for another version, or policy or tools changed since it was requested.
        DecisionClosed: the approval was decided, voided or has run out; a late click is recorded nowhere.

    If killed here:
        The decision, the settled wait and the wake-up of the machine are stored together or not at all.
    """
    return decide_on_fresh(lambda: _decide(command, deps))


def _decide(command: DecideApproval, deps: ApiDeps) -> TaskSummary:
    loaded = load_permitted(command.principal, command.task_id, Operation.READ, tasks=deps.tasks, rights=deps.rights)
    task = loaded.task
    approval = task.approval(command.approval_id)
    if approval is None:
        msg = "no such approval"
        raise TaskNotFound(msg)
    workflow = deps.tasks.workflows[task.business.workflow]
    require_right_to_decide(command.principal, task, approval, deps)
    ground = deps.tasks.ground(workflow, stamps_of(workflow, deps.model_id))
    now = ground.now
    if command.request_version != task.business.request_version:
        msg = (
            f"the decision is for version {command.request_version}, "
            f"the request is now version {task.business.request_version}"
        )
        raise StaleApproval(msg)
    decision = Decision(
        principal=command.principal.ref, word=command.word, decided_at=now, reason=command.reason or None
    )
    decided = approval.decided(decision, request_version=command.request_version)
    if decided == approval:
        return summarise(task)
    wait = next((w for w in task.execution.waits if w.correlation_id == approval.approval_id), None)
    if wait is None or now >= wait.deadline_at:
        msg = "the time to decide is over"
        raise DecisionClosed(msg)
    requested_under = (approval.basis.policy, approval.basis.catalogue, task.stamps.workflow)
    if requested_under != (ground.stamps.policy, ground.stamps.catalogue, ground.stamps.workflow):
        return _ask_again(loaded, ground, deps)
    change = begin(task, because=_sentence(command), ground=ground)
    change = replace_approvals(change, tuple(decided if a == approval else a for a in task.security.approvals))
    change = publish(change, "approval.decided", approval_id=approval.approval_id, decision=str(command.word))
    if decided.status is ApprovalStatus.OPEN:
        change = move_to(change, status=task.business.status, stage=task.business.stage, ground=ground)
        return summarise(commit_change(change, deps.tasks, previous=loaded).task)
    change = settle_waits(change, WaitStatus.SETTLED, only=wait.wait_id)
    return _commit_going_on(change, loaded, ground, deps)


def require_right_to_decide(principal: Principal, task: Checkpoint, approval: Approval, deps: ApiDeps) -> None:
    """Check, live, that the principal may decide this approval: the rule's exclusions, the policies, a recent log-in.

    Raises:
        NotAuthorised: says which of them stands in the way.
    """
    if approval.rule.requester_excluded and principal.ref in {
        task.business.owner,
        task.security.on_behalf_of,
    }:
        msg = "whoever requested a task may not approve it"
        raise NotAuthorised(msg)
    workflow = deps.tasks.workflows[task.business.workflow]
    ruling = deps.rights.authoriser.rule(decide_question(task, approval, principal, workflow))
    if not ruling.allowed:
        raise NotAuthorised(ruling.reason)
    within = approval.rule.authenticated_within_seconds
    ago = principal.authenticated_seconds_ago
    if within is not None and (ago is None or ago > within):
        msg = f"this decision asks for a log-in within the last {within} seconds; log in again"
        raise NotAuthorised(msg)


def _commit_going_on(change: Change, loaded: Loaded, ground: Ground, deps: ApiDeps) -> TaskSummary:
    try:
        return summarise(commit_change(_go_on(change, ground), deps.tasks, previous=loaded).task)
    except RequestTooLarge:
        # A decision is never refused for size (B59): it is recorded, and the gates find that nothing more fits.
        stays = move_to(change, status=Status.READY, stage=loaded.task.business.stage, ground=ground)
        return summarise(commit_change(stays, deps.tasks, previous=loaded).task)


def _go_on(change: Change, ground: Ground) -> Change:
    return take(plan(change, ground), change, ground)


def _ask_again(loaded: Loaded, ground: Ground, deps: ApiDeps) -> TaskSummary:
    change = begin(loaded.task, because="policy or tools changed before the decision; asked again", ground=ground)
    change = void_approvals(settle_waits(change, WaitStatus.VOID))
    change = restamp(change, ground.stamps)
    commit_change(_go_on(change, ground), deps.tasks, previous=loaded)
    msg = "policy or tools changed since this approval was requested; there is a new one to decide"
    raise StaleApproval(msg)


def _sentence(command: DecideApproval) -> str:
    said = "approved" if command.word is DecisionWord.APPROVE else "rejected"
    return f"{said} by {command.principal.ref.subject}"
