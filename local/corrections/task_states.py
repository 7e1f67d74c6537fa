"""Task states end as they do in Step Functions: when their function fails, and when their time is up."""

from __future__ import annotations

import threading
from typing import Any, Final

from local.corrections._seam import module, wrap

_current = threading.local()

# Which state machine made a task token; kept when the token is settled, because a late answer is still authorised.
MACHINE_OF_TOKEN: Final[dict[str, str]] = {}


def correct() -> None:
    """Let a failed call fail a state that waits for a token, and honour ``TimeoutSecondsPath``.

    The emulator drops the error of a function that should have passed the token on, and waits for ever.
    """
    service = module("services.stepfunctions")
    wrap(service, "_execute_task", _execute)
    wrap(service, "_invoke_with_callback", _wait_for_token)
    wrap(service, "_call_lambda", _call)


def _execute(original: Any, state: Any, raw_input: Any, execution: Any, context: Any) -> Any:
    """Resolve the path of a timeout, and note which machine's token is about to be made."""
    service = module("services.stepfunctions")
    _current.machine = (execution or {}).get("stateMachineArn")
    if "TimeoutSecondsPath" not in state:
        return original(state, raw_input, execution, context)
    seconds = service._resolve_path(state["TimeoutSecondsPath"], raw_input)
    if isinstance(seconds, bool) or not isinstance(seconds, int) or seconds <= 0:
        words = f"The TimeoutSecondsPath '{state['TimeoutSecondsPath']}' holds {seconds!r}, no positive integer."
        raise service._ExecutionError("States.Runtime", words)
    return original({**state, "TimeoutSeconds": seconds}, raw_input, execution, context)


def _wait_for_token(original: Any, resource: Any, input_data: Any, token: str, state: Any) -> Any:
    _current.token = token
    try:
        return original(resource, input_data, token, state)
    finally:
        _current.token = None


def _call(original: Any, function: Any, event: Any) -> Any:
    service = module("services.stepfunctions")
    waiting = service._task_tokens.get(getattr(_current, "token", None))
    if waiting is None:
        return original(function, event)
    MACHINE_OF_TOKEN[_current.token] = _current.machine
    try:
        return original(function, event)
    except service._ExecutionError as failure:
        # An answer that came before the failure stands.
        if not waiting["event"].is_set():
            waiting["error"] = {"Error": failure.error, "Cause": failure.cause}
            waiting["event"].set()
        raise
