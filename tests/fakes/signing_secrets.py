"""Signing secrets, in memory: what is stored now is what is read, as long as the store answers."""

from shared.domain.errors import SecretsUnavailable
from shared.ports.signing_secrets import SigningSecret


class FakeSigningSecrets:
    def __init__(self) -> None:
        self.stored: dict[tuple[str, str], tuple[SigningSecret, ...]] = {}
        self.unavailable = False
        # What was asked for, as (tenant, source, fresh).
        self.asked: list[tuple[str, str, bool]] = []

    def of(self, tenant: str, source: str, *, fresh: bool = False) -> tuple[SigningSecret, ...]:
        self.asked.append((tenant, source, fresh))
        if self.unavailable:
            raise SecretsUnavailable("the store is down")
        return self.stored.get((tenant, source), ())
