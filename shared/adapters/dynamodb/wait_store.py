"""The wait store on DynamoDB."""

from typing import TYPE_CHECKING

from shared.adapters.dynamodb.store_calls import Patience, StoreCalls
from shared.adapters.dynamodb.waits import read_wait, wait_key
from shared.domain.wait import Wait

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


class DynamoWaitStore:
    """Reads of waits."""

    def __init__(self, client: "DynamoDBClient", table: str, patience: Patience | None = None) -> None:
        self._calls = StoreCalls(client, patience)
        self._table = table

    def get(self, tenant: str, correlation_id: str) -> Wait | None:
        """See `WaitStore.get`.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience.
        """
        item = self._calls.get(self._table, wait_key(tenant, correlation_id))
        return None if item is None else read_wait(item)
