"""Logs, traces and metrics around a handler."""

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from shared.adapters.cedar.authoriser import PolicyFault
from shared.runtime.observability import audit_policy_fault, logger, metrics, observed


class Context:
    function_name = "api"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:eu-central-1:111122223333:function:api"
    aws_request_id = "invocation-1"


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Read what is logged."""
    stream = io.StringIO()
    handler = logger.registered_handler
    assert isinstance(handler, logging.StreamHandler)
    before = handler.setStream(stream)
    yield stream
    handler.setStream(before)


def test_lines_carry_the_invocation_and_nothing_of_the_event(logged: io.StringIO) -> None:
    """An operator finds an invocation by its id; what it was called with stays out of the log."""

    def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
        logger.info("working")
        return {"echo": event}

    assert observed(handler)({"secret": "x"}, Context()) == {"echo": {"secret": "x"}}

    (line,) = [json.loads(text) for text in logged.getvalue().splitlines()]
    assert line["function_request_id"] == "invocation-1"
    assert "secret" not in logged.getvalue()


def test_a_policy_fault_is_audited_and_counted(logged: io.StringIO) -> None:
    """B04: the audit line names question and cause, and an alarm has something to count."""
    fault = PolicyFault(
        operation="start",
        principal="24:issuer:clerk-1",
        tenant="acme",
        workflow="refund",
        task_id="",
        detail="half a file",
    )

    audit_policy_fault(fault)

    line = json.loads(logged.getvalue())
    assert line["level"] == "ERROR"
    assert (line["operation"], line["principal"], line["detail"]) == ("start", "24:issuer:clerk-1", "half a file")
    assert "PolicyFaults" in metrics.metric_set
    metrics.clear_metrics()


@pytest.mark.parametrize(("sampled", "loads"), [("Sampled=0", False), ("Sampled=1", True)])
def test_the_tracer_is_loaded_for_sampled_invocations_alone(sampled: str, loads: bool) -> None:
    """A cold start that nobody traces does not pay for the tracer."""
    code = (
        "import sys\n"
        "from shared.runtime.observability import observed\n"
        "assert 'aws_xray_sdk' not in sys.modules\n"
        "from tests.unit.runtime.test_observability import Context\n"
        "assert observed(lambda event, context: {'ok': True})({}, Context()) == {'ok': True}\n"
        "print('aws_xray_sdk' in sys.modules)\n"
    )
    # The tracer traces nothing outside a function; that it is loaded is what is looked at.
    environment = {
        **os.environ,
        "_X_AMZN_TRACE_ID": f"Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;{sampled}",
    }

    printed = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    ).stdout

    assert printed.splitlines()[-1] == str(loads)
