"""Task leases, in memory."""

from datetime import datetime

from shared.domain.errors import InvariantBroken, LeaseHeld
from shared.domain.identity import TaskKey
from shared.ports.leases import Lease
from tests.fakes.calls import Calls
from tests.fakes.store import LeaseRow, World


class FakeLeases:
    def __init__(self, world: World, calls: Calls | None = None) -> None:
        self._world = world
        self._calls = calls or Calls()

    def acquire(
        self,
        key: TaskKey,
        *,
        version: int,
        holder: str,
        presented_fence: int | None,
        now: datetime,
        ends_at: datetime,
    ) -> Lease:
        with self._calls.around("leases.acquire"), self._world as world:
            row = world.leases.get(key.key)
            if row is not None and row.version > version:
                msg = f"the lease was taken for version {row.version}, the head says {version}"
                raise InvariantBroken(msg)
            if row is not None and now < row.ends_at and presented_fence != row.fence:
                raise LeaseHeld("another attempt is at work on the task")
            fence = 1 if row is None else row.fence + 1
            world.leases[key.key] = LeaseRow(fence=fence, version=version, holder=holder, ends_at=ends_at)
            return Lease(fence=fence, ends_at=ends_at)
