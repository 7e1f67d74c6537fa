"""Quarantine by hand: an operator does not trust a task's record, whatever the checks say."""

from shared.domain.authority import Operation
from shared.domain.errors import IllegalTransition, TaskClosed
from shared.usecases.engine import ApiDeps
from shared.usecases.intact_record import locate
from shared.usecases.operator_command import OperatorCommand, require_version
from shared.usecases.quarantine import quarantine_task


def quarantine_by_hand(command: OperatorCommand, deps: ApiDeps) -> None:
    """Mark the task, so that nothing is begun on it until an operator releases or closes it. Waits stay as they are.

    What is in flight is not called back: its outcome waits in the ledger.

    Raises:
        TaskNotFound, NotAuthorised: nothing was changed.
        StaleCommand: the task is at another version than was seen.
        TaskClosed: it has ended; there is nothing that could be begun on it.
        IllegalTransition: it is quarantined already.
        Redecide: somebody moved the task meanwhile; look again.

    If killed here:
        The mark, the review and the alarm are stored together or not at all.
    """
    located = locate(command.principal, command.task_id, Operation.QUARANTINE, deps)
    head, intact = located.head, located.intact
    if head.quarantine is not None:
        msg = f"the task is quarantined: {head.quarantine}"
        raise IllegalTransition(msg)
    require_version(command, head.version)
    if intact is not None and intact.loaded.task.version == head.version and intact.loaded.task.closed:
        msg = f"the task has ended: {intact.loaded.task.business.outcome}"
        raise TaskClosed(msg)
    quarantine_task(head.key, head.version, str(command.sentence("quarantined")), deps.tasks)
