"""Recovery: a live task whose next event is gone gets one again, and nothing happens twice."""

from datetime import timedelta

import pytest

from shared.domain.recovery import RESTARTS_MAX
from shared.ports.executions import ExecutionState
from shared.usecases.engine import RecoverDeps
from shared.usecases.recover import OUTBOX_STALE_AFTER, recover_task, sweep
from tests.fakes.downstream import Mishap
from tests.fakes.operating import quarantine, release, retry, with_operators
from tests.fakes.story import Story

DEAD = [ExecutionState.FAILED, ExecutionState.TIMED_OUT, ExecutionState.ABORTED]


def deps_of(story: Story) -> RecoverDeps:
    """Wire the sweep in a fresh process."""
    p = story.machine.process()
    return RecoverDeps(tasks=story.machine.records(p), waits=p.waits, executions=p.executions, outbox=p.outbox)


def lose_execution(story: Story, state: ExecutionState) -> None:
    """Let the service end the running execution as it would on its own or by an operator's hand."""
    run = next(r for r in story.machine.runs.values() if r.ended is None)
    run.ended = str(state)
    if run.token is not None:
        story.world.machines.waiting.discard(run.token)
    story.world.machines.ended[run.name] = state


def decide_before(call: str, story: Story) -> None:
    """Let the manager decide just before the machine stores its handle."""
    if call == "token_store.put":
        story.click()


@pytest.mark.parametrize("state", DEAD)
def test_a_lost_execution_is_replaced_and_the_task_goes_on(state: ExecutionState) -> None:
    """B60: whatever ended the execution, one report gives the task a new run that waits where the old one did."""
    story = Story()
    story.start()
    lose_execution(story, state)

    assert recover_task(story.key, deps_of(story), run=1)
    story.machine.settle()

    assert story.task.execution.run == 2
    expected = "needs_review" if state is ExecutionState.ABORTED else "waiting_approval"
    assert story.status == expected


def test_a_recovered_task_still_pays_once() -> None:
    """B60: the execution dies while the task waits; after the mending the same approval leads to one refund."""
    story = Story()
    story.start()
    lose_execution(story, ExecutionState.FAILED)
    recover_task(story.key, deps_of(story), run=1)
    story.machine.settle()

    story.decide()

    assert story.status == "completed"
    assert len(story.refunds) == 1


def test_an_operators_abort_is_no_silent_restart() -> None:
    """B60: aborted in the console, the task waits for a person, and says so."""
    story = Story()
    story.start()
    lose_execution(story, ExecutionState.ABORTED)

    recover_task(story.key, deps_of(story), run=1)
    story.machine.settle()

    assert story.status == "needs_review"
    assert "aborted" in story.task.business.because
    assert story.refunds == []


def test_an_abort_while_people_are_asked_leaves_no_question_that_nobody_can_answer() -> None:
    """B60: the approval goes with its wait; after the retry there is one open question, and one refund."""
    story = with_operators(Story())
    story.start()
    [asked] = story.task.security.approvals
    lose_execution(story, ExecutionState.ABORTED)
    recover_task(story.key, deps_of(story), run=1)
    story.machine.settle()
    assert [a.status for a in story.task.security.approvals] == ["void"]

    retry(story)
    story.machine.settle()

    [old, new] = story.task.security.approvals
    assert (old.approval_id, old.status, new.status) == (asked.approval_id, "void", "open")
    story.decide()
    assert story.status == "completed"
    assert len(story.refunds) == 1


def test_a_token_that_is_gone_is_loud_and_the_task_goes_on() -> None:
    """R7: the machine's handle was purged under a long wait: people hear of it, take the execution away, and retry."""
    story = with_operators(Story())
    story.start()
    [wait] = story.world.waits.values()
    story.world.tokens.clear()
    story.world.clock.advance(timedelta(days=2))
    story.decide()
    [sentence] = story.world.alarms
    assert wait.wait_id in sentence
    assert story.key.task_id in sentence
    assert story.status == "ready"

    lose_execution(story, ExecutionState.ABORTED)
    recover_task(story.key, deps_of(story), run=1)
    story.machine.settle()
    retry(story)
    story.machine.settle()

    assert story.status == "completed"
    assert len(story.refunds) == 1


def test_a_wait_that_is_gone_with_its_execution_is_quarantined() -> None:
    """R7, B19: nobody could move the task any more, so it is loud instead of left alone."""
    story = Story()
    story.start()
    story.world.waits.clear()
    lose_execution(story, ExecutionState.ABORTED)

    assert recover_task(story.key, deps_of(story), run=1)

    story.machine.settle()
    assert story.status == "quarantined"
    assert story.published[-1] == "task.quarantined"


def test_a_wait_that_is_answered_while_the_sweep_ends_it_is_no_tampering() -> None:
    """R8: somebody decides right before the sweep commits: the decision counts."""
    story = Story()
    story.start()
    lose_execution(story, ExecutionState.ABORTED)
    decided: list[str] = []

    def decide_meanwhile(call: str) -> None:
        if call == "task_records.commit" and not decided:
            decided.append(call)
            story.click()

    story.calls.step_in = decide_meanwhile

    assert not recover_task(story.key, deps_of(story), run=1)
    assert decided
    assert story.status == "ready"


def test_an_answer_before_the_machine_has_come_alarms_nobody() -> None:
    """R2: whoever answers at once finds no token yet; `open_wait` will see the answer."""
    story = Story()
    story.calls.step_in = lambda call: decide_before(call, story)
    story.start()

    assert story.status == "completed"
    assert story.world.alarms == []


