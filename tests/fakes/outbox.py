"""The outbox, in memory."""

from datetime import datetime

from shared.domain.outbox import OutboxRow
from tests.fakes.calls import Calls
from tests.fakes.store import World


class FakeOutbox:
    def __init__(self, world: World, calls: Calls | None = None) -> None:
        self._world = world
        self._calls = calls or Calls()

    def stale(self, *, before: datetime, limit: int) -> tuple[OutboxRow, ...]:
        with self._calls.around("outbox.stale"), self._world as world:
            rows = [row for place, row in world.outbox.items() if world.staged_at[place] < before]
            return tuple(rows[:limit])

    def restage(self, row: OutboxRow, *, now: datetime) -> None:
        with self._calls.around("outbox.restage"), self._world as world:
            place = (row.key.key, row.version, row.part)
            if place in world.outbox:
                world.staged_at[place] = now

    def remove(self, row: OutboxRow) -> None:
        with self._calls.around("outbox.remove"), self._world as world:
            world.outbox.pop((row.key.key, row.version, row.part), None)
