"""The stores under test: the fakes over a world, and the adapters over DynamoDB Local, each with a back door."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from shared.adapters.dynamodb.action_ledger import DynamoActionLedger
from shared.adapters.dynamodb.authority import DynamoAuthority, freeze_item, principal_item
from shared.adapters.dynamodb.inbox import DynamoInbox
from shared.adapters.dynamodb.leases import DynamoLeases
from shared.adapters.dynamodb.outbox import DynamoOutbox, read_outbox
from shared.adapters.dynamodb.store_calls import Patience
from shared.adapters.dynamodb.task_records import DynamoTaskRecords
from shared.adapters.dynamodb.token_store import DynamoTokenStore
from shared.adapters.dynamodb.transaction import TaskTables
from shared.adapters.dynamodb.wait_store import DynamoWaitStore
from shared.domain.identity import PrincipalRef, TaskKey
from shared.domain.outbox import OutboxRow
from shared.ports.action_ledger import ActionLedger
from shared.ports.authority import Authority
from shared.ports.inbox import Inbox
from shared.ports.leases import Leases
from shared.ports.outbox import Outbox
from shared.ports.task_records import TaskRecords
from shared.ports.token_store import TokenStore
from shared.ports.wait_store import WaitStore
from tests.contract.tables import table_name
from tests.fakes.clock import FakeIds
from tests.fakes.process import Process
from tests.fakes.store import World

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

T = TypeVar("T")

TABLES = TaskTables(
    heads=table_name("heads"),
    checkpoints=table_name("checkpoints"),
    waits=table_name("waits"),
    actions=table_name("actions"),
    inbox=table_name("inbox"),
    outbox=table_name("outbox"),
    leases=table_name("leases"),
)


def _a_tenth(seconds: float) -> None:
    time.sleep(seconds / 10)


# Rivals on a local database need less time to get out of each other's way.
BRISK = Patience(sleep=_a_tenth)


class BackDoor(Protocol):
    """What tests do to the stores that no port offers."""

    def staged(self, key: TaskKey) -> list[OutboxRow]:
        """Read what is staged for a task, in order."""

    def lose_head(self, key: TaskKey) -> None:
        """Take the head away, as a restored table would."""

    def grant(self, ref: PrincipalRef, *, tenant: str, roles: set[str], active: bool = True) -> None:
        """Write a principal."""

    def freeze(self, scope: str, reason: str) -> None:
        """Write a freeze."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """One implementation of every store."""

    records: TaskRecords
    waits: WaitStore
    tokens: TokenStore
    ledger: ActionLedger
    inbox: Inbox
    outbox: Outbox
    leases: Leases
    authority: Authority
    back_door: BackDoor


@dataclass(frozen=True, slots=True)
class WorldBackDoor:
    """The back door of the fakes."""

    world: World

    def staged(self, key: TaskKey) -> list[OutboxRow]:
        return sorted(
            (row for row in self.world.undelivered() if row.key == key), key=lambda row: (row.version, row.part)
        )

    def lose_head(self, key: TaskKey) -> None:
        del self.world.heads[key.key]

    def grant(self, ref: PrincipalRef, *, tenant: str, roles: set[str], active: bool = True) -> None:
        self.world.authority.grant(ref, tenant=tenant, roles=roles)
        if not active:
            self.world.authority.disable(ref)

    def freeze(self, scope: str, reason: str) -> None:
        self.world.authority.freezes[scope] = reason


@dataclass(frozen=True, slots=True)
class TableBackDoor:
    """The back door of the tables."""

    client: "DynamoDBClient"

    def staged(self, key: TaskKey) -> list[OutboxRow]:
        reply = self.client.query(
            TableName=table_name("outbox"),
            KeyConditionExpression="task = :task",
            ExpressionAttributeValues={":task": {"S": key.key}},
            ConsistentRead=True,
        )
        return [read_outbox(dict(item)) for item in reply["Items"]]

    def lose_head(self, key: TaskKey) -> None:
        self.client.delete_item(TableName=table_name("heads"), Key={"task": {"S": key.key}})

    def grant(self, ref: PrincipalRef, *, tenant: str, roles: set[str], active: bool = True) -> None:
        status = "active" if active else "disabled"
        item = principal_item(ref, tenant=tenant, roles=roles, status=status)
        self.client.put_item(TableName=table_name("authority"), Item=item)

    def freeze(self, scope: str, reason: str) -> None:
        self.client.put_item(TableName=table_name("authority"), Item=freeze_item(scope, reason=reason))


def fake_stores(world: World) -> Stores:
    """Make the fakes."""
    p = Process(world)
    return Stores(
        records=p.records,
        waits=p.waits,
        tokens=p.tokens,
        ledger=p.ledger,
        inbox=p.inbox,
        outbox=p.outbox,
        leases=p.leases,
        authority=p.authority,
        back_door=WorldBackDoor(world),
    )


def real_stores(client: "DynamoDBClient", patience: Patience = BRISK, *, seed: int = 0) -> Stores:
    """Make the adapters."""
    return Stores(
        records=DynamoTaskRecords(client, TABLES, patience),
        waits=DynamoWaitStore(client, table_name("waits"), patience),
        tokens=DynamoTokenStore(client, table_name("tokens"), patience),
        ledger=DynamoActionLedger(client, table_name("actions"), FakeIds(seed), patience),
        inbox=DynamoInbox(client, table_name("inbox"), patience),
        outbox=DynamoOutbox(client, table_name("outbox"), patience),
        leases=DynamoLeases(client, table_name("leases"), patience),
        authority=DynamoAuthority(client, table_name("authority"), patience),
        back_door=TableBackDoor(client),
    )


def race(attempts: Sequence[Callable[[], T]]) -> list[T | Exception]:
    """Run all attempts at once, each in its own thread, and return what came of each."""
    start = threading.Barrier(len(attempts))

    def run(attempt: Callable[[], T]) -> T | Exception:
        start.wait(timeout=30)
        try:
            return attempt()
        except Exception as error:  # noqa: BLE001 - the error is the result
            return error

    with ThreadPoolExecutor(max_workers=len(attempts)) as pool:
        return list(pool.map(run, attempts))
