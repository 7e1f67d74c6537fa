"""The scheduler service, in memory: what is armed, by wait."""

from shared.domain.errors import Throttled
from shared.domain.identity import TaskKey
from shared.domain.outbox import ArmTimer
from tests.fakes.calls import Calls
from tests.fakes.store import World


def _no_answer() -> Exception:
    return Throttled("the scheduler did not answer")


class FakeTimers:
    def __init__(self, world: World, calls: Calls | None = None) -> None:
        self._world = world
        self._calls = calls or Calls()

    def arm(self, key: TaskKey, timer: ArmTimer) -> None:
        with self._calls.around("timers.arm", dropped=_no_answer), self._world as world:
            world.timers[timer.wait_id] = (key, timer)

    def disarm(self, key: TaskKey, wait_id: str) -> None:
        with self._calls.around("timers.disarm", dropped=_no_answer), self._world as world:
            world.timers.pop(wait_id, None)
