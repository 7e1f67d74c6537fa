"""The secrets that a tenant's source signs its events with."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningSecret:
    """One secret, never printed. `accept_until` ends the grace of one that was replaced; None is no end."""

    key: bytes = field(repr=False)
    accept_until: datetime | None = None

    def is_valid(self, *, now: datetime) -> bool:
        """Whether a signature with it counts now."""
        return self.accept_until is None or now < self.accept_until


class SigningSecrets(Protocol):
    """Live secrets: a rotation needs no deployment."""

    def of(self, tenant: str, source: str, *, fresh: bool = False) -> tuple[SigningSecret, ...]:
        """List a source's usable secrets; none if nobody knows such a source.

        Args:
            fresh: something that was read a moment ago will not do; the store is asked, within its own limits.

        Raises:
            SecretsUnavailable: the store did not answer, or holds something unreadable; that is no verdict.
        """
