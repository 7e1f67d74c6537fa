"""Task tokens on DynamoDB."""

from datetime import datetime
from typing import TYPE_CHECKING

from shared.adapters.dynamodb.items import Item, epoch_second, number, read_text, text
from shared.adapters.dynamodb.store_calls import Patience, StoreCalls

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


class DynamoTokenStore:
    """One row per wait; its purge time is housekeeping and decides nothing (B52)."""

    def __init__(self, client: "DynamoDBClient", table: str, patience: Patience | None = None) -> None:
        self._calls = StoreCalls(client, patience)
        self._table = table

    def put(self, tenant: str, wait_id: str, token: str, *, entry: int, purge_at: datetime) -> None:
        """See `TokenStore.put`.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience; storing the token again is safe.
        """
        row = {
            **_key(tenant, wait_id),
            "task_token": text(token),
            "entry": number(entry),
            "purge_at": epoch_second(purge_at),
        }
        first, not_behind = "attribute_not_exists(entry)", "entry <= :entry"
        self._calls.put_if(self._table, row, condition=f"{first} OR {not_behind}", values={":entry": number(entry)})

    def get(self, tenant: str, wait_id: str) -> str | None:
        """See `TokenStore.get`.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience.
        """
        item = self._calls.get(self._table, _key(tenant, wait_id))
        return None if item is None else read_text(item, "task_token")


def _key(tenant: str, wait_id: str) -> Item:
    return {"wait": text(f"{tenant}#{wait_id}")}
