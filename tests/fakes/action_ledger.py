"""The action ledger, in memory."""

from datetime import datetime

from shared.domain.action import SETTLED, ActionRow, ActionStatus, Settlement, Verb
from shared.domain.errors import InvariantBroken, LeaseLost
from shared.domain.identity import TaskKey
from shared.ports.action_ledger import Claim
from tests.fakes.calls import Calls
from tests.fakes.store import World


class FakeActionLedger:
    """Claims and settles under the world's lock, so that of two claims one wins."""

    def __init__(self, world: World, calls: Calls | None = None) -> None:
        self._world = world
        self._calls = calls or Calls()

    def get(self, key: TaskKey, operation: str) -> ActionRow | None:
        with self._calls.around("action_ledger.get"), self._world as world:
            return world.actions.get((key.key, operation))

    def rows(self, key: TaskKey) -> tuple[ActionRow, ...]:
        with self._calls.around("action_ledger.rows"), self._world as world:
            mine = [row for (task, _), row in world.actions.items() if task == key.key]
            return tuple(sorted(mine, key=lambda row: (row.version, row.operation)))

    def renew(self, key: TaskKey, operation: str, *, fence: int, now: datetime) -> ActionRow:
        with self._calls.around("action_ledger.renew"), self._world as world:
            row = world.actions.get((key.key, operation))
            leased = row is not None and row.lease_ends_at is not None and now < row.lease_ends_at
            if row is None or row.fence != fence or row.status in SETTLED or leased:
                raise LeaseLost("the operation is not as it was when somebody looked")
            renewed = row.model_copy(update={"attempts": 0, "lookups": 0})
            world.actions[key.key, operation] = renewed
            return renewed

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
        if verb not in {Verb.SEND, Verb.LOOK_UP}:
            msg = f"nothing is claimed in order to {verb}"
            raise InvariantBroken(msg)
        with self._calls.around("action_ledger.claim"), self._world as world:
            row = world.actions.get((key.key, operation))
            if row is None:
                return None
            leased = row.lease_ends_at is not None and now < row.lease_ends_at
            if row.fence != expected_fence or row.status in SETTLED or leased:
                return Claim(won=False, row=row)
            claimed = row.model_copy(
                update={"fence": row.fence + 1, "lease_ends_at": lease_ends_at} | _counted(row, verb, now)
            )
            world.actions[key.key, operation] = claimed
            return Claim(won=True, row=claimed)

    def settle(self, key: TaskKey, operation: str, settlement: Settlement, *, fence: int, now: datetime) -> ActionRow:
        with self._calls.around("action_ledger.settle"), self._world as world:
            row = world.actions.get((key.key, operation))
            if row is None:
                raise InvariantBroken("an action that was claimed is gone")
            if row.fence != fence or fence < 1:
                raise LeaseLost("a later attempt holds the action")
            if row.lease_ends_at is None:
                return row
            settled = row.model_copy(
                update={
                    "status": settlement.status,
                    "reference": settlement.reference,
                    "facts": dict(settlement.facts),
                    "reason": settlement.reason,
                    "lease_ends_at": None,
                    "settled_at": now,
                }
                | ({"first_sent_at": None} if settlement.status is ActionStatus.INTENT else {})
            )
            world.actions[key.key, operation] = settled
            return settled


def _counted(row: ActionRow, verb: Verb, now: datetime) -> dict[str, object]:
    if verb is Verb.LOOK_UP:
        return {"lookups": row.lookups + 1}
    return {
        "status": ActionStatus.IN_FLIGHT,
        "attempts": row.attempts + 1,
        "first_sent_at": row.first_sent_at or now,
    }
