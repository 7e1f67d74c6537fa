"""The local AWS itself: ministack from the virtual environment, on loopback, with IAM enforced."""

from __future__ import annotations

import shutil
import urllib.error
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from local.aws import ACCESS_KEY_ID, ACCOUNT, REGION, SECRET_ACCESS_KEY, LocalAws
from local.environment import isolated, plain_environment
from local.places import ROOT, VENV_BIN, Place, installed
from local.processes import children_of
from local.servers import LOOPBACK, Server, free_port

# It is ready within 2 s on an idle machine with two cores; a busy one gets many times that.
_READY_SECONDS_MAX: Final = 60.0


def emulator(place: Place) -> Server:
    """The emulator of a place, running or not."""
    return Server(place=place, name="emulator")


def start(place: Place, *, port: int | None, model_url: str | None) -> LocalAws:
    """Start the emulator and wait until it answers.

    Args:
        port: the loopback port to take, known to be free; ``None`` for any.
        model_url: base address of an OpenAI-compatible server that answers model calls, or ``None``: then every model
            call fails as unavailable.

    Raises:
        LocalProblem: an emulator of this place runs already, or it does not become ready.
    """
    chosen = port or free_port()
    server = emulator(place)
    if server.running() is None:
        shutil.rmtree(place.temporary, ignore_errors=True)
    started = server.start(
        [installed(VENV_BIN / "python"), "-m", "local.emulator_process"],
        port=chosen,
        environment={**plain_environment(), **isolated(), **_settings(place, chosen, model_url)},
        healthy=_healthy,
        seconds_max=_READY_SECONDS_MAX,
        # Not through PYTHONPATH: that would reach the functions' workers and hide what their bundle lacks.
        folder=ROOT,
    )
    return LocalAws(port=started.port)


def stop(place: Place) -> bool:
    """End the emulator and everything it ran; answer whether it was running. All that it held is gone."""
    stopped = emulator(place).stop()
    shutil.rmtree(place.temporary, ignore_errors=True)
    return stopped


def worker_pids(place: Place, function_name: str) -> list[int]:
    """The processes that hold one function's code right now, idle or in a call; empty where none is warm.

    A worker is a child of the emulator whose script lies in a folder named after the function.
    """
    running = emulator(place).running()
    if running is None:
        return []
    folder = f"/ministack-lambda-{function_name}-"
    return [pid for pid, command in children_of(running.pid) if folder in command]


def _healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/_ministack/health", timeout=2) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except (urllib.error.URLError, OSError):
        return False


def _settings(place: Place, port: int, model_url: str | None) -> Mapping[str, str]:
    settings = {
        "PYTHONDONTWRITEBYTECODE": "1",
        "AUTH": "true",
        "BIND_HOST": LOOPBACK,
        "GATEWAY_PORT": str(port),
        "MINISTACK_REGION": REGION,
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
        "TMPDIR": str(place.temporary),
        "STATE_DIR": str(place.temporary / "state"),
        "S3_DATA_DIR": str(place.temporary / "s3"),
        "LAMBDA_EXECUTOR": "local",
        # Listeners for services that nothing here uses.
        "SFTP_ENABLED": "0",
        "IOT_MTLS_ENABLED": "0",
        "LOG_LEVEL": "INFO",
    }
    if model_url is not None:
        settings["MINISTACK_BEDROCK_PROXY_URL"] = model_url
    return settings
