"""The provider's memory: one table, every write conditional, so that no race and no repeat records twice.

Items: ``collection`` (partition key) and ``record`` (sort key), both texts. ``record`` begins with what the provider
recognises: ``key#<idempotency key>``, ``reference#<reference>#<id>`` or ``id#<id>``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, cast

from sandbox.problems import Problem
from sandbox.resources import Ending, Recognises, Resource

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef, TransactWriteItemTypeDef

# A table of trials; whoever lists more than this has forgotten to empty it.
LIST_ITEMS_MAX: Final = 1_000
# Two requests about the same record collide for a few milliseconds; four more tries outlast that many times over.
CONFLICT_TRIES_MAX: Final = 5
CONFLICT_PAUSE_SECONDS: Final = 0.05

# Reasons that pass by themselves; any other that is no failed condition is our mistake and must be loud.
_TRANSIENT: Final = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})

_UNKNOWN: Final = "attribute_not_exists(#record)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What the provider remembers of one request that it carried out."""

    id: str
    key: str | None
    digest: str
    fields: Mapping[str, object]
    status: str
    recorded_at: str
    changed_at: str | None = None

    def view(self) -> dict[str, object]:
        """Show the record as an answer does."""
        shown: dict[str, object] = {
            "id": self.id,
            **self.fields,
            "status": self.status,
            "recorded_at": self.recorded_at,
        }
        if self.key is not None:
            shown["key"] = self.key
        if self.changed_at is not None:
            shown["changed_at"] = self.changed_at
        return shown


class AlreadyRecorded(Exception):
    """The key has been used; nothing was written now.

    Args:
        record: what was recorded when it was used.
    """

    def __init__(self, record: Record) -> None:
        super().__init__("the key has been used")
        self.record = record


class Ledger:
    """Reads and writes of records.

    Args:
        pause: waits that many seconds between two tries of a transaction that collided.
    """

    def __init__(self, client: DynamoDBClient, table: str, *, pause: Callable[[float], None] = time.sleep) -> None:
        self._client = client
        self._table = table
        self._pause = pause

    def find(self, collection: str, key: str) -> Record | None:
        """Answer the record made under a key, as of now."""
        reply = self._client.get_item(TableName=self._table, Key=_at(collection, f"key#{key}"), ConsistentRead=True)
        return _record(reply["Item"]) if "Item" in reply else None

    def under_reference(self, collection: str, reference: str) -> list[Record]:
        """Answer every record that carries a reference, as of now, oldest first."""
        return self._listed(collection, f"reference#{reference}#")

    def everything(self, collection: str) -> list[Record]:
        """Answer the whole collection, as of now, oldest first."""
        return self._listed(collection, "")

    def add(self, resource: Resource, record: Record) -> None:
        """Record what was asked, unless its key has been used.

        Raises:
            AlreadyRecorded: the key has been used; nothing was written.
            Problem: what the record would end is unknown or cannot be ended any more; nothing was written.

        If killed here:
            Either everything is recorded, the end of the other record included, or nothing.
        """
        if resource.ends is not None:
            self._add_ending(resource, resource.ends, record)
            return
        try:
            self._client.put_item(
                TableName=self._table,
                Item=_item(resource, record),
                ConditionExpression=_UNKNOWN,
                ExpressionAttributeNames={"#record": "record"},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except self._client.exceptions.ConditionalCheckFailedException as error:
            raise AlreadyRecorded(_record(cast("dict[str, Any]", error.response)["Item"])) from error
        except self._client.exceptions.TransactionConflictException as error:
            raise _busy() from error

    def _add_ending(self, resource: Resource, ending: Ending, record: Record) -> None:
        writes = self._ending_writes(resource, ending, record)
        for attempt in range(1, CONFLICT_TRIES_MAX + 1):
            try:
                self._client.transact_write_items(TransactItems=writes)
                return
            except self._client.exceptions.TransactionCanceledException as error:
                refused, blocked = error.response["CancellationReasons"]
                # The key decides first: a repeat finds its target ended, by itself.
                if refused.get("Code") == "ConditionalCheckFailed":
                    raise AlreadyRecorded(_record(refused["Item"])) from error
                if blocked.get("Code") == "ConditionalCheckFailed":
                    raise _cannot_end(ending, blocked.get("Item")) from error
                if not _TRANSIENT & {refused.get("Code"), blocked.get("Code")}:
                    raise
            self._pause(CONFLICT_PAUSE_SECONDS * attempt)
        raise _busy()

    def _ending_writes(self, resource: Resource, ending: Ending, record: Record) -> list[TransactWriteItemTypeDef]:
        allowed = {f":allowed{n}": {"S": status} for n, status in enumerate(sorted(ending.allowed))}
        target = str(record.fields[ending.field])
        return [
            {
                "Put": {
                    "TableName": self._table,
                    "Item": _item(resource, record),
                    "ConditionExpression": _UNKNOWN,
                    "ExpressionAttributeNames": {"#record": "record"},
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                }
            },
            {
                "Update": {
                    "TableName": self._table,
                    "Key": _at(ending.collection, f"key#{target}"),
                    "UpdateExpression": "SET #status = :becomes, #changed_at = :now",
                    "ConditionExpression": f"attribute_exists(#record) AND #status IN ({', '.join(allowed)})",
                    "ExpressionAttributeNames": {
                        "#record": "record",
                        "#status": "status",
                        "#changed_at": "changed_at",
                    },
                    "ExpressionAttributeValues": {
                        **allowed,
                        ":becomes": {"S": ending.becomes},
                        ":now": {"S": record.recorded_at},
                    },
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                }
            },
        ]

    def _listed(self, collection: str, start: str) -> list[Record]:
        found: list[Record] = []
        for item in self._items(collection, start):
            found.append(_record(item))
            if len(found) == LIST_ITEMS_MAX:
                break
        return sorted(found, key=lambda record: (record.recorded_at, record.id))

    def _items(self, collection: str, start: str) -> Iterator[dict[str, AttributeValueTypeDef]]:
        condition = "#collection = :collection"
        names = {"#collection": "collection"}
        values: dict[str, AttributeValueTypeDef] = {":collection": {"S": collection}}
        if start:
            condition += " AND begins_with(#record, :start)"
            names["#record"] = "record"
            values[":start"] = {"S": start}
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression=condition,
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=values,
            ConsistentRead=True,
        )
        for page in pages:
            yield from page["Items"]


