"""Waits, in memory."""

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
