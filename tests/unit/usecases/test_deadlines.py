"""Timers: early, late, twice, for nothing, refused, lost. The wait's row owns its deadline; what is due acts once."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest

from shared.adapters.system import SystemIds
from shared.domain.approval import DecisionWord
from shared.domain.errors import DecisionClosed, InvariantBroken, Redecide, Throttled
from shared.domain.identity import TaskKey
from shared.domain.outbox import ArmTimer
from shared.domain.wait import Wait
from shared.usecases.act_on_deadline import DeadlineFired, act_on_deadline
from shared.usecases.deliver import deliver
from shared.usecases.engine import DeadlineDeps, DeliverDeps, RecoverDeps
from shared.usecases.recover import sweep
from shared.usecases.start_task import StartTask, start_task
from shared.workflows.refund.workflow import APPROVAL_WAIT
from tests.fakes.calls import Calls
from tests.fakes.clock import NOON
from tests.fakes.story import CLERK, REFUND, Story

REMINDS, ESCALATES, EXPIRES = (timedelta(seconds=rung.after_seconds or 0) for rung in APPROVAL_WAIT.ladder)
# What EventBridge Scheduler accepts for a schedule's name.
NAME = re.compile(r"[0-9A-Za-z_.-]{1,64}\Z")


def waiting(calls: Calls | None = None) -> Story:
    """Start a refund that waits for its approval."""
    story = Story(calls=calls)
    story.start()
    assert story.status == "waiting_approval"
    return story


def wait_of(story: Story) -> Wait:
    """The wait that is open."""
    [pending] = story.task.execution.waits
    return story.world.waits[story.key.tenant, pending.correlation_id]


def firing(wait: Wait, *, rung: int | None = None) -> DeadlineFired:
    """What the timer of a wait's rung says when it goes off."""
    return DeadlineFired(
        tenant=wait.tenant,
        correlation_id=wait.correlation_id,
        wait_id=wait.wait_id,
        rung=wait.rung if rung is None else rung,
    )


def fire(story: Story, fired: DeadlineFired) -> bool:
    """Let a timer go off in a fresh process."""
    p = story.machine.process()
    return act_on_deadline(fired, DeadlineDeps(tasks=story.machine.records(p), waits=p.waits))


def events(story: Story, name: str) -> int:
    """How many events of a name subscribers have seen."""
    return [event.event for _, event in story.world.events].count(name)


def at(story: Story, after: timedelta) -> None:
    """Move to an instant of the wait's life."""
    story.world.clock.set(NOON + after)


# --- when it goes off -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("early", [timedelta(seconds=40), timedelta(milliseconds=1)])
def test_an_early_timer_does_nothing(early: timedelta) -> None:
    """B67: the row says when its time has come, to the millisecond; the right firing still acts."""
    story = waiting()
    fired, before = firing(wait_of(story)), story.task
    at(story, REMINDS - early)

    assert fire(story, fired) is False
    assert story.task == before
    at(story, REMINDS)
    assert fire(story, fired) is True


def test_the_ladder_is_climbed_rung_by_rung_and_ends_the_task() -> None:
    """B67: a reminder, another owner, the end; each said once, each with its own timer before it."""
    story = waiting()
    armed = []
    for after in (REMINDS, ESCALATES, EXPIRES):
        [(_, timer)] = story.world.timers.values()
        armed.append((timer.rung, timer.at - NOON))
        at(story, after)
        assert fire(story, firing(wait_of(story)))
        story.machine.settle()

    assert armed == [(0, REMINDS), (1, ESCALATES), (2, EXPIRES)]
    assert [events(story, name) for name in ("wait.reminded", "task.escalated", "task.closed")] == [1, 1, 1]
    assert story.status == "expired"
    assert story.world.timers == {}


def test_the_same_timer_twice_acts_once() -> None:
    """B67: on time, and again, and again a day later."""
    story = waiting()
    fired = firing(wait_of(story))
    at(story, REMINDS)

    assert [fire(story, fired), fire(story, fired)] == [True, False]
    at(story, REMINDS + timedelta(days=1))
    assert fire(story, fired) is False
    story.machine.settle()
    assert events(story, "wait.reminded") == 1


