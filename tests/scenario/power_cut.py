"""Worker processes that die at a chosen moment of a call.

A function's workers are held still and let run a slice at a time, as under a debugger. In the pauses one looks from
outside whether the moment has come: a row in a table, an object in a bucket, an execution that has moved on. Then they
are killed while they stand still, so no moment depends on who is faster.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from local.instance import Instance
from local.walkthrough.observer import OutOfPatience

# What a warm worker does in this time is less than what lies between a write and the answer of its call.
SLICE_SECONDS = 0.001
# A new process takes many times this to get to its first call; looking for one takes longer than a slice.
LISTED_EVERY_SECONDS = 0.05
# No call of ours lasts longer: its function would be ended.
CALL_SECONDS_MAX = 30.0


@dataclass
class Workers:
    """The processes of one function, standing still."""

    instance: Instance
    function: str
    pids: list[int] = field(default_factory=list)

    def hold(self) -> None:
        """Stop every process that the function has by now, also one that has just been started."""
        self._pause()
        self.pids = self.instance.worker_pids(self.function)
        self._pause()

    def run_until(self, has_come: Callable[[], bool], what: str) -> None:
        """Let them run, a slice at a time, until the moment has come; then they stand still.

        Raises:
            OutOfPatience: it did not come.
        """
        give_up_at = time.monotonic() + CALL_SECONDS_MAX
        listed_at = -LISTED_EVERY_SECONDS
        while time.monotonic() < give_up_at:
            if time.monotonic() >= listed_at + LISTED_EVERY_SECONDS:
                self.hold()
                listed_at = time.monotonic()
            if has_come():
                return
            self.release()
            time.sleep(SLICE_SECONDS)
            self._pause()
        msg = f"the workers of {self.function} did not come to the moment: {what}"
        raise OutOfPatience(msg)

    def kill(self) -> list[int]:
        """Kill them where they stand, as a power cut would, and return their pids."""
        self.hold()
        return [pid for pid in self.pids if _signalled(pid, signal.SIGKILL)]

    def release(self) -> None:
        """Let them go on."""
        for pid in self.pids:
            _signalled(pid, signal.SIGCONT)

    def _pause(self) -> None:
        for pid in self.pids:
            _signalled(pid, signal.SIGSTOP)


@contextmanager
def held(instance: Instance, function: str) -> Iterator[Workers]:
    """Hold the workers of a function still for as long as the block lasts, however it ends."""
    workers = Workers(instance, function)
    workers.hold()
    try:
        yield workers
    finally:
        workers.release()


def _signalled(pid: int, number: signal.Signals) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False
