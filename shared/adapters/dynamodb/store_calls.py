"""Calls of DynamoDB with bounded patience.

The client's own retries are off: a hidden retry would hide whose write it was. Every call may be repeated here: reads
change nothing, writes carry a condition and the mark of their attempt, and a transaction carries its attempt id as
DynamoDB's own idempotency token, with the same bytes on every try.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from shared.adapters.cloud_errors import CLOUD_ERRORS, code_of
from shared.adapters.dynamodb.errors import (
    Cancelled,
    ConditionFailed,
    NoAnswer,
    Trouble,
    reasons_of,
    trouble_of,
)
from shared.adapters.dynamodb.items import Item
from shared.domain.errors import DependencyTimeout, InvariantBroken, Throttled

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

# Five pauses of at most 50 ms to 0.8 s ride out the conflicts of a busy task; who still loses had better wake again.
TRIES_MAX: Final = 6
FIRST_PAUSE_SECONDS: Final = 0.05
# Three tries of 3 s each (see the client's limits) and all pauses stay below 15 s, the shortest function that commits.
UNANSWERED_MAX: Final = 3
# DynamoDB answers a batch in parts when it is busy; a hundred keys are its own limit.
BATCH_KEYS_MAX: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to go on trying. Pauses double and are cut by chance, so that rivals do not meet again."""

    tries_max: int = TRIES_MAX
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = field(default_factory=lambda: random.SystemRandom().random)

    def pause(self, tries: int) -> None:
        """Wait after the `tries`-th try."""
        self.sleep(self.chance() * FIRST_PAUSE_SECONDS * 2 ** (tries - 1))


