"""Child tasks: started in the commit that waits for them, heard of by their own record, stopped with their parent."""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared.domain.action import Arguments
from shared.domain.authority import Operation, Question, Ruling
from shared.domain.checkpoint import CancelScope, Checkpoint, decode_checkpoint
from shared.domain.child import HEARD_IN_TIME
from shared.domain.errors import ActionInFlight, NoChildTasks, NotAuthorised
from shared.domain.records import Record
from shared.domain.wait import OnDeadline, WaitRule
from shared.domain.workflow import Child, Finish, Review, StartChild, Step, TaskView, Workflow
from shared.usecases.act_on_deadline import DeadlineFired, act_on_deadline
from shared.usecases.engine import DeadlineDeps
from tests.fakes.downstream import Downstream, Kind, Mishap
from tests.fakes.errand import Delegate, Do, Thing, WaitFor, a_ladder, a_rule, a_tool, an_errand, an_undo, run_errand
from tests.fakes.operating import close, quarantine, retry, with_operators
from tests.fakes.story import CLERK, INTERN, Story, by_role

LETTER, PARCEL = a_tool("send_letter"), a_tool("send_parcel")
PATIENT = a_ladder(days=14, end=OnDeadline.REVIEW)
SENDS = an_errand(Do(tool=PARCEL), name="sends")
# A child that waits for an event of its own before it does anything.
ASKS = an_errand(WaitFor(name="agreed", ladder=a_ladder(days=7)), Do(tool=PARCEL), name="asks")


def _stuck(view: TaskView) -> Step:
    return Review(stage=view.stage, reason="somebody has to look")


# A child that waits for a person at once, and longer than its parent waits for it.
STUCK = replace(an_errand(name="stuck"), next_step=_stuck)


class Anything(Record):
    """A form that a later release asks for."""

    agreed: str


def delegated(
    child: Workflow = SENDS,
    *after: Thing,
    before: tuple[Thing, ...] = (),
    ladder: WaitRule = PATIENT,
    needed: bool = True,
    downstreams: dict[str, Downstream] | None = None,
    undos: tuple[str, ...] = (),
    workflow: Callable[[Workflow], Workflow] = lambda workflow: workflow,
) -> Story:
    """Start an errand that delegates to a child and goes on after it."""
    delegate = Delegate(to=child.name, ladder=ladder, needed=needed)
    return run_errand(
        *before,
        delegate,
        *after,
        undos=[an_undo(name) for name in undos],
        others=[child],
        downstreams=downstreams,
        workflow=workflow,
    )


def a_downstream(*mishaps: Mishap, kind: Kind = Kind.HONOURS_KEYS) -> dict[str, Downstream]:
    """What stands behind the child's tool."""
    return {"send_parcel": Downstream(kind=kind, mishaps=deque(mishaps))}


def child_of(story: Story) -> Checkpoint:
    """The last checkpoint of the task's last child."""
    key = story.child()
    return decode_checkpoint(story.world.checkpoints[key.key, story.world.heads[key.key].version].body)


def status_of(story: Story) -> tuple[str, str]:
    """Where the child and its parent stand."""
    return str(child_of(story).business.status), story.status


def effects(story: Story, tool: str = "send_parcel") -> int:
    """How often a tool's effect has happened."""
    return len(story.world.downstreams[tool].effects)


def fire_timers(story: Story) -> None:
    """Let every timer go off whose time has come, and the machine go on."""
    for key, timer in list(story.world.timers.values()):
        if timer.at <= story.world.clock.now():
            fired = DeadlineFired(
                tenant=key.tenant, correlation_id=timer.correlation_id, wait_id=timer.wait_id, rung=timer.rung
            )
            p = story.machine.process()
            act_on_deadline(fired, DeadlineDeps(tasks=story.machine.records(p), waits=p.waits))
    story.machine.settle()


def answer_child(story: Story) -> None:
    """The outside event that the child waits for comes, without a sender: its time runs out instead."""
    story.world.clock.advance(timedelta(days=7, minutes=1))
    fire_timers(story)


def coming_to(workflow: Workflow, result: Arguments) -> Workflow:
    """The same workflow with another result."""

    def next_step(view: TaskView) -> Step:
        step = workflow.next_step(view)
        return replace(step, result=result) if isinstance(step, Finish) else step

    return replace(workflow, next_step=next_step)


def reviewing(workflow: Workflow) -> Workflow:
    """The same workflow, which shows a person what it would otherwise undo."""

    def next_step(view: TaskView) -> Step:
        fact = view.fact("delegated")
        if fact is not None and not fact.happened:
            return Review(stage=view.stage, reason="the child did not complete")
        return workflow.next_step(view)

    return replace(workflow, next_step=next_step)


