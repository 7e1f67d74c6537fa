"""The contract of `Sealer`, on the fake and on KMS as moto plays it; what moto cannot play, on a strict stub."""

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError
from moto import mock_aws

from shared.adapters.kms.sealer import KmsSealer
from shared.domain.errors import InvariantBroken, SealUnavailable
from shared.ports.sealer import Sealer
from tests.contract.cloud import client, stubbed
from tests.fakes.process import Process
from tests.fakes.store import World

INPUT = bytes(range(32))


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A key service: a sealer with a key of it, and one with another."""

    sealer: Sealer
    other: Sealer


@pytest.fixture(params=["fake", "real"])
def service(request: pytest.FixtureRequest) -> Service:
    """Make the fake, then the real thing."""
    made: Service = request.getfixturevalue(f"{request.param}_service")
    return made


@pytest.fixture
def fake_service() -> Service:
    """Make two fakes whose worlds have the same two keys."""
    first, second = World(), World()
    for world in (first, second):
        world.seal_keys.by_id["seal-key-2"] = b"a key for tests, second generation"
    second.seal_keys.current = "seal-key-2"
    return Service(sealer=Process(first).sealer, other=Process(second).sealer)


@pytest.fixture(scope="module")
def real_service() -> Iterator[Service]:
    """Make two keys on moto; starting it takes longer than a test does."""
    with mock_aws():
        kms = client("kms")
        keys = [
            kms.create_key(KeyUsage="GENERATE_VERIFY_MAC", KeySpec="HMAC_256")["KeyMetadata"]["Arn"] for _ in range(2)
        ]
        yield Service(sealer=KmsSealer(kms, keys[0]), other=KmsSealer(kms, keys[1]))


def test_a_seal_is_checked_with_the_key_it_names(service: Service) -> None:
    """Also by a sealer that seals with another key now, as after a rotation."""
    seal = service.sealer.seal(INPUT)
    assert len(base64.b64decode(seal, validate=True)) == 32
    assert service.sealer.verify(INPUT, seal, service.sealer.key_id)
    assert service.other.verify(INPUT, seal, service.sealer.key_id)


def test_a_record_names_a_key_by_its_id(real_service: Service) -> None:
    """Every version of every task carries it; account and region would be said again each time."""
    assert not real_service.sealer.key_id.startswith("arn:")
    assert real_service.sealer.verify(INPUT, real_service.sealer.seal(INPUT), real_service.sealer.key_id)


def test_a_seal_is_the_same_every_time(service: Service) -> None:
    """It is a MAC over the input and nothing else."""
    assert service.sealer.seal(INPUT) == service.sealer.seal(INPUT)


def test_whatever_differs_is_wrong(service: Service) -> None:
    """B19: another input, another key, another seal, half a seal: each is evidence."""
    sealer, seal = service.sealer, service.sealer.seal(INPUT)
    flipped = bytearray(base64.b64decode(seal))
    flipped[0] ^= 1
    assert not sealer.verify(bytes(32), seal, sealer.key_id)
    assert not sealer.verify(INPUT, service.other.seal(INPUT), sealer.key_id)
    assert not sealer.verify(INPUT, seal, service.other.key_id)
    assert not sealer.verify(INPUT, base64.b64encode(flipped).decode(), sealer.key_id)
    assert not sealer.verify(INPUT, base64.b64encode(flipped[:16]).decode(), sealer.key_id)


@pytest.mark.parametrize("seal", ["", "no base 64!", "ünïcode", "c2VhbA=", "genesis"])
def test_what_is_no_mac_is_a_wrong_one(service: Service, seal: str) -> None:
    """B19: a seal that cannot be read is not a reason to ask again later."""
    assert not service.sealer.verify(INPUT, seal, service.sealer.key_id)


def test_a_key_that_is_not_there_is_no_verdict(service: Service) -> None:
    """A deployment that lost its key must not quarantine every task."""
    seal = service.sealer.seal(INPUT)
    with pytest.raises(SealUnavailable):
        service.sealer.verify(INPUT, seal, "seal-key-unheard-of")


def test_the_fake_can_be_out_of_reach() -> None:
    """It fails as the real service does."""
    world = World()
    world.seal_keys.unavailable = True
    with pytest.raises(SealUnavailable):
        Process(world).sealer.seal(INPUT)
    with pytest.raises(SealUnavailable):
        Process(world).sealer.verify(INPUT, "c2VhbA==", "seal-key-1")


def _seal(sealer: Sealer) -> object:
    return sealer.seal(INPUT)


def _verify(sealer: Sealer) -> object:
    return sealer.verify(INPUT, "c2VhbA==", "key")


@pytest.mark.parametrize(("operation", "call"), [("generate_mac", _seal), ("verify_mac", _verify)])
@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("ThrottlingException", 400, SealUnavailable),
        ("DisabledException", 409, SealUnavailable),
        ("KMSInvalidStateException", 409, SealUnavailable),
        ("KeyUnavailableException", 500, SealUnavailable),
        ("DependencyTimeoutException", 503, SealUnavailable),
        ("KMSInternalException", 500, SealUnavailable),
        ("NotFoundException", 400, SealUnavailable),
        ("AccessDeniedException", 400, SealUnavailable),
        ("SomethingNew", 400, SealUnavailable),
        ("InvalidKeyUsageException", 400, InvariantBroken),
        ("ValidationException", 400, InvariantBroken),
    ],
)
def test_only_a_wrong_mac_is_evidence(
    operation: str, call: Callable[[Sealer], object], code: str, status: int, error: type[Exception]
) -> None:
    """Law 8: a service that cannot be asked parks and retries; it says nothing about the seal."""
    with stubbed("kms") as (kms, stub):
        stub.add_client_error(operation, service_error_code=code, http_status_code=status)
        with pytest.raises(error):
            call(KmsSealer(kms, "key"))


def test_an_invalid_mac_is_the_evidence() -> None:
    """KMS says it with an error of its own."""
    with stubbed("kms") as (kms, stub):
        stub.add_client_error("verify_mac", service_error_code="KMSInvalidMacException", http_status_code=400)
        assert KmsSealer(kms, "key").verify(INPUT, "c2VhbA==", "key") is False


@pytest.mark.parametrize("error", [ReadTimeoutError(endpoint_url="kms"), ConnectTimeoutError(endpoint_url="kms")])
@pytest.mark.parametrize("call", [_seal, _verify])
def test_no_answer_is_no_verdict(error: Exception, call: Callable[[Sealer], object]) -> None:
    """Nor is a connection that fails."""

    def fail(**_: object) -> None:
        raise error

    kms = client("kms")
    kms.meta.events.register("before-call.kms", fail)
    try:
        with pytest.raises(SealUnavailable):
            call(KmsSealer(kms, "key"))
    finally:
        kms.meta.events.unregister("before-call.kms", fail)