def _busy() -> Problem:
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, "busy", "other requests about the same record are under way")


def _cannot_end(ending: Ending, target: Mapping[str, Any] | None) -> Problem:
    if target is None:
        return Problem(HTTPStatus.NOT_FOUND, "unknown_target", f"{ending.collection} has no record of this key")
    status = _record(target).status
    return Problem(HTTPStatus.CONFLICT, "wrong_status", f"the record is {status} and cannot become {ending.becomes}")


def _at(collection: str, record: str) -> dict[str, AttributeValueTypeDef]:
    return {"collection": {"S": collection}, "record": {"S": record}}


def _sort_key(resource: Resource, record: Record) -> str:
    if resource.recognises is Recognises.KEY:
        return f"key#{record.key}"
    if resource.recognises is Recognises.REFERENCE:
        return f"reference#{record.fields['reference']}#{record.id}"
    return f"id#{record.id}"


def _item(resource: Resource, record: Record) -> dict[str, AttributeValueTypeDef]:
    item = _at(resource.collection, _sort_key(resource, record))
    item["id"] = {"S": record.id}
    item["digest"] = {"S": record.digest}
    item["fields"] = {"S": json.dumps(record.fields, sort_keys=True)}
    item["status"] = {"S": record.status}
    item["recorded_at"] = {"S": record.recorded_at}
    if record.key is not None:
        item["key"] = {"S": record.key}
    return item


def _record(item: Mapping[str, Any]) -> Record:
    return Record(
        id=item["id"]["S"],
        key=item["key"]["S"] if "key" in item else None,
        digest=item["digest"]["S"],
        fields=json.loads(item["fields"]["S"]),
        status=item["status"]["S"],
        recorded_at=item["recorded_at"]["S"],
        changed_at=item["changed_at"]["S"] if "changed_at" in item else None,
    )
