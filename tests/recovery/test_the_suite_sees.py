"""The suite is worth what it sees: each of these plants one fault of the kind that it exists for.

Every fault is one that somebody could make in a hurry, and the suite has to find it.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from shared.domain.action import (
    ActionRow,
    EffectClass,
    EffectRules,
    LedgerStep,
    Settlement,
    Verb,
    next_ledger_step,
)
from shared.domain.identity import TaskKey
from shared.domain.outbox import OutboxRow
from shared.domain.workflow import Workflow
from shared.ports.action_ledger import Claim
from shared.usecases import deliver, open_wait, perform, start_task
from shared.usecases.engine import DeliverDeps, OpenWaitDeps
from shared.usecases.stored_task import commit_change
from tests.fakes import action_ledger, machine, token_store
from tests.fakes.action_ledger import FakeActionLedger
from tests.fakes.downstream import Kind
from tests.recovery.crash_table import story_of
from tests.recovery.points import Point, Trouble, points_of
from tests.recovery.story import Story, stories_of
from tests.recovery.telling import Telling

Patch = pytest.MonkeyPatch
Told = tuple[Story, Workflow]

REFUND: Mapping[str, Told] = {story.name: (story, workflow) for story, workflow in stories_of("refund").told}
# Nobody can ask, and nobody deduplicates: whatever is sent twice happens twice.
DEFENCELESS = story_of(EffectClass.REVERSIBLE_WRITE, Kind.NEITHER)


def found(told: Told, trouble: Trouble, where: str) -> list[str]:
    """Everything that the suite finds wrong at the points of that kind."""
    story, workflow = told
    once = Telling(story, workflow).tell()
    points = [
        point
        for point in points_of(once.calls, once.deliveries, story.meanwhile)
        if point.trouble is trouble and where in point.where
    ]
    assert points, "the story has no such point"
    return [line for point in points for line in _tell(told, point)]


def _tell(told: Told, point: Point) -> list[str]:
    try:
        return Telling(*told, point).tell().violations
    except AssertionError as failed:
        return [str(failed)]


def test_it_sees_nothing_where_nothing_is_planted() -> None:
    """The points that the other tests use are kept as things are."""
    assert not found(DEFENCELESS, Trouble.KILL_AFTER, "tool_gateway.perform")
    assert not found(DEFENCELESS, Trouble.INTERLEAVED, "perform")
    assert not found(REFUND["approved"], Trouble.MEANWHILE, "open_wait")
    assert not found(REFUND["approved"], Trouble.TWICE, "api")


def test_a_lapsed_lease_that_is_read_as_nothing_happened(monkeypatch: Patch) -> None:
    """B01: the plain crash after the call, sent again."""

    def careless(row: ActionRow, rules: EffectRules, *, now: datetime, may_send: bool = True) -> LedgerStep:
        step = next_ledger_step(row, rules, now=now, may_send=may_send)
        return LedgerStep(verb=Verb.SEND, reason="it must have died") if step.verb is Verb.REVIEW else step

    monkeypatch.setattr(perform, "next_ledger_step", careless)
    monkeypatch.setattr("shared.domain.outcome.next_ledger_step", careless)

    lines = found(DEFENCELESS, Trouble.KILL_AFTER, "tool_gateway.perform")

    assert any("happened 2 times" in line for line in lines)


def test_a_claim_that_two_workers_win(monkeypatch: Patch) -> None:
    """B22: the second attempt starts while the first is still running."""

    def generous(self: FakeActionLedger, key: TaskKey, operation: str, **how: Any) -> Claim | None:
        claim = honest(self, key, operation, **how)
        return Claim(won=True, row=claim.row) if claim else None

    honest = FakeActionLedger.claim
    monkeypatch.setattr(action_ledger.FakeActionLedger, "claim", generous)

    lines = found(DEFENCELESS, Trouble.INTERLEAVED, "perform")

    assert any("happened 2 times" in line for line in lines)


def test_a_late_worker_that_overwrites_what_was_settled(monkeypatch: Patch) -> None:
    """B20: the fence is not looked at when an outcome is written."""

    def unfenced(
        self: FakeActionLedger, key: TaskKey, operation: str, settlement: Settlement, *, fence: int, now: datetime
    ) -> ActionRow:
        row = self._world.actions[key.key, operation]
        lapsed = row.model_copy(update={"status": settlement.status, "lease_ends_at": None, "settled_at": now})
        with self._calls.around("action_ledger.settle"):
            self._world.actions[key.key, operation] = lapsed
        return lapsed

    monkeypatch.setattr(action_ledger.FakeActionLedger, "settle", unfenced)
    monkeypatch.setattr(perform, "ACTION_LEASE", timedelta(seconds=1))

    lines = found(story_of(EffectClass.REVERSIBLE_WRITE, Kind.LOOKUP_ONLY), Trouble.STALL, "perform")

    assert lines


def test_a_message_that_is_forgotten_before_it_is_delivered(monkeypatch: Patch) -> None:
    """B05: the row is removed, then the worker dies; nobody is told how the task ended."""

    def hasty(row: OutboxRow, deps: DeliverDeps) -> None:
        deps.outbox.remove(row)
        honest(row, deps)

    honest = deliver.deliver
    monkeypatch.setattr(machine, "deliver", hasty)

    lines = found(REFUND["small"], Trouble.KILL_AFTER, "outbox.remove")

    assert any("nobody was told" in line for line in lines)


def test_a_wake_up_that_is_lost(monkeypatch: Patch) -> None:
    """The state looks whether its wait is settled before it stores its token, and the answer comes in between."""

    def blind(command: open_wait.OpenWait, deps: OpenWaitDeps) -> bool:
        deps.waits.get(command.key.tenant, command.correlation_id)
        deps.tokens.put(
            command.key.tenant, command.wait_id, command.token, entry=command.entry, purge_at=deps.clock.now()
        )
        return False

    monkeypatch.setattr(machine, "open_wait", blind)

    lines = found(REFUND["approved"], Trouble.MEANWHILE, "open_wait")

    assert any("waits for nothing" in line for line in lines)


def test_a_token_that_takes_the_place_of_a_later_one(monkeypatch: Patch) -> None:
    """B20: whoever stores last wins, also a worker that was given up long ago."""

    def careless(self: token_store.FakeTokenStore, tenant: str, wait_id: str, token: str, **_: object) -> None:
        with self._calls.around("token_store.put"), self._world as world:
            world.tokens[tenant, wait_id] = token

    monkeypatch.setattr(token_store.FakeTokenStore, "put", careless)

    lines = found(REFUND["approved"], Trouble.STALL, "token_store.put")

    assert any("waits for nothing" in line for line in lines)


def test_a_request_that_starts_two_tasks(monkeypatch: Patch) -> None:
    """B27, B61: the client's key is not remembered in the commit that starts the task."""

    def forgetful(*arguments: Any, inbox: object, **more: Any) -> object:
        return commit_change(*arguments, **more)

    monkeypatch.setattr(start_task, "commit_change", forgetful)

    lines = found(REFUND["approved"], Trouble.TWICE, "api")

    assert any("2 tasks are stored" in line for line in lines)


def test_a_chain_that_is_broken(monkeypatch: Patch) -> None:
    """B19: every checkpoint is sealed, and none of them says which one it follows."""
    monkeypatch.setattr("shared.usecases.stored_task.GENESIS", "genesis-2")

    lines = Telling(*REFUND["small"]).tell().violations

    assert "version 1 is not chained to the version before it" in lines


@pytest.mark.parametrize(
    ("status", "expected"),
    [("failed", "outside it happened"), ("done", "")],
)
def test_a_ledger_that_says_otherwise_than_the_world(status: str, expected: str, monkeypatch: Patch) -> None:
    """The ledger says that nothing happened, and the bank has paid."""
    settle: Callable[..., ActionRow] = FakeActionLedger.settle

    def wrong(self: FakeActionLedger, key: TaskKey, operation: str, settlement: Settlement, **how: Any) -> ActionRow:
        said = Settlement(status=settlement.status.__class__(status), reference=None, facts={}, reason="")
        return settle(self, key, operation, said, **how)

    monkeypatch.setattr(action_ledger.FakeActionLedger, "settle", wrong)

    lines = " ".join(Telling(*REFUND["small"]).tell().violations)

    assert bool(expected) == bool(lines)
    assert expected in lines
