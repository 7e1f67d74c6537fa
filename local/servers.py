"""Servers in the background: started on loopback, known by a lock, ended by process id.

A server holds a lock on a file for as long as it lives. So "is it running" needs no list of processes, cannot mistake a
stranger that got the same process id, and a server that was killed leaves nothing that has to be cleaned up.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from local.places import Place
from local.problems import LocalProblem

LOOPBACK: Final = "127.0.0.1"

# How long a server may take to end after it was asked to, before it is made to.
END_SECONDS_MAX: Final = 10.0
_POLL_SECONDS: Final = 0.05
# Somebody who only looks holds the lock for a moment; a server that starts waits that moment out.
_LOOKERS_SECONDS_MAX: Final = 0.5

# Servers that this process started and has to reap when it ends them; those of an earlier command are not its children.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A server that was started: its process, which leads a process group of its own, and its port."""

    pid: int
    port: int


def free_port() -> int:
    """A loopback port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def require_free(port: int) -> None:
    """Refuse a port that is taken.

    Raises:
        LocalProblem: somebody listens there already.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            raise LocalProblem(
                f"Port {port} on {LOOPBACK} cannot be used: {error.strerror}.",
                "Name another port, or none: then a free one is taken.",
            ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One background server of a local AWS."""

    place: Place
    name: str

    def running(self) -> Running | None:
        """The running server, or nothing where it never started or has ended."""
        with self._lock_path.open("w") as lock:
            if _acquired(lock, fcntl.LOCK_SH):
                return None
        try:
            note = json.loads(self._note.read_text())
            return Running(pid=note["pid"], port=note["port"])
        except (OSError, ValueError, KeyError) as error:
            raise LocalProblem(
                f"The {self.name} runs from {self.place.folder}, but its note {self._note.name} cannot be read.",
                f"End the process that holds {self._lock_path} by hand (`fuser {self._lock_path}` names it).",
            ) from error

    def start(
        self,
        command: Sequence[str | Path],
        *,
        port: int,
        environment: Mapping[str, str],
        healthy: Callable[[int], bool],
        seconds_max: float,
        folder: Path | None = None,
    ) -> Running:
        """Start it and wait until it is healthy.

        Args:
            healthy: asked for the port's health again and again; must not raise.
            seconds_max: how long it may take to become healthy.

        Raises:
            LocalProblem: it runs already, ended at once, or did not become healthy in time. It is not left running.

        If killed here:
            The server goes on, and the next ``running`` finds it.
        """
        with self._lock_path.open("w") as lock:
            if not _acquired(lock, fcntl.LOCK_EX):
                raise LocalProblem(
                    f"The {self.name} of {self.place.name} is running already.", "Run `make down` first."
                )
            with self.place.log(self.name).open("wb") as log:
                process = subprocess.Popen(
                    [str(word) for word in command],
                    cwd=folder or self.place.folder,
                    env=dict(environment),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    pass_fds=[lock.fileno()],
                    start_new_session=True,
                )
            self._note.write_text(json.dumps({"pid": process.pid, "port": port}))
        _children[process.pid] = process
        try:
            self._await_health(process, port=port, healthy=healthy, seconds_max=seconds_max)
        except BaseException:
            self.stop()
            raise
        return Running(pid=process.pid, port=port)

    def stop(self) -> bool:
        """End it with all processes that it started; answer whether there was anything to end.

        Raises:
            LocalProblem: it did not end, not even when made to.
        """
        running = self.running()
        if running is None:
            self._note.unlink(missing_ok=True)
            return False
        for stopping in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, stopping)
            if self._ended(within=END_SECONDS_MAX):
                self._note.unlink(missing_ok=True)
                child = _children.pop(running.pid, None)
                if child is not None:
                    child.wait(timeout=END_SECONDS_MAX)
                return True
        problem = f"The {self.name} (process {running.pid}) does not end."
        raise LocalProblem(problem, f"End process {running.pid} by hand.")

    def _await_health(
        self, process: subprocess.Popen[bytes], *, port: int, healthy: Callable[[int], bool], seconds_max: float
    ) -> None:
        ends_at = time.monotonic() + seconds_max
        while not healthy(port):
            if process.poll() is not None:
                raise LocalProblem(f"The {self.name} ended with code {process.returncode}.", self._last_words())
            if time.monotonic() > ends_at:
                raise LocalProblem(f"The {self.name} was not ready after {seconds_max:.0f} s.", self._last_words())
            time.sleep(_POLL_SECONDS)

    def _ended(self, *, within: float) -> bool:
        ends_at = time.monotonic() + within
        while time.monotonic() < ends_at:
            if self.running() is None:
                return True
            time.sleep(_POLL_SECONDS)
        return False

    def _last_words(self) -> str:
        path = self.place.log(self.name)
        lines = path.read_text(errors="replace").splitlines()[-15:]
        return "\n".join([f"The end of {path}:", *(f"  {line}" for line in lines)])

    @property
    def _note(self) -> Path:
        return self.place.folder / f"{self.name}.json"

    @property
    def _lock_path(self) -> Path:
        return self.place.folder / f"{self.name}.lock"


def servers_in(place: Place) -> list[Server]:
    """Every server that was ever started in a place, running or not."""
    return [Server(place=place, name=note.stem) for note in sorted(place.folder.glob("*.log")) if _has_lock(note)]


def _has_lock(log: Path) -> bool:
    return log.with_suffix(".lock").exists()


def _acquired(lock: IO[str], kind: int) -> bool:
    """Try for the lock: shared to look whether a server holds it, exclusive to become one."""
    ends_at = time.monotonic() + _LOOKERS_SECONDS_MAX
    while True:
        try:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if kind == fcntl.LOCK_SH or time.monotonic() > ends_at:
                return False
            time.sleep(_POLL_SECONDS)
        else:
            return True
