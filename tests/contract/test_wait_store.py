"""The contract of `WaitStore`, on the fake and on DynamoDB Local. The commit's contract says how waits come and end."""

from datetime import timedelta
from typing import TYPE_CHECKING

from shared.adapters.dynamodb.items import text
from shared.adapters.dynamodb.store_calls import StoreCalls
from shared.domain.wait import OnDeadline, Rung, WaitKind, WaitRule, WaitSettlement, WaitStatus
from tests.builders import a_checkpoint, a_commit, a_task_key, a_wait
from tests.contract.stores import Stores, real_stores
from tests.contract.tables import table_name
from tests.fakes.clock import NOON

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


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


def test_a_tasks_waits_are_found_by_their_task(stores: Stores, tenant: str) -> None:
    """B19: what a task has waited for since an instant, settled or not, and nothing of another task or tenant."""
    key, other = a_task_key(tenant=tenant), a_task_key(2, tenant=tenant)
    early, at, late = (a_wait(key, n, now=NOON + timedelta(minutes=n)) for n in (1, 2, 3))
    foreign = a_wait(other, 4, now=NOON + timedelta(minutes=3))
    stranger = a_wait(a_task_key(tenant=f"{tenant}-b"), 5, now=NOON + timedelta(minutes=3))
    stores.records.commit(a_commit(a_checkpoint(key), opened=[early, at, late]))
    stores.records.commit(a_commit(a_checkpoint(other), opened=[foreign]))
    stores.records.commit(a_commit(a_checkpoint(a_task_key(tenant=f"{tenant}-b")), opened=[stranger]))
    end = WaitSettlement(
        tenant=tenant, correlation_id=late.correlation_id, wait_id=late.wait_id, status=WaitStatus.VOID
    )
    stores.records.commit(a_commit(a_checkpoint(key, version=2), attempt=2, settled=[end]))

    found = stores.waits.opened_since(key, NOON + timedelta(minutes=2))

    assert [wait.wait_id for wait in found] == [at.wait_id, late.wait_id]
    assert [wait.status for wait in found] == ["open", "void"]
    assert stores.waits.opened_since(key, NOON + timedelta(minutes=4)) == ()


def test_a_long_list_is_read_to_its_last_page(dynamodb: "DynamoDBClient", tenant: str) -> None:
    """DynamoDB answers a query in pages; whoever asks for everything gets everything."""
    key = a_task_key(tenant=tenant)
    waits = [a_wait(key, n) for n in range(1, 8)]
    real_stores(dynamodb).records.commit(a_commit(a_checkpoint(key), opened=waits))

    items = StoreCalls(dynamodb).query_all(
        TableName=table_name("waits"),
        IndexName="task",
        KeyConditionExpression="task = :task",
        ExpressionAttributeValues={":task": text(key.key)},
        Limit=3,
    )

    assert {item["correlation"]["S"] for item in items} == {f"{tenant}#{wait.correlation_id}" for wait in waits}
