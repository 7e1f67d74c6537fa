"""Where a crash can land, for every effect class and every kind of downstream: one effect, and a task that is owned."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest

from shared.domain.action import ACTION_LEASE, DISPATCH_ATTEMPTS_MAX, ActionStatus, EffectClass
from shared.domain.checkpoint import decode_checkpoint
from shared.domain.errors import EngineError, LeaseHeld
from shared.ports.tool_gateway import ToolOperation
from tests.fakes.calls import Calls, Fault, Killed, When
from tests.fakes.downstream import Downstream, Kind, Mishap
from tests.fakes.errand import Do, a_rule, a_tool, run_errand
from tests.fakes.story import Story


@dataclass(frozen=True, kw_only=True)
class Partner:
    """An effect class on a downstream of some kind; `sure` says whether what happened can always be found out."""

    effect: EffectClass
    kind: Kind

    @property
    def can_be_asked(self) -> bool:
        """Whether the tool can be looked up."""
        return self.kind is not Kind.NEITHER

    def __str__(self) -> str:
        return f"{self.effect}, {self.kind}"


PARTNERS = [
    Partner(effect=EffectClass.READ, kind=Kind.HONOURS_KEYS),
    Partner(effect=EffectClass.READ, kind=Kind.NEITHER),
    Partner(effect=EffectClass.KEYED_WRITE, kind=Kind.HONOURS_KEYS),
    Partner(effect=EffectClass.REVERSIBLE_WRITE, kind=Kind.LOOKUP_ONLY),
    Partner(effect=EffectClass.REVERSIBLE_WRITE, kind=Kind.NEITHER),
    Partner(effect=EffectClass.IRREVERSIBLE_WRITE, kind=Kind.LOOKUP_ONLY),
    Partner(effect=EffectClass.IRREVERSIBLE_WRITE, kind=Kind.NEITHER),
]
WRITERS = [partner for partner in PARTNERS if partner.effect is not EffectClass.READ]
every_partner = pytest.mark.parametrize("partner", PARTNERS, ids=str)
every_writer = pytest.mark.parametrize("partner", WRITERS, ids=str)


def run(partner: Partner, *faults: Fault, mishaps: tuple[Mishap, ...] = (), lookups_unclear: int = 0) -> Story:
    """Send a parcel once, with whatever goes wrong on the way; the approver repeats what was cut short."""
    tool = a_tool(effect=partner.effect, can_look_up=partner.can_be_asked)
    downstream = Downstream(kind=partner.kind, mishaps=deque(mishaps), lookups_unclear=lookups_unclear)
    story = run_errand(
        Do(tool=tool, rule=a_rule()), downstreams={"send_parcel": downstream}, calls=Calls(*faults), request=None
    )
    again(story.decide)
    return story


def again(act: Callable[[], object]) -> None:
    """Do something, and once more if it was cut short."""
    try:
        act()
    except (EngineError, Killed):
        act()


def parcels(story: Story) -> int:
    """How many parcels were really sent."""
    return len(story.world.downstreams["send_parcel"].effects)


def at(when: When, call: str, number: int = 1) -> Fault:
    """Let the `number`-th call of a name go wrong."""
    return Fault(when=when, at=number, name=call)


@every_partner
def test_nothing_goes_wrong(partner: Partner) -> None:
    """The plain story ends after one request, whatever the downstream can do."""
    story = run(partner)

    assert (story.status, parcels(story)) == ("completed", 1)
    assert [operation for operation, _ in story.world.downstreams["send_parcel"].requests] == [ToolOperation.PERFORM]


@every_partner
@pytest.mark.parametrize("when", [When.KILL_BEFORE, When.LOSE_REQUEST])
def test_a_crash_before_the_intent_is_recorded(partner: Partner, when: When) -> None:
    """C-A: nothing happened; the step is simply done again."""
    story = run(partner, at(when, "task_records.commit", 2))

    assert (story.status, parcels(story)) == ("completed", 1)


@every_partner
@pytest.mark.parametrize("call", ["action_ledger.claim"])
@pytest.mark.parametrize("when", [When.KILL_BEFORE, When.LOSE_REQUEST])
def test_a_crash_after_the_intent_and_before_the_claim(partner: Partner, call: str, when: When) -> None:
    """C-B: the intent stands and nobody has claimed it, so it is sent, once."""
    story = run(partner, at(when, call))

    assert (story.status, parcels(story)) == ("completed", 1)


@every_partner
@pytest.mark.parametrize(
    ("when", "call"),
    [
        (When.KILL_AFTER, "action_ledger.claim"),
        (When.DROP_REPLY, "action_ledger.claim"),
        (When.KILL_BEFORE, "tool_gateway.perform"),
        (When.LOSE_REQUEST, "tool_gateway.perform"),
    ],
)
def test_a_crash_after_the_claim_and_before_the_call(partner: Partner, when: When, call: str) -> None:
    """C-B: in flight, and the downstream has nothing: sent with the same key, asked first, or left to a person."""
    story = run(partner, at(when, call))

    if partner.effect in {EffectClass.READ, EffectClass.KEYED_WRITE} or (
        partner.effect is EffectClass.REVERSIBLE_WRITE and partner.can_be_asked
    ):
        assert (story.status, parcels(story)) == ("completed", 1)
    else:
        assert (story.status, parcels(story)) == ("needs_review", 0)


@every_writer
@pytest.mark.parametrize(
    ("when", "call"),
    [
        (When.KILL_AFTER, "tool_gateway.perform"),
        (When.DROP_REPLY, "tool_gateway.perform"),
        (When.KILL_BEFORE, "action_ledger.settle"),
        (When.LOSE_REQUEST, "action_ledger.settle"),
    ],
)
def test_a_crash_after_the_call_and_before_the_outcome(partner: Partner, when: When, call: str) -> None:
    """C-C, B01 and B07: in flight, and the downstream did act: found out where it can be, never done twice."""
    story = run(partner, at(when, call))

    assert parcels(story) == 1
    knows = partner.kind is not Kind.NEITHER
    assert story.status == ("completed" if knows else "needs_review")
    if not knows:
        assert story.rows[0].status in {ActionStatus.IN_FLIGHT, ActionStatus.OUTCOME_UNKNOWN}


@every_partner
@pytest.mark.parametrize(
    ("when", "call", "number"),
    [
        (When.KILL_AFTER, "action_ledger.settle", 1),
        (When.DROP_REPLY, "action_ledger.settle", 1),
        (When.KILL_BEFORE, "task_records.commit", 3),
        (When.KILL_AFTER, "task_records.commit", 3),
        (When.DROP_REPLY, "task_records.commit", 3),
    ],
)
def test_a_crash_after_the_outcome_and_before_the_stage(partner: Partner, when: When, call: str, number: int) -> None:
    """C-D: the outcome is known, so the call is skipped and the task goes on."""
    story = run(partner, at(when, call, number))

    assert (story.status, parcels(story)) == ("completed", 1)
    assert len(story.world.downstreams["send_parcel"].requests) == 1


@every_writer
@pytest.mark.parametrize("mishap", [Mishap.RECORDED_NO_ANSWER, Mishap.PENDING, Mishap.LOST])
def test_no_answer_passes_through_not_knowing(partner: Partner, mishap: Mishap) -> None:
    """I3: the outcome is unknown, and that is a status of its own, until the system of record has been asked."""
    story = run(partner, mishaps=(mishap,))

    assert ("outcome_unknown" in statuses(story)) == (partner.can_be_asked or partner.effect is EffectClass.KEYED_WRITE)
    assert parcels(story) <= 1
    if mishap is not Mishap.LOST:
        assert parcels(story) == 1


def statuses(story: Story) -> list[str]:
    """The statuses that the task has been in, by its stored history."""
    stored = [story.world.checkpoints[story.key.key, version] for version in range(1, story.task.version + 1)]
    return [str(decode_checkpoint(each.body).business.status) for each in stored]


@every_writer
@pytest.mark.parametrize("mishap", [Mishap.REFUSED, Mishap.NOT_SENT])
def test_a_promise_that_nothing_happened_is_taken(partner: Partner, mishap: Mishap) -> None:
    """A definite refusal ends the action as failed; what never left is simply sent."""
    story = run(partner, mishaps=(mishap,))

    expected = {Mishap.REFUSED: ("failed", 0), Mishap.NOT_SENT: ("completed", 1)}[mishap]
    assert (story.status, parcels(story)) == expected


@every_writer
def test_an_unclear_first_send_outweighs_a_clear_second(partner: Partner) -> None:
    """B07: the first send may have arrived; that the second was refused proves nothing about it."""
    story = run(partner, mishaps=(Mishap.RECORDED_NO_ANSWER, Mishap.REFUSED, Mishap.REFUSED))

    assert parcels(story) == 1
    assert story.status != "failed"


@pytest.mark.parametrize("redelivered", ["while the lease is live", "after it has lapsed", "twice after it has lapsed"])
@every_writer
def test_the_command_comes_again(partner: Partner, redelivered: str) -> None:
    """B01 and B22: whenever and however often the same command arrives, there is one effect."""
    tool = a_tool(effect=partner.effect, can_look_up=partner.can_be_asked)
    downstream = Downstream(kind=partner.kind)
    story = run_errand(
        Do(tool=tool, rule=a_rule()),
        downstreams={"send_parcel": downstream},
        calls=Calls(at(When.KILL_AFTER, "tool_gateway.perform")),
    )
    story.click()
    story.machine.settle(patience=False)
    operation = story.rows[0].operation

    if redelivered == "while the lease is live":
        with pytest.raises(LeaseHeld):
            story.perform(operation)
        assert len(downstream.requests) == 1
    else:
        story.world.clock.advance(ACTION_LEASE)
        for _ in range(1 if redelivered.startswith("after") else 2):
            story.perform(operation)
    story.machine.settle()

    assert parcels(story) == 1
    assert story.status == ("completed" if partner.can_be_asked else "needs_review")


def test_a_second_attempt_beside_the_first_dispatches_nothing() -> None:
    """B22: attempt 1 waits for the bank; attempts 2 and 3 are told to come back; afterwards they get its outcome."""
    story = Story()
    story.start()
    seen: list[str] = []

    def arrive(call: str) -> None:
        if call == "tool_gateway.perform" and not seen:
            for _ in range(2):
                seen.append(call)
                with pytest.raises(LeaseHeld):
                    story.perform(story.rows[0].operation)

    story.calls.step_in = arrive
    story.decide()

    assert len(seen) == 2
    assert len(story.bank.requests) == 1
    assert story.status == "completed"


def test_a_stalled_worker_cannot_settle_for_its_successor() -> None:
    """B20: attempt 1 sleeps past its lease, attempt 2 takes over and settles; attempt 1 wakes and is discarded."""
    story = Story()
    story.start()
    stalled: list[str] = []

    def stall(call: str) -> None:
        if call == "action_ledger.settle" and not stalled:
            stalled.append(call)
            story.world.clock.advance(ACTION_LEASE + timedelta(seconds=1))
            story.perform(story.rows[0].operation)

    story.calls.step_in = stall
    story.decide()

    assert story.status == "completed"
    assert len(story.refunds) == 1
    assert story.rows[0].attempts == 2
    assert story.rows[0].fence == 2
    assert [code for function, code, _ in story.machine.errors if function == "perform"] == ["Redecide"]


def test_a_stalled_worker_cannot_overwrite_what_is_known() -> None:
    """B20: the successor has the outcome; whatever the late attempt heard, its word is not taken."""
    story = Story()
    story.start()
    story.bank.mishaps.append(Mishap.RECORDED_NO_ANSWER)
    stalled: list[str] = []

    def stall(call: str) -> None:
        if call == "action_ledger.settle" and not stalled:
            stalled.append(call)
            story.world.clock.advance(ACTION_LEASE + timedelta(seconds=1))
            story.perform(story.rows[0].operation)
            assert story.rows[0].status == "done"

    story.calls.step_in = stall
    story.decide()

    assert story.rows[0].status == "done"
    assert story.status == "completed"


def test_the_same_key_goes_out_on_every_attempt() -> None:
    """B26: three attempts, one key, and it is the one that code made from task, version, ordinal and tool."""
    story = Story()
    story.start()
    story.bank.mishaps.extend([Mishap.LOST] * (DISPATCH_ATTEMPTS_MAX - 1))

    story.decide()

    keys = [key for _, key in story.bank.requests]
    assert keys == [f"acme:{story.key.task_id}:v1:1:issue_refund"] * DISPATCH_ATTEMPTS_MAX
    assert story.status == "completed"


def test_an_amended_task_has_another_key() -> None:
    """B26: another version of the request is another operation."""
    story = Story()
    story.start()
    story.amend(amount_minor=50_000)

    story.decide()

    assert story.rows[0].operation == f"acme:{story.key.task_id}:v2:1:issue_refund"


def test_a_lapsed_lease_leaves_the_task_as_it_was() -> None:
    """I2: a dead worker changes no status; the next one finds out what happened."""
    story = Story(calls=Calls(at(When.KILL_AFTER, "action_ledger.claim")))
    story.start()
    story.click()
    story.machine.settle(patience=False)
    assert story.status == "ready"

    story.machine.settle()

    assert story.status == "completed"


def test_a_waiting_task_holds_no_worker() -> None:
    """I1: while it waits for a person there is a stored wait with a deadline, a token, and nobody at work."""
    story = Story()
    story.start()

    (execution,) = story.machine.runs.values()
    assert execution.token in story.world.machines.waiting
    assert story.world.leases == {}
    assert story.machine._next_instant(patience=True) is None


def test_a_task_that_waits_for_its_next_try_says_so() -> None:
    """B63, O1: what could not be sent is tried again after a pause; the queue shows `waiting_retry` until then."""
    story = Story()
    story.start()
    story.bank.mishaps.append(Mishap.NOT_SENT)
    story.click()
    story.machine.settle(patience=False)

    assert (story.status, story.states[-1]) == ("waiting_retry", "await_retry")
    assert story.task.business.because == "issue_refund could not be sent: the request never left us"
    assert (story.refunds, story.bank.requests) == ([], [])

    story.machine.settle()

    assert (story.status, len(story.refunds)) == ("completed", 1)


def test_a_task_that_waits_for_its_next_try_can_be_stopped() -> None:
    """I4: nothing has left, so nothing has to be found out."""
    story = Story()
    story.start()
    story.bank.mishaps.append(Mishap.NOT_SENT)
    story.click()
    story.machine.settle(patience=False)

    story.cancel()

    assert (story.status, story.bank.requests) == ("canceled", [])
