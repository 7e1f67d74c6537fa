"""The outbox, in memory."""

from shared.domain.outbox import OutboxRow
from tests.fakes.calls import Calls
from tests.fakes.store import World


class FakeOutbox:
    def __init__(self, world: World, calls: Calls | None = None) -> None:
        self._world = world
        self._calls = calls or Calls()

    def remove(self, row: OutboxRow) -> None:
        with self._calls.around("outbox.remove"), self._world as world:
            world.outbox.pop((row.key.key, row.version, row.part), None)
