"""The benchmark's rules for write units, held to what DynamoDB's own code charges for single writes."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.meter import Meter
from benchmarks.units import IndexShape, index_units, item_bytes, table_units
from local.dynamodb_local import DynamoDbLocal
from tests.contract.tables import table_name

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

HEADS = table_name("heads")
LEASES = table_name("leases")
QUEUE = IndexShape(keys=frozenset({"queue", "since"}), shows=frozenset({"task", "queue", "since", "workflow"}))


def head(tenant: str, **columns: str) -> dict[str, Any]:
    """A head of a tenant, with just these columns."""
    return {"task": {"S": f"{tenant}#units"}, **{name: {"S": text} for name, text in columns.items()}}


def charged(client: "DynamoDBClient", item: dict[str, Any]) -> Counter[str]:
    """Put an item by itself and return what DynamoDB says it cost."""
    reply = client.put_item(TableName=HEADS, Item=item, ReturnConsumedCapacity="INDEXES")["ConsumedCapacity"]
    indexes = {name: int(cost["CapacityUnits"]) for name, cost in reply.get("GlobalSecondaryIndexes", {}).items()}
    return Counter({"table": int(reply["Table"]["CapacityUnits"]), **indexes})


@pytest.mark.parametrize("size", [60, 1_023, 1_024, 1_025, 2_048, 2_049, 5_000])
def test_a_write_costs_a_unit_for_every_kilobyte_begun(dynamodb: "DynamoDBClient", tenant: str, size: int) -> None:
    """At each boundary the rule and DynamoDB agree; 1,025 bytes are two units."""
    bare = head(tenant, filler="")
    item = head(tenant, filler="x" * (size - item_bytes(bare)))

    assert item_bytes(item) == size
    assert charged(dynamodb, item)["table"] == table_units(None, item)


def test_the_larger_of_before_and_after_is_what_a_write_costs(dynamodb: "DynamoDBClient", tenant: str) -> None:
    """A large item that becomes small is charged as the large one."""
    large, small = head(tenant, filler="x" * 3_000), head(tenant, filler="x")
    charged(dynamodb, large)

    assert charged(dynamodb, small)["table"] == table_units(large, small) == 3


@pytest.mark.parametrize(
    ("before", "after", "units"),
    [
        ({}, {"queue": "t#ready", "since": "1"}, 1),
        ({"queue": "t#ready", "since": "1"}, {"queue": "t#ready", "since": "1"}, 0),
        ({"queue": "t#ready", "since": "1"}, {"queue": "t#ready", "since": "1", "attempt": "other"}, 0),
        ({"queue": "t#ready", "since": "1"}, {"queue": "t#ready", "since": "1", "workflow": "refund"}, 1),
        ({"queue": "t#ready", "since": "1"}, {"queue": "t#done", "since": "2"}, 2),
        ({"queue": "t#ready", "since": "1"}, {"workflow": "refund"}, 1),
        ({}, {"queue": "t#ready"}, 0),
    ],
    ids=["enters", "same", "elsewhere", "shows", "moves", "leaves", "half-a-key"],
)
def test_an_index_is_charged_for_what_changes_in_it(
    dynamodb: "DynamoDBClient", tenant: str, before: dict[str, str], after: dict[str, str], units: int
) -> None:
    """Nothing for an entry that stays, two for one that moves to another key."""
    old, new = head(tenant, **before), head(tenant, **after)
    charged(dynamodb, old)

    assert charged(dynamodb, new)["queue"] == index_units(old, new, QUEUE) == units


def test_numbers_count_about_a_byte_for_two_digits() -> None:
    """As the service's own size rules say; what a head holds are small ones."""
    assert [item_bytes({"n": {"N": digits}}) for digits in ("0", "7", "42", "100", "12345")] == [3, 3, 3, 3, 5]


def test_a_transaction_doubles_the_table_and_not_its_index(
    database: DynamoDbLocal, dynamodb: "DynamoDBClient", tenant: str
) -> None:
    """Each item is prepared and committed; the index follows afterwards, once."""
    client = database.client()
    meter = Meter(client, observer=dynamodb)
    moved = head(tenant, queue="t#done", since="2", filler="x" * 1_500)
    client.put_item(TableName=HEADS, Item=head(tenant, queue="t#ready", since="1"))
    before = meter.read()

    client.transact_write_items(
        TransactItems=[
            {"Put": {"TableName": HEADS, "Item": moved}},
            {
                "ConditionCheck": {
                    "TableName": LEASES,
                    "Key": {"task": {"S": f"{tenant}#nobody"}},
                    "ConditionExpression": "attribute_not_exists(task)",
                }
            },
        ]
    )
    used = meter.read().minus(before)

    assert used.write_units_by_table == {HEADS: 2 * 2 + 2, LEASES: 2}
    assert used.calls == {"TransactWriteItems": 1}


def test_a_call_that_nobody_counts_is_refused(database: DynamoDbLocal, dynamodb: "DynamoDBClient") -> None:
    """A new kind of write does not pass for free."""
    client = database.client()
    Meter(client, observer=dynamodb)

    with pytest.raises(ValueError, match="not counted yet"):
        client.batch_write_item(RequestItems={})
