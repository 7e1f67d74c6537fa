"""The outbox: what a commit has staged and nobody has delivered yet."""

from typing import Protocol

from shared.domain.outbox import OutboxRow


class Outbox(Protocol):
    """Rows are written by commits alone and removed when every message is delivered."""

    def remove(self, row: OutboxRow) -> None:
        """Remove a delivered row; removing what is gone changes nothing."""
