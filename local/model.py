"""The server that stands in for the model: the project's own scripted one, or any that a person names."""

from __future__ import annotations

import json
import os
import socket
import urllib.request
from typing import Final

from local.environment import plain_environment
from local.places import ROOT, VENV_BIN, Place, installed
from local.problems import LocalProblem
from local.servers import LOOPBACK, Server, free_port

# The emulator reads the same variable. Its value is the base address of an OpenAI-compatible server.
MODEL_URL_VARIABLE: Final = "MINISTACK_BEDROCK_PROXY_URL"

_READY_SECONDS_MAX: Final = 30.0


def start(place: Place) -> str:
    """Answer the address of the server that model calls go to, and start our own where the person names none.

    Raises:
        LocalProblem: our own does not start.
    """
    named = os.environ.get(MODEL_URL_VARIABLE, "").strip()
    if named:
        return named
    port = free_port()
    _server(place).start(
        [installed(VENV_BIN / "python"), "-m", "local.model_server", "--port", str(port)],
        port=port,
        environment=plain_environment(),
        healthy=_listens,
        seconds_max=_READY_SECONDS_MAX,
        folder=ROOT,
    )
    return f"http://{LOOPBACK}:{port}"


def require_own() -> None:
    """Check that our own server will answer: what a story expects of the model, no other one promises.

    Raises:
        LocalProblem: a person names another.
    """
    if os.environ.get(MODEL_URL_VARIABLE, "").strip():
        raise LocalProblem(
            f"The walk-through is played with the scripted model, and {MODEL_URL_VARIABLE} names another.",
            "Unset it for this command; `make up` is the one that takes it.",
        )


def requests(place: Place) -> int:
    """Answer how often our own server was asked for a completion since it started.

    Raises:
        LocalProblem: a server that a person named answers instead; it counts nothing.
    """
    found = _server(place).running()
    if found is None:
        raise LocalProblem("Only our own model server counts what it is asked.", f"Unset {MODEL_URL_VARIABLE}.")
    with urllib.request.urlopen(f"http://{LOOPBACK}:{found.port}/_requests", timeout=5) as answer:
        return int(json.load(answer)["count"])


def stop(place: Place) -> bool:
    """End our own server; answer whether it was running."""
    return _server(place).stop()


def _server(place: Place) -> Server:
    return Server(place=place, name="model")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((LOOPBACK, port)) == 0
