"""What a function weighs: the time to import it and make its clients, and the size of what is deployed."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
FUNCTIONS: Final = ("api", "wake", "propose", "open_wait", "perform", "deliver", "deadline", "recover")
FLOOR: Final = "import boto3; boto3.client('dynamodb', region_name='us-east-1')"
ROUNDS: Final = 7

_NAMES = [
    "HEADS",
    "CHECKPOINTS",
    "WAITS",
    "TOKENS",
    "ACTIONS",
    "INBOX",
    "OUTBOX",
    "LEASES",
    "MEMORY",
    "AUTHORITY",
]  # every function finds what it reads
_SETTINGS: Final = {
    **{f"{name}_TABLE": "t" for name in _NAMES},
    "HOLDFAST_STAGE": "bench",
    "EVIDENCE_BUCKET": "b",
    "ARTIFACTS_BUCKET": "b",
    "SEAL_KEY_ID": "k",
    "MODEL_ID": "m",
    "EVENT_BUS": "e",
    "OIDC_ISSUER": "i",
    "OIDC_CLIENT_ID": "c",
    "SCHEDULE_GROUP": "g",
    "DEADLINE_FUNCTION_ARN": "d",
    "SCHEDULE_ROLE_ARN": "r",
    "STATE_MACHINE_ARNS": "{}",
    "TOOL_FUNCTIONS": "{}",
    "POWERTOOLS_SERVICE_NAME": "bench",
    "POWERTOOLS_METRICS_NAMESPACE": "Holdfast",
    "POWERTOOLS_TRACE_DISABLED": "true",
}


def measure_imports() -> dict[str, Any]:
    """Import and wire every function, in turn with the floor, and return each median as a multiple of the floor's."""
    programs = {"floor": FLOOR} | {
        name: f"import functions.{name}.handler; from shared.runtime import wiring; wiring.{name}()"
        for name in FUNCTIONS
    }
    times: dict[str, list[float]] = {name: [] for name in programs}
    for program in programs.values():
        _seconds(program)
    for _ in range(ROUNDS):
        for name, program in programs.items():
            times[name].append(_seconds(program))
    floor = statistics.median(times["floor"])
    return {
        "floor_ms": round(floor * 1_000),
        "times_the_floor": {name: round(statistics.median(times[name]) / floor, 2) for name in FUNCTIONS},
    }


def measure_bundle() -> dict[str, float]:
    """Return the unzipped size, in megabytes, of what is deployed for the cloud."""
    layer = _megabytes(ROOT / ".build" / "dependencies" / "cloud")
    code = sum(_megabytes(ROOT / package) for package in ("functions", "shared"))
    return {"layer_mb": round(layer, 1), "code_mb": round(code, 1), "in_all_mb": round(layer + code, 1)}


def _seconds(program: str) -> float:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT}:{ROOT / '.build' / 'dependencies' / 'host' / 'python'}",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_REGION": "us-east-1",
        **_SETTINGS,
    }
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True)
    return time.perf_counter() - begun


def _megabytes(folder: Path) -> float:
    files = (f for f in folder.rglob("*") if f.is_file() and "__pycache__" not in f.parts)
    return sum(f.stat().st_size for f in files) / 1e6
