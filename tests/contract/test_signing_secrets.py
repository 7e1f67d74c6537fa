"""The contract of `SigningSecrets`, on the fake and on moto's Secrets Manager; refusals on a strict stub."""

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from moto import mock_aws

from shared.adapters.secretsmanager.signing_secrets import (
    FRESH_SECONDS,
    KEPT_SECONDS,
    SOURCES_MAX,
    SecretsManagerSigningSecrets,
)
from shared.domain.errors import SecretsUnavailable
from shared.domain.instants import format_instant
from shared.ports.signing_secrets import SigningSecret, SigningSecrets
from tests.contract.cloud import client, stubbed
from tests.fakes.clock import NOON
from tests.fakes.signing_secrets import FakeSigningSecrets

PREFIX = "holdfast-test-webhook/"
KEY, OTHER = b"k" * 32, b"o" * 24


@dataclass
class Ticks:
    """Seconds that a test moves on."""

    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


def text_of(*secrets: SigningSecret) -> str:
    """Write secrets down as an operator does."""
    return json.dumps(
        {
            "secrets": [
                {
                    "secret": "whsec_" + base64.b64encode(s.key).decode(),
                    "accept_until": None if s.accept_until is None else format_instant(s.accept_until),
                }
                for s in secrets
            ]
        }
    )


@dataclass
class Service:
    """One implementation, and how an operator stores secrets in it."""

    secrets: SigningSecrets
    store: Callable[[str, str, tuple[SigningSecret, ...]], None]


@dataclass
class Real:
    """The adapter on a client, its clock, and what it reported."""

    client: Any
    clock: Ticks = field(default_factory=Ticks)
    reports: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.secrets = SecretsManagerSigningSecrets(self.client, PREFIX, clock=self.clock, report=self.reports.append)

    def store(self, tenant: str, source: str, text: str) -> None:
        name = f"{PREFIX}{tenant}/{source}"
        try:
            self.client.create_secret(Name=name, SecretString=text)
        except self.client.exceptions.ResourceExistsException:
            self.client.put_secret_value(SecretId=name, SecretString=text)


@pytest.fixture
def real() -> Iterator[Real]:
    """Make the adapter on moto."""
    with mock_aws():
        yield Real(client("secretsmanager"))


@pytest.fixture(params=["fake", "real"])
def service(request: pytest.FixtureRequest) -> Service:
    """Make the fake, then the real thing."""
    if request.param == "fake":
        fake = FakeSigningSecrets()
        return Service(secrets=fake, store=lambda t, s, secrets: fake.stored.__setitem__((t, s), secrets))
    made: Real = request.getfixturevalue("real")
    return Service(secrets=made.secrets, store=lambda t, s, secrets: made.store(t, s, text_of(*secrets)))


def test_a_source_has_its_own_secrets(service: Service) -> None:
    """B74: all of them, with the end of a replaced one's grace; nobody else's."""
    secrets = (SigningSecret(key=KEY, accept_until=NOON + timedelta(hours=24)), SigningSecret(key=OTHER))
    service.store("acme", "partner", secrets)
    service.store("globex", "partner", (SigningSecret(key=b"g" * 32),))

    assert service.secrets.of("acme", "partner") == secrets
    assert service.secrets.of("acme", "post") == ()
    assert service.secrets.of("acme-eu", "partner") == ()


def test_a_rotation_is_seen_by_whoever_asks_anew(service: Service, request: pytest.FixtureRequest) -> None:
    """B74: on a warm function, without a deployment, as soon as somebody needs it."""
    service.store("acme", "partner", (SigningSecret(key=KEY),))
    assert service.secrets.of("acme", "partner") == (SigningSecret(key=KEY),)
    service.store("acme", "partner", (SigningSecret(key=OTHER),))
    if "real" in request.fixturenames:
        request.getfixturevalue("real").clock.now += FRESH_SECONDS

    assert service.secrets.of("acme", "partner", fresh=True) == (SigningSecret(key=OTHER),)


def test_a_key_is_never_shown() -> None:
    """A secret in a log line or a trace would be nobody's secret."""
    assert "kkk" not in repr(SigningSecret(key=KEY))
    assert base64.b64encode(KEY).decode() not in str(SigningSecret(key=KEY))


def test_a_withdrawn_secret_is_believed_for_a_minute_at_most(real: Real) -> None:
    """What is kept is dropped in time, without anybody asking for it."""
    real.store("acme", "partner", text_of(SigningSecret(key=KEY)))
    real.secrets.of("acme", "partner")
    real.store("acme", "partner", text_of(SigningSecret(key=OTHER)))

    real.clock.now += KEPT_SECONDS - 0.1
    assert real.secrets.of("acme", "partner") == (SigningSecret(key=KEY),)
    real.clock.now += 0.1
    assert real.secrets.of("acme", "partner") == (SigningSecret(key=OTHER),)


