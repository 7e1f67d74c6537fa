"""Tellings whose records are on DynamoDB Local: the same stories and points, the real adapters, the same checks.

Whatever is on a table is real; authority, seals, objects, tools and the services around stay pretended.
"""

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from local.dynamodb_local import running
from local.places import STATE
from shared.adapters.dynamodb.actions import read_action
from shared.adapters.dynamodb.checkpoints import read_checkpoint
from shared.adapters.dynamodb.heads import read_head
from shared.adapters.dynamodb.inbox import read_inbox
from shared.adapters.dynamodb.items import Item, read_text
from shared.adapters.dynamodb.outbox import read_outbox
from shared.adapters.dynamodb.waits import read_wait
from shared.domain.identity import TaskKey
from stacks.records import RECORD_KINDS
from tests.contract.stores import Stores, real_stores
from tests.contract.tables import create_tables, table_name
from tests.fakes.calls import Calls
from tests.fakes.process import Process
from tests.fakes.store import World
from tests.recovery.scene import Backing

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# The fake of each port is replaced by the adapter, and its calls are counted under the same name.
PORTS: Final = {
    "records": "task_records",
    "waits": "wait_store",
    "tokens": "token_store",
    "ledger": "action_ledger",
    "inbox": "inbox",
    "outbox": "outbox",
    "leases": "leases",
}
# Far from the seeds of other tests: attempt ids are DynamoDB's idempotency tokens, and it remembers them for minutes.
_seeds: Final = itertools.count(90_000)


class Watched:
    """An adapter whose every call can be stopped, killed or left unanswered like that of a fake."""

    def __init__(self, port: str, real: object, calls: Calls) -> None:
        self._port = port
        self._real = real
        self._calls = calls

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._real, name)

        def call(*given: Any, **named: Any) -> Any:
            with self._calls.around(f"{self._port}.{name}"):
                return method(*given, **named)

        return call


class Tables:
    """The tables of a stage on DynamoDB Local, one telling at a time."""

    def __init__(self, client: "DynamoDBClient") -> None:
        self._client = client

    def backing(self) -> Backing:
        """Empty the tables for the next telling."""
        self._clear()
        seed = next(_seeds)
        stores = real_stores(self._client, seed=seed)

        def process(world: World, calls: Calls) -> Process:
            return _on(stores, Process(world, calls))

        return Backing(process=process, refresh=self._refresh, seed=seed)

    def _refresh(self, world: World) -> None:
        """Show the world what is stored, for whoever plays the services and for the checks."""
        with world:
            heads = [read_head(_key(item["task"]["S"]), item) for item in self._items("heads")]
            world.heads = {head.key.key: head for head in heads}
            checkpoints = [(item["task"]["S"], read_checkpoint(item)) for item in self._items("checkpoints")]
            world.checkpoints = {(task, sealed.version): sealed for task, sealed in checkpoints}
            waits = [read_wait(item) for item in self._items("waits")]
            world.waits = {(wait.tenant, wait.correlation_id): wait for wait in waits}
            tokens = [(item["wait"]["S"], read_text(item, "task_token")) for item in self._items("tokens")]
            world.tokens = {_pair(name): token for name, token in tokens}
            actions = [read_action(item) for item in self._items("actions")]
            world.actions = {(f"{row.tenant}#{row.task_id}", row.operation): row for row in actions}
            receipts = [read_inbox(item) for item in self._items("inbox")]
            world.inbox = {(row.tenant, row.source, row.event_id): row for row in receipts}
            staged = [read_outbox(item) for item in self._items("outbox")]
            world.outbox = {(row.key.key, row.version, row.part): row for row in staged}

    def _items(self, kind: str) -> list[Item]:
        return [dict(item) for item in self._client.scan(TableName=table_name(kind), ConsistentRead=True)["Items"]]

    def _clear(self) -> None:
        for kind in RECORD_KINDS:
            names = [kind.partition, *([kind.sort.name] if kind.sort else [])]
            for item in self._items(kind.name):
                self._client.delete_item(TableName=table_name(kind.name), Key={name: item[name] for name in names})


@contextmanager
def tables() -> Iterator[Tables]:
    """Start DynamoDB Local with every table for as long as the block lasts."""
    name = f"recovery-{os.getpid()}"
    try:
        with running(name) as local:
            create_tables(local.client())
            yield Tables(local.client())
    finally:
        shutil.rmtree(STATE / name, ignore_errors=True)


def _on(stores: Stores, process: Process) -> Process:
    for attribute, port in PORTS.items():
        setattr(process, attribute, Watched(port, getattr(stores, attribute), process.calls))
    return process


def _key(task: str) -> TaskKey:
    tenant, task_id = _pair(task)
    return TaskKey(tenant=tenant, task_id=task_id)


def _pair(name: str) -> tuple[str, str]:
    first, _, second = name.partition("#")
    return first, second
