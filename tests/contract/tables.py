"""The deployed tables' definitions, as tables of DynamoDB Local."""

from typing import TYPE_CHECKING, Any

from aws_cdk import aws_dynamodb as cdk

from stacks.records import RECORD_KINDS, Index, RecordKind

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
    types = keys | {name: "S" for index in kind.indexes for name in (index.partition, index.sort)}
    return {
        "TableName": table_name(kind.name),
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": _schema(*keys),
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": of} for name, of in types.items()],
        **({"GlobalSecondaryIndexes": [_index(index) for index in kind.indexes]} if kind.indexes else {}),
        **({"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}} if kind.has_stream else {}),
    }


def _index(index: Index) -> dict[str, Any]:
    projection: dict[str, Any] = {"ProjectionType": "KEYS_ONLY"}
    if index.shows:
        projection = {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(index.shows)}
    return {"IndexName": index.name, "KeySchema": _schema(index.partition, index.sort), "Projection": projection}


def _schema(partition: str, sort: str | None = None) -> list[dict[str, str]]:
    schema = [{"AttributeName": partition, "KeyType": "HASH"}]
    return schema if sort is None else [*schema, {"AttributeName": sort, "KeyType": "RANGE"}]
