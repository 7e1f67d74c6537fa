"""The outbox: what a commit has staged and nobody has delivered yet."""

from datetime import datetime
from typing import Protocol

from shared.domain.outbox import OutboxRow


class Outbox(Protocol):
    """Rows are written by commits alone and removed when every message is delivered."""

    def stale(self, *, before: datetime, limit: int) -> tuple[OutboxRow, ...]:
        """List undelivered rows that were staged before an instant, strongly consistent, in no order."""

    def restage(self, row: OutboxRow, *, now: datetime) -> None:
        """Put a row before the stream again, in place of itself; a row that was delivered meanwhile stays removed."""

    def remove(self, row: OutboxRow) -> None:
        """Remove a delivered row; removing what is gone changes nothing."""