# --- its life ---------------------------------------------------------------------------------------------------------


def test_a_child_is_a_task_of_its_own_and_its_parent_goes_on_after_it() -> None:
    """The parent waits as `waiting_child`, the child runs under its own record, and its end is the parent's fact."""
    story = delegated(SENDS, Do(tool=LETTER))

    child, task = child_of(story), story.task
    assert status_of(story) == ("completed", "completed")
    assert child.execution.parent == task.task_id
    assert (child.business.owner, child.security.tenant, child.trace) == (CLERK, "acme", task.trace)
    assert (effects(story), effects(story, "send_letter")) == (1, 1)
    fact = next(f for f in task.business.facts if f.name == "delegated")
    assert (fact.happened, fact.reference, dict(fact.values)) == (True, child.task_id, {"agreed": True})
    assert story.states.count("await_child") == 1


def test_the_child_and_the_wait_for_it_are_one_commit() -> None:
    """Law 6: both are written at the same version of the parent, and the wait is known by the child's id."""
    story = delegated(ASKS)

    wait = story.world.waits["acme", story.child().task_id]
    assert len(story.world.heads) == 2
    assert (wait.task_id, wait.version, wait.status) == (story.key.task_id, story.task.version, "open")
    assert (child_of(story).execution.run, story.status) == (1, "waiting_child")


def test_a_child_ends_before_its_parent_stops_waiting() -> None:
    """Its deadline is its own workflow's or, if that is later, an hour before its parent's wait ends."""
    story = delegated(ASKS, ladder=a_ladder(days=3, end=OnDeadline.REVIEW))

    (wait,) = story.task.execution.waits
    assert child_of(story).business.deadline_at == wait.deadline_at - HEARD_IN_TIME


def test_a_token_that_comes_after_the_end_is_answered_at_once() -> None:
    """No wake-up is lost: `open_wait` looks at the child after it has stored the token."""
    story = delegated(ASKS)
    story.world.tokens.clear()
    answer_child(story)
    assert status_of(story) == ("expired", "waiting_child")

    story.run_again()

    assert story.status == "failed"
    assert "delegated did not complete" in (story.task.business.outcome or "")


def test_a_lost_word_of_the_end_is_made_up_for_at_the_deadline() -> None:
    """B60: where nobody tells the parent, the timer of its own wait finds out what the child came to."""
    story = delegated(ASKS, needed=False)
    story.world.tokens.clear()
    answer_child(story)
    assert status_of(story) == ("expired", "waiting_child")

    story.world.clock.set(story.task.execution.waits[0].deadline_at)
    fire_timers(story)

    assert story.task.execution.children[0].status == "expired"
    assert story.status == "completed"


def test_an_edited_child_is_believed_by_nobody() -> None:
    """R6, B19: a child whose record does not match its seal has not ended, whatever its columns say."""
    story = delegated(ASKS)
    key = story.child()
    where = (key.key, story.world.heads[key.key].version)
    sealed = story.world.checkpoints[where]
    story.world.checkpoints[where] = sealed.model_copy(
        update={"body": sealed.body.replace('"status":"waiting_event"', '"status":"completed"')}
    )
    head = story.world.heads[key.key]
    story.world.heads[key.key] = replace(head, columns=head.columns | {"status": "completed"})

    assert story.wake().next == "await_child"
    assert story.task.live_children


# --- what it may not do -----------------------------------------------------------------------------------------------


def test_an_owner_without_the_right_to_start_it_has_no_child_started() -> None:
    """A3: what a workflow starts for somebody is judged by that person's rights, live, before its first step."""

    def rule(question: Question) -> Ruling:
        if question.operation is Operation.START and question.resource.workflow == "sends":
            return Ruling(allowed=False, reason="not for clerks", policies=())
        return by_role(question)

    story = Story(an_errand(Delegate(to="sends", ladder=PATIENT)), SENDS, downstreams={"send_parcel": Downstream()})
    story.world.policies.rule = rule
    story.start(workflow="errand", request={})

    assert status_of(story) == ("failed", "failed")
    assert child_of(story).business.outcome == "not started: not for clerks"
    assert effects(story) == 0


@pytest.mark.parametrize(
    ("spoil", "because"),
    [
        (lambda w: replace(w, children={}), "errand may start no child task delegated"),
        (
            lambda w: replace(w, children={"delegated": Child(workflow="elsewhere", result=Anything)}),
            "errand may start no child task delegated",
        ),
        (lambda w: asking_for(w, {"subject": 7}), "subject"),
    ],
)
def test_a_workflow_that_delegates_wrongly_gets_a_person(spoil: Callable[[Workflow], Workflow], because: str) -> None:
    """What cannot be started, or came to what nobody asked for, is shown to a person with the reason."""
    story = delegated(workflow=spoil)

    assert story.status == "needs_review"
    assert because in story.task.business.because


