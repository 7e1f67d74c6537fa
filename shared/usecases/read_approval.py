"""Read an approval: the page that is decided on. Reading it any number of times decides nothing (B02)."""

from datetime import datetime

from shared.domain.approval import Approval, ApprovalStatus, DecisionWord, approval_digest
from shared.domain.authority import Operation, Principal
from shared.domain.checkpoint import Checkpoint
from shared.domain.errors import EvidenceStale, InvariantBroken, NotAuthorised, TaskNotFound
from shared.domain.evidence import EvidenceRef, evidence_digest
from shared.usecases.approval_page import ApprovalPage, ShownEvidence, show_field, show_untrusted
from shared.usecases.decide_approval import require_right_to_decide
from shared.usecases.engine import ApiDeps
from shared.usecases.permission import load_permitted


def read_approval(principal: Principal, task_id: str, approval_id: str, deps: ApiDeps) -> ApprovalPage:
    """Answer with what the approval covers and what this principal may do about it now.

    Raises:
        TaskNotFound: no such task or approval for this principal.
        Untrusted: the task is quarantined.
        InvariantBroken: the stored digest does not cover what would be shown.
    """
    task = load_permitted(principal, task_id, Operation.READ, tasks=deps.tasks, rights=deps.rights).task
    approval = task.approval(approval_id)
    if approval is None:
        msg = "no such approval"
        raise TaskNotFound(msg)
    if approval.digest != approval_digest(
        task.key, task.business.workflow, approval.spec, approval.basis, approval.rule
    ):
        msg = f"approval {approval_id} does not cover what it holds"
        raise InvariantBroken(msg)
    evidence = _show_evidence(task, approval, deps)
    obstacle = _obstacle(principal, task, approval, deps)
    return ApprovalPage(
        task_id=task.task_id,
        approval_id=approval.approval_id,
        workflow=task.business.workflow,
        status=str(approval.status),
        because=approval.rule.because,
        tool=approval.spec.tool,
        arguments=tuple(show_field(name, value) for name, value in sorted(approval.spec.arguments.items())),
        facts=tuple(show_field(name, value) for name, value in sorted(approval.basis.facts.items())),
        request_version=approval.basis.request_version,
        current_request_version=task.business.request_version,
        evidence=evidence,
        evidence_digest=approval.basis.evidence,
        policy=approval.basis.policy,
        catalogue=approval.basis.catalogue,
        digest=approval.digest,
        requested_by=task.business.owner.key,
        required_role=approval.rule.role,
        quorum=approval.rule.quorum,
        approved_by=tuple(ref.key for ref in approval.approvers),
        requested_at=approval.requested_at,
        expires_at=approval.expires_at,
        allowed_decisions=() if obstacle else _allowed(evidence),
        not_allowed_because=obstacle,
    )


def _show_evidence(task: Checkpoint, approval: Approval, deps: ApiDeps) -> tuple[ShownEvidence, ...]:
    refs = task.references.evidence
    # An earlier request's approval rests on evidence that the task has left behind; its successor is not shown for it.
    if evidence_digest(refs) != approval.basis.evidence:
        return ()
    return tuple(_show_one(task, ref, deps) for ref in refs)


def _show_one(task: Checkpoint, ref: EvidenceRef, deps: ApiDeps) -> ShownEvidence:
    try:
        text: str | None = show_untrusted(deps.evidence.read(task.key, ref))
    except EvidenceStale:
        text = None
    return ShownEvidence(
        evidence_id=ref.evidence_id,
        source_kind=ref.source_kind,
        object_version=ref.object_version,
        sha256=ref.sha256,
        untrusted_text=text,
    )


def _allowed(evidence: tuple[ShownEvidence, ...]) -> tuple[str, ...]:
    # Nobody approves what they cannot be shown.
    if any(shown.untrusted_text is None for shown in evidence):
        return (str(DecisionWord.REJECT),)
    return tuple(str(word) for word in DecisionWord)


def _obstacle(principal: Principal, task: Checkpoint, approval: Approval, deps: ApiDeps) -> str | None:
    closed = _closed(principal, task, approval, now=deps.tasks.clock.now())
    if closed is not None:
        return closed
    try:
        require_right_to_decide(principal, task, approval, deps)
    except NotAuthorised as refused:
        return refused.message
    return None


def _closed(principal: Principal, task: Checkpoint, approval: Approval, *, now: datetime) -> str | None:
    if approval.basis.request_version != task.business.request_version:
        return f"superseded: the request is now version {task.business.request_version}"
    if evidence_digest(task.references.evidence) != approval.basis.evidence:
        return "the evidence changed since this approval was requested"
    if approval.status is not ApprovalStatus.OPEN:
        return f"the approval is {approval.status}"
    wait = next((w for w in task.execution.waits if w.correlation_id == approval.approval_id), None)
    if now >= approval.expires_at or wait is None or now >= wait.deadline_at:
        return "the time to decide is over"
    if any(d.principal == principal.ref for d in approval.decisions):
        return "you have already decided"
    return None
