"""Who is speaking: from the claims that the gateway has verified to a principal as the authority store knows it now.

The gateway has checked signature, issuer, audience and expiry. What it lets through is still checked here for being an
access token of our own application: an ID token, or another application's token of the same issuer, has a good
signature too. Tenant and roles are never taken from a token; they are read live by issuer and subject.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from shared.domain.authority import Principal
from shared.domain.errors import NotAuthenticated, NotAuthorised
from shared.domain.identity import PrincipalRef
from shared.ports.authority import Authority

ACCESS_TOKEN: Final = "access"  # noqa: S105 - the name of a kind of token
GROUPS_CLAIM: Final = "cognito:groups"
ISSUER_CHARACTERS_MAX: Final = 400
SUBJECT_CHARACTERS_MAX: Final = 256
# An issuer's clock may run a little ahead of ours; a log-in further in the future is no log-in that we know of.
CLOCK_SKEW_SECONDS: Final = 60
# The gateway hands a list over as text: brackets around, single spaces between.
_LIST_AS_TEXT: Final = re.compile(r"\[(?:[^\s\[\]]+(?: [^\s\[\]]+)*)?\]\Z")
_SECONDS: Final = re.compile(r"[0-9]{1,12}\Z", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Whose tokens are accepted, and for which application."""

    issuer: str
    client_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who the token says is speaking. `authenticated_seconds_ago` is None when the token does not say."""

    ref: PrincipalRef
    groups: frozenset[str]
    authenticated_seconds_ago: int | None


def read_identity(claims: Mapping[str, object], expected: Expected, *, now: datetime) -> Identity:
    """Read verified claims.

    The application is read from `client_id`, which access tokens carry and ID tokens do not (RFC 9068).

    Raises:
        NotAuthenticated: no access token, or one of another issuer or application, or one that has run out.
    """
    _require(_text(claims, "iss") == expected.issuer, "the token is of another issuer")
    _require(claims.get("token_use", ACCESS_TOKEN) == ACCESS_TOKEN, "an access token is needed")
    _require(_text(claims, "client_id") == expected.client_id, "the token is not an access token of this application")
    expires = _seconds(claims.get("exp"))
    _require(expires is not None and now.timestamp() < expires, "the token has run out")
    subject = _text(claims, "sub")
    _require(
        0 < len(subject) <= SUBJECT_CHARACTERS_MAX and len(expected.issuer) <= ISSUER_CHARACTERS_MAX,
        "the token names no subject",
    )
    return Identity(
        ref=PrincipalRef(issuer=expected.issuer, subject=subject),
        groups=read_groups(claims.get(GROUPS_CLAIM)),
        authenticated_seconds_ago=_seconds_ago(claims.get("auth_time"), now=now),
    )


def read_groups(claim: object) -> frozenset[str]:
    """Read the groups claim: a native list, or a list as text such as ``[approvers finance]``.

    Names are exact. Whatever cannot be read with certainty means no groups at all (B13). In the text form a name cannot
    hold a space; no name in a Cognito pool can.
    """
    if isinstance(claim, str):
        return frozenset(claim[1:-1].split()) if _LIST_AS_TEXT.match(claim) else frozenset()
    if isinstance(claim, list) and all(isinstance(name, str) and name for name in claim):
        return frozenset(claim)
    return frozenset()


def known_principal(identity: Identity, authority: Authority) -> Principal:
    """Look the speaker up, live, by issuer and subject.

    Raises:
        NotAuthorised: the authority store does not know them, or they are disabled.
        AuthorityUnreadable: the store could not be read; nothing is allowed.
    """
    known = authority.read((identity.ref,)).principals.get(identity.ref.key)
    if known is None:
        msg = "you are not known here; an operator has to add you"
        raise NotAuthorised(msg)
    return known.model_copy(
        update={"groups": identity.groups, "authenticated_seconds_ago": identity.authenticated_seconds_ago}
    )


def _require(condition: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not condition:
        raise NotAuthenticated(otherwise)


def _text(claims: Mapping[str, object], name: str) -> str:
    value = claims.get(name)
    return value if isinstance(value, str) else ""


def _seconds(value: object) -> int | None:
    if isinstance(value, str) and _SECONDS.match(value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _seconds_ago(value: object, *, now: datetime) -> int | None:
    seconds = _seconds(value)
    if seconds is None:
        return None
    ago = int(now.astimezone(UTC).timestamp()) - seconds
    return max(0, ago) if ago >= -CLOCK_SKEW_SECONDS else None
