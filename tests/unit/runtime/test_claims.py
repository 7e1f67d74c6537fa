"""Who is speaking, from claims as gateways really hand them over."""

from datetime import timedelta

import pytest

from shared.domain.errors import AuthorityUnreadable, NotAuthenticated, NotAuthorised
from shared.domain.identity import PrincipalRef
from shared.runtime.claims import Expected, known_principal, read_groups, read_identity
from tests.fakes.authority import FakeAuthority
from tests.fakes.clock import NOON
from tests.fakes.store import World

ISSUER = "https://issuer.test/pool"
EXPECTED = Expected(issuer=ISSUER, client_id="app-1")


def the_claims(**changes: object) -> dict[str, object]:
    """Make the claims of clerk-1's access token, ten minutes old and good for fifty more; None removes one."""
    claims: dict[str, object] = {
        "iss": ISSUER,
        "sub": "clerk-1",
        "client_id": "app-1",
        "token_use": "access",
        "auth_time": str(int((NOON - timedelta(minutes=10)).timestamp())),
        "exp": str(int((NOON + timedelta(minutes=50)).timestamp())),
        "cognito:groups": "[approvers finance]",
    }
    return {name: value for name, value in (claims | changes).items() if value is not None}


@pytest.mark.parametrize(
    ("claim", "groups"),
    [
        ("[approvers finance]", {"approvers", "finance"}),
        ("[approvers]", {"approvers"}),
        ("[non-approvers]", {"non-approvers"}),
        ("[]", set()),
        ("approvers", set()),
        ("approvers finance", set()),
        ("[approvers", set()),
        ("approvers]", set()),
        ("[approvers finance] x", set()),
        ("[approvers  finance]", set()),
        ("[ approvers]", set()),
        ("[approvers\nfinance]", set()),
        ("[[approvers]]", set()),
        ("[non approvers]", {"non", "approvers"}),
        ("[approvers,finance]", {"approvers,finance"}),
        ('["approvers"]', {'"approvers"'}),
        ("", set()),
        (None, set()),
        (7, set()),
        ({"approvers": True}, set()),
        (["approvers", "finance"], {"approvers", "finance"}),
        (["non approvers"], {"non approvers"}),
        (["approvers", 7], set()),
        (["approvers", ""], set()),
        ([], set()),
    ],
)
def test_groups_are_read_exactly_or_not_at_all(claim: object, groups: set[str]) -> None:
    """B13: exact membership only; what cannot be read with certainty means no groups."""
    assert read_groups(claim) == groups


def test_a_good_access_token_names_its_subject() -> None:
    """B13: the principal is issuer and subject; groups and the time since the log-in come along."""
    identity = read_identity(the_claims(), EXPECTED, now=NOON)

    assert identity.ref == PrincipalRef(issuer=ISSUER, subject="clerk-1")
    assert identity.groups == {"approvers", "finance"}
    assert identity.authenticated_seconds_ago == 600


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"token_use": "id"}, id="ID token"),
        pytest.param({"token_use": "id", "client_id": None, "aud": "app-1"}, id="real ID token"),
        pytest.param({"token_use": "refresh"}, id="other kind of token"),
        pytest.param({"token_use": ""}, id="blank kind of token"),
        pytest.param({"client_id": "app-2"}, id="another application"),
        pytest.param({"client_id": None, "token_use": None, "aud": "app-1"}, id="ID token of a plain issuer"),
        pytest.param({"client_id": "app-1 app-2"}, id="two applications in one text"),
        pytest.param({"iss": "https://issuer.test/other"}, id="another issuer"),
        pytest.param({"iss": f"{ISSUER}/"}, id="nearly our issuer"),
        pytest.param({"iss": None}, id="no issuer"),
        pytest.param({"sub": None}, id="no subject"),
        pytest.param({"sub": ""}, id="blank subject"),
        pytest.param({"sub": "x" * 257}, id="endless subject"),
        pytest.param({"sub": ["clerk-1"]}, id="subject that is no text"),
        pytest.param({"exp": str(int(NOON.timestamp()))}, id="expired this instant"),
        pytest.param({"exp": str(int(NOON.timestamp()) - 1)}, id="expired"),
        pytest.param({"exp": None}, id="never expires"),
        pytest.param({"exp": "tomorrow"}, id="expiry that is no number"),
        pytest.param({"exp": True}, id="expiry that is a truth value"),
    ],
)
def test_everything_else_is_nobody(changes: dict[str, object]) -> None:
    """B13: a wrong kind of token, application, issuer or time is 401, whatever its signature."""
    with pytest.raises(NotAuthenticated):
        read_identity(the_claims(**changes), EXPECTED, now=NOON)


