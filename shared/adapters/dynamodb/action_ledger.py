"""The action ledger on DynamoDB."""

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from shared.adapters.dynamodb.actions import action_key, read_action
from shared.adapters.dynamodb.errors import ConditionFailed
from shared.adapters.dynamodb.items import instant, number, read_optional_text, text
from shared.adapters.dynamodb.store_calls import Patience, StoreCalls
from shared.domain.action import SETTLED, ActionRow, ActionStatus, Settlement, Verb
from shared.domain.canonical import canonical
from shared.domain.errors import InvariantBroken, LeaseLost
from shared.domain.identity import TaskKey
from shared.ports.action_ledger import Claim
from shared.ports.clock import Ids

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

_UNSETTLED: Final = tuple(status for status in ActionStatus if status not in SETTLED)
_UNSETTLED_NOW: Final = f"#status IN ({', '.join(f':{status}' for status in _UNSETTLED)})"
_UNSETTLED_VALUES: Final = {f":{status}": text(status) for status in _UNSETTLED}
_NOT_LEASED: Final = "(attribute_not_exists(lease_ends_at) OR lease_ends_at <= :now)"


class DynamoActionLedger:
    """Claims and settlements, each one conditional update of a row that must exist (B64)."""

    def __init__(self, client: "DynamoDBClient", table: str, ids: Ids, patience: Patience | None = None) -> None:
        self._calls = StoreCalls(client, patience)
        self._table = table
        self._ids = ids

    def get(self, key: TaskKey, operation: str) -> ActionRow | None:
        """See `ActionLedger.get`.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience.
        """
        item = self._calls.get(self._table, action_key(key, operation))
        return None if item is None else read_action(item)

    def rows(self, key: TaskKey) -> tuple[ActionRow, ...]:
        """See `ActionLedger.rows`.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience.
        """
        items = self._calls.query_all(
            TableName=self._table,
            KeyConditionExpression="task = :task",
            ExpressionAttributeValues={":task": text(key.key)},
            ConsistentRead=True,
        )
        return tuple(sorted(map(read_action, items), key=lambda row: (row.version, row.operation)))

    def renew(self, key: TaskKey, operation: str, *, fence: int, now: datetime) -> ActionRow:
        """See `ActionLedger.renew`.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience; renewing again is safe.
        """
        unclaimed_since = "fence = :fence"
        try:
            item = self._calls.update(
                TableName=self._table,
                Key=action_key(key, operation),
                UpdateExpression="SET attempts = :none, lookups = :none",
                ConditionExpression=f"{_UNSETTLED_NOW} AND {unclaimed_since} AND {_NOT_LEASED}",
                ExpressionAttributeNames={"#status": "status"},
                ExpressionAttributeValues={
                    **_UNSETTLED_VALUES,
                    ":fence": number(fence),
                    ":none": number(0),
                    ":now": instant(now),
                },
            )
        except ConditionFailed as failed:
            raise LeaseLost("the operation is not as it was when somebody looked") from failed
        return read_action(item)

    def claim(
        self,
        key: TaskKey,
        operation: str,
        *,
        expected_fence: int,
        verb: Verb,
        now: datetime,
        lease_ends_at: datetime,
    ) -> Claim | None:
        """See `ActionLedger.claim`. A lost reply is recognised by the claim's own id.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience; if the claim was won, its lease lapses.
        """
        claim_id = self._ids.new("clm")
        unclaimed_since = "fence = :expected"
        change, values = _counted(verb)
        try:
            item = self._calls.update(
                TableName=self._table,
                Key=action_key(key, operation),
                UpdateExpression=f"SET fence = fence + :one, lease_ends_at = :lease, claim_id = :claim, {change}",
                ConditionExpression=f"{_UNSETTLED_NOW} AND {unclaimed_since} AND {_NOT_LEASED}",
                ExpressionAttributeNames={"#status": "status"},
                ExpressionAttributeValues={
                    **_UNSETTLED_VALUES,
                    **values,
                    ":expected": number(expected_fence),
                    ":one": number(1),
                    ":lease": instant(lease_ends_at),
                    ":claim": text(claim_id),
                    ":now": instant(now),
                },
            )
        except ConditionFailed as failed:
            if failed.old is None:
                return None
            ours = read_optional_text(failed.old, "claim_id") == claim_id
            return Claim(won=ours, row=read_action(failed.old))
        return Claim(won=True, row=read_action(item))

    def settle(self, key: TaskKey, operation: str, settlement: Settlement, *, fence: int, now: datetime) -> ActionRow:
        """See `ActionLedger.settle`. Only a fence's holder can have ended its lease, so a repeat finds its own work.

        Raises:
            Throttled, DependencyTimeout: no answer within our patience; unsettled, the row is found in flight.
        """
        ours = "fence = :fence"
        still_leased = "attribute_exists(lease_ends_at)"
        change, values = _known(settlement, now)
        try:
            item = self._calls.update(
                TableName=self._table,
                Key=action_key(key, operation),
                UpdateExpression=change,
                ConditionExpression=f"{ours} AND {still_leased}",
                ExpressionAttributeNames={"#status": "status", "#reference": "reference"},
                ExpressionAttributeValues={**values, ":fence": number(fence)},
            )
        except ConditionFailed as failed:
            if failed.old is None:
                raise InvariantBroken("an action that was claimed is gone") from failed
            row = read_action(failed.old)
            if row.fence != fence or fence < 1:
                raise LeaseLost("a later attempt holds the action") from failed
            return row
        return read_action(item)


def _counted(verb: Verb) -> tuple[str, dict[str, Any]]:
    """Return what a claim counts before any work is done (B63)."""
    if verb is Verb.LOOK_UP:
        return "lookups = lookups + :one", {}
    if verb is Verb.SEND:
        first = "first_sent_at = if_not_exists(first_sent_at, :now)"
        return f"attempts = attempts + :one, #status = :in_flight, {first}", {}
    msg = f"nothing is claimed in order to {verb}"
    raise InvariantBroken(msg)


def _known(settlement: Settlement, now: datetime) -> tuple[str, dict[str, Any]]:
    sets = ["#status = :status", "reason = :reason", "facts = :facts", "settled_at = :now"]
    removes = ["lease_ends_at"]
    values: dict[str, Any] = {
        ":status": text(settlement.status),
        ":reason": text(settlement.reason),
        ":facts": text(canonical(dict(settlement.facts)).decode()),
        ":now": instant(now),
    }
    if settlement.reference is None:
        removes.append("#reference")
    else:
        sets.append("#reference = :reference")
        values[":reference"] = text(settlement.reference)
    if settlement.status is ActionStatus.INTENT:
        # Nothing was sent, so there is no first time either.
        removes.append("first_sent_at")
    return f"SET {', '.join(sets)} REMOVE {', '.join(removes)}", values
