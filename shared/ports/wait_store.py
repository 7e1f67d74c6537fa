"""Open and settled waits, found by what the outside knows: the correlation id."""

from typing import Protocol

from shared.domain.wait import Wait


class WaitStore(Protocol):
    """Reads of waits; rows are written by commits alone."""

    def get(self, tenant: str, correlation_id: str) -> Wait | None:
        """Read one wait, strongly consistent."""
