"""Task tokens. Only `open_wait` writes them and only `deliver` reads them."""

from datetime import datetime
from typing import Protocol


class TokenStore(Protocol):
    """The machine's callback handles, one per wait; the latest execution's token replaces an older one."""

    def put(self, tenant: str, wait_id: str, token: str, *, purge_at: datetime) -> None:
        """Store the token of the state that waits now."""

    def get(self, tenant: str, wait_id: str) -> str | None:
        """Read the token, strongly consistent; None if the machine has not reached the wait yet."""
