"""Propose: one model call on one prepared window."""

from typing import Any

from shared.domain.identity import TaskId, TaskKey, TenantId
from shared.domain.proposal import ObjectRef
from shared.domain.records import Record
from shared.runtime import wiring
from shared.runtime.observability import observed
from shared.runtime.step import run_step
from shared.usecases.propose import Propose, propose


class ProposeInput(Record):
    """Which window to ask with."""

    tenant: TenantId
    task_id: TaskId
    version: int
    window: ObjectRef


class ProposeOutput(Record):
    """Where the model's answer is. Nothing that it said travels through the machine."""

    residue: ObjectRef
    stop_reason: str


@observed
def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Ask the model once."""
    return run_step(event, ProposeInput, _propose)


def _propose(request: ProposeInput) -> ProposeOutput:
    parts = wiring.propose()
    command = Propose(key=TaskKey(tenant=request.tenant, task_id=request.task_id), window=request.window)
    proposed = propose(command, parts.artifacts, parts.model)
    return ProposeOutput(residue=proposed.residue, stop_reason=proposed.stop_reason)