def test_an_abort_in_the_middle_of_an_effect_is_reconciled_before_the_review() -> None:
    """B60: what was in flight is settled first; then a person looks, and nothing new is done."""
    story = Story()
    story.start()
    story.bank.mishaps.append(Mishap.RECORDED_NO_ANSWER)
    story.click()
    while not story.refunds:
        assert story.machine.step(patience=False)
    lose_execution(story, ExecutionState.ABORTED)

    recover_task(story.key, deps_of(story), run=1)
    story.machine.settle()

    assert len(story.refunds) == 1
    assert story.status == "needs_review"
    assert [f.name for f in story.task.business.facts if f.happened] == ["refund_issued"]


def test_a_report_twice_or_about_an_older_run_changes_nothing() -> None:
    """R2: the end of an execution may be reported any number of times."""
    story = Story()
    story.start()
    lose_execution(story, ExecutionState.FAILED)
    assert recover_task(story.key, deps_of(story), run=1)
    version = story.task.version

    assert not recover_task(story.key, deps_of(story), run=1)
    assert story.task.version == version


def test_a_closed_task_is_left_alone() -> None:
    """A failed execution under a task that has ended is the end that was meant."""
    story = Story()
    story.start(amount_minor=5_000)
    assert story.status == "completed"

    assert not recover_task(story.key, deps_of(story), run=1)


def test_an_execution_that_keeps_dying_ends_with_a_person() -> None:
    """B63: restarts are counted while nothing else moves the task."""
    story = Story()
    story.start()
    for _ in range(RESTARTS_MAX + 1):
        lose_execution(story, ExecutionState.FAILED)
        recover_task(story.key, deps_of(story))
        story.machine.drain()
        story.machine._start()

    story.machine.settle()

    assert story.status == "needs_review"


def test_the_sweep_finds_a_task_whose_execution_was_never_started() -> None:
    """O3: the start message was lost for good; the check-up finds the task and starts its next run."""
    story = Story()
    story.machine.settle = lambda **_: None  # type: ignore[method-assign]  # nothing is delivered
    story.start(amount_minor=5_000)
    story.world.outbox.clear()
    del story.machine.settle
    story.world.clock.advance(timedelta(hours=1))

    swept = sweep(deps_of(story))
    story.machine.settle()

    assert (swept.looked_at, swept.mended, swept.failed) == (1, 1, 0)
    assert story.status == "completed"


def test_the_sweep_ends_a_wait_whose_timer_was_lost() -> None:
    """B15: no timer, no state timeout; the wait row's deadline still ends the wait, once."""
    story = Story()
    story.start()
    story.world.timers.clear()
    story.world.clock.advance(timedelta(days=8))

    sweep(deps_of(story))
    sweep(deps_of(story))
    story.machine.settle()

    assert story.status == "expired"


def test_the_sweep_puts_a_stuck_message_before_the_stream_again() -> None:
    """B66: a row that the stream gave up is restaged, in place, once it is old enough."""
    story = Story()
    story.machine.settle = lambda **_: None  # type: ignore[method-assign]  # nothing is delivered
    story.start()
    assert sweep(deps_of(story)).restaged == 0
    story.world.clock.advance(OUTBOX_STALE_AFTER + timedelta(seconds=1))

    assert sweep(deps_of(story)).restaged == 1
    assert sweep(deps_of(story)).restaged == 0


def test_the_sweep_decides_nothing_from_a_stale_index() -> None:
    """B65: the index still shows the old deadline; the base row says that the task has moved."""
    story = Story()
    story.start()
    story.world.let_index_lag()
    story.decide()
    story.world.clock.advance(timedelta(days=8))
    version = story.task.version

    swept = sweep(deps_of(story))

    assert swept.looked_at == 1
    assert swept.mended == 0
    assert story.task.version == version


def test_a_broken_record_without_an_execution_is_quarantined() -> None:
    """B19: nobody is left to wake it, so whoever finds it marks it."""
    story = Story()
    story.start()
    lose_execution(story, ExecutionState.FAILED)
    place = (story.key.key, story.task.version)
    sealed = story.world.checkpoints[place]
    story.world.checkpoints[place] = sealed.model_copy(update={"body": sealed.body.replace("45000", "95000")})

    assert recover_task(story.key, deps_of(story), run=1)

    assert story.status == "quarantined"
    assert not recover_task(story.key, deps_of(story), run=1)


def test_a_quarantined_task_is_not_forgotten() -> None:
    """O3, R6: nothing ends a quarantine by itself, so people are told of it every day until somebody does."""
    story = with_operators(Story())
    story.start()
    quarantine(story)
    story.machine.settle()
    assert story.published.count("task.quarantined") == 1
    assert sweep(deps_of(story)).looked_at == 0

    for day in (2, 3, 4):
        story.later(days=1, minutes=1)
        assert sweep(deps_of(story)).mended == 1
        assert sweep(deps_of(story)).looked_at == 0
        story.machine.settle()
        assert story.published.count("task.quarantined") == day

    release(story, from_version=1)
    story.machine.settle()
    story.later(days=1, minutes=1)
    sweep(deps_of(story))
    story.machine.settle()
    assert (story.status, story.published.count("task.quarantined")) == ("waiting_approval", 4)


def test_a_reminder_waits_for_the_alarm_before_it() -> None:
    """O3: an alarm that is stuck is put before the stream again, not heaped up."""
    story = with_operators(Story())
    story.start()
    quarantine(story)
    story.world.clock.advance(timedelta(days=1, minutes=1))

    swept = sweep(deps_of(story))

    assert (swept.looked_at, swept.mended, swept.restaged) == (1, 0, 1)
