"""Task tokens, in memory."""

from datetime import datetime

from tests.fakes.calls import Calls
from tests.fakes.store import World


class FakeTokenStore:
    def __init__(self, world: World, calls: Calls | None = None) -> None:
        self._world = world
        self._calls = calls or Calls()

    def put(self, tenant: str, wait_id: str, token: str, *, entry: int, purge_at: datetime) -> None:
        with self._calls.around("token_store.put"), self._world as world:
            if entry >= world.token_entries.get((tenant, wait_id), entry):
                world.tokens[tenant, wait_id] = token
                world.token_entries[tenant, wait_id] = entry

    def get(self, tenant: str, wait_id: str) -> str | None:
        with self._calls.around("token_store.get"), self._world as world:
            return world.tokens.get((tenant, wait_id))
