"""Faults on order: what the next accepted requests suffer, kept in the table so that every worker process sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from sandbox.fields import Field, Whole
from sandbox.problems import Problem
from sandbox.resources import RESOURCES

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

# API Gateway gives up on a function after 30 s; a longer hold would only be cut short by it.
HOLD_SECONDS_MAX: Final = 25
TIMES_MAX: Final = 100

_PLACE: Final[dict[str, AttributeValueTypeDef]] = {"collection": {"S": "faults"}, "record": {"S": "ordered"}}


class Moment(StrEnum):
    """When a fault strikes an accepted request."""

    BEFORE_RECORDING = "before_recording"
    AFTER_RECORDING = "after_recording"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault: hold the answer for some seconds, or answer an error status instead."""

    hold_seconds: int | None
    answer_status: int | None


# The effects on order, by the field that orders them.
_EFFECTS: Final[Mapping[str, tuple[Moment, Field]]] = {
    "hold_after_recording_seconds": (Moment.AFTER_RECORDING, Whole(least=1, most=HOLD_SECONDS_MAX)),
    "answer_status_before_recording": (Moment.BEFORE_RECORDING, Whole(least=400, most=599)),
    "answer_status_after_recording": (Moment.AFTER_RECORDING, Whole(least=400, most=599)),
}
_TIMES: Final = Whole(least=1, most=TIMES_MAX)


class Faults:
    """The fault on order, if any."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def order(self, body: Mapping[str, object]) -> None:
        """Replace the fault on order.

        Args:
            body: ``times``, exactly one effect, and optionally ``collection`` to spare the other collections.

        Raises:
            Problem: the body orders no fault that exists; the old one stays.
        """
        effects = sorted(body.keys() & _EFFECTS.keys())
        if len(effects) != 1 or body.keys() - {"times", "collection"} != set(effects):
            raise _refused(f"order times and exactly one of: {', '.join(sorted(_EFFECTS))}")
        moment, field = _EFFECTS[effects[0]]
        size, times, collection = body[effects[0]], body.get("times"), body.get("collection")
        if not field.accepts(size):
            raise _refused(f"{effects[0]} must be {field.rule}")
        if effects[0].startswith("answer_") and size not in set(HTTPStatus):
            raise _refused(f"{effects[0]} must be a status that HTTP has a name for")
        if not _TIMES.accepts(times):
            raise _refused(f"times must be {_TIMES.rule}")
        if "collection" in body and not (isinstance(collection, str) and collection in RESOURCES):
            raise _refused("collection must be one of the provider's")
        item: dict[str, AttributeValueTypeDef] = {
            **_PLACE,
            "effect": {"S": effects[0]},
            "moment": {"S": moment},
            "size": {"N": str(size)},
            "times": {"N": str(times)},
        }
        if collection is not None:
            item["only"] = {"S": str(collection)}
        self._client.put_item(TableName=self._table, Item=item)

    def ordered(self) -> dict[str, object]:
        """Answer what is on order, in the form in which it was ordered, with the times that are left."""
        item = self._client.get_item(TableName=self._table, Key=_PLACE, ConsistentRead=True).get("Item")
        if item is None:
            return {"times": 0}
        shown: dict[str, object] = {item["effect"]["S"]: int(item["size"]["N"]), "times": int(item["times"]["N"])}
        if "only" in item:
            shown["collection"] = item["only"]["S"]
        return shown

    def clear(self) -> None:
        """Take back the order, if there is one."""
        self._client.delete_item(TableName=self._table, Key=_PLACE)

    def strike(self, collection: str, moment: Moment) -> Fault | None:
        """Use up one of the ordered times, if the order is for this collection and moment.

        Any number of workers may ask at once: each of the ordered times goes to exactly one of them.
        """
        left = "#times > :none"
        this_moment = "#moment = :moment"
        this_collection = "(attribute_not_exists(#only) OR #only = :collection)"
        try:
            reply = self._client.update_item(
                TableName=self._table,
                Key=_PLACE,
                UpdateExpression="SET #times = #times - :one",
                ConditionExpression=f"{left} AND {this_moment} AND {this_collection}",
                ExpressionAttributeNames={"#times": "times", "#moment": "moment", "#only": "only"},
                ExpressionAttributeValues={
                    ":none": {"N": "0"},
                    ":one": {"N": "1"},
                    ":moment": {"S": moment},
                    ":collection": {"S": collection},
                },
                ReturnValues="ALL_NEW",
            )
        except self._client.exceptions.ConditionalCheckFailedException:
            return None
        return _fault(reply["Attributes"])


def _fault(item: Mapping[str, Any]) -> Fault:
    size = int(item["size"]["N"])
    holds = item["effect"]["S"].startswith("hold_")
    return Fault(hold_seconds=size if holds else None, answer_status=None if holds else size)


def _refused(detail: str) -> Problem:
    return Problem(HTTPStatus.BAD_REQUEST, "invalid_body", detail)
