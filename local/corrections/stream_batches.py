"""A stream consumer that reports failed items gets them again."""

from __future__ import annotations

from typing import Any

from local.corrections._seam import module, wrap


def correct() -> None:
    """Take a batch with reported failures for a failed batch, so that it is delivered again.

    The emulator ignores the report and moves on, which loses the items. It repeats the batch from its first record, AWS
    from the first failed one; a consumer must stand both.
    """
    wrap(module("services.lambda_svc"), "_execute_function", _execute)


def _execute(original: Any, function: Any, event: Any) -> Any:
    result = original(function, event)
    body = result.get("body")
    if _from_a_stream(event) and isinstance(body, dict) and body.get("batchItemFailures"):
        words = f"{len(body['batchItemFailures'])} of {len(event['Records'])} records were reported as failed"
        return {**result, "error": True, "body": {"errorType": "BatchItemFailures", "errorMessage": words}}
    return result


def _from_a_stream(event: Any) -> bool:
    if not isinstance(event, dict):
        return False
    records = event.get("Records") or [{}]
    return isinstance(records[0], dict) and records[0].get("eventSource") == "aws:dynamodb"
