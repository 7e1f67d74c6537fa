"""The contract of `Inbox`, on the fake and on DynamoDB Local. How rows come is in the commit's contract."""

from dataclasses import replace
from datetime import timedelta

from tests.builders import a_checkpoint, a_commit, a_task_key, an_inbox_row
from tests.contract.stores import Stores
from tests.fakes.clock import NOON


def test_an_accepted_event_answers_its_repeat(stores: Stores, tenant: str) -> None:
    """Digest and task come back, received to the millisecond and purged no earlier than promised."""
    key = a_task_key(tenant=tenant)
    row = replace(
        an_inbox_row(key, source="partner#7 /ü"),
        received_at=NOON + timedelta(microseconds=1999),
        purge_at=NOON + timedelta(days=90, milliseconds=1),
    )
    stores.records.commit(a_commit(a_checkpoint(key), inbox=row))

    found = stores.inbox.get(tenant, "partner#7 /ü", "evt-1")

    assert found == replace(
        row, received_at=NOON + timedelta(milliseconds=1), purge_at=NOON + timedelta(days=90, seconds=1)
    )


def test_an_event_is_known_by_tenant_source_and_id(stores: Stores, tenant: str) -> None:
    """B16: the same id of another source, or of another tenant, is another event."""
    key = a_task_key(tenant=tenant)
    stores.records.commit(a_commit(a_checkpoint(key), inbox=an_inbox_row(key)))

    assert stores.inbox.get(tenant, "api", "evt-1") is not None
    assert stores.inbox.get(tenant, "api", "evt-2") is None
    assert stores.inbox.get(tenant, "bank", "evt-1") is None
    assert stores.inbox.get(f"{tenant}-other", "api", "evt-1") is None


def test_a_source_cannot_pose_as_another_tenants(stores: Stores, tenant: str) -> None:
    """B16: joining tenant and source is unambiguous, whatever characters a source is named with."""
    key = a_task_key(tenant=tenant)
    stores.records.commit(a_commit(a_checkpoint(key), inbox=an_inbox_row(key, source="b#api")))
    assert stores.inbox.get(f"{tenant}-b", "api", "evt-1") is None
    assert stores.inbox.get(tenant, "b", "api#evt-1") is None
    assert stores.inbox.get(tenant, "b#api", "evt-1") is not None


def test_an_early_event_is_kept_once(stores: Stores, tenant: str) -> None:
    """B05, B78: whole, until its wait opens; the same id again, whatever it says by then, changes nothing."""
    kept = replace(an_inbox_row(a_task_key(tenant=tenant), source="early:bank:order-7"), event='{"n":1}')
    stores.inbox.keep(kept)
    stores.inbox.keep(replace(kept, event='{"n":2}', digest="f" * 64))

    assert stores.inbox.early(tenant, "bank", "order-7") == (kept,)
    assert stores.inbox.get(tenant, "early:bank:order-7", "evt-1") == kept


def test_early_events_are_found_by_their_source_and_correlation(stores: Stores, tenant: str) -> None:
    """B16: all of one source and correlation id, none of another, and none of another tenant."""
    key = a_task_key(tenant=tenant)
    for source, correlation_id, event_id in (
        ("bank", "order-7", "evt-2"),
        ("bank", "order-7", "evt-1"),
        ("bank", "order-70", "evt-3"),
        ("post", "order-7", "evt-4"),
    ):
        stores.inbox.keep(an_inbox_row(key, event_id, source=f"early:{source}:{correlation_id}"))

    assert [row.event_id for row in stores.inbox.early(tenant, "bank", "order-7")] == ["evt-1", "evt-2"]
    assert [row.event_id for row in stores.inbox.early(tenant, "post", "order-7")] == ["evt-4"]
    assert stores.inbox.early(tenant, "bank", "order-8") == ()
    assert stores.inbox.early(f"{tenant}-other", "bank", "order-7") == ()


def test_a_row_past_its_purge_time_still_counts(stores: Stores, tenant: str) -> None:
    """B51, B52: as long as the row is readable it answers the repeat."""
    key = a_task_key(tenant=tenant)
    row = replace(an_inbox_row(key), purge_at=NOON - timedelta(days=1))
    stores.records.commit(a_commit(a_checkpoint(key), inbox=row))
    assert stores.inbox.get(tenant, "api", "evt-1") == row
