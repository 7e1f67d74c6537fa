"""Waits, in memory."""

from datetime import datetime

from shared.domain.identity import TaskKey
from shared.domain.wait import Wait
from tests.fakes.calls import Calls
from tests.fakes.store import World


class FakeWaitStore:
    def __init__(self, world: World, calls: Calls | None = None) -> None:
        self._world = world
        self._calls = calls or Calls()

    def get(self, tenant: str, correlation_id: str) -> Wait | None:
        with self._calls.around("wait_store.get"), self._world as world:
            return world.waits.get((tenant, correlation_id))

    def opened_since(self, key: TaskKey, instant: datetime) -> tuple[Wait, ...]:
        with self._calls.around("wait_store.opened_since"), self._world as world:
            mine = [w for w in world.waits.values() if (w.tenant, w.task_id) == (key.tenant, key.task_id)]
            since = [w for w in mine if w.opened_at >= instant]
            return tuple(sorted(since, key=lambda wait: (wait.opened_at, wait.wait_id)))
