"""The event bus, in memory: what was published, repeats included."""

from shared.domain.errors import Throttled
from shared.domain.identity import TaskKey
from shared.domain.outbox import PublishEvent
from tests.fakes.calls import Calls
from tests.fakes.store import World


def _no_answer() -> Exception:
    return Throttled("the bus did not answer")


class FakeEventBus:
    def __init__(self, world: World, calls: Calls | None = None) -> None:
        self._world = world
        self._calls = calls or Calls()

    def publish(self, key: TaskKey, event: PublishEvent) -> None:
        with self._calls.around("event_bus.publish", dropped=_no_answer), self._world as world:
            world.events.append((key, event))
