"""Deadline: a wait's timer went off. Remind, escalate, or end exactly that wait."""

from typing import Any

from shared.domain.identity import Reference, TenantId
from shared.domain.records import Record
from shared.runtime import wiring
from shared.runtime.observability import observed
from shared.runtime.step import run_step
from shared.usecases.act_on_deadline import DeadlineFired, act_on_deadline


class DeadlineInput(Record):
    """What the schedule was armed with."""

    tenant: TenantId
    correlation_id: Reference
    wait_id: Reference
    rung: int


class DeadlineOutput(Record):
    """Whether the rung was still to be acted on."""

    acted: bool


@observed
def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Act on one timer. An error is retried by the scheduler, and the sweep is the net under both."""
    return run_step(event, DeadlineInput, _act)


def _act(fired: DeadlineInput) -> DeadlineOutput:
    command = DeadlineFired(
        tenant=fired.tenant, correlation_id=fired.correlation_id, wait_id=fired.wait_id, rung=fired.rung
    )
    return DeadlineOutput(acted=act_on_deadline(command, wiring.deadline()))
