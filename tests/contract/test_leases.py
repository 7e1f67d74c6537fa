"""The contract of `Leases`, on the fake and on DynamoDB Local."""

from datetime import datetime, timedelta

import pytest

from shared.domain.errors import InvariantBroken, LeaseHeld
from shared.domain.identity import TaskKey
from shared.ports.leases import Lease
from tests.builders import a_task_key
from tests.contract.stores import Stores, race
from tests.fakes.clock import NOON

LASTS = timedelta(seconds=75)


@pytest.fixture
def key(tenant: str) -> TaskKey:
    """Make the key of the test's task."""
    return a_task_key(tenant=tenant)


def acquire(
    stores: Stores,
    key: TaskKey,
    *,
    holder: str = "att_1",
    version: int = 3,
    presented: int | None = None,
    now: datetime = NOON,
) -> Lease:
    """Take the lease."""
    return stores.leases.acquire(
        key, version=version, holder=holder, presented_fence=presented, now=now, ends_at=now + LASTS
    )


def test_the_first_lease_is_free(stores: Stores, key: TaskKey) -> None:
    """The fence begins at one."""
    assert acquire(stores, key) == Lease(fence=1, ends_at=NOON + LASTS)


def test_a_live_lease_is_held(stores: Stores, key: TaskKey) -> None:
    """R8: until its last millisecond nobody else may ask the model, not even under the same fence's neighbour."""
    acquire(stores, key)
    last = NOON + LASTS - timedelta(milliseconds=1)
    for presented in (None, 0, 2):
        with pytest.raises(LeaseHeld):
            acquire(stores, key, holder="att_2", presented=presented, now=last)


def test_a_lapsed_lease_is_taken_by_time_alone(stores: Stores, key: TaskKey) -> None:
    """I2, B52: the end decides, not the removal of a row; the fence grows."""
    acquire(stores, key)
    assert acquire(stores, key, holder="att_2", now=NOON + LASTS).fence == 2


def test_a_lease_is_handed_on_with_its_fence(stores: Stores, key: TaskKey) -> None:
    """Who presents the fence that the machine carried continues the same turn, with the next fence."""
    first = acquire(stores, key)
    second = acquire(stores, key, holder="att_2", presented=first.fence)
    assert second.fence == 2
    with pytest.raises(LeaseHeld):
        acquire(stores, key, holder="att_3", presented=first.fence)


def test_a_fence_is_never_used_twice(stores: Stores, key: TaskKey) -> None:
    """B20: however leases end and are taken, each one has a greater fence."""
    fences = [acquire(stores, key, holder=f"att_{n}", now=NOON + n * LASTS).fence for n in range(5)]
    assert fences == [1, 2, 3, 4, 5]


def test_a_lease_taken_for_a_later_version_betrays_a_rolled_back_head(stores: Stores, key: TaskKey) -> None:
    """B19: the lease remembers the highest version; an older head is not believed, live lease or not."""
    acquire(stores, key, version=9)
    for now in (NOON, NOON + LASTS):
        with pytest.raises(InvariantBroken):
            acquire(stores, key, holder="att_2", version=8, now=now)
    assert acquire(stores, key, holder="att_2", version=9, now=NOON + LASTS).fence == 2


def test_leases_of_two_tenants_have_nothing_in_common(stores: Stores, key: TaskKey) -> None:
    """The same task id elsewhere is another task."""
    acquire(stores, key)
    assert acquire(stores, a_task_key(tenant=f"{key.tenant}-other"), holder="att_2").fence == 1


@pytest.mark.parametrize("lapsed", [False, True])
def test_of_many_attempts_one_gets_the_lease(stores: Stores, key: TaskKey, lapsed: bool) -> None:
    """R8: sixteen workers wake the same task at once, for its first lease or after a lapsed one; one goes on."""
    if lapsed:
        acquire(stores, key, holder="att_0", now=NOON - LASTS)

    outcomes = race([lambda n=n: acquire(stores, key, holder=f"att_{n}") for n in range(1, 17)])  # type: ignore[misc]

    assert len([outcome for outcome in outcomes if isinstance(outcome, Lease)]) == 1
    assert len([outcome for outcome in outcomes if isinstance(outcome, LeaseHeld)]) == 15


def test_of_many_hand_overs_one_succeeds(stores: Stores, key: TaskKey) -> None:
    """B22: the same turn resumed many times at once is resumed once."""
    first = acquire(stores, key)

    outcomes = race(
        [lambda n=n: acquire(stores, key, holder=f"att_{n}", presented=first.fence) for n in range(2, 18)]  # type: ignore[misc]
    )

    assert [outcome.fence for outcome in outcomes if isinstance(outcome, Lease)] == [2]
