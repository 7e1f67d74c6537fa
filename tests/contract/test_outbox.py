"""The contract of `Outbox`, on the fake and on DynamoDB Local."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from shared.adapters.dynamodb.outbox import read_outbox
from shared.domain.errors import InvariantBroken
from shared.domain.identity import TaskKey
from shared.domain.outbox import OutboxRow, PublishEvent, StartExecution
from tests.builders import a_checkpoint, a_commit, a_task_key
from tests.contract.stores import Stores, real_stores
from tests.contract.tables import table_name
from tests.fakes.clock import NOON

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodbstreams import DynamoDBStreamsClient

START = StartExecution(workflow="refund", run=1, version=1)
EVENT = PublishEvent(event="task.started", version=1, detail={"n": 1, "yes": True, "no": None, "t": "ü"})
LATER = NOON + timedelta(minutes=10)


@pytest.fixture
def key(tenant: str) -> TaskKey:
    """Make the key of the test's task."""
    return a_task_key(tenant=tenant)


def stage(stores: Stores, key: TaskKey) -> OutboxRow:
    """Commit a task with messages."""
    stores.records.commit(a_commit(a_checkpoint(key), messages=[START, EVENT]))
    (row,) = stores.back_door.staged(key)
    return row


def mine(rows: tuple[OutboxRow, ...], key: TaskKey) -> list[OutboxRow]:
    """Leave out what other tests have staged."""
    return [row for row in rows if row.key == key]


def test_a_delivered_row_is_gone_and_stays_gone(stores: Stores, key: TaskKey) -> None:
    """Removing twice is removing once."""
    row = stage(stores, key)
    assert row == OutboxRow(key=key, version=1, messages=(START, EVENT))

    stores.outbox.remove(row)
    stores.outbox.remove(row)

    assert stores.back_door.staged(key) == []


def test_rows_of_one_version_are_told_apart(stores: Stores, key: TaskKey) -> None:
    """What a quarantine staged is not removed with what the commit staged."""
    row = stage(stores, key)
    stores.outbox.remove(row.model_copy(update={"part": 1}))
    assert stores.back_door.staged(key) == [row]


def test_what_nobody_delivers_is_found(stores: Stores, key: TaskKey) -> None:
    """O3: a row that was staged before an instant is stale; one that was staged at it is not."""
    row = stage(stores, key)
    assert mine(stores.outbox.stale(before=NOON, limit=1000), key) == []
    assert mine(stores.outbox.stale(before=NOON + timedelta(milliseconds=1), limit=1000), key) == [row]


def test_no_more_rows_than_asked_for(stores: Stores, tenant: str) -> None:
    """A sweep takes on what it can."""
    for number in (1, 2, 3):
        stage(stores, a_task_key(number, tenant=tenant))
    assert len(stores.outbox.stale(before=LATER, limit=2)) == 2


def test_a_restaged_row_is_fresh_and_unchanged(stores: Stores, key: TaskKey) -> None:
    """It stands before the stream again as what it was, and the next sweep leaves it alone for a while."""
    row = stage(stores, key)

    stores.outbox.restage(row, now=LATER)

    assert mine(stores.outbox.stale(before=LATER, limit=1000), key) == []
    assert stores.back_door.staged(key) == [row]


def test_what_was_delivered_meanwhile_is_not_restaged(stores: Stores, key: TaskKey) -> None:
    """B64: the sweep's late write brings nothing back."""
    row = stage(stores, key)
    stores.outbox.remove(row)

    stores.outbox.restage(row, now=LATER)

    assert stores.back_door.staged(key) == []


def test_the_stream_shows_rows_as_they_were_staged(
    dynamodb: "DynamoDBClient", streams: "DynamoDBStreamsClient", tenant: str
) -> None:
    """What `deliver` is handed, on staging and on restaging, is the whole row."""
    stores = real_stores(dynamodb)
    key = a_task_key(tenant=tenant)
    row = stage(stores, key)
    stores.outbox.restage(row, now=LATER)

    seen = [(name, read_outbox(image)) for name, image in _records_of(streams, key)]

    assert seen == [("INSERT", row), ("MODIFY", row)]


@pytest.mark.parametrize(
    "damage",
    [
        {"messages": {"S": '[{"kind":"erase_everything"}]'}},
        {"messages": {"S": "no json"}},
        {"task": {"S": "acme#tsk_1"}},
        {"version": {"S": "1"}},
    ],
)
def test_a_row_that_is_none_of_ours_is_refused(damage: dict[str, Any]) -> None:
    """Nothing is delivered on a guess."""
    good = {
        "task": {"S": a_task_key().key},
        "version": {"N": "1"},
        "part": {"N": "0"},
        "messages": {"S": "[]"},
    }
    assert read_outbox(good).messages == ()
    with pytest.raises(InvariantBroken):
        read_outbox(good | damage)


def _records_of(streams: "DynamoDBStreamsClient", key: TaskKey) -> list[tuple[str, dict[str, Any]]]:
    (stream,) = streams.list_streams(TableName=table_name("outbox"))["Streams"]
    shards = streams.describe_stream(StreamArn=stream["StreamArn"])["StreamDescription"]["Shards"]
    found: list[tuple[str, dict[str, Any]]] = []
    for shard in shards:
        iterator = streams.get_shard_iterator(
            StreamArn=stream["StreamArn"], ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        # The local shard stays open: an empty page means that all has been read.
        while iterator:
            page = streams.get_records(ShardIterator=iterator)
            if not page["Records"]:
                break
            found += [
                (record["eventName"], dict(record["dynamodb"]["NewImage"]))
                for record in page["Records"]
                if record["dynamodb"]["Keys"]["task"]["S"] == key.key
            ]
            iterator = page.get("NextShardIterator")
    return found
