"""Processes whose stores are double: each call goes to DynamoDB Local and to the fake, and both have to agree."""

from collections.abc import Callable
from typing import Any

from shared.domain.errors import EngineError
from tests.contract.stores import Stores
from tests.fakes.calls import Calls
from tests.fakes.process import Process
from tests.fakes.store import World


class Twin:
    """Two implementations of one port that are asked together."""

    def __init__(self, port: str, real: object, fake: object) -> None:
        self._port = port
        self._real = real
        self._fake = fake

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def both(*given: Any, **named: Any) -> Any:
            real = _outcome(getattr(self._real, name), *given, **named)
            fake = _outcome(getattr(self._fake, name), *given, **named)
            assert real == fake, f"{self._port}.{name} answers {real} on the tables and {fake} on the fake"
            kind, answer = real
            if isinstance(kind, type):
                raise kind(answer)
            return answer

        return both


def twin_process(world: World, calls: Calls, real: Stores) -> Process:
    """Make a process of fakes and put the tables beside those that have them."""
    process: Any = Process(world, calls)
    process.records = Twin("task_records", real.records, process.records)
    process.waits = Twin("wait_store", real.waits, process.waits)
    process.tokens = Twin("token_store", real.tokens, process.tokens)
    process.ledger = Twin("action_ledger", real.ledger, process.ledger)
    process.inbox = Twin("inbox", real.inbox, process.inbox)
    process.outbox = Twin("outbox", real.outbox, process.outbox)
    process.leases = Twin("leases", real.leases, process.leases)
    made: Process = process
    return made


def _outcome(call: Callable[..., Any], *given: Any, **named: Any) -> tuple[object, object]:
    try:
        return "answer", call(*given, **named)
    except EngineError as error:
        # The sentence is for people and may differ; the class is what callers act on.
        return type(error), ""
