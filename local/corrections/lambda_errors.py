"""A failed Lambda call names its error: the exception's class, or how its process ended."""

from __future__ import annotations

import threading
from typing import Any, Final

from local.corrections._seam import module, replace_text, wrap

# What Lambda answers when the process of a function ends in the middle of a call.
PROCESS_ENDED: Final = "Runtime.ExitError"

# The emulator's own words for it.
_DIED: Final = ("Worker process died", "Broken pipe")

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
    _last.answer = original(*args, **kwargs)
    return _last.answer


def _name(original: Any, *args: Any, **kwargs: Any) -> Any:
    _last.answer = {}
    result = original(*args, **kwargs)
    body = result.get("body")
    if not result.get("error") or not isinstance(body, dict):
        return result
    if "error_type" in _last.answer:
        body["errorType"] = _last.answer["error_type"]
    elif any(words in str(_last.answer.get("error")) for words in _DIED):
        body["errorType"] = PROCESS_ENDED
        body["errorMessage"] = "Error: Runtime exited with error: signal: killed"
    return result
