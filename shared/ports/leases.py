"""The task lease: a short right to ask the model, kept apart so that a dead worker changes no task."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from shared.domain.identity import TaskKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A held lease. The fence grows with every acquisition and travels through the state machine."""

    fence: int
    ends_at: datetime


class Leases(Protocol):
    """Leases by task."""

    def acquire(
        self, key: TaskKey, *, version: int, holder: str, presented_fence: int | None, now: datetime, ends_at: datetime
    ) -> Lease:
        """Take the lease if nobody's is live, or hand it on with the fence that the previous holder presented.

        The row also remembers the highest version it was taken for: a second high-water mark with another writer.

        Raises:
            LeaseHeld: another attempt's lease is live.
            InvariantBroken: the lease was taken for a later version: this attempt is late, or the head was put back.
        """
