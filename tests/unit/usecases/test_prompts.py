"""Prompts: people are asked once, while it is still theirs to answer, and never about what is over."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from shared.adapters.eventbridge.event_bus import event_id
from shared.domain.outbox import OutboxRow, PublishEvent
from shared.usecases.act_on_deadline import DeadlineFired, act_on_deadline
from shared.usecases.deliver import deliver
from shared.usecases.engine import DeadlineDeps, DeliverDeps
from tests.fakes.errand import WaitFor, a_ladder, run_errand
from tests.fakes.machine import Trigger
from tests.fakes.story import Story


def asks(story: Story, name: str = "approval.requested") -> list[PublishEvent]:
    """What subscribers were asked, repeats included."""
    return [event for _, event in story.world.events if event.event == name]


def deliver_again(story: Story, row: OutboxRow) -> None:
    """Deliver a row once more, as a stream does that missed our answer."""
    p = story.machine.process()
    deps = DeliverDeps(
        outbox=p.outbox,
        tokens=p.tokens,
        waits=p.waits,
        executions=p.executions,
        events=p.event_bus,
        timers=p.timers,
        alarm=story.world.alarms.append,
    )
    deliver(row, deps)


def started() -> tuple[Story, OutboxRow]:
    """Start a refund that asks for its approval, and keep the row that asked."""
    story = Story()
    rows: list[OutboxRow] = []

    def watched(trigger: Trigger) -> object:
        rows.extend(story.world.undelivered())
        return trigger.work()

    story.machine.work_on = watched
    story.start()
    story.machine.work_on = lambda trigger: trigger.work()
    [asking] = {row.version: row for row in rows if _prompts(row)}.values()
    return story, asking


def _prompts(row: OutboxRow) -> list[PublishEvent]:
    return [m for m in row.messages if isinstance(m, PublishEvent) and m.wait_id is not None]


def test_one_wait_is_asked_about_once() -> None:
    """B72: from the commit that opened it, with its own id, and whatever else wakes the task asks no second time."""
    story, asking = started()
    for _ in range(5):
        story.wake()
        story.machine.settle()

    [event] = asks(story)
    [prompt] = _prompts(asking)
    [pending] = story.task.execution.waits
    assert event == prompt
    assert (event.wait_id, event.detail["request_version"]) == (pending.wait_id, 1)


def test_a_repeated_delivery_is_the_same_event() -> None:
    """B72, B66: the notification's job runs three times; a subscriber tells the repeats by their id."""
    story, asking = started()
    deliver_again(story, asking)
    deliver_again(story, asking)

    assert len(asks(story)) == 3
    assert len({event_id(story.key, event) for event in asks(story)}) == 1


@pytest.mark.parametrize(
    "over",
    [
        lambda story: story.decide(),
        lambda story: story.cancel(),
        lambda story: story.amend(amount_minor=50_000),
        lambda story: story.amend(amount_minor=1_000),
    ],
    ids=["decided", "canceled", "amended", "amended away"],
)
def test_nobody_is_asked_about_what_is_over(over: Callable[[Story], object]) -> None:
    """B72: the job of version 1 is delivered again after the decision, the cancellation, the amendment: no prompt."""
    story, asking = started()
    over(story)
    before = asks(story)

    deliver_again(story, asking)

    assert asks(story) == before
    assert story.world.undelivered() == ()


def test_an_amendment_asks_anew_about_the_new_version() -> None:
    """B72: one prompt for each version, each with an approval of its own."""
    story, _ = started()
    story.amend(amount_minor=50_000)
    story.amend(amount_minor=60_000)

    assert [event.detail["request_version"] for event in asks(story)] == [1, 2, 3]
    assert len({event.detail["approval_id"] for event in asks(story)}) == 3
    assert len({event.wait_id for event in asks(story)}) == 3


def test_a_wait_of_the_same_correlation_is_not_the_same_wait() -> None:
    """B72: what is looked for is the very wait that was asked about, not what now stands in its place."""
    story, asking = started()
    [pending] = story.task.execution.waits
    key = (story.key.tenant, pending.correlation_id)
    story.world.waits[key] = story.world.waits[key].model_copy(update={"wait_id": "wai_another"})
    before = asks(story)

    deliver_again(story, asking)

    assert asks(story) == before


def test_a_reminder_that_was_held_up_until_the_decision_is_dropped() -> None:
    """B72: also for what the ladder says; the ladder's rows go through the same door."""
    story, _ = started()
    [pending] = story.task.execution.waits
    story.world.clock.advance(timedelta(days=1))
    p = story.machine.process()
    fired = DeadlineFired(
        tenant=story.key.tenant, correlation_id=pending.correlation_id, wait_id=pending.wait_id, rung=0
    )
    assert act_on_deadline(fired, DeadlineDeps(tasks=story.machine.records(p), waits=p.waits))
    [held_up] = story.world.undelivered()
    story.world.outbox.clear()
    story.decide()

    deliver_again(story, held_up)

    assert asks(story, "wait.reminded") == []
    assert _prompts(held_up)


def test_what_only_tells_is_told_in_any_case() -> None:
    """A task's end is news whenever it comes; only what asks is dropped."""
    story, _ = started()
    story.decide()
    [closed] = asks(story, "task.closed")

    assert (closed.wait_id, closed.correlation_id) == (None, None)


def test_a_question_to_a_person_is_asked() -> None:
    """B72: an input's wait asks whoever has its role, once."""
    story = run_errand(WaitFor(name="answer", ladder=a_ladder(), person=True))
    story.wake()
    story.machine.settle()

    [event] = asks(story, "input.requested")
    assert event.detail["role"] == story.world.waits[story.key.tenant, event.correlation_id or ""].answered_by[0]
