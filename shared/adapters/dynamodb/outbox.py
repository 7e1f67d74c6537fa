"""The outbox on DynamoDB: one row per commit, drained by the table's stream."""

from typing import TYPE_CHECKING

from pydantic import ValidationError

from shared.adapters.dynamodb.items import Item, number, read_number, read_text, text
from shared.adapters.dynamodb.store_calls import Patience, StoreCalls
from shared.domain.canonical import canonical
from shared.domain.errors import InvalidRequest, InvariantBroken
from shared.domain.identity import task_key
from shared.domain.outbox import MESSAGES, OutboxRow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


class DynamoOutbox:
    """Removal of what is delivered."""

    def __init__(self, client: "DynamoDBClient", table: str, patience: Patience | None = None) -> None:
        self._calls = StoreCalls(client, patience)
        self._table = table

    def remove(self, row: OutboxRow) -> None:
        """See `Outbox.remove`.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience; the row is delivered again.
        """
        self._calls.delete(self._table, outbox_key(row))


def outbox_key(row: OutboxRow) -> Item:
    """Return a row's key. Ten digits keep the rows of a task in the order of their commits."""
    return {"task": text(row.key.key), "message": text(f"{row.version:010d}#{row.part}")}


def outbox_item(row: OutboxRow) -> Item:
    """Return the row of one commit's messages."""
    messages = canonical(MESSAGES.dump_python(row.messages, mode="json")).decode()
    return {**outbox_key(row), "version": number(row.version), "part": number(row.part), "messages": text(messages)}


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
