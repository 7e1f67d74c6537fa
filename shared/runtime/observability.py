"""Logs, traces and metrics, set up once for every function.

Service name, level and namespace come from the environment. Nothing in here ever takes a request body, a token,
a task token, a window or a model's words.
"""

import os
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

if TYPE_CHECKING:
    from shared.adapters.cedar.authoriser import PolicyFault

Handler: TypeAlias = Callable[[dict[str, Any], Any], dict[str, Any]]

logger: Final = Logger()
metrics: Final = Metrics()


def observed(handler: Handler) -> Handler:
    """Wrap a function's handler: request id and cold start in every line, a trace, what was counted written at the end.

    What the handler returns is left out of the trace: it holds business data.
    """
    traced = _traced_when_sampled(logger.inject_lambda_context(handler, clear_state=True))

    def measured(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - the runtime's own type
        try:
            return traced(event, context)
        finally:
            # Most invocations count nothing, and the library would complain about each of them in the log.
            if metrics.metric_set:
                metrics.flush_metrics()

    return measured


def _traced_when_sampled(handler: Handler) -> Handler:
    # The tracer costs a cold start more than boto3 does, and most invocations are not sampled: those never load it.
    @cache
    def traced() -> Handler:
        from aws_lambda_powertools import Tracer  # noqa: PLC0415

        # Only the cloud's own client is patched; its calls are what a function waits for.
        tracer = Tracer(patch_modules=("botocore",))
        wrapped: Handler = tracer.capture_lambda_handler(handler, capture_response=False)
        return wrapped

    def choose(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - the runtime's own type
        sampled = "Sampled=1" in os.environ.get("_X_AMZN_TRACE_ID", "")
        return traced()(event, context) if sampled else handler(event, context)

    return choose


def audit_policy_fault(fault: "PolicyFault") -> None:
    """Write the audit line of a question that was denied because the policies could not answer it (B04)."""
    logger.error("denied: policy fault", extra=asdict(fault))
    metrics.add_metric(name="PolicyFaults", unit=MetricUnit.Count, value=1)


def alarm(sentence: str) -> None:
    """Count something that needs a person, for the alarm on the metric, and say what it is in the log."""
    metrics.add_metric(name="NeedsAttention", unit=MetricUnit.Count, value=1)
    logger.error(sentence, extra={"audit": "needs_attention"})
