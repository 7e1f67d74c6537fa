"""Nothing goes on for ever: what keeps failing is counted, slowed down, and ends with a person."""

from collections import deque
from datetime import timedelta

import pytest

from shared.domain.action import DISPATCH_ATTEMPTS_MAX, LOOKUPS_MAX, EffectClass
from shared.domain.checkpoint import CHECKPOINT_BYTES_MAX
from shared.domain.directive import Next
from shared.domain.errors import ModelUnavailable
from shared.domain.resume import HOPS_MAX, IDLE_MAX
from shared.ports.tool_gateway import ToolOperation
from shared.usecases.wake import TURN_ATTEMPTS_MAX
from tests.fakes.calls import Calls, Fault, When
from tests.fakes.downstream import Downstream, Kind, Mishap
from tests.fakes.errand import Do, a_rule, a_tool, run_errand
from tests.fakes.story import Story


def always(when: When, name: str, times: int = 300) -> Calls:
    """Let every call of a name go wrong."""
    return Calls(*(Fault(when=when, at=at, name=name) for at in range(1, times)))


def of(story: Story, state: str) -> int:
    """How often the machine was in a state."""
    return story.states.count(state)


@pytest.mark.parametrize("call", ["task_records.load", "authority.read", "action_ledger.claim"])
def test_a_worker_that_dies_before_it_counts_itself_is_not_sent_for_ever(call: str) -> None:
    """B63: the function dies before the ledger has seen it; the machine notices that nothing moves."""
    story = Story()
    story.start()

    def die(name: str) -> None:
        at_work = story.machine.current
        if name == call and at_work is not None and at_work.function == "perform":
            story.calls.plan(Fault(when=When.KILL_BEFORE, at=story.calls.names.count(call) + 1, name=call))

    # The first death is planned by hand, each next one by the call before it.
    story.calls.step_in = die
    story.click()
    story.machine.settle()

    assert story.status in {"needs_review", "completed"}
    assert of(story, "perform") <= IDLE_MAX + 1


def test_a_worker_that_always_dies_after_the_claim_ends_with_a_person() -> None:
    """B63: attempts are counted before the work, so infrastructure that kills every attempt uses them up."""
    story = Story(calls=always(When.KILL_BEFORE, "tool_gateway.perform"))
    story.start()
    story.bank.lookups_unclear = 99

    story.decide()

    assert story.status == "needs_review"
    assert story.refunds == []
    assert story.rows[0].attempts == DISPATCH_ATTEMPTS_MAX
    assert story.rows[0].lookups == LOOKUPS_MAX
    assert story.published.count("task.needs_review") == 1


def test_a_worker_that_always_dies_with_the_answer_pays_once() -> None:
    """B63 and B01: every attempt reaches the bank and dies; the key makes them one, and the look-up ends it."""
    story = Story(calls=always(When.KILL_AFTER, "tool_gateway.perform"))
    story.start()

    story.decide()

    assert story.status == "completed"
    assert len(story.refunds) == 1
    assert len(story.bank.requests) <= DISPATCH_ATTEMPTS_MAX + 1


def test_a_provider_that_never_knows_is_not_asked_for_ever() -> None:
    """B63: look-ups are bounded, their pauses grow, and the review says how often it was tried."""
    story = Story()
    story.start()
    story.bank.mishaps = deque([Mishap.RECORDED_NO_ANSWER] * 20)
    story.bank.lookups_unclear = 99
    began = story.world.clock.now()

    story.decide()

    assert story.status == "needs_review"
    assert f"{LOOKUPS_MAX} look-ups" in story.task.business.because
    assert timedelta(minutes=5) < story.world.clock.now() - began < timedelta(hours=3)


def test_a_tool_that_is_not_there_is_tried_a_few_times() -> None:
    """B63: nothing is ever sent, and that too ends with a person."""
    story = Story()
    story.start()
    del story.world.downstreams["issue_refund"]

    story.decide()

    assert story.status == "needs_review"
    assert story.rows[0].attempts == DISPATCH_ATTEMPTS_MAX


def test_a_read_that_never_answers_ends_with_a_person() -> None:
    """B63: also what changes nothing is not repeated for ever."""
    story = run_errand(
        Do(tool=a_tool("read_price", effect=EffectClass.READ)),
        downstreams={"read_price": Downstream(mishaps=deque([Mishap.LOST] * 50))},
    )

    assert story.status == "needs_review"
    assert len(story.world.downstreams["read_price"].requests) == LOOKUPS_MAX


def test_a_model_that_cannot_be_reached_is_given_up() -> None:
    """B63: turns are counted before the model is asked; after a few without an answer a person looks."""
    story = Story()
    story.start()
    story.world.model.always = ModelUnavailable("throttled")

    story.decide()

    assert story.status == "needs_review"
    assert of(story, "propose") == TURN_ATTEMPTS_MAX
    assert "model turns brought no answer" in story.task.business.because


