"""One way to run a set-up step: in turn, and with a plain word when it fails."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
BUILD: Final = ROOT / ".build"
VENV: Final = ROOT / ".venv"
VENV_BIN: Final = VENV / "bin"

# What a person needs of a failed installer's output: its last words.
_LAST_LINES: Final = 20


class StepFailed(SystemExit):
    """A step could not be done. Printed with what to do about it; nothing half-done is kept as done."""

    def __init__(self, problem: str, remedy: str) -> None:
        print(f"\nset-up stopped: {problem}\n\n{remedy}", file=sys.stderr)
        super().__init__(1)


@contextmanager
def exclusively(name: str) -> Iterator[None]:
    """Hold the lock ``name`` so that two set-ups of one checkout follow each other.

    If killed here:
        The operating system releases the lock; the next set-up does the step again.
    """
    BUILD.mkdir(exist_ok=True)
    with (BUILD / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(arguments: Sequence[str | Path], *, problem: str, remedy: str, extra: Mapping[str, str] | None = None) -> str:
    """Run one program quietly and answer what it wrote to its standard output.

    Raises:
        StepFailed: it could not be started or failed; its last words come before ``problem`` and ``remedy``.
    """
    environment = {**os.environ, "PATH": f"{VENV_BIN}{os.pathsep}{os.environ.get('PATH', '')}", **(extra or {})}
    try:
        done = subprocess.run(
            [str(argument) for argument in arguments],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise StepFailed(f"{problem} ({error})", remedy) from error
    if done.returncode != 0:
        words = (done.stderr.strip() or done.stdout.strip()).splitlines()[-_LAST_LINES:]
        print("\n".join(words), file=sys.stderr)
        raise StepFailed(problem, remedy)
    return done.stdout


def say(words: str) -> None:
    """Tell the person at the terminal which step is under way."""
    print(f"set-up: {words}", flush=True)
