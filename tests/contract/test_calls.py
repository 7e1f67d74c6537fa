"""What the crash suites rest on: faults strike where they were planned, once, and the world keeps what had happened."""

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from shared.domain.errors import (
    AuthorityUnreadable,
    DependencyTimeout,
    EngineError,
    ModelUnavailable,
    SealUnavailable,
    StaleVersion,
    Throttled,
)
from shared.domain.outbox import PublishEvent, StartExecution
from shared.domain.window import Window
from shared.ports.tool_gateway import ToolOperation
from tests.builders import a_checkpoint, a_commit, a_task_key
from tests.fakes.calls import Calls, Fault, Killed, When
from tests.fakes.downstream import Downstream
from tests.fakes.model import proposes
from tests.fakes.process import Process
from tests.fakes.store import World

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = a_task_key()
START = StartExecution(workflow="refund", run=1, version=1)
WINDOW = Window(model_id="m", max_tokens=1, system=[], messages=[], tool_config={}, layers=[])
FIRST = a_commit(a_checkpoint(KEY))


def a_process(*faults: Fault) -> Process:
    """Make a process in a world of its own whose calls meet these faults."""
    world = World()
    world.downstreams["issue_refund"] = Downstream()
    world.model.always = proposes("issue_refund", {})
    return Process(world, Calls(*faults))


def test_a_worker_killed_before_a_call_has_not_made_it() -> None:
    """Nothing of it is stored."""
    process = a_process(Fault(when=When.KILL_BEFORE, at=1))
    with pytest.raises(Killed):
        process.records.commit(FIRST)
    assert Process(process.world).records.load(KEY) is None


def test_a_worker_killed_after_a_call_has_made_it() -> None:
    """The next process finds all of it, and the first one's memory is gone."""
    process = a_process(Fault(when=When.KILL_AFTER, at=1))
    with pytest.raises(Killed):
        process.records.commit(FIRST)
    stored = Process(process.world).records.load(KEY)
    assert stored is not None
    assert stored.head.attempt_id == FIRST.attempt_id


def test_no_handler_survives_a_kill() -> None:
    """A kill is no exception that code of ours could catch by accident."""
    assert not issubclass(Killed, Exception)
    process = a_process(Fault(when=When.KILL_AFTER, at=1))
    with pytest.raises(Killed):
        # Refused by the port: the worker dies all the same.
        process.records.commit(a_commit(a_checkpoint(KEY, version=4)))


def test_a_fault_strikes_once_at_its_count() -> None:
    """Counted over all calls or over those of one name, also by a next process."""
    calls = Calls(Fault(when=When.KILL_BEFORE, at=2, name="task_records.load"), Fault(when=When.DROP_REPLY, at=5))
    process = Process(World(), calls)
    process.records.load(KEY)
    process.records.commit(FIRST)
    with pytest.raises(Killed):
        process.records.load(KEY)
    second = Process(process.world, calls)
    second.records.load(KEY)
    with pytest.raises(DependencyTimeout):
        second.records.load(KEY)
    second.records.load(KEY)

    assert calls.pending == ()
    assert calls.names == ("task_records.load", "task_records.commit", *["task_records.load"] * 4)


def test_a_lost_request_has_not_arrived() -> None:
    """The caller hears as little as when the reply is lost."""
    process = a_process(Fault(when=When.LOSE_REQUEST, at=1))
    with pytest.raises(DependencyTimeout):
        process.records.commit(FIRST)
    assert process.records.load(KEY) is None


def test_a_lost_refusal_is_no_answer_either() -> None:
    """Whatever the reply would have said."""
    process = a_process(Fault(when=When.DROP_REPLY, at=1))
    with pytest.raises(DependencyTimeout):
        process.records.commit(a_commit(a_checkpoint(KEY, version=4)))
    with pytest.raises(StaleVersion):
        process.records.commit(a_commit(a_checkpoint(KEY, version=4)))


CALLS: "dict[str, tuple[Callable[[Process], object], type[EngineError]]]" = {
    "task_records.load": (lambda p: p.records.load(KEY), DependencyTimeout),
    "wait_store.get": (lambda p: p.waits.get("acme", "c"), DependencyTimeout),
    "token_store.put": (lambda p: p.tokens.put("acme", "w", "t", entry=1, purge_at=p.clock.now()), DependencyTimeout),
    "token_store.get": (lambda p: p.tokens.get("acme", "w"), DependencyTimeout),
    "action_ledger.get": (lambda p: p.ledger.get(KEY, "o"), DependencyTimeout),
    "inbox.get": (lambda p: p.inbox.get("acme", "api", "e"), DependencyTimeout),
    "leases.acquire": (
        lambda p: p.leases.acquire(
            KEY,
            version=1,
            holder="att",
            presented_fence=None,
            now=p.clock.now(),
            ends_at=p.clock.now() + timedelta(seconds=1),
        ),
        DependencyTimeout,
    ),
    "authority.read": (lambda p: p.authority.read(()), AuthorityUnreadable),
    "sealer.seal": (lambda p: p.sealer.seal(b"x"), SealUnavailable),
    "sealer.verify": (lambda p: p.sealer.verify(b"x", "", p.sealer.key_id), SealUnavailable),
    "evidence_store.put": (
        lambda p: p.evidence.put(KEY, evidence_id="e", source_kind="note", text="t"),
        DependencyTimeout,
    ),
    "model.ask": (lambda p: p.model.ask(WINDOW), ModelUnavailable),
    "executions.start": (lambda p: p.executions.start(KEY, workflow="refund", run=1, version=1), Throttled),
    "executions.answer": (lambda p: p.executions.answer("t", wait_id="w"), Throttled),
    "event_bus.publish": (
        lambda p: p.event_bus.publish(KEY, PublishEvent(event="task.x", version=1, detail={})),
        Throttled,
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_port_has_its_own_way_of_saying_that_no_answer_came(name: str) -> None:
    """The error that its real adapter raises, and under the name that it is counted by."""
    call, error = CALLS[name]
    process = a_process(Fault(when=When.DROP_REPLY, at=1))
    with pytest.raises(error):
        call(process)
    assert process.calls.names == (name,)


def test_a_lost_answer_of_a_tool_is_an_unknown_outcome() -> None:
    """Law 5: the effect is there, and the gateway says that it does not know."""
    process = a_process(Fault(when=When.DROP_REPLY, at=1))
    reply = process.tools.call("issue_refund", ToolOperation.PERFORM, key="k", arguments={})
    assert reply.outcome == "unknown"
    assert len(process.world.downstreams["issue_refund"].effects) == 1
    assert process.calls.names == ("tool_gateway.perform",)


def test_the_index_can_lag() -> None:
    """B65: what was stored meanwhile is not in the lists yet; the rows themselves are never behind."""
    process = a_process()
    process.records.commit(FIRST)
    process.world.let_index_lag()
    other = a_task_key(2)
    process.records.commit(a_commit(a_checkpoint(other), messages=[START]))

    assert len(process.records.queue("acme", "ready", limit=9).entries) == 1
    assert process.records.load(other) is not None
    process.world.let_index_catch_up()
    assert len(process.records.queue("acme", "ready", limit=9).entries) == 2
