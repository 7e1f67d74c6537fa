"""Seals: keyed MACs whose key never leaves the key service."""

from typing import Protocol


class Sealer(Protocol):
    """Makes and checks MACs over 32-byte inputs."""

    @property
    def key_id(self) -> str:
        """The id of the key that seals now; it is part of what is sealed."""

    def seal(self, sealed_bytes: bytes) -> str:
        """Return the MAC as text.

        Raises:
            SealUnavailable: the key service is throttled, disabled or out of reach; try again later.
        """

    def verify(self, sealed_bytes: bytes, seal: str, key_id: str) -> bool:
        """Return whether the MAC is right. False is the only evidence of tampering.

        Raises:
            SealUnavailable: the key service could not be asked; that is no verdict.
        """