class StoreCalls:
    """The calls that the stores make."""

    def __init__(self, client: "DynamoDBClient", patience: Patience | None = None) -> None:
        self._client: Any = client
        self._patience = patience or Patience()

    def get(self, table: str, key: Item) -> Item | None:
        """Read one item, strongly consistent.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience.
        """
        reply = self._read(lambda: self._client.get_item(TableName=table, Key=key, ConsistentRead=True))
        item: Item | None = reply.get("Item")
        return item

    def batch_get(self, keys: Mapping[str, Sequence[Item]], *, tries_max: int | None = None) -> dict[str, list[Item]]:
        """Read items of several tables in one call, strongly consistent; asks again for what was left unanswered.

        Raises:
            Throttled, DependencyTimeout: not all answered within our patience.
        """
        found: dict[str, list[Item]] = {table: [] for table in keys}
        wanted: Any = {table: {"Keys": list(k), "ConsistentRead": True} for table, k in keys.items() if k}
        tries_max = tries_max or self._patience.tries_max
        for tries in range(1, tries_max + 1):
            reply = self._read(partial(self._client.batch_get_item, RequestItems=wanted), tries_max)
            for table, items in reply.get("Responses", {}).items():
                found[table].extend(items)
            wanted = reply.get("UnprocessedKeys") or {}
            if not wanted:
                return found
            if tries < tries_max:
                self._patience.pause(tries)
        raise Throttled("the store left a part of the read unanswered")

    def query(self, **request: object) -> list[Item]:
        """Run one page of a query.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience.
        """
        items: list[Item] = self._read(lambda: self._client.query(**request)).get("Items", [])
        return items

    def query_all(self, **request: object) -> list[Item]:
        """Run a query to its last page.

        Raises:
            Throttled, DependencyTimeout: a page was not answered within our patience.
        """
        items: list[Item] = []
        after: Item | None = {}
        while after is not None:
            start = {"ExclusiveStartKey": after} if after else {}
            reply = self._read(partial(self._client.query, **request, **start))
            items.extend(reply.get("Items", []))
            after = reply.get("LastEvaluatedKey")
        return items

    def scan(self, **request: object) -> Iterator[list[Item]]:
        """Read a whole table page by page, strongly consistent.

        Raises:
            Throttled, DependencyTimeout: a page was not answered within our patience.
        """
        after: Item | None = {}
        while after is not None:
            start = {"ExclusiveStartKey": after} if after else {}
            reply = self._read(partial(self._client.scan, **request, **start, ConsistentRead=True))
            yield reply.get("Items", [])
            after = reply.get("LastEvaluatedKey")

    def update(self, **request: object) -> Item:
        """Update one item under its condition and return it as it is now.

        Raises:
            ConditionFailed: with the item that stood in the way; if an earlier try got no answer, that may be its work.
            Throttled, DependencyTimeout: no answer within our patience.
        """
        asked = {"ReturnValues": "ALL_NEW", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        attributes: Item = self._write(lambda: self._client.update_item(**request, **asked))["Attributes"]
        return attributes

    def put(self, table: str, item: Item) -> None:
        """Write an item, whatever was there.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience.
        """
        self._write(lambda: self._client.put_item(TableName=table, Item=item))

    def put_if(self, table: str, item: Item, *, condition: str, values: Item) -> None:
        """Write an item if the one that is there lets it; otherwise that one stays as it is.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience.
        """
        asked = {"ConditionExpression": condition, "ExpressionAttributeValues": values}
        with suppress(ConditionFailed):
            self._write(partial(self._client.put_item, TableName=table, Item=item, **asked))

    def put_new(self, table: str, item: Item, *, unless_exists: str) -> None:
        """Write an item where none is; what is there stays as it is, be it an earlier try's work or another's.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience.
        """
        condition = f"attribute_not_exists({unless_exists})"
        with suppress(ConditionFailed):
            self._write(partial(self._client.put_item, TableName=table, Item=item, ConditionExpression=condition))

    def delete(self, table: str, key: Item) -> None:
        """Remove an item if it is there.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience.
        """
        self._write(lambda: self._client.delete_item(TableName=table, Key=key))

    def transact(self, writes: Sequence[Mapping[str, Any]], *, token: str) -> None:
        """Write a transaction. Every try sends the same token and the same bytes.

        Raises:
            Cancelled: conditions did not hold. Where conflicts or throttling mix in, the conditions decide (B43).
            NoAnswer: an unanswered try may have been applied.
            Throttled: conflicts or throttling outlasted our patience; nothing was written.
        """
        request = {"TransactItems": list(writes), "ClientRequestToken": token}
        unanswered = 0
        for tries in range(1, self._patience.tries_max + 1):
            try:
                self._client.transact_write_items(**request)
                return
            except CLOUD_ERRORS as error:
                unanswered += _judge_transaction(error, in_doubt=unanswered > 0)
                if unanswered >= UNANSWERED_MAX:
                    raise NoAnswer from error
            if tries < self._patience.tries_max:
                self._patience.pause(tries)
        if unanswered:
            raise NoAnswer
        raise Throttled("conflicts or throttling outlasted our patience; nothing was written")

    def _read(self, call: Callable[[], Any], tries_max: int | None = None) -> Any:  # noqa: ANN401 - botocore's reply
        return self._repeat(call, tries_max or self._patience.tries_max)

    def _write(self, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - botocore's reply
        return self._repeat(call, self._patience.tries_max)

    def _repeat(self, call: Callable[[], Any], tries_max: int) -> Any:  # noqa: ANN401 - botocore's reply
        unanswered = 0
        for tries in range(1, tries_max + 1):
            try:
                return call()
            except CLOUD_ERRORS as error:
                unanswered += _judge_call(error)
                if unanswered >= UNANSWERED_MAX:
                    break
            if tries < tries_max:
                self._patience.pause(tries)
        if unanswered:
            raise DependencyTimeout("the store did not answer")
        raise Throttled("throttling outlasted our patience")


def _judge_call(error: Exception) -> int:
    """Return how many unanswered tries this one adds.

    Raises:
        ConditionFailed: the condition did not hold.
        InvariantBroken: the call can never succeed.
    """
    trouble = trouble_of(error)
    if trouble is Trouble.CONDITION and isinstance(error, ClientError):
        raise ConditionFailed(error.response.get("Item")) from error  # type: ignore[arg-type]
    if trouble is Trouble.NO_ANSWER:
        return 1
    if trouble is Trouble.BUSY:
        return 0
    msg = f"the store refused a request of ours: {code_of(error)}"
    raise InvariantBroken(msg) from error


def _judge_transaction(error: Exception, *, in_doubt: bool) -> int:
    """Return how many unanswered tries this one adds.

    Raises:
        Cancelled: at least one condition did not hold.
        InvariantBroken: the transaction can never succeed.
    """
    if trouble_of(error) is not Trouble.CANCELLED or not isinstance(error, ClientError):
        return _judge_call(error)
    troubles, old = reasons_of(error)
    if old:
        raise Cancelled(old, in_doubt=in_doubt) from error
    if not troubles or Trouble.BROKEN in troubles.values():
        codes = [reason.get("Code") for reason in error.response.get("CancellationReasons", [])]
        msg = f"the store refused a transaction of ours: {codes}"
        raise InvariantBroken(msg) from error
    return 0
