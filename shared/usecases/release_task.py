"""Release: an operator takes a task out of quarantine, from a version of its record that is intact."""

from dataclasses import dataclass

from shared.domain.authority import Operation
from shared.domain.errors import (
    ActionInFlight,
    IllegalTransition,
    ReleaseRefused,
    StaleCommand,
    StaleVersion,
    TaskClosed,
)
from shared.domain.release import Found, closed, named, released
from shared.ports.task_records import Head
from shared.usecases.engine import ApiDeps
from shared.usecases.intact_record import Intact, Located, found_beside, locate
from shared.usecases.operator_command import OperatorCommand, ground_of, require_version
from shared.usecases.stored_task import commit_release
from shared.usecases.summary import TaskSummary, summarise


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseTask(OperatorCommand):
    """A command to go on from one version. The operator names it, and so takes the loss of what came after it."""

    from_version: int


def release_task(command: ReleaseTask, deps: ApiDeps) -> TaskSummary:
    """Go on from the newest intact version, under a new version after everything that is stored.

    The distrusted versions stay as they are, for whoever finds out what happened. The task passes every gate again,
    and people are asked again about what they had approved.

    Raises:
        TaskNotFound, NotAuthorised: nothing was changed.
        IllegalTransition: the task is not quarantined.
        StaleCommand: the head is at another version than was seen, or another version is the newest intact one.
        ReleaseRefused: nothing is intact, or the ledger or the waits know of something younger; says of what.
        Redecide: another operator came first.

    If killed here:
        The task is quarantined as before, or released with its execution staged.
    """
    head, intact = _quarantined(command, Operation.RELEASE, deps)
    task = intact.loaded.task
    if command.from_version != task.version:
        msg = f"version {task.version} is the newest that is intact, out of {intact.newest}"
        raise StaleCommand(msg)
    found = found_beside(intact, head, deps)
    _require_nothing_younger(found)
    change = released(
        found,
        ground_of(task, deps),
        head_run=_run_of(head),
        by=command.principal.ref.key,
        because=command.sentence(f"released from version {task.version}"),
    )
    return summarise(commit_release(change, deps.tasks, intact=intact.loaded, head=head).task)


def close_task(command: OperatorCommand, deps: ApiDeps) -> TaskSummary:
    """End a quarantined task as failed. Its outcome names every effect that stands, or may have happened.

    Raises:
        TaskNotFound, NotAuthorised: nothing was changed.
        IllegalTransition: the task is not quarantined.
        TaskClosed: it had ended, and stays so when it is released.
        StaleCommand: the head is at another version than was seen.
        ReleaseRefused: nothing of the record is intact, so there is nothing to end.
        Redecide: another operator, or a worker, came first.

    If killed here:
        The task is quarantined as before, or it has ended with its waits and unsent intents.
    """
    head, intact = _quarantined(command, Operation.CLOSE, deps)
    if intact.loaded.task.closed:
        msg = f"the task has ended: {intact.loaded.task.business.outcome}; release it as it is"
        raise TaskClosed(msg)
    found = found_beside(intact, head, deps)
    ground = ground_of(found.task, deps)
    change = closed(found, ground, by=command.principal.ref.key, because=command.sentence("closed"))
    try:
        return summarise(commit_release(change, deps.tasks, intact=intact.loaded, head=head).task)
    except ActionInFlight as claimed:
        # It left at the last moment: who closes the task has to know.
        raise StaleVersion(claimed.message) from claimed


def _quarantined(command: OperatorCommand, operation: Operation, deps: ApiDeps) -> tuple[Head, Intact]:
    located: Located = locate(command.principal, command.task_id, operation, deps)
    head = located.head
    if head.quarantine is None:
        msg = "the task is not quarantined"
        raise IllegalTransition(msg)
    require_version(command, head.version)
    if located.intact is None:
        msg = "no version of the record is intact; restore it from a backup first"
        raise ReleaseRefused(msg)
    return head, located.intact


def _require_nothing_younger(found: Found) -> None:
    if found.younger:
        msg = (
            f"something has happened after version {found.task.version}: {named(found.younger)}; "
            "restore the record, or close the task"
        )
        raise ReleaseRefused(msg)


def _run_of(head: Head) -> int:
    run = head.columns.get("run")
    return run if isinstance(run, int) and run > 0 else 1
