"""Open a wait: attach the machine's task token to it, or answer at once if it is settled already."""

from typing import Any

from shared.domain.identity import Reference, TaskId, TaskKey, TenantId
from shared.domain.records import Record
from shared.runtime import wiring
from shared.runtime.observability import observed
from shared.runtime.step import run_step
from shared.usecases.open_wait import OpenWait, open_wait


class OpenWaitInput(Record):
    """The waiting state and its token."""

    tenant: TenantId
    task_id: TaskId
    wait_id: Reference
    correlation_id: Reference
    run: int
    hops: int
    token: str


class OpenWaitOutput(Record):
    """Whether there was nothing left to wait for."""

    answered: bool


@observed
def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Attach one token."""
    return run_step(event, OpenWaitInput, _open)


def _open(request: OpenWaitInput) -> OpenWaitOutput:
    command = OpenWait(
        key=TaskKey(tenant=request.tenant, task_id=request.task_id),
        wait_id=request.wait_id,
        correlation_id=request.correlation_id,
        token=request.token,
        run=request.run,
        hops=request.hops,
    )
    return OpenWaitOutput(answered=open_wait(command, wiring.open_wait()))
