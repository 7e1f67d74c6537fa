"""The wait store on DynamoDB."""

from datetime import datetime
from typing import TYPE_CHECKING, Final

from shared.adapters.dynamodb.items import instant as instant_of
from shared.adapters.dynamodb.items import text
from shared.adapters.dynamodb.store_calls import BATCH_KEYS_MAX, Patience, StoreCalls
from shared.adapters.dynamodb.waits import read_wait, wait_key
from shared.domain.identity import TaskKey
from shared.domain.wait import Wait

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

TASK_INDEX: Final = "task"


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

    def opened_since(self, key: TaskKey, instant: datetime) -> tuple[Wait, ...]:
        """See `WaitStore.opened_since`.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience.
        """
        entries = self._calls.query_all(
            TableName=self._table,
            IndexName=TASK_INDEX,
            KeyConditionExpression="task = :task AND opened_at >= :instant",
            ExpressionAttributeValues={":task": text(key.key), ":instant": instant_of(instant)},
        )
        keys = [{"correlation": entry["correlation"]} for entry in entries]
        found = [
            read_wait(item)
            for start in range(0, len(keys), BATCH_KEYS_MAX)
            for item in self._calls.batch_get({self._table: keys[start : start + BATCH_KEYS_MAX]})[self._table]
        ]
        return tuple(sorted(found, key=lambda wait: (wait.opened_at, wait.wait_id)))
