"""Task tokens. Only `open_wait` writes them and only `deliver` reads them."""

from datetime import datetime
from typing import Protocol


class TokenStore(Protocol):
    """The machine's callback handles, one per wait: that of the state which was entered last."""

    def put(self, tenant: str, wait_id: str, token: str, *, entry: int, purge_at: datetime) -> None:
        """Store the token of a state that waits.

        `entry` grows with every state that is entered for the wait. A token of an earlier entry than the stored one's
        comes from a worker that was given up meanwhile; nobody waits with it, and nothing is changed.
        """

    def get(self, tenant: str, wait_id: str) -> str | None:
        """Read the token, strongly consistent; None if the machine has not reached the wait yet."""
