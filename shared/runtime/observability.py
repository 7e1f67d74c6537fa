"""Logs, traces and metrics, set up once for every function.

Service name, level and namespace come from the environment. Nothing in here ever takes a request body, a token,
a task token, a window or a model's words.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.metrics import MetricUnit

if TYPE_CHECKING:
    from shared.adapters.cedar.authoriser import PolicyFault

Handler: TypeAlias = Callable[[dict[str, Any], Any], dict[str, Any]]

logger: Final = Logger()
# Only the cloud's own client is traced; patching every library the tracer knows costs more than it tells.
tracer: Final = Tracer(patch_modules=("botocore",))
metrics: Final = Metrics()


def observed(handler: Handler) -> Handler:
    """Wrap a function's handler: request id and cold start in every line, a trace segment, metrics flushed at the end.

    What the handler returns is left out of the trace: it holds business data.
    """
    logged = logger.inject_lambda_context(handler, clear_state=True)
    traced = tracer.capture_lambda_handler(logged, capture_response=False)
    measured: Handler = metrics.log_metrics(traced, capture_cold_start_metric=True)
    return measured


def audit_policy_fault(fault: "PolicyFault") -> None:
    """Write the audit line of a question that was denied because the policies could not answer it (B04)."""
    logger.error("denied: policy fault", extra=asdict(fault))
    metrics.add_metric(name="PolicyFaults", unit=MetricUnit.Count, value=1)
