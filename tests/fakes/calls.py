"""Where a test can stop the world: around every call of a fake port.

One `Calls` is handed to all fakes of a run, over any number of pretended processes. It writes down the name of every
call and can, at one chosen call, let the worker die before it, let it die after it (what was asked for has happened),
or lose the request or only the answer. A test can also step in before every call: there it may stop the worker that
makes the call, or let somebody else go first.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from shared.domain.errors import DependencyTimeout


class Killed(BaseException):
    """The worker died here. No `except Exception` may survive it, just as no code survives a real kill."""


class When(StrEnum):
    """What goes wrong at the chosen call."""

    KILL_BEFORE = "kill before"
    KILL_AFTER = "kill after"
    DROP_REPLY = "drop reply"
    LOSE_REQUEST = "lose request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that goes wrong once: at the `at`-th call, counted from 1, of all calls or of those named `name`."""

    when: When
    at: int
    name: str | None = None


def _no_answer() -> Exception:
    return DependencyTimeout("the answer was lost")


def _nobody(_name: str) -> None:
    """Step in nowhere."""


class Calls:
    """The record of all calls, and the faults to come."""

    def __init__(self, *faults: Fault) -> None:
        self._faults = list(faults)
        self._names: list[str] = []
        self._lock = threading.Lock()
        # Called with the call's name after it was written down and before it is made; no lock is held.
        self.step_in: Callable[[str], None] = _nobody

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all calls so far, in order, such as ``task_records.commit``."""
        with self._lock:
            return tuple(self._names)

    @property
    def pending(self) -> tuple[Fault, ...]:
        """The faults that have not struck yet."""
        with self._lock:
            return tuple(self._faults)

    def plan(self, *faults: Fault) -> None:
        """Add faults; their counts include the calls already made."""
        with self._lock:
            self._faults.extend(faults)

    def call_off(self) -> None:
        """Take back the faults that have not struck."""
        with self._lock:
            self._faults.clear()

    @contextmanager
    def around(self, name: str, *, dropped: Callable[[], Exception] = _no_answer) -> Iterator[None]:
        """Enclose one call. `dropped` makes the error by which this port reports that no answer came.

        Raises:
            Killed: a planned fault struck.
        """
        when = self._enter(name)
        self.step_in(name)
        if when is When.KILL_BEFORE:
            raise Killed(f"before {name}")
        if when is When.LOSE_REQUEST:
            raise dropped()
        try:
            yield
        except Exception as error:
            if when is When.KILL_AFTER:
                raise Killed(f"after {name}") from error
            if when is When.DROP_REPLY:
                raise dropped() from error
            raise
        if when is When.KILL_AFTER:
            raise Killed(f"after {name}")
        if when is When.DROP_REPLY:
            raise dropped()

    def _enter(self, name: str) -> When | None:
        with self._lock:
            self._names.append(name)
            for fault in self._faults:
                count = len(self._names) if fault.name is None else self._names.count(name)
                if fault.name in {None, name} and fault.at == count:
                    self._faults.remove(fault)
                    return fault.when
        return None
