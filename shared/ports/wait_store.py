"""Open and settled waits, found by what the outside knows: the correlation id; or by their task."""

from datetime import datetime
from typing import Protocol

from shared.domain.identity import TaskKey
from shared.domain.wait import Wait


class WaitStore(Protocol):
    """Reads of waits; rows are written by commits alone."""

    def get(self, tenant: str, correlation_id: str) -> Wait | None:
        """Read one wait, strongly consistent."""

    def opened_since(self, key: TaskKey, instant: datetime) -> tuple[Wait, ...]:
        """Find a task's waits that were opened at an instant or later, oldest first, whatever became of them.

        They are listed by an index, which may not know of a wait of the last moments yet, and then read themselves,
        strongly consistent.
        """
