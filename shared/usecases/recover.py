"""Recover: find live tasks without a valid next event, and give them one. Safe to run twice and side by side."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from shared.domain.checkpoint import WATCH_SHARDS, Checkpoint
from shared.domain.errors import EngineError, Redecide, TaskNotFound, WaitSettled
from shared.domain.identity import TaskKey
from shared.domain.recovery import Finding, mend
from shared.domain.wait import Wait
from shared.ports.executions import ExecutionState
from shared.ports.task_records import Head
from shared.usecases.engine import RecoverDeps
from shared.usecases.quarantine import quarantine_task, remind_of_quarantine
from shared.usecases.stored_task import Loaded, Untrusted, commit_change, ended_child, load_task

# The stream delivers within seconds and retries for an hour; a row this old has been given up by it or is stuck.
OUTBOX_STALE_AFTER: Final = timedelta(minutes=5)
# What one run of the sweep takes on; the rest is there in the next one, minutes later.
TASKS_PER_SHARD_MAX: Final = 25
OUTBOX_ROWS_MAX: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What one sweep came to. `failed` are tasks that could not be looked at; they stay due."""

    looked_at: int
    mended: int
    restaged: int
    failed: int


def recover_task(key: TaskKey, deps: RecoverDeps, *, run: int | None = None) -> bool:
    """Look at one task, by its base row, and mend it if its execution is gone or a deadline was missed.

    Args:
        run: the run whose end was reported; another run's end is nobody's concern any more.

    Returns:
        Whether a change was committed.

    Raises:
        Retry: a store or the state machine service asks for patience.

    If killed here:
        The change and the start of the new execution are one commit.
    """
    try:
        loaded = load_task(key, deps.tasks)
    except TaskNotFound:
        return False
    except Untrusted as untrusted:
        return _untrusted(untrusted.head, untrusted.message, deps)
    task = loaded.task
    if task.closed or (run is not None and run != task.execution.run):
        return False
    workflow = deps.tasks.workflows[task.business.workflow]
    state = deps.executions.state(key, workflow=workflow.name, run=task.execution.run)
    ground = deps.tasks.ground(workflow, task.stamps)
    finding = Finding(running=state is ExecutionState.RUNNING, aborted_by_operator=state is ExecutionState.ABORTED)
    change = mend(task, ground, finding, wait=_open_wait(task, deps), ended=ended_child(task, deps.tasks))
    if change is None:
        return False
    try:
        commit_change(change, deps.tasks, previous=loaded)
    except Redecide as moved:
        # Somebody moved the task, so it has a next event; or it says so and is wrong.
        return isinstance(moved, WaitSettled) and _quarantined(loaded, moved, deps)
    return True


def _quarantined(loaded: Loaded, lost: WaitSettled, deps: RecoverDeps) -> bool:
    """Quarantine a task whose open wait is not stored as open; a wait and its task move in one commit (B19).

    Returns:
        Whether it was; if the task has moved meanwhile, its wait was settled by that move.
    """
    key = loaded.task.key
    stored = deps.tasks.records.load(key)
    if stored is None or stored.head.version != loaded.task.version:
        return False
    reason = f"a wait is not stored as open, although the record says that it is: {lost.message}"
    quarantine_task(key, stored.head.version, reason, deps.tasks)
    return True


def _untrusted(head: Head, reason: str, deps: RecoverDeps) -> bool:
    """Nothing may run on it: what nobody has marked yet is quarantined, and what everybody has forgotten is alarmed."""
    try:
        if head.quarantine is not None:
            return remind_of_quarantine(head, deps.tasks)
        quarantine_task(head.key, head.version, reason, deps.tasks)
    except Redecide:
        # Somebody moved the task, or released it.
        return False
    return True


def _open_wait(task: Checkpoint, deps: RecoverDeps) -> Wait | None:
    waits = task.execution.waits
    return deps.waits.get(task.security.tenant, waits[0].correlation_id) if waits else None


def sweep(deps: RecoverDeps) -> Swept:
    """Look at every live task that is due for a check-up, and put stuck outbox rows before the stream again.

    One task that cannot be looked at does not keep the others from it.
    """
    now = deps.tasks.clock.now()
    looked_at = mended = failed = 0
    for shard in WATCH_SHARDS:
        for key in deps.tasks.records.overdue(shard, before=now, limit=TASKS_PER_SHARD_MAX):
            looked_at += 1
            try:
                mended += recover_task(key, deps)
            except EngineError:
                failed += 1
    stale = deps.outbox.stale(before=now - OUTBOX_STALE_AFTER, limit=OUTBOX_ROWS_MAX)
    for row in stale:
        deps.outbox.restage(row, now=now)
    return Swept(looked_at=looked_at, mended=mended, restaged=len(stale), failed=failed)