def asking_for(workflow: Workflow, request: dict[str, Any]) -> Workflow:
    """The same workflow with another request to its child."""

    def next_step(view: TaskView) -> Step:
        step = workflow.next_step(view)
        return replace(step, request=request) if isinstance(step, StartChild) else step

    return replace(workflow, next_step=next_step)


def test_there_has_to_be_time_for_a_child() -> None:
    """A child that could only expire is not started; a person is told."""
    minute = WaitRule.model_validate({"ladder": ({"after_seconds": 60, "do": OnDeadline.REVIEW, "to": "operator"},)})
    story = delegated(ladder=minute)

    assert story.status == "needs_review"
    assert "no time left" in story.task.business.because
    assert len(story.world.heads) == 1


def test_a_result_in_a_form_of_another_release_is_read_again_after_it() -> None:
    """I5: a child's end is not taken in wrongly and not lost: a retry under the right release goes on from it."""
    story = with_operators(delegated(coming_to(SENDS, {"agreed": "perhaps"})))
    assert story.status == "needs_review"
    assert "came to something else" in story.task.business.because

    here = story.machine.workflows["errand"]
    story.machine.workflows["errand"] = replace(here, children={"delegated": Child(workflow="sends", result=Anything)})
    retry(story)
    story.machine.settle()

    assert story.status == "completed"
    assert (len(story.task.execution.children), effects(story)) == (1, 1)


def test_an_amendment_does_not_leave_a_child_behind() -> None:
    """A child serves the request that it was started for: it has to be stopped before the request may change."""
    story = delegated(ASKS)
    before = story.task

    with pytest.raises(ActionInFlight, match="child task"):
        story.amend(memo="otherwise")

    assert story.task == before


# --- when it does not complete ----------------------------------------------------------------------------------------


def test_what_was_done_before_a_child_that_fails_is_undone() -> None:
    """I7: a child's failure is a refusal like any other; the effects before it are undone, newest first."""
    van = Do(tool=a_tool("book_van", undo="cancel_van"))
    story = delegated(before=(van,), undos=("cancel_van",), downstreams=a_downstream(Mishap.REFUSED))

    assert status_of(story) == ("failed", "failed")
    assert effects(story, "cancel_van") == 1


def test_what_a_child_did_that_stands_is_named_by_its_parent() -> None:
    """B28: a parent that fails after its child did something is not green; a person gets the list of what is open."""
    refused = {"send_letter": Downstream(mishaps=deque([Mishap.REFUSED]))}
    story = delegated(SENDS, Do(tool=LETTER), downstreams=refused)

    assert status_of(story) == ("completed", "needs_review")
    assert "send_parcel (what is sent is sent)" in story.task.business.because
    assert story.child().task_id in story.task.business.because


def test_after_a_retry_another_child_may_try() -> None:
    """O2: an operator who retries lets another child try, under another id and so under other keys."""
    story = with_operators(delegated(downstreams=a_downstream(Mishap.REFUSED), workflow=reviewing))
    assert status_of(story) == ("failed", "needs_review")
    first = story.child()

    retry(story)
    story.machine.settle()

    assert status_of(story) == ("completed", "completed")
    assert story.child() != first
    assert (len(story.task.execution.children), effects(story)) == (1, 1)


@pytest.mark.parametrize("end", [OnDeadline.REVIEW, OnDeadline.EXPIRE, OnDeadline.FAIL])
def test_a_task_does_not_end_over_the_head_of_its_child(end: OnDeadline) -> None:
    """B28, B60: the ladder ends the wait, not what is under way: a person gets both, and no second child is started."""
    story = with_operators(delegated(STUCK, ladder=a_ladder(days=3, end=end), workflow=reviewing))
    assert status_of(story) == ("needs_review", "waiting_child")
    story.world.clock.advance(timedelta(days=3, minutes=1))
    fire_timers(story)
    assert status_of(story) == ("needs_review", "needs_review")

    retry(story)
    story.machine.settle()

    assert status_of(story) == ("needs_review", "waiting_child")
    assert len(story.world.heads) == 2


def test_a_task_may_go_on_without_its_child() -> None:
    """A ladder that ends in `proceed` is a workflow's word that it needs no answer."""
    story = delegated(STUCK, Do(tool=LETTER), ladder=a_ladder(days=3, end=OnDeadline.PROCEED))
    story.world.clock.advance(timedelta(days=3, minutes=1))
    fire_timers(story)

    assert status_of(story) == ("needs_review", "completed")
    assert effects(story, "send_letter") == 1


# --- stopping it ------------------------------------------------------------------------------------------------------


