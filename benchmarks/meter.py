"""Counting what a client of DynamoDB really sends and gets: calls, capacity units, bytes."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from benchmarks.units import TRANSACTED, Image, IndexShape, index_units, table_units

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_READS: Final = frozenset({"GetItem", "BatchGetItem", "Query", "Scan"})
_SINGLE_WRITES: Final = frozenset({"PutItem", "UpdateItem", "DeleteItem"})
_IMAGES: Final = "benchmarks.images"


@dataclass(slots=True, kw_only=True)
class Reading:
    """Counts between two moments. Write units are by table, its indexes included."""

    calls: Counter[str] = field(default_factory=Counter)
    write_units_by_table: Counter[str] = field(default_factory=Counter)
    read_units: float = 0.0
    bytes_sent: int = 0
    bytes_received: int = 0
    cpu_seconds: float = 0.0

    @property
    def calls_in_all(self) -> int:
        """All calls."""
        return sum(self.calls.values())

    @property
    def write_units(self) -> int:
        """All write units."""
        return sum(self.write_units_by_table.values())

    def minus(self, other: Reading) -> Reading:
        """What was added since another reading."""
        return Reading(
            calls=self.calls - other.calls,
            write_units_by_table=self.write_units_by_table - other.write_units_by_table,
            read_units=self.read_units - other.read_units,
            bytes_sent=self.bytes_sent - other.bytes_sent,
            bytes_received=self.bytes_received - other.bytes_received,
            cpu_seconds=self.cpu_seconds - other.cpu_seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """One item of a write: where it is, what it was, and what one unit of its table is counted as."""

    table: str
    key: dict[str, Any]
    before: Image
    factor: int


class Meter:
    """Attached to a client, it counts every call from then on.

    Read units are what DynamoDB Local reports, which is as published. Write units are computed from the items before
    and after each write (`benchmarks.units`), which an observer of its own looks up; its calls and its time count
    nowhere.
    """

    def __init__(self, client: DynamoDBClient, observer: DynamoDBClient) -> None:
        self._now = Reading()
        self._observer = observer
        self._observed_seconds = 0.0
        self._shapes: dict[str, tuple[tuple[str, ...], tuple[IndexShape, ...]]] = {}
        events: Any = client.meta.events
        events.register("provide-client-params.dynamodb", self._ask)
        events.register("before-send.dynamodb", self._sent)
        events.register("after-call.dynamodb", self._answered)

    def read(self) -> Reading:
        """The counts so far."""
        now = self._now
        return Reading(
            calls=Counter(now.calls),
            write_units_by_table=Counter(now.write_units_by_table),
            read_units=now.read_units,
            bytes_sent=now.bytes_sent,
            bytes_received=now.bytes_received,
            cpu_seconds=time.process_time() - self._observed_seconds,
        )

    def _ask(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:  # noqa: ANN401
        if model.name in _READS:
            params.setdefault("ReturnConsumedCapacity", "TOTAL")
        else:
            context[_IMAGES] = [self._seen(*one) for one in _items_of(model.name, params)]

    def _sent(self, request: Any, **_: Any) -> None:  # noqa: ANN401 - botocore's own
        self._now.bytes_sent += len(request.body or b"")

    def _answered(
        self,
        http_response: Any,  # noqa: ANN401 - botocore's own
        parsed: dict[str, Any],
        model: Any,  # noqa: ANN401 - botocore's own
        context: dict[str, Any],
        **_: Any,  # noqa: ANN401 - botocore's own
    ) -> None:
        self._now.calls[model.name] += 1
        self._now.bytes_received += len(http_response.content or b"")
        if model.name in _READS:
            reported = parsed.get("ConsumedCapacity", [])
            reported = reported if isinstance(reported, list) else [reported]
            self._now.read_units += sum(float(c.get("CapacityUnits", 0)) for c in reported)
        for written in context.get(_IMAGES, ()):
            self._now.write_units_by_table[written.table] += self._cost(written)

    def _seen(self, table: str, item: dict[str, Any], factor: int) -> _Written:
        key = {name: item[name] for name in self._shape(table)[0]}
        return _Written(table=table, key=key, before=self._image(table, key), factor=factor)

    def _cost(self, written: _Written) -> int:
        after = self._image(written.table, written.key)
        _, indexes = self._shape(written.table)
        return written.factor * table_units(written.before, after) + sum(
            index_units(written.before, after, index) for index in indexes
        )

    def _image(self, table: str, key: dict[str, Any]) -> Image:
        begun = time.process_time()
        item = self._observer.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item")
        self._observed_seconds += time.process_time() - begun
        return item

    def _shape(self, table: str) -> tuple[tuple[str, ...], tuple[IndexShape, ...]]:
        if table not in self._shapes:
            described = self._observer.describe_table(TableName=table)["Table"]
            keys = tuple(part["AttributeName"] for part in described["KeySchema"])
            indexes = described.get("GlobalSecondaryIndexes", [])
            self._shapes[table] = keys, tuple(_index(index, keys) for index in indexes)
        return self._shapes[table]


def _items_of(operation: str, params: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], int]]:
    if operation in _SINGLE_WRITES:
        yield params["TableName"], params.get("Item") or params["Key"], 1
    elif operation == "TransactWriteItems":
        for one in params["TransactItems"]:
            (request,) = one.values()
            yield request["TableName"], request.get("Item") or request["Key"], TRANSACTED
    else:
        msg = f"the product made a call that is not counted yet: {operation}"
        raise ValueError(msg)


def _index(described: Any, table_keys: tuple[str, ...]) -> IndexShape:  # noqa: ANN401 - botocore's own
    keys = frozenset(part["AttributeName"] for part in described["KeySchema"])
    shown = described["Projection"].get("NonKeyAttributes", [])
    return IndexShape(keys=keys, shows=keys.union(table_keys, shown))


def as_json(value: object) -> str:
    """Render figures for a file."""
    return json.dumps(value, indent=2, sort_keys=True) + "\n"
