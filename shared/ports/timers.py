"""Timers: one per wait, there to be early; the wait row owns the deadline."""

from typing import Protocol

from shared.domain.identity import TaskKey
from shared.domain.outbox import ArmTimer


class Timers(Protocol):
    """One-time schedules, named after their wait."""

    def arm(self, key: TaskKey, timer: ArmTimer) -> None:
        """Set the wait's timer, replacing an earlier rung's. An instant that has passed fires at once.

        Raises:
            Throttled: try again later.
            InvariantBroken: the service refuses the timer; the sweep still ends the wait.
        """

    def disarm(self, key: TaskKey, wait_id: str) -> None:
        """Remove the wait's timer; one that is gone is as good.

        Raises:
            Throttled: try again later.
        """
