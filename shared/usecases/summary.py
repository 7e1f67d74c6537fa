"""What a caller is told about a task: typed fields of the record, never a token, a window or a seal."""

from dataclasses import dataclass
from datetime import datetime

from shared.domain.action import Scalar
from shared.domain.checkpoint import Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalSummary:
    """An approval of the current request."""

    approval_id: str
    status: str
    tool: str
    required_role: str
    quorum: int
    approved_by: tuple[str, ...]
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitSummary:
    """An open wait."""

    wait_id: str
    kind: str
    name: str
    correlation_id: str
    deadline_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectSummary:
    """An effect, as far as it is known."""

    operation: str
    tool: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FactSummary:
    """Something that happened, or definitely did not."""

    name: str
    happened: bool
    reference: str | None
    values: dict[str, Scalar]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSummary:
    """A task that this one has started; `status` is None until its end is known here."""

    task_id: str
    name: str
    status: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSummary:
    """A task as its readers see it. `created` is True only in the answer that created it."""

    task_id: str
    workflow: str
    status: str
    stage: str
    because: str
    version: int
    request_version: int
    request: dict[str, Scalar]
    outcome: str | None
    deadline_at: datetime
    created_at: datetime
    updated_at: datetime
    approvals: tuple[ApprovalSummary, ...]
    waits: tuple[WaitSummary, ...]
    effects: tuple[EffectSummary, ...]
    facts: tuple[FactSummary, ...]
    children: tuple[ChildSummary, ...]
    parent: str | None
    created: bool = False


def summarise(task: Checkpoint, *, created: bool = False) -> TaskSummary:
    """Build the summary of a verified checkpoint."""
    return TaskSummary(
        task_id=task.task_id,
        workflow=task.business.workflow,
        status=str(task.business.status),
        stage=task.business.stage,
        because=task.business.because,
        version=task.version,
        request_version=task.business.request_version,
        request=dict(task.business.request),
        outcome=task.business.outcome,
        deadline_at=task.business.deadline_at,
        created_at=task.created_at,
        updated_at=task.updated_at,
        approvals=tuple(
            ApprovalSummary(
                approval_id=a.approval_id,
                status=str(a.status),
                tool=a.spec.tool,
                required_role=a.rule.role,
                quorum=a.rule.quorum,
                approved_by=tuple(p.key for p in a.approvers),
                expires_at=a.expires_at,
            )
            for a in task.security.approvals
        ),
        waits=tuple(
            WaitSummary(
                wait_id=w.wait_id,
                kind=str(w.kind),
                name=w.name,
                correlation_id=w.correlation_id,
                deadline_at=w.deadline_at,
            )
            for w in task.execution.waits
        ),
        effects=tuple(
            EffectSummary(operation=a.operation, tool=a.spec.tool, status=str(a.status)) for a in task.execution.actions
        ),
        facts=tuple(
            FactSummary(name=f.name, happened=f.happened, reference=f.reference, values=dict(f.values))
            for f in task.business.facts
        ),
        children=tuple(
            ChildSummary(task_id=c.task_id, name=c.name, status=None if c.status is None else str(c.status))
            for c in task.execution.children
        ),
        parent=task.execution.parent,
        created=created,
    )