def test_a_deleted_secret_is_nobodys(real: Real) -> None:
    """Deleting it shuts its source out, also while the store could still restore it."""
    real.store("acme", "partner", text_of(SigningSecret(key=KEY)))
    real.client.delete_secret(SecretId=f"{PREFIX}acme/partner", RecoveryWindowInDays=7)
    assert real.secrets.of("acme", "partner") == ()


def test_wrong_signatures_do_not_become_calls() -> None:
    """A stranger's flood makes us ask about once a second for a source, and unknown names are remembered too."""
    with stubbed("secretsmanager") as (made, stub):
        real = Real(made)
        for _ in range(2):
            stub.add_client_error("get_secret_value", service_error_code="ResourceNotFoundException")
        for _ in range(50):
            assert real.secrets.of("acme", "nobody") == ()
            assert real.secrets.of("acme", "nobody", fresh=True) == ()
        real.clock.now += FRESH_SECONDS
        for _ in range(50):
            assert real.secrets.of("acme", "nobody", fresh=True) == ()


def test_what_is_remembered_has_an_end() -> None:
    """Made-up names cannot fill the memory."""
    with stubbed("secretsmanager") as (made, stub):
        real = Real(made)
        for number in range(SOURCES_MAX + 2):
            stub.add_client_error("get_secret_value", service_error_code="ResourceNotFoundException")
            real.secrets.of("acme", f"source_{number}")
        assert len(real.secrets._read) == SOURCES_MAX


@pytest.mark.parametrize(
    "code",
    ["InternalServiceError", "ThrottlingException", "AccessDeniedException", "DecryptionFailure", "SomethingNew"],
)
def test_a_store_that_does_not_answer_is_no_verdict(code: str) -> None:
    """B74: the sender has to come again; verification is never left out."""
    with stubbed("secretsmanager") as (made, stub):
        stub.add_client_error("get_secret_value", service_error_code=code)
        with pytest.raises(SecretsUnavailable):
            Real(made).secrets.of("acme", "partner")


def test_a_store_out_of_reach_is_no_verdict() -> None:
    """B74: no connection is no answer."""

    class Nowhere:
        def get_secret_value(self, **_: Any) -> None:
            raise EndpointConnectionError(endpoint_url="the store")

    with pytest.raises(SecretsUnavailable):
        Real(Nowhere()).secrets.of("acme", "partner")


def test_an_outage_does_not_take_away_what_is_known(real: Real) -> None:
    """B74: for its minute a known secret serves on; a doubt about it cannot be cleared, which is not a no."""
    real.store("acme", "partner", text_of(SigningSecret(key=KEY)))
    real.secrets.of("acme", "partner")
    with stubbed("secretsmanager") as (made, stub):
        real.secrets._client = made
        real.clock.now += FRESH_SECONDS
        stub.add_client_error("get_secret_value", service_error_code="InternalServiceError")
        with pytest.raises(SecretsUnavailable):
            real.secrets.of("acme", "partner", fresh=True)
        assert real.secrets.of("acme", "partner") == (SigningSecret(key=KEY),)


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "whsec_a2V5",
        "{}",
        '{"secrets":{}}',
        '{"secrets":[{}]}',
        '{"secrets":[{"secret":7}]}',
        '{"secrets":[{"secret":"whsec_a2V5","accept_until":"tomorrow"}]}',
        '{"secrets":[{"secret":"whsec_a2V5","accept_until":"2026-10-09"}]}',
        '{"secrets":[],"more":1}',
        json.dumps({"secrets": [{"secret": "whsec_a2V5"}] * 9}),
    ],
)
def test_what_cannot_be_read_is_no_verdict_and_is_reported(real: Real, text: str) -> None:
    """An operator's slip: senders come again, people are told, and the secret is in no message."""
    real.store("acme", "partner", text)
    with pytest.raises(SecretsUnavailable) as raised:
        real.secrets.of("acme", "partner")
    assert len(real.reports) == 1
    assert "a2V5" not in real.reports[0] + str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_a2V5", "whsec_!!", "plain", "whsec_" + "a" * 31])
def test_a_weak_secret_is_left_out_and_reported(real: Real, secret: str) -> None:
    """B74: an empty or short secret verifies nothing; the good one beside it goes on counting."""
    good = json.loads(text_of(SigningSecret(key=KEY)))["secrets"]
    real.store("acme", "partner", json.dumps({"secrets": [{"secret": secret}, *good]}))

    assert real.secrets.of("acme", "partner") == (SigningSecret(key=KEY),)
    assert len(real.reports) == 1
