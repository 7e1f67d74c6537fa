"""The contract of `TokenStore`, on the fake and on DynamoDB Local."""

from datetime import timedelta

from tests.contract.stores import Stores
from tests.fakes.clock import NOON

# As long as Step Functions makes them.
TOKEN = "AQCEAAAA" + "x" * 1000 + "/+="


def test_a_token_is_read_back(stores: Stores, tenant: str) -> None:
    """To the last character."""
    stores.tokens.put(tenant, "wai_1", TOKEN, entry=1, purge_at=NOON)
    assert stores.tokens.get(tenant, "wai_1") == TOKEN


def test_the_latest_execution_replaces_the_older_token(stores: Stores, tenant: str) -> None:
    """One handle per wait: that of the state that waits now."""
    stores.tokens.put(tenant, "wai_1", "old", entry=1, purge_at=NOON)
    stores.tokens.put(tenant, "wai_1", "new", entry=2, purge_at=NOON)
    assert stores.tokens.get(tenant, "wai_1") == "new"


def test_a_token_that_comes_late_replaces_none_of_a_later_entry(stores: Stores, tenant: str) -> None:
    """A worker that hung and was given up must not take the wake-up away from the state that waits now."""
    stores.tokens.put(tenant, "wai_1", "new", entry=2_000_003, purge_at=NOON)
    stores.tokens.put(tenant, "wai_1", "old", entry=1_000_900, purge_at=NOON)
    assert stores.tokens.get(tenant, "wai_1") == "new"


def test_storing_a_token_again_changes_nothing(stores: Stores, tenant: str) -> None:
    """Its worker may have been invoked twice, or have repeated the call because no answer came."""
    stores.tokens.put(tenant, "wai_1", TOKEN, entry=2, purge_at=NOON)
    stores.tokens.put(tenant, "wai_1", TOKEN, entry=2, purge_at=NOON)
    assert stores.tokens.get(tenant, "wai_1") == TOKEN


def test_a_wait_that_the_machine_has_not_reached_has_no_token(stores: Stores, tenant: str) -> None:
    """Nor has another tenant's wait of the same id."""
    stores.tokens.put(tenant, "wai_1", TOKEN, entry=1, purge_at=NOON)
    assert stores.tokens.get(tenant, "wai_2") is None
    assert stores.tokens.get(f"{tenant}-other", "wai_1") is None


def test_a_purge_time_decides_nothing(stores: Stores, tenant: str) -> None:
    """B52: a row that is still there past its time is read like any other."""
    stores.tokens.put(tenant, "wai_1", TOKEN, entry=1, purge_at=NOON - timedelta(days=400))
    assert stores.tokens.get(tenant, "wai_1") == TOKEN
