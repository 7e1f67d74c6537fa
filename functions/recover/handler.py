"""Recover: an execution ended under its task, or it is time to sweep."""

import json
from typing import Annotated, Any, Literal

from aws_lambda_powertools.metrics import MetricUnit
from pydantic import ConfigDict, Field, ValidationError

from shared.domain.identity import TaskId, TaskKey, TenantId
from shared.domain.records import Record
from shared.runtime import wiring
from shared.runtime.observability import logger, metrics, observed
from shared.usecases.recover import recover_task, sweep


class ExecutionInput(Record):
    """What an execution of ours was started with."""

    model_config = ConfigDict(extra="ignore")

    tenant: TenantId
    task_id: TaskId
    run: Annotated[int, Field(ge=1)]


class ExecutionDetail(Record):
    """The part of a status change that is read. The cause is not: it may be anything, or nothing (B60)."""

    model_config = ConfigDict(extra="ignore", strict=False)

    name: str
    status: Literal["FAILED", "TIMED_OUT", "ABORTED"]
    input: str | None = None


@observed
def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Look at the task of one ended execution, or at every task that is due.

    An event that cannot be read starts a sweep: whatever it was about is found there.
    """
    ended = _ended_execution(event)
    if ended is not None:
        key = TaskKey(tenant=ended.tenant, task_id=ended.task_id)
        return {"mended": recover_task(key, wiring.recover(), run=ended.run)}
    swept = sweep(wiring.recover())
    metrics.add_metric(name="TasksMended", unit=MetricUnit.Count, value=swept.mended)
    metrics.add_metric(name="OutboxRestaged", unit=MetricUnit.Count, value=swept.restaged)
    metrics.add_metric(name="SweepFailures", unit=MetricUnit.Count, value=swept.failed)
    logger.info("swept", extra={"swept": str(swept)})
    return {"mended": swept.mended, "looked_at": swept.looked_at, "restaged": swept.restaged}


def _ended_execution(event: dict[str, Any]) -> ExecutionInput | None:
    if event.get("detail-type") != "Step Functions Execution Status Change":
        return None
    try:
        detail = ExecutionDetail.model_validate(event["detail"])
        return ExecutionInput.model_validate_json(detail.input or json.dumps(None))
    except (ValidationError, KeyError, TypeError) as error:
        logger.warning("a status change that cannot be read", extra={"fault": str(error)[:500]})
        return None