def test_a_model_turn_that_always_dies_is_given_up() -> None:
    """B63: the function that asks runs out of memory every time; no lease and no message is lost on it."""
    story = Story(calls=always(When.KILL_AFTER, "model.ask"))
    story.start()

    story.decide()

    assert story.status == "needs_review"
    assert len(story.world.model.windows) <= TURN_ATTEMPTS_MAX * 3


def test_a_wait_that_cannot_be_entered_slows_the_machine_down() -> None:
    """A machine that comes back from a wait at once is paused every other time; the wait and its deadline stand."""
    story = Story()
    story.start()

    hasty = [story.wake(idle=idle).next for idle in range(IDLE_MAX - 1)]
    slowed = [story.wake(idle=idle).next for idle in range(IDLE_MAX, IDLE_MAX + 4)]

    assert set(hasty) == {Next.AWAIT_APPROVAL}
    assert slowed == [Next.AWAIT_RETRY, Next.AWAIT_APPROVAL, Next.AWAIT_RETRY, Next.AWAIT_APPROVAL]
    assert story.status == "waiting_approval"


def test_a_freeze_is_no_idleness() -> None:
    """A6: a week of freeze sends nobody to review, and the history limit is watched over it."""
    story = Story()
    story.start()
    story.world.authority.freezes["all"] = "incident 7"
    story.click()
    for _ in range(3 * IDLE_MAX):
        story.world.clock.advance(timedelta(minutes=5))
        story.machine.settle(patience=False)
    assert story.status == "ready"
    assert story.states.count("await_retry") >= 3 * IDLE_MAX

    story.world.authority.freezes.clear()
    story.machine.settle()

    assert story.status == "completed"


@pytest.mark.parametrize("frozen", [True, False])
def test_a_long_history_is_handed_over(*, frozen: bool) -> None:
    """Before the service's history limit a new run takes over, under the same task and keys, frozen or not."""
    story = Story()
    story.start()
    if frozen:
        story.world.authority.freezes["all"] = "incident 7"

    directive = story.wake(hops=HOPS_MAX)

    assert directive.next is Next.CONTINUE_AS_NEW
    assert story.task.execution.run == 2
    assert story.wake(run=1).next is Next.SUPERSEDED


def test_the_new_run_goes_on_where_the_old_one_was() -> None:
    """B71: the wait is the same, its approval works, and the refund is paid once."""
    story = Story()
    story.start()
    story.wake(hops=HOPS_MAX)
    story.machine.settle()

    story.decide()

    assert story.status == "completed"
    assert len(story.refunds) == 1
    assert story.machine.runs[f"{story.key.task_id}-2"].ended == "completed"


LETTERS = [a_tool(f"send_letter_{number}") for number in range(30)]


def long_winded(*things: Do) -> Story:
    """Run an errand whose providers say as much about every action as a record keeps."""
    receipts = {thing.tool.name: Downstream(facts=lambda _: {"receipt": "r" * 1_900}) for thing in things}
    return run_errand(*things, downstreams=receipts)


def test_a_task_that_has_outgrown_its_record_begins_nothing_more() -> None:
    """B59: the limit is met before an action is begun; what was done is on record and a person looks."""
    story = long_winded(*(Do(tool=tool) for tool in LETTERS))

    assert story.status == "needs_review"
    assert "bytes of checkpoint" in story.task.business.because
    done = [row for row in story.rows if row.status == "done"]
    assert len(done) == sum(len(d.effects) for d in story.world.downstreams.values()) == len(story.rows)
    assert len(story.world.checkpoints[story.key.key, story.task.version].body.encode()) < CHECKPOINT_BYTES_MAX + 4_000


def test_approving_never_fails_for_size() -> None:
    """B59: the click is taken even if the action that it opens no longer fits; a person is told."""
    filled = long_winded(*(Do(tool=tool) for tool in LETTERS))
    fits = sum(row.status == "done" for row in filled.rows)
    story = long_winded(*(Do(tool=tool) for tool in LETTERS[:fits]), Do(tool=a_tool("pay"), rule=a_rule()))

    story.decide()

    assert story.status == "needs_review"
    assert story.published.count("approval.decided") == 1
    assert story.world.downstreams["pay"].effects == []


@pytest.mark.parametrize("kind", list(Kind))
def test_asking_costs_as_much_as_the_rules_say(kind: Kind) -> None:
    """B63: whatever the downstream can do, the number of requests to it has a small bound."""
    tool = a_tool("send_parcel", can_look_up=kind is not Kind.NEITHER)
    downstream = Downstream(kind=kind, mishaps=deque([Mishap.LOST] * 50), lookups_unclear=50)
    story = run_errand(Do(tool=tool), downstreams={"send_parcel": downstream})

    asked = [operation for operation, _ in downstream.requests]

    assert story.status == "needs_review"
    assert asked.count(ToolOperation.PERFORM) <= DISPATCH_ATTEMPTS_MAX
    assert asked.count(ToolOperation.LOOKUP) <= LOOKUPS_MAX
