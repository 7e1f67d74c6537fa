"""Which processes a process has started: from ``/proc`` where it exists, from ``ps`` elsewhere."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from local.problems import LocalProblem

_PROC: Final = Path("/proc")


def children_of(parent: int) -> list[tuple[int, str]]:
    """Process id and command line of every direct child, the oldest id first."""
    every = _from_proc() if (_PROC / "self" / "stat").exists() else _from_ps()
    return sorted((pid, command) for pid, its_parent, command in every if its_parent == parent)


def _from_proc() -> Iterator[tuple[int, int, str]]:
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # pid (name, which may hold anything) state parent …
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (OSError, ValueError):
            continue  # it ended while it was looked at
        yield int(folder.name), parent, command


def _from_ps() -> Iterator[tuple[int, int, str]]:
    program = shutil.which("ps")
    if program is None:
        raise LocalProblem("This machine has neither /proc nor ps.", "Install ps (on Debian the package procps).")
    listing = subprocess.run([program, "-axo", "pid=,ppid=,command="], capture_output=True, text=True, check=True)
    for line in listing.stdout.splitlines():
        pid, parent, command = line.split(maxsplit=2)
        yield int(pid), int(parent), command
