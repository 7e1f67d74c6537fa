"""Workers on threads of their own that stop before a call until they are told to go on.

Only one thread runs at any time: whoever says `go` waits until the worker has stopped or ended. So an order of steps
that was chosen is the order that happens, the same in every run.
"""

import threading
from collections.abc import Callable

from tests.fakes.calls import Killed

# A worker makes its next call within milliseconds; this only ends a test that hangs.
_SECONDS_MAX = 30.0


class Worker:
    """One delivery to a function. `stops_before` says, for each of its calls in turn, whether it stops there."""

    _of_thread: "dict[int, Worker]" = {}  # noqa: RUF012 - the one place where a thread finds its worker

    def __init__(self, work: Callable[[], object], *, stops_before: Callable[[int], bool]) -> None:
        self.made = 0
        self.ended = False
        self.answer: object = None
        self.error: BaseException | None = None
        self._work = work
        self._stops_before = stops_before
        self._killed = False
        self._turn = threading.Semaphore(0)
        self._back = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)

    @classmethod
    def current(cls) -> "Worker | None":
        """The worker whose thread asks."""
        return cls._of_thread.get(threading.get_ident())

    def go(self) -> bool:
        """Let the worker go on; say whether it has ended."""
        if self.ended:
            return True
        if not self._thread.is_alive():
            self._thread.start()
        self._turn.release()
        if not self._back.acquire(timeout=_SECONDS_MAX):
            raise AssertionError("a worker neither stopped nor ended")
        return self.ended

    def result(self) -> object:
        """What the worker's work came to: its answer, or its error raised here."""
        if self.error is not None:
            raise self.error
        return self.answer

    def kill(self) -> None:
        """End the worker where it stands."""
        if self._thread.is_alive() and not self.ended:
            self._killed = True
            self.go()

    def at_call(self) -> None:
        """Called on the worker's thread before each of its calls."""
        self.made += 1
        if self._stops_before(self.made):
            self._back.release()
            self._turn.acquire()
            if self._killed:
                raise Killed("the worker was ended")

    def _run(self) -> None:
        self._turn.acquire()
        Worker._of_thread[threading.get_ident()] = self
        try:
            self.answer = self._work()
        except BaseException as error:  # noqa: BLE001 - handed to whoever said go
            self.error = error
        finally:
            del Worker._of_thread[threading.get_ident()]
            self.ended = True
            self._back.release()