def test_a_plain_issuers_access_token_needs_no_token_use() -> None:
    """Other issuers mark access tokens by `client_id` alone."""
    identity = read_identity(the_claims(token_use=None), EXPECTED, now=NOON)

    assert identity.ref.subject == "clerk-1"


@pytest.mark.parametrize(
    ("auth_time", "ago"),
    [
        (None, None),
        ("", None),
        ("yesterday", None),
        ("-5", None),
        ("1e9", None),
        (True, None),
        (str(int(NOON.timestamp())), 0),
        (int(NOON.timestamp()) - 5, 5),
        # The issuer's clock runs a little ahead; a year ahead is no log-in that we know of.
        (str(int(NOON.timestamp()) + 30), 0),
        (str(int((NOON + timedelta(days=365)).timestamp())), None),
    ],
)
def test_the_time_since_the_log_in_is_known_or_unknown(auth_time: object, ago: int | None) -> None:
    """B50: a time that cannot be read is never taken for a recent one."""
    assert read_identity(the_claims(auth_time=auth_time), EXPECTED, now=NOON).authenticated_seconds_ago == ago


def test_tenant_and_roles_come_from_the_authority_store() -> None:
    """A1 and B13: what a token says about tenants, roles or groups gives nothing by itself."""
    world = World()
    identity = read_identity(
        the_claims(**{"tenant": "globex", "custom:tenant": "globex", "roles": "[operator]"}), EXPECTED, now=NOON
    )
    world.authority.grant(identity.ref, tenant="acme", roles={"refund_clerk"})

    principal = known_principal(identity, FakeAuthority(world))

    assert principal.tenant == "acme"
    assert principal.roles == {"refund_clerk"}
    assert principal.groups == {"approvers", "finance"}
    assert principal.authenticated_seconds_ago == 600


def test_rights_are_read_at_every_call() -> None:
    """A3: the second call sees what the store says by then."""
    world = World()
    authority = FakeAuthority(world)
    identity = read_identity(the_claims(), EXPECTED, now=NOON)
    world.authority.grant(identity.ref, tenant="acme", roles={"refund_clerk"})
    assert known_principal(identity, authority).roles == {"refund_clerk"}

    world.authority.disable(identity.ref)

    with pytest.raises(NotAuthorised):
        known_principal(identity, authority)


@pytest.mark.parametrize(
    ("subject", "known"),
    [
        ("zo\u00eb@x.test", True),
        ("zoe\u0308@x.test", False),
        ("z\u043e\u00eb@x.test", False),
        ("zo\u00eb@X.test", False),
        ("3f2b-recreated", False),
    ],
)
def test_a_look_alike_has_no_rights(subject: str, known: bool) -> None:
    """B75: the decomposed, Cyrillic and upper-case form and the re-created account inherit nothing by their e-mail."""
    world = World()
    world.authority.grant(PrincipalRef(issuer=ISSUER, subject="zo\u00eb@x.test"), tenant="acme", roles={"operator"})
    identity = read_identity(the_claims(sub=subject, email="zo\u00eb@x.test"), EXPECTED, now=NOON)

    if known:
        assert known_principal(identity, FakeAuthority(world)).roles == {"operator"}
    else:
        with pytest.raises(NotAuthorised):
            known_principal(identity, FakeAuthority(world))


def test_a_store_that_cannot_be_read_allows_nobody() -> None:
    """A3: not knowing is no yes."""
    world = World()
    identity = read_identity(the_claims(), EXPECTED, now=NOON)
    world.authority.grant(identity.ref, tenant="acme", roles={"refund_clerk"})
    world.authority.unreadable = True

    with pytest.raises(AuthorityUnreadable):
        known_principal(identity, FakeAuthority(world))