ENDINGS: dict[str, Callable[[Story], object]] = {
    "approved": lambda story: story.decide(),
    "rejected": lambda story: story.decide(DecisionWord.REJECT),
    "amended": lambda story: story.amend(amount_minor=50_000),
    "canceled": lambda story: story.cancel(),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("rung", [0, 1, 2])
def test_a_timer_of_a_wait_that_has_ended_does_nothing(ending: str, rung: int) -> None:
    """B67: after the decision, after an amendment with a wait of its own, after a cancellation; at any later time."""
    story = waiting()
    old = firing(wait_of(story), rung=rung)
    ENDINGS[ending](story)
    after = story.task

    for later in (timedelta(), REMINDS, EXPIRES + timedelta(days=1)):
        at(story, later)
        assert fire(story, old) is False
    assert story.task == after


@pytest.mark.parametrize(
    "changed",
    [{"tenant": "globex"}, {"wait_id": "wai_0"}, {"correlation_id": "apr_0"}, {"rung": 1}, {"rung": -1}, {"rung": 99}],
)
def test_a_timer_that_belongs_to_nothing_does_nothing(changed: dict[str, object]) -> None:
    """B67: another tenant's, a wait that never was, a rung that is not the wait's present one."""
    story = waiting()
    wait, before = wait_of(story), story.task
    fields = {"tenant": wait.tenant, "correlation_id": wait.correlation_id, "wait_id": wait.wait_id, "rung": 0}
    at(story, EXPIRES)

    assert fire(story, DeadlineFired(**fields | changed)) is False  # type: ignore[arg-type] # fields by name
    assert story.task == before


def test_a_timer_of_a_task_that_is_gone_does_nothing() -> None:
    """B67: a row without its task, as a restore of one table can leave it."""
    story = waiting()
    fired = firing(wait_of(story))
    story.world.heads.clear()
    at(story, REMINDS)
    assert fire(story, fired) is False


# --- at the same time -------------------------------------------------------------------------------------------------


def calls_of(work: Callable[[Story], object], *, begins: timedelta) -> int:
    """How many calls something makes that nobody disturbs."""
    calls = Calls()
    story = waiting(calls)
    at(story, begins)
    made = len(calls.names)
    work(story)
    return len(calls.names) - made


def disturbed(
    work: Callable[[Story], object], place: int, meanwhile: Callable[[Story], None], *, begins: timedelta
) -> tuple[Story, object]:
    """Do something, and let something else happen from start to end just before the call at that place."""
    calls = Calls()
    story = waiting(calls)
    at(story, begins)
    made = len(calls.names)

    def step_in(_: str) -> None:
        if len(calls.names) == made + place:
            calls.step_in = lambda _: None
            meanwhile(story)

    calls.step_in = step_in
    try:
        result: object = work(story)
    except (DecisionClosed, Redecide) as refused:
        result = refused
    calls.step_in = lambda _: None
    return story, result


def remind(story: Story) -> bool:
    """Let the first rung's timer go off."""
    return fire(story, firing(wait_of(story), rung=0))


@pytest.mark.parametrize("place", range(1, calls_of(remind, begins=REMINDS) + 1))
def test_two_copies_of_a_timer_at_the_same_time_act_once(place: int) -> None:
    """B67: the second one goes off between any two calls of the first: one mail, one new owner of the deadline."""
    fired: list[bool] = []
    story, first = disturbed(remind, place, lambda story: fired.append(remind(story)), begins=REMINDS)
    story.machine.settle()

    assert [first, *fired].count(True) == 1
    assert len(fired) == 1
    assert events(story, "wait.reminded") == 1
    assert wait_of(story).rung == 1


def click(story: Story) -> object:
    """Approve what was asked for first, whatever has become of it."""
    return story.click(approval_id=story.task.security.approvals[0].approval_id)


LAST_MOMENT = EXPIRES - timedelta(seconds=1)


@pytest.mark.parametrize("place", range(1, calls_of(click, begins=LAST_MOMENT) + 1))
def test_an_approval_and_the_deadline_have_one_winner(place: int) -> None:
    """B67, B12: the deadline passes and acts between any two calls of the click; the loser is told, nothing is both."""

    def deadline(story: Story) -> None:
        wait = wait_of(story)
        at(story, EXPIRES)
        fire(story, firing(wait))

    story, answer = disturbed(click, place, deadline, begins=LAST_MOMENT)
    story.machine.settle()

    if isinstance(answer, Exception):
        assert isinstance(answer, DecisionClosed)
        assert (story.status, story.refunds) == ("expired", [])
    else:
        assert story.status == "completed"
        assert len(story.refunds) == 1
    assert events(story, "task.closed") == 1
    assert story.world.timers == {}


def expire(story: Story) -> bool:
    """Let the present rung's timer go off."""
    return fire(story, firing(wait_of(story)))


@pytest.mark.parametrize("place", range(1, calls_of(expire, begins=EXPIRES) + 1))
def test_the_deadline_and_a_late_click_have_one_winner(place: int) -> None:
    """B49, B67: the click comes after the deadline, between any two calls of its acting: never accepted."""
    refused: list[Exception] = []

    def late(story: Story) -> None:
        try:
            click(story)
        except DecisionClosed as error:
            refused.append(error)

    story, acted = disturbed(expire, place, late, begins=EXPIRES)
    story.machine.settle()

    assert acted is True
    assert len(refused) == 1
    assert (story.status, story.refunds) == ("expired", [])


# --- late, lost, refused ----------------------------------------------------------------------------------------------


def recover_deps(story: Story) -> RecoverDeps:
    """Wire the sweep in a fresh process."""
    p = story.machine.process()
    return RecoverDeps(tasks=story.machine.records(p), waits=p.waits, executions=p.executions, outbox=p.outbox)


@pytest.mark.parametrize("outage", [timedelta(), timedelta(days=2)])
def test_a_deadline_that_passed_in_an_outage_acts_at_once_and_once(outage: timedelta) -> None:
    """B49: nobody was there when it passed; whoever comes first ends the wait, timer or sweep, the others do not."""
    story = waiting()
    fired = firing(wait_of(story))
    at(story, EXPIRES + outage)

    assert [fire(story, fired), fire(story, fired)] == [True, False]
    assert sweep(recover_deps(story)).mended == 0
    story.machine.settle()
    assert story.status == "expired"
    assert events(story, "task.closed") == 1


def test_a_lost_timer_leaves_no_wait_without_an_end() -> None:
    """B15: the sweep acts on the wait itself, and a timer that turns up after it finds nothing."""
    story = waiting()
    fired = firing(wait_of(story))
    story.world.timers.clear()
    at(story, EXPIRES + timedelta(minutes=15))

    assert sweep(recover_deps(story)).mended == 1
    assert fire(story, fired) is False
    story.machine.settle()
    assert story.status == "expired"


def test_a_lost_timer_loses_no_reminder_either() -> None:
    """B60, B67: the sweep acts on every rung whose time has come, once, and sets the timer of the next."""
    story = waiting()
    fired = firing(wait_of(story))
    story.world.timers.clear()

    for passed, event in ((REMINDS, "wait.reminded"), (ESCALATES, "task.escalated")):
        assert sweep(recover_deps(story)).looked_at == 0
        at(story, passed + timedelta(minutes=5))
        assert sweep(recover_deps(story)).mended == 1
        assert sweep(recover_deps(story)).mended == 0
        story.machine.settle()
        assert events(story, event) == 1

    assert fire(story, fired) is False
    (armed,) = (timer for _, timer in story.world.timers.values())
    assert (armed.rung, armed.at) == (2, wait_of(story).deadline_at)


class Refusing:
    """A scheduler that takes nothing."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def arm(self, key: TaskKey, timer: ArmTimer) -> None:
        raise self._error

    def disarm(self, key: TaskKey, wait_id: str) -> None:
        raise self._error


def deliver_deps(story: Story, timers: Refusing) -> DeliverDeps:
    """Wire the outbox's function with another scheduler."""
    p = story.machine.process()
    return DeliverDeps(
        outbox=p.outbox,
        tokens=p.tokens,
        waits=p.waits,
        executions=p.executions,
        events=p.event_bus,
        timers=timers,
        alarm=story.world.alarms.append,
    )


def staged() -> Story:
    """Start a refund whose first commit has not been delivered yet."""
    story = Story()
    command = StartTask(principal=story.person(CLERK), workflow="refund", request=dict(REFUND), idempotency_key="key-1")
    started = start_task(command, story.machine.api())
    story._key = TaskKey(tenant="acme", task_id=started.task_id)
    assert story.world.undelivered()
    return story


def test_a_refused_timer_alarms_and_keeps_nothing_else_up() -> None:
    """B15: people are told which wait; the execution starts and the approver is asked all the same."""
    story = staged()
    for row in story.world.undelivered():
        deliver(row, deliver_deps(story, Refusing(InvariantBroken("ValidationException"))))

    assert story.world.undelivered() == ()
    [sentence] = story.world.alarms
    assert wait_of(story).wait_id in sentence
    assert story.key.task_id in sentence
    assert events(story, "approval.requested") == 1
    story.machine.settle()
    at(story, EXPIRES + timedelta(minutes=15))
    assert sweep(recover_deps(story)).mended == 1


def test_a_timer_that_may_not_be_removed_alarms_and_keeps_nothing_else_up() -> None:
    """B15, B67: the decision is delivered and told all the same; the timer that stays goes off for nothing."""
    story = waiting()
    wait = wait_of(story)
    story.click()
    for row in story.world.undelivered():
        deliver(row, deliver_deps(story, Refusing(InvariantBroken("AccessDeniedException"))))

    assert story.world.undelivered() == ()
    [sentence] = story.world.alarms
    assert sentence == f"the timer of {wait.wait_id} of {story.key.task_id} stays: AccessDeniedException"
    assert events(story, "approval.decided") == 1
    assert fire(story, firing(wait)) is False
    story.machine.settle()
    assert story.status == "completed"


def test_a_timer_that_cannot_be_removed_now_comes_again() -> None:
    """B15: a throttled scheduler is no refusal: the row stays, and nobody is alarmed."""
    story = waiting()
    story.click()
    [row] = story.world.undelivered()
    with pytest.raises(Throttled):
        deliver(row, deliver_deps(story, Refusing(Throttled("ThrottlingException"))))

    assert story.world.undelivered() == (row,)
    assert story.world.alarms == []


def test_a_timer_that_cannot_be_set_now_comes_again() -> None:
    """B15: a throttled scheduler is no refusal: the row stays, nobody is alarmed, and the repeat sets it."""
    story = staged()
    [row] = story.world.undelivered()
    with pytest.raises(Throttled):
        deliver(row, deliver_deps(story, Refusing(Throttled("ThrottlingException"))))

    assert story.world.undelivered() == (row,)
    assert story.world.alarms == []
    story.machine.settle()
    assert wait_of(story).wait_id in story.world.timers


# --- names ------------------------------------------------------------------------------------------------------------


def test_a_wait_s_id_is_a_name_that_the_scheduler_takes() -> None:
    """B48: bounded, of its grammar, and another for every wait, whatever tenant and task are called."""
    names = [SystemIds().new("wai") for _ in range(1_000)]

    assert all(NAME.match(name) for name in names)
    assert len(set(names)) == len(names)
    assert {len(name) for name in names} == {36}


@pytest.mark.parametrize("ending", ["approved", "rejected", "canceled"])
def test_no_timer_outlives_its_task(ending: str) -> None:
    """B48: made, moved and removed under one name; at the end none is left."""
    story = waiting()
    assert list(story.world.timers) == [wait_of(story).wait_id]
    ENDINGS[ending](story)
    assert story.world.timers == {}


def test_a_second_wait_has_a_timer_of_its_own() -> None:
    """B48: an amendment removes the timer of the wait that it voids, and only that; another task's stays."""
    story = waiting()
    others = wait_of(story).wait_id
    story.start(key="key-2")
    first = wait_of(story).wait_id

    story.amend(amount_minor=50_000)

    assert set(story.world.timers) == {others, wait_of(story).wait_id}
    assert first not in story.world.timers
