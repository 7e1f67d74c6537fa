"""The deployed tables' definitions, as tables of DynamoDB Local."""

from typing import TYPE_CHECKING, Any

from aws_cdk import aws_dynamodb as cdk

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
    index = {"queue": "S", "since": "S"} if kind.has_queue_index else {}
    return {
        "TableName": table_name(kind.name),
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": _schema(list(keys)),
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": kind_of} for name, kind_of in (keys | index).items()
        ],
        **({"GlobalSecondaryIndexes": [_queue_index(list(index))]} if index else {}),
        **({"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}} if kind.has_stream else {}),
    }


def _queue_index(names: list[str]) -> dict[str, Any]:
    return {
        "IndexName": QUEUE_INDEX,
        "KeySchema": _schema(names),
        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(QUEUE_PROJECTION)},
    }


def _schema(names: list[str]) -> list[dict[str, str]]:
    return [{"AttributeName": name, "KeyType": kind} for name, kind in zip(names, ("HASH", "RANGE"), strict=False)]
