"""The inbox on DynamoDB."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from shared.adapters.dynamodb.items import (
    Item,
    epoch_second,
    instant,
    read_number,
    read_optional_text,
    read_text,
    text,
)
from shared.adapters.dynamodb.store_calls import Patience, StoreCalls
from shared.domain.instants import parse_instant
from shared.ports.inbox import InboxRow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


# One event answers a wait. More than a few for one correlation id is noise that its sender has to explain.
EARLY_MAX: Final = 20


class DynamoInbox:
    """Accepted events, and the few that came early."""

    def __init__(self, client: "DynamoDBClient", table: str, patience: Patience | None = None) -> None:
        self._calls = StoreCalls(client, patience)
        self._table = table

    def get(self, tenant: str, source: str, event_id: str) -> InboxRow | None:
        """See `Inbox.get`; a row past its purge time still counts (B52).

        Raises:
            Throttled, DependencyTimeout: no answer within our patience.
        """
        item = self._calls.get(self._table, inbox_key(tenant, source, event_id))
        return None if item is None else read_inbox(item)

    def keep(self, row: InboxRow) -> None:
        """See `Inbox.keep`.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience; keeping it again is safe.
        """
        self._calls.put_new(self._table, inbox_item(row), unless_exists="event_id")

    def early(self, tenant: str, source: str, correlation_id: str) -> tuple[InboxRow, ...]:
        """See `Inbox.early`.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience.
        """
        rows = self._calls.query(
            TableName=self._table,
            KeyConditionExpression="#source = :source",
            ExpressionAttributeNames={"#source": "source"},
            ExpressionAttributeValues={":source": text(f"{tenant}#early:{source}:{correlation_id}")},
            Limit=EARLY_MAX,
            ConsistentRead=True,
        )
        return tuple(read_inbox(row) for row in rows)


def inbox_key(tenant: str, source: str, event_id: str) -> Item:
    """Return an event's key. The tenant comes first and has no separator in it: no source poses as another tenant's."""
    return {"source": text(f"{tenant}#{source}"), "event_id": text(event_id)}


def inbox_item(row: InboxRow) -> Item:
    """Return the row of an accepted event."""
    return {
        **inbox_key(row.tenant, row.source, row.event_id),
        "digest": text(row.digest),
        "task_id": text(row.task_id),
        "received_at": instant(row.received_at),
        "purge_at": epoch_second(row.purge_at),
        **({} if row.event is None else {"event": text(row.event)}),
    }


def read_inbox(item: Item) -> InboxRow:
    """Read a row."""
    tenant, _, source = read_text(item, "source").partition("#")
    return InboxRow(
        tenant=tenant,
        source=source,
        event_id=read_text(item, "event_id"),
        digest=read_text(item, "digest"),
        task_id=read_text(item, "task_id"),
        received_at=parse_instant(read_text(item, "received_at")),
        purge_at=datetime.fromtimestamp(read_number(item, "purge_at"), tz=UTC),
        event=read_optional_text(item, "event"),
    )
