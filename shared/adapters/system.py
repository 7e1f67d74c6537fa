"""The machine's own clock and chance."""

import secrets
from datetime import UTC, datetime

from shared.domain.identity import ID_BYTES
from shared.domain.instants import as_instant


class SystemClock:
    """The time of day, to the millisecond that is stored."""

    def now(self) -> datetime:
        """See `Clock.now`."""
        return as_instant(datetime.now(UTC))


class SystemIds:
    """Identifiers from the system's own source of chance."""

    def new(self, prefix: str) -> str:
        """See `Ids.new`."""
        return f"{prefix}_{secrets.token_hex(ID_BYTES)}"
