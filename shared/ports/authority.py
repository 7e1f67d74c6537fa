"""The authority store: principals and freezes, read live at every gate."""

from dataclasses import dataclass
from typing import Protocol

from shared.domain.authority import Principal
from shared.domain.identity import PrincipalRef


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthoritySnapshot:
    """What the store said in one consistent read: the known principals, and the reason of a freeze that applies."""

    principals: dict[str, Principal]
    freeze: str | None


class Authority(Protocol):
    """Principals and freezes."""

    def read(self, principals: tuple[PrincipalRef, ...], *, freezes: tuple[str, ...] = ()) -> AuthoritySnapshot:
        """Read principals (by issuer and subject) and freezes (by scope: ``all``, ``tenant#acme``), consistently.

        An unknown or disabled principal is missing from the answer.

        Raises:
            AuthorityUnreadable: the store did not answer or holds a record that cannot be read; nothing is allowed.
        """
