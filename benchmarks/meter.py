"""Counting what a client of DynamoDB really sends and gets: calls, capacity units, bytes."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_READS: Final = frozenset({"GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems"})


@dataclass(slots=True, kw_only=True)
class Reading:
    """Counts between two moments."""

    calls: Counter[str] = field(default_factory=Counter)
    write_units: float = 0.0
    read_units: float = 0.0
    bytes_sent: int = 0
    bytes_received: int = 0
    cpu_seconds: float = 0.0

    @property
    def calls_in_all(self) -> int:
        """All calls."""
        return sum(self.calls.values())

    def minus(self, other: Reading) -> Reading:
        """What was added since another reading."""
        return Reading(
            calls=self.calls - other.calls,
            write_units=self.write_units - other.write_units,
            read_units=self.read_units - other.read_units,
            bytes_sent=self.bytes_sent - other.bytes_sent,
            bytes_received=self.bytes_received - other.bytes_received,
            cpu_seconds=self.cpu_seconds - other.cpu_seconds,
        )


class Meter:
    """Attached to a client, it counts every call from then on.

    Units are what DynamoDB Local reports, table and indexes. It reports transactional writes at another price than
    the documented two units per kilobyte; `_transaction_factor` is measured against one item of known size first.
    """

    def __init__(self, client: DynamoDBClient, *, probe_table: str, probe_key: dict[str, Any]) -> None:
        self._now = Reading()
        self._factor = 1.0
        events: Any = client.meta.events
        events.register("provide-client-params.dynamodb", self._ask)
        events.register("before-send.dynamodb", self._sent)
        events.register("after-call.dynamodb", self._answered)
        self._factor = self._transaction_factor(client, probe_table, probe_key)
        self._now = Reading()

    def read(self) -> Reading:
        """The counts so far."""
        now = self._now
        return Reading(
            calls=Counter(now.calls),
            write_units=now.write_units,
            read_units=now.read_units,
            bytes_sent=now.bytes_sent,
            bytes_received=now.bytes_received,
            cpu_seconds=time.process_time(),
        )

    def _transaction_factor(self, client: DynamoDBClient, table: str, key: dict[str, Any]) -> float:
        client.transact_write_items(TransactItems=[{"Put": {"TableName": table, "Item": key}}])
        reported = self._now.write_units
        client.delete_item(TableName=table, Key=key)
        # One item below a kilobyte, written in a transaction, is two units by the price list.
        return 2.0 / reported

    def _ask(self, params: dict[str, Any], model: Any, **_: Any) -> None:  # noqa: ANN401 - botocore's own
        if "ReturnConsumedCapacity" in model.input_shape.members:
            params.setdefault("ReturnConsumedCapacity", "INDEXES")

    def _sent(self, request: Any, **_: Any) -> None:  # noqa: ANN401 - botocore's own
        self._now.bytes_sent += len(request.body or b"")

    def _answered(self, http_response: Any, parsed: dict[str, Any], model: Any, **_: Any) -> None:  # noqa: ANN401
        name = model.name
        self._now.calls[name] += 1
        self._now.bytes_received += len(http_response.content or b"")
        reported = parsed.get("ConsumedCapacity", [])
        units = sum(float(c.get("CapacityUnits", 0)) for c in (reported if isinstance(reported, list) else [reported]))
        if name in _READS:
            self._now.read_units += units
        elif name == "TransactWriteItems":
            self._now.write_units += units * self._factor
        else:
            self._now.write_units += units


def as_json(value: object) -> str:
    """Render figures for a file."""
    return json.dumps(value, indent=2, sort_keys=True) + "\n"
