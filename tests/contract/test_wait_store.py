"""The contract of `WaitStore`, on the fake and on DynamoDB Local. The commit's contract says how waits come and end."""

from datetime import timedelta

from shared.domain.wait import OnDeadline, Rung, WaitKind, WaitRule
from tests.builders import a_checkpoint, a_commit, a_task_key, a_wait
from tests.contract.stores import Stores
from tests.fakes.clock import NOON


def test_a_wait_is_found_by_what_the_outside_knows(stores: Stores, tenant: str) -> None:
    """Ladder, owner, deadline and all come back as they were opened."""
    key = a_task_key(tenant=tenant)
    wait = a_wait(key, kind=WaitKind.EVENT, correlation_id="order:A-1001.v2")
    stores.records.commit(a_commit(a_checkpoint(key), opened=[wait]))

    found = stores.waits.get(tenant, "order:A-1001.v2")

    assert found == wait
    assert found.owner == wait.owner
    assert found.next_rung_at == wait.next_rung_at


def test_a_ladder_of_instants_is_stored_as_it_was_computed(stores: Stores, tenant: str) -> None:
    """I1: an instant that a workflow computed comes back to the millisecond, and no rung is counted from anything."""
    key = a_task_key(tenant=tenant)
    ends_at = NOON + timedelta(days=7, milliseconds=1)
    rule = WaitRule(ladder=(Rung(at=ends_at, do=OnDeadline.EXPIRE, to="hr_lead"),))
    wait = a_wait(key, correlation_id="packet-1").model_copy(update={"rule": rule, "deadline_at": ends_at})
    stores.records.commit(a_commit(a_checkpoint(key), opened=[wait]))

    found = stores.waits.get(tenant, "packet-1")

    assert found == wait
    assert found.next_rung_at == ends_at


def test_nobody_waits_for_an_unheard_of_correlation(stores: Stores, tenant: str) -> None:
    """An event without a wait finds nothing."""
    assert stores.waits.get(tenant, "order:nobody") is None


def test_no_tenant_finds_anothers_wait(stores: Stores, tenant: str) -> None:
    """B16: two tenants may use the same correlation; each finds its own wait, a third finds none."""
    for owner in (tenant, f"{tenant}-b"):
        key = a_task_key(tenant=owner)
        stores.records.commit(a_commit(a_checkpoint(key), opened=[a_wait(key, correlation_id="shared")]))

    mine, theirs = stores.waits.get(tenant, "shared"), stores.waits.get(f"{tenant}-b", "shared")

    assert mine is not None
    assert theirs is not None
    assert (mine.tenant, theirs.tenant) == (tenant, f"{tenant}-b")
    assert stores.waits.get(f"{tenant}-c", "shared") is None
