"""One call of the API: who is calling, and what the routes work with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, cast

from shared.domain.authority import Principal
from shared.domain.errors import NotAuthenticated
from shared.runtime import wiring
from shared.runtime.claims import Expected, Identity, known_principal, read_identity
from shared.runtime.settings import ApiSettings
from shared.usecases.engine import ApiDeps

_KEY: Final = "call"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiParts:
    """What the API is wired with, once per process."""

    deps: ApiDeps
    expected: Expected


@dataclass(slots=True, kw_only=True)
class Call:
    """The call under way. `identity` is None on open routes; `principal` is looked up when a route needs it."""

    parts: Callable[[], ApiParts]
    identity: Identity | None
    correlation_id: str
    _principal: Principal | None = None

    @property
    def deps(self) -> ApiDeps:
        """What the use cases need."""
        return self.parts().deps

    @property
    def principal(self) -> Principal:
        """The caller as the authority store knows them now.

        Raises:
            NotAuthenticated: the route is open and nobody has logged in.
            NotAuthorised: the authority store does not know the caller.
            AuthorityUnreadable: the store could not be read.
        """
        if self._principal is None:
            if self.identity is None:
                msg = "log in first"
                raise NotAuthenticated(msg)
            self._principal = known_principal(self.identity, self.deps.rights.authority)
        return self._principal

    @property
    def known(self) -> Principal | None:
        """The caller, if a route has looked them up already."""
        return self._principal

    @property
    def name(self) -> str:
        """How audit lines call the caller: issuer and subject, or nobody."""
        return self.identity.ref.key if self.identity else ""

    def as_context(self) -> dict[str, object]:
        """Return the context entry under which routes find the call."""
        return {_KEY: self}


def call_in(context: Mapping[str, object]) -> Call:
    """Find the call under way."""
    return cast("Call", context[_KEY])


def identify(event: Mapping[str, Any], parts: ApiParts) -> Identity:
    """Read who is calling from the claims that the gateway's authorizer has verified.

    Raises:
        NotAuthenticated: there are none, or they are not of an access token of ours.
    """
    authorizer = event.get("requestContext", {}).get("authorizer") or {}
    claims = (authorizer.get("jwt") or {}).get("claims")
    if not isinstance(claims, dict):
        msg = "log in first"
        raise NotAuthenticated(msg)
    return read_identity(claims, parts.expected, now=parts.deps.tasks.clock.now())


@cache
def wired_parts() -> ApiParts:
    """Wire the API from the environment."""
    settings = ApiSettings.read()
    return ApiParts(
        deps=wiring.api(), expected=Expected(issuer=settings.oidc_issuer, client_id=settings.oidc_client_id)
    )
