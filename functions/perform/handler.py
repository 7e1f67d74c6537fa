"""Perform: bring one operation of the action ledger as far as its rules allow."""

from typing import Any, Literal

from shared.domain.action import ActionStatus
from shared.domain.identity import TaskId, TaskKey, TenantId
from shared.domain.records import Record
from shared.runtime import wiring
from shared.runtime.observability import observed
from shared.runtime.step import run_step
from shared.usecases.perform import PerformAction, perform


class PerformInput(Record):
    """Which operation. The mode is what the console shows; the ledger's rules decide what is done."""

    tenant: TenantId
    task_id: TaskId
    version: int
    operation: str
    mode: Literal["perform", "reconcile", "compensate"]


class PerformOutput(Record):
    """How the ledger stands; `Wake` reads it there."""

    operation: str
    status: ActionStatus
    reason: str


@observed
def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Bring one operation forward."""
    return run_step(event, PerformInput, _perform)


def _perform(request: PerformInput) -> PerformOutput:
    command = PerformAction(
        key=TaskKey(tenant=request.tenant, task_id=request.task_id),
        operation=request.operation,
        version_hint=request.version,
    )
    performed = perform(command, wiring.perform())
    return PerformOutput(operation=performed.operation, status=performed.status, reason=performed.reason)
