"""Only whoever knows the API key speaks to the provider, and nobody does while it cannot be read."""

from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from sandbox.credentials import KEPT_SECONDS, REREAD_AFTER_SECONDS, Credentials
from sandbox.problems import Problem
from tests.unit.sandbox.conftest import API_KEY, SECRET, Bank

REFUND = {"order_reference": "ord-1001", "amount_minor": 45_000, "currency": "EUR"}


class SecretStore:
    """Counts reads; can be down."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.reads = 0
        self.down = False

    def get_secret_value(self, *, SecretId: str) -> dict[str, Any]:  # noqa: N803 -- the real client's word
        assert SecretId == SECRET
        self.reads += 1
        if self.down:
            raise EndpointConnectionError(endpoint_url="loopback")
        return {"SecretString": self.key}


class Clock:
    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


def credentials(store: SecretStore, clock: Clock) -> Credentials:
    """Put a doorkeeper in front of the store."""
    client: Any = store
    return Credentials(client, SECRET, clock=clock)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Basic {API_KEY}",
        API_KEY,
        f"Bearer {API_KEY}x",
        f"Bearer  {API_KEY}",
        "Bearer ключ",
    ],
)
def test_anyone_else_is_refused(bank: Bank, header: str | None) -> None:
    """401 before anything is looked at: a stranger leaves no trace and learns nothing."""
    refused = bank.ask("POST", "/refunds", REFUND, key="k1", headers={"authorization": header or ""})

    assert (refused.status, refused.body["code"]) == (401, "not_authenticated")
    assert bank.ask("GET", "/nothing", headers={"authorization": header or ""}).status == 401
    assert bank.rows() == 0


def test_the_scheme_and_the_header_may_be_spelt_in_any_case(bank: Bank) -> None:
    """HTTP does not care for the case of either."""
    assert (
        bank.ask("GET", "/refunds", headers={"authorization": "", "Authorization": f"bearer {API_KEY}"}).status == 200
    )


def test_an_empty_key_in_the_store_lets_nobody_in() -> None:
    """B74: an empty secret refuses everything, the empty token included."""
    with pytest.raises(Problem) as refusal:
        credentials(SecretStore(""), Clock()).demand("Bearer ")

    assert refusal.value.status == 401


def test_an_unreadable_key_lets_nobody_in() -> None:
    """While the secret store is down the answer is 503: verification is never skipped."""
    store, clock = SecretStore(API_KEY), Clock()
    doorkeeper = credentials(store, clock)
    doorkeeper.demand(f"Bearer {API_KEY}")
    store.down = True
    clock.seconds += KEPT_SECONDS

    with pytest.raises(Problem) as refusal:
        doorkeeper.demand(f"Bearer {API_KEY}")

    assert (refusal.value.status, refusal.value.code) == (503, "credentials_unreadable")


def test_the_key_is_kept_for_a_short_while_only() -> None:
    """A withdrawn key dies when the kept copy does."""
    store, clock = SecretStore("old"), Clock()
    doorkeeper = credentials(store, clock)
    doorkeeper.demand("Bearer old")
    store.key = "new"
    clock.seconds += KEPT_SECONDS - 1
    doorkeeper.demand("Bearer old")
    clock.seconds += 1

    with pytest.raises(Problem):
        doorkeeper.demand("Bearer old")
    assert store.reads == 2


def test_a_new_key_works_at_once_and_guessing_does_not_load_the_store() -> None:
    """B74: rotation needs no redeploy; wrong keys re-read the secret at most every other second."""
    store, clock = SecretStore("old"), Clock()
    doorkeeper = credentials(store, clock)
    doorkeeper.demand("Bearer old")
    store.key = "new"
    clock.seconds += REREAD_AFTER_SECONDS
    doorkeeper.demand("Bearer new")
    for _ in range(50):
        with pytest.raises(Problem):
            doorkeeper.demand("Bearer guess")

    assert store.reads == 2
