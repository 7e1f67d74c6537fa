"""Time and chance, as things that are passed in."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The current instant."""

    def now(self) -> datetime:
        """Return now, in UTC."""


class Ids(Protocol):
    """Unguessable identifiers."""

    def new(self, prefix: str) -> str:
        """Return ``<prefix>_`` and 128 random bits as 32 hexadecimal digits."""
