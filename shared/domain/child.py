"""Child tasks: a task of its own that another one starts and waits for.

The child and the wait for it are one commit (law 6). What becomes of it stands in its own sealed record, where its
parent reads it; that it has ended is only a reason for the parent to wake up and look.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from shared.domain.canonical import short_digest
from shared.domain.change import (
    Change,
    Ground,
    begin,
    note_fact,
    open_wait,
    set_execution,
    settle_waits,
    stamps_of,
)
from shared.domain.checkpoint import Checkpoint, ChildTask, Fact
from shared.domain.compensation import not_undone
from shared.domain.errors import InvalidRequest
from shared.domain.identity import TaskKey
from shared.domain.outbox import AnswerParent
from shared.domain.start import first_version
from shared.domain.status import Status
from shared.domain.wait import OnDeadline, PendingWait, Rung, WaitKind, WaitRule, WaitStatus
from shared.domain.workflow import StartChild, Workflow

# A child has to end this long before its parent stops waiting, so that its end, whatever it is, is heard of in time.
HEARD_IN_TIME: Final = timedelta(hours=1)
STANDS_CHARACTERS_MAX: Final = 300

# How long a task that has to end waits for a child that was told to stop, before a person looks after both.
STOPPING_WAIT: Final = WaitRule(
    ladder=(
        Rung(after_seconds=int(timedelta(days=1).total_seconds()), do=OnDeadline.REMIND, to="operator"),
        Rung(after_seconds=int(timedelta(days=7).total_seconds()), do=OnDeadline.REVIEW, to="operator_lead"),
    )
)


def child_task_id(parent: TaskKey, *, request_version: int, ordinal: int, name: str) -> str:
    """Make the id of a child: the same however often its start is decided, like the key of an action (B26).

    It is as unguessable as its parent's, which it is made from.
    """
    return f"tsk_{short_digest('child task', [parent.key, request_version, ordinal, name])}"


def start_child(change: Change, step: StartChild, ground: Ground) -> Change:
    """Start a child and open the wait for it; a live one of this name is waited for once more.

    Raises:
        InvalidRequest: the workflow may not start this, asks for it in an unusable form or without time for it, or
            knows how it ended already.
    """
    task = change.task
    live = next((c for c in task.live_children if c.name == step.name), None)
    if live is not None:
        return wait_for(change, live, step.wait, ground)
    if any(fact.name == step.name for fact in task.business.facts):
        msg = f"the child task {step.name} has ended already"
        raise InvalidRequest(msg)
    workflow = _permitted(step, ground)
    request = workflow.read_request(step.request)
    version, ordinal = task.business.request_version, task.execution.ordinal + 1
    child = ChildTask(
        task_id=child_task_id(task.key, request_version=version, ordinal=ordinal, name=step.name),
        name=step.name,
        ordinal=ordinal,
    )
    known = set_execution(change, ordinal=ordinal, children=(*task.execution.children, child))
    waiting = wait_for(known, child, step.wait, ground)
    deadline_at = min(ground.now + workflow.task_deadline, waiting.opened[-1].deadline_at - HEARD_IN_TIME)
    if deadline_at <= ground.now:
        msg = f"there is no time left for the child task {step.name}"
        raise InvalidRequest(msg)
    # Its first step is for its own first wake-up to decide, behind every gate.
    begun = first_version(
        TaskKey(tenant=task.security.tenant, task_id=child.task_id),
        request,
        owner=task.business.owner,
        because=f"started by {task.task_id}",
        deadline_at=deadline_at,
        # One trace joins the two.
        trace=task.trace,
        ground=replace(ground, workflow=workflow, stamps=stamps_of(workflow, ground.stamps.model)),
        on_behalf_of=task.security.on_behalf_of,
        parent=task.task_id,
    )
    return replace(waiting, children=(*waiting.children, begun))


def wait_for(change: Change, child: ChildTask, rule: WaitRule, ground: Ground) -> Change:
    """Open a wait for a child. The wait is known by the child's own id."""
    return open_wait(
        change,
        kind=WaitKind.CHILD,
        name=child.name,
        rule=rule,
        answered_by=(child.task_id,),
        ground=ground,
        correlation_id=child.task_id,
    )


def tell_parent(change: Change) -> Change:
    """Stage the word to the parent that this task has ended; a task without one tells nobody."""
    if change.task.execution.parent is None:
        return change
    return replace(change, messages=(*change.messages, AnswerParent(child=change.task.task_id)))


def note_end(task: Checkpoint, child: Checkpoint, ground: Ground) -> Change:
    """Take a child's end into the record: how it ended, what of it stands, and a fact of the wait's name.

    The fact happened if the child completed, and then has the child's result as it stands in the child's record.
    """
    known = next(c for c in task.execution.children if c.task_id == child.task_id)
    status, outcome = child.business.status, child.business.outcome
    change = begin(task, because=f"{known.name} has ended as {status}: {outcome}", ground=ground)
    waiting = wait_of(task, child)
    if waiting is not None:
        change = settle_waits(change, WaitStatus.SETTLED, only=waiting.wait_id)
    stands = "; ".join(not_undone(child, ground.workflows[child.business.workflow]))[:STANDS_CHARACTERS_MAX]
    ended = known.model_copy(update={"status": status, "stands": stands})
    change = set_execution(change, children=tuple(ended if c == known else c for c in task.execution.children))
    completed = status is Status.COMPLETED
    fact = Fact(
        name=known.name,
        happened=completed,
        ordinal=known.ordinal,
        settled_at=child.updated_at,
        reference=child.task_id,
        values=dict(child.business.result) if completed else {},
    )
    return note_fact(change, fact)


def wait_of(task: Checkpoint, child: Checkpoint) -> PendingWait | None:
    """The task's open wait for this child, if it has one."""
    return next(
        (w for w in task.execution.waits if w.kind is WaitKind.CHILD and w.correlation_id == child.task_id), None
    )


def _permitted(step: StartChild, ground: Ground) -> Workflow:
    child = ground.workflow.children.get(step.name)
    workflow = None if child is None else ground.workflows.get(child.workflow)
    if workflow is None:
        msg = f"{ground.workflow.name} may start no child task {step.name}"
        raise InvalidRequest(msg)
    return workflow
