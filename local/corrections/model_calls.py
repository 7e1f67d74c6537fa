"""A model that cannot be reached is an error, never an invented answer."""

from __future__ import annotations

from typing import Any

from local.corrections._seam import module, wrap


class _Unreachable(Exception):
    """No usable answer came from the server that stands in for the model."""


def correct() -> None:
    """Answer ``ServiceUnavailableException`` where the emulator would make up a reply of its own."""
    service = module("services.bedrock_runtime")
    wrap(service, "_proxy_openai_chat_message", _ask)
    wrap(service, "_converse", _converse)


def _ask(original: Any, *args: Any, **kwargs: Any) -> Any:
    message, counts = original(*args, **kwargs)
    if message is None:
        raise _Unreachable
    return message, counts


def _converse(original: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return original(*args, **kwargs)
    except _Unreachable:
        service = module("services.bedrock_runtime")
        return service._error(
            "ServiceUnavailableException", "The server that stands in for the model is not there.", 503
        )
