"""Programs that run to their end in the background while something else is done."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from local.problems import LocalProblem

_LAST_LINES: Final = 20
_END_SECONDS_MAX: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program under way. Whoever starts one either waits for it or abandons it."""

    title: str
    log: Path
    process: subprocess.Popen[bytes]

    @classmethod
    def start(
        cls, title: str, words: Sequence[str], *, folder: Path, environment: Mapping[str, str], log: Path
    ) -> Command:
        """Start a program without input; all that it says goes into ``log``."""
        with log.open("wb") as file:
            process = subprocess.Popen(
                words,
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                # A group of its own, so that abandoning it reaches the programs that it runs.
                start_new_session=True,
            )
        return cls(title=title, log=log, process=process)

    def wait(self, *, seconds_max: float) -> None:
        """Wait for its end.

        Raises:
            LocalProblem: it failed, or did not end in time and was ended; its last words are in the message.
        """
        try:
            code = self.process.wait(timeout=seconds_max)
        except subprocess.TimeoutExpired as error:
            self.abandon()
            raise LocalProblem(f"{self.title} did not end in {seconds_max:.0f} s.", f"See {self.log}.") from error
        except BaseException:
            self.abandon()
            raise
        if code != 0:
            lines = self.log.read_text(errors="replace").splitlines()[-_LAST_LINES:]
            words = "\n".join([f"The end of {self.log}:", *(f"  {line}" for line in lines)])
            raise LocalProblem(f"{self.title} failed with code {code}.", words)

    def abandon(self) -> None:
        """End it and what it runs; nothing happens where it has ended."""
        if self.process.poll() is not None:
            return
        os.killpg(self.process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=_END_SECONDS_MAX)
        # Also those of the group that did not end with their parent.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