def test_stopping_a_task_stops_its_child_and_waits_for_what_that_came_to() -> None:
    """I4: one commit tells both; the parent ends after the child has, as canceled."""
    story = delegated(ASKS)

    story.ask_to_cancel()
    assert status_of(story) == ("cancel_requested", "cancel_requested")
    assert (story.ask_to_cancel().status, story.task.live_children != ()) == ("cancel_requested", True)
    story.machine.settle()

    assert status_of(story) == ("canceled", "canceled")
    assert effects(story) == 0


def test_a_child_that_nobody_waits_for_any_more_is_stopped_too() -> None:
    """I4, B28: a task in review still has its child; whoever stops the task stops both, and it ends after the child."""
    story = delegated(STUCK, ladder=a_ladder(days=3, end=OnDeadline.REVIEW))
    story.world.clock.advance(timedelta(days=3, minutes=1))
    fire_timers(story)
    assert status_of(story) == ("needs_review", "needs_review")

    story.cancel()

    assert status_of(story) == ("canceled", "canceled")
    assert story.task.execution.children[0].status == "canceled"


def test_a_quarantined_child_is_waited_for_until_its_operators_are_done() -> None:
    """R6, I4: nobody may stop what cannot be trusted; the stopped parent waits, and hears of it in the end."""
    story = with_operators(delegated(ASKS))
    parent = story.key
    story.speak_of(story.child())
    quarantine(story)
    story.speak_of(parent)

    story.cancel()
    assert status_of(story) == ("waiting_event", "cancel_requested")

    story.speak_of(story.child())
    close(story)
    story.machine.settle()
    story.speak_of(parent)
    assert (status_of(story), story.task.execution.children[0].status) == (("failed", "canceled"), "failed")


def test_stopping_reaches_the_children_of_children() -> None:
    """I4: the whole family is told in one commit, and ends from the youngest to the oldest."""
    middle = an_errand(Delegate(to="asks", ladder=a_ladder(days=10, end=OnDeadline.REVIEW)), name="middle")
    story = run_errand(Delegate(to="middle", ladder=PATIENT), others=[middle, ASKS])
    assert sorted(head.columns["status"] for head in story.world.heads.values()) == [
        "waiting_child",
        "waiting_child",
        "waiting_event",
    ]

    story.ask_to_cancel()
    assert {head.columns["status"] for head in story.world.heads.values()} == {"cancel_requested"}
    story.machine.settle()

    assert {head.columns["status"] for head in story.world.heads.values()} == {"canceled"}


def test_stopping_the_child_tasks_leaves_the_task_to_its_workflow() -> None:
    """I4: the scope `child_tasks` stops the children; what that means for their parent its own rules say."""
    story = delegated(ASKS, Do(tool=LETTER), needed=False)

    story.ask_to_cancel(scope=CancelScope.CHILD_TASKS)
    version = story.task.version
    told_again = story.ask_to_cancel(scope=CancelScope.CHILD_TASKS)
    assert (told_again.status, told_again.version) == ("waiting_child", version)
    story.machine.settle()

    assert status_of(story) == ("canceled", "completed")
    assert (effects(story), effects(story, "send_letter")) == (0, 1)


def test_a_task_whose_children_have_ended_has_none_to_stop() -> None:
    """I4: the answer does not pretend that there was something."""
    story = delegated(SENDS, WaitFor(name="agreed", ladder=a_ladder()))
    assert status_of(story) == ("completed", "waiting_event")

    with pytest.raises(NoChildTasks):
        story.ask_to_cancel(scope=CancelScope.CHILD_TASKS)


def test_a_child_that_was_too_far_to_be_stopped_is_named_where_its_parent_ends() -> None:
    """B17: a late success is not overwritten: the parent is canceled, and says what its child did."""
    story = delegated(an_errand(Do(tool=PARCEL, rule=a_rule()), name="sends"))
    parent, child = story.key, story.child()

    def step_in(name: str) -> None:
        if name == "tool_gateway.perform":
            story.calls.step_in = lambda _: None
            story.speak_of(parent)
            story.ask_to_cancel()

    story.calls.step_in = step_in
    story.speak_of(child)
    story.click()
    story.machine.settle()

    story.speak_of(parent)
    assert status_of(story) == ("canceled", "canceled")
    assert effects(story) == 1
    assert "send_parcel (what is sent is sent)" in (story.task.business.outcome or "")


def test_whoever_may_not_stop_the_child_stops_neither() -> None:
    """Law 6: nothing is half told."""
    story = delegated(ASKS)

    with pytest.raises(NotAuthorised):
        story.ask_to_cancel(by=INTERN)

    assert status_of(story) == ("waiting_event", "waiting_child")
