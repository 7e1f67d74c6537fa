"""Time and identifiers that a test decides."""

import random
import threading
from datetime import UTC, datetime, timedelta

from shared.domain.instants import as_instant

NOON = datetime(2026, 10, 9, 12, 0, tzinfo=UTC)


class FakeClock:
    """A clock that stands still until it is moved."""

    def __init__(self, start: datetime = NOON) -> None:
        self._now = as_instant(start)
        self._lock = threading.Lock()

    def now(self) -> datetime:
        with self._lock:
            return self._now

    def advance(self, by: timedelta) -> datetime:
        """Move forward and return the new instant."""
        with self._lock:
            self._now = as_instant(self._now + by)
            return self._now

    def set(self, moment: datetime) -> None:
        """Move to an instant."""
        with self._lock:
            self._now = as_instant(moment)


class FakeIds:
    """Identifiers of the real form, the same in every run with the same seed."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable on purpose
        self._lock = threading.Lock()

    def new(self, prefix: str) -> str:
        with self._lock:
            return f"{prefix}_{self._random.getrandbits(128):032x}"
