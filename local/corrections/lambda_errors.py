"""A failed Lambda call names its error: the exception's class, or how its process ended."""

from __future__ import annotations

import threading
from typing import Any, Final

from local.corrections._seam import module, replace_text, wrap

# What Lambda answers when the process of a function ends in the middle of a call.
PROCESS_ENDED: Final = "Runtime.ExitError"

# The emulator's own words for it.
_DIED: Final = ("Worker process died", "Broken pipe", "Worker process exited immediately")

_last = threading.local()


def correct() -> None:
    """Carry the class name from the worker to the caller.

    The worker's answer holds the exception's text only, and its caller reports ``Runtime.HandlerError`` for all.
    """
    runtime, service = module("core.lambda_runtime"), module("services.lambda_svc")
    replace_text(
        runtime,
        "_PYTHON_WORKER_SCRIPT",
        '"error": str(e), "trace": traceback.format_exc()}',
        '"error": str(e), "error_type": type(e).__name__, "trace": traceback.format_exc()}',
    )
    wrap(runtime.Worker, "invoke", _remember)
    wrap(service, "_execute_function_warm", _name)


def _remember(original: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        _last.answer = original(*args, **kwargs)
    except (RuntimeError, BrokenPipeError) as error:
        # A process that dies before its first call is one that dies in it, for whoever called.
        if not _has_died(str(error)):
            raise
        _last.answer = {"status": "error", "error": str(error), "cold_start": True, "log": ""}
    return _last.answer


def _has_died(words: str) -> bool:
    return any(died in words for died in _DIED)


def _name(original: Any, *args: Any, **kwargs: Any) -> Any:
    _last.answer = {}
    result = original(*args, **kwargs)
    body = result.get("body")
    if not result.get("error") or not isinstance(body, dict):
        return result
    if "error_type" in _last.answer:
        body["errorType"] = _last.answer["error_type"]
    elif _has_died(str(_last.answer.get("error"))):
        body["errorType"] = PROCESS_ENDED
        body["errorMessage"] = "Error: Runtime exited with error: signal: killed"
    return result
