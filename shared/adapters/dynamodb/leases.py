"""Task leases on DynamoDB."""

from datetime import datetime
from typing import TYPE_CHECKING

from shared.adapters.dynamodb.errors import ConditionFailed
from shared.adapters.dynamodb.items import Item, instant, number, read_number, read_text, text
from shared.adapters.dynamodb.store_calls import Patience, StoreCalls
from shared.domain.errors import InvariantBroken, LeaseHeld
from shared.domain.identity import TaskKey
from shared.domain.instants import format_instant
from shared.ports.leases import Lease

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


class DynamoLeases:
    """One row per task, made by the first lease and never removed.

    This is the one update that may make its row: a lease row says nothing about a task, nobody takes one before the
    task was loaded, and a fence that began again would be the greater harm.
    """

    def __init__(self, client: "DynamoDBClient", table: str, patience: Patience | None = None) -> None:
        self._calls = StoreCalls(client, patience)
        self._table = table

    def acquire(
        self,
        key: TaskKey,
        *,
        version: int,
        holder: str,
        presented_fence: int | None,
        now: datetime,
        ends_at: datetime,
    ) -> Lease:
        """See `Leases.acquire`. `holder` names one attempt and no other; by it a lost reply is recognised.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience; if the lease was taken, it lapses.
        """
        first = "attribute_not_exists(task)"
        lapsed = "ends_at <= :now"
        handed_on = "fence = :presented"
        not_behind = "version <= :version"
        free = f"({lapsed} OR {handed_on})" if presented_fence is not None else lapsed
        presented = {":presented": number(presented_fence)} if presented_fence is not None else {}
        try:
            item = self._calls.update(
                TableName=self._table,
                Key={"task": text(key.key)},
                UpdateExpression="SET fence = if_not_exists(fence, :none) + :one, version = :version, "
                "holder = :holder, ends_at = :ends_at",
                ConditionExpression=f"{first} OR ({free} AND {not_behind})",
                ExpressionAttributeValues={
                    **presented,
                    ":none": number(0),
                    ":one": number(1),
                    ":version": number(version),
                    ":holder": text(holder),
                    ":ends_at": instant(ends_at),
                    ":now": instant(now),
                },
            )
        except ConditionFailed as failed:
            return _ours_or_refused(failed.old or {}, version=version, holder=holder, ends_at=ends_at)
        return Lease(fence=read_number(item, "fence"), ends_at=ends_at)


def _ours_or_refused(old: Item, *, version: int, holder: str, ends_at: datetime) -> Lease:
    taken_for = read_number(old, "version")
    if read_text(old, "holder") == holder and read_text(old, "ends_at") == format_instant(ends_at):
        return Lease(fence=read_number(old, "fence"), ends_at=ends_at)
    if taken_for > version:
        msg = f"the lease was taken for version {taken_for}, the head says {version}"
        raise InvariantBroken(msg)
    raise LeaseHeld("another attempt is at work on the task")
