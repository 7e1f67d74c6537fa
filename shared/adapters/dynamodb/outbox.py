"""The outbox on DynamoDB: one row per commit, drained by the table's stream."""

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from pydantic import ValidationError

from shared.adapters.dynamodb.errors import ConditionFailed
from shared.adapters.dynamodb.items import Item, instant, number, read_number, read_text, text
from shared.adapters.dynamodb.store_calls import Patience, StoreCalls
from shared.domain.canonical import canonical
from shared.domain.errors import InvalidRequest, InvariantBroken
from shared.domain.identity import task_key
from shared.domain.outbox import MESSAGES, OutboxRow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


class DynamoOutbox:
    """Removal of what is delivered, and a net under the stream."""

    def __init__(self, client: "DynamoDBClient", table: str, patience: Patience | None = None) -> None:
        self._calls = StoreCalls(client, patience)
        self._table = table

    def stale(self, *, before: datetime, limit: int) -> tuple[OutboxRow, ...]:
        """See `Outbox.stale`. The table holds undelivered rows only, so reading all of it is reading little.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience.
        """
        found: list[OutboxRow] = []
        pages = self._calls.scan(
            TableName=self._table,
            FilterExpression="staged_at < :before",
            ExpressionAttributeValues={":before": instant(before)},
        )
        for page in pages:
            found.extend(read_outbox(item) for item in page)
            if len(found) >= limit:
                break
        return tuple(found[:limit])

    def restage(self, row: OutboxRow, *, now: datetime) -> None:
        """See `Outbox.restage`. The stream shows the row as modified, with its messages.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience; the next sweep tries again.
        """
        undelivered = "attribute_exists(task)"
        # Delivered meanwhile: there is nothing to put anywhere.
        with suppress(ConditionFailed):
            self._calls.update(
                TableName=self._table,
                Key=outbox_key(row),
                UpdateExpression="SET staged_at = :now",
                ConditionExpression=undelivered,
                ExpressionAttributeValues={":now": instant(now)},
            )

    def remove(self, row: OutboxRow) -> None:
        """See `Outbox.remove`.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience; the row is delivered again.
        """
        self._calls.delete(self._table, outbox_key(row))


def outbox_key(row: OutboxRow) -> Item:
    """Return a row's key. Ten digits keep the rows of a task in the order of their commits."""
    return {"task": text(row.key.key), "message": text(f"{row.version:010d}#{row.part}")}


def outbox_item(row: OutboxRow, *, staged_at: datetime) -> Item:
    """Return the row of one commit's messages."""
    messages = canonical(MESSAGES.dump_python(row.messages, mode="json")).decode()
    return {
        **outbox_key(row),
        "version": number(row.version),
        "part": number(row.part),
        "messages": text(messages),
        "staged_at": instant(staged_at),
    }


def read_outbox(image: Item) -> OutboxRow:
    """Read a row as the table or its stream shows it.

    Raises:
        InvariantBroken: it is not one of ours.
    """
    tenant, _, task_id = read_text(image, "task").partition("#")
    try:
        return OutboxRow(
            key=task_key(tenant, task_id),
            version=read_number(image, "version"),
            part=read_number(image, "part"),
            messages=MESSAGES.validate_json(read_text(image, "messages")),
        )
    except (InvalidRequest, ValidationError, ValueError) as error:
        msg = "a row of the outbox cannot be read"
        raise InvariantBroken(msg) from error
