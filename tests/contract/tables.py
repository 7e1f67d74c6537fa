"""The deployed tables' definitions, as tables of DynamoDB Local."""

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from aws_cdk import aws_dynamodb as cdk

from shared.adapters.dynamodb.task_lists import WATCH_INDEX
from stacks.records import QUEUE_INDEX, QUEUE_PROJECTION, RECORD_KINDS, RecordKind

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_TYPES = {cdk.AttributeType.STRING: "S", cdk.AttributeType.NUMBER: "N"}


def table_name(kind: str) -> str:
    """Name the table of a kind of record."""
    return f"contract-{kind}"


def create_tables(client: "DynamoDBClient") -> None:
    """Make every table of the data stack."""
    for kind in RECORD_KINDS:
        client.create_table(**_definition(kind))


def _definition(kind: RecordKind) -> dict[str, Any]:
    keys = {kind.partition: "S"} | ({kind.sort.name: _TYPES[kind.sort.kind]} if kind.sort else {})
    lists = {QUEUE_INDEX: ("queue", "since"), WATCH_INDEX: ("watch", "check_at")} if kind.has_queue_index else {}
    index = dict.fromkeys(itertools.chain(*lists.values()), "S")
    return {
        "TableName": table_name(kind.name),
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": _schema(keys),
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": kind_of} for name, kind_of in (keys | index).items()
        ],
        **({"GlobalSecondaryIndexes": [_index(name, keys) for name, keys in lists.items()]} if lists else {}),
        **({"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}} if kind.has_stream else {}),
    }


def _index(name: str, keys: tuple[str, str]) -> dict[str, Any]:
    projection: dict[str, Any] = {"ProjectionType": "KEYS_ONLY"}
    if name == QUEUE_INDEX:
        projection = {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(QUEUE_PROJECTION)}
    return {"IndexName": name, "KeySchema": _schema(keys), "Projection": projection}


def _schema(names: Iterable[str]) -> list[dict[str, str]]:
    return [{"AttributeName": name, "KeyType": kind} for name, kind in zip(names, ("HASH", "RANGE"), strict=False)]
