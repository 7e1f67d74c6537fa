"""The first version of a task: everything that is known when it begins, and the start of its first execution."""

from collections.abc import Sequence
from datetime import datetime

from shared.domain.action import Arguments
from shared.domain.change import Change, Ground, start_run
from shared.domain.checkpoint import Business, Checkpoint, Execution, RecentEvent, References, Security
from shared.domain.evidence import EvidenceRef
from shared.domain.identity import PrincipalRef, TaskId, TaskKey
from shared.domain.seal import GENESIS
from shared.domain.status import Status


def first_version(
    key: TaskKey,
    request: Arguments,
    *,
    owner: PrincipalRef,
    because: str,
    deadline_at: datetime,
    trace: str,
    ground: Ground,
    evidence: Sequence[EvidenceRef] = (),
    on_behalf_of: PrincipalRef | None = None,
    parent: TaskId | None = None,
) -> Change:
    """Begin a task of the ground's workflow in its first stage; what it needs first is not decided here."""
    task = Checkpoint(
        task_id=key.task_id,
        version=1,
        business=Business(
            workflow=ground.workflow.name,
            stage=ground.workflow.first_stage,
            status=Status.READY,
            because=because,
            owner=owner,
            request=request,
            request_version=1,
            deadline_at=deadline_at,
        ),
        execution=Execution(run=1, parent=parent, recent=(RecentEvent(at=ground.now, what=because),)),
        references=References(evidence=tuple(evidence)),
        security=Security(tenant=key.tenant, on_behalf_of=on_behalf_of),
        stamps=ground.stamps,
        trace=trace,
        created_at=ground.now,
        updated_at=ground.now,
        status_since=ground.now,
        previous_seal=GENESIS,
    )
    return start_run(Change(task=task, before=Status.READY), 1)
