"""Inspect: what an operator has to know about a task's record before releasing or closing it."""

from dataclasses import dataclass

from shared.domain.authority import Operation, Principal
from shared.usecases.engine import ApiDeps
from shared.usecases.intact_record import found_beside, locate
from shared.usecases.summary import TaskSummary, summarise


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSummary:
    """How a task's record stands.

    `version` is the head's, which commands name. `newest_version` is the newest under which anything is stored,
    `intact_version` the newest that can be trusted, `younger` what has happened after that one, and `task` the task as
    it was then.
    """

    task_id: str
    version: int
    quarantine: str | None
    newest_version: int
    intact_version: int | None
    younger: tuple[str, ...]
    task: TaskSummary | None


def inspect_record(principal: Principal, task_id: str, deps: ApiDeps) -> RecordSummary:
    """Look at a task's record, trusted or not. Looking changes nothing.

    Raises:
        TaskNotFound: no such task for this principal.
        NotAuthorised: the principal may read the task, and may not release it.
        ReleaseRefused: a later release of the code has written to it.
        SealUnavailable: the key service could not be asked.
    """
    located = locate(principal, task_id, Operation.RELEASE, deps)
    head, intact = located.head, located.intact
    return RecordSummary(
        task_id=head.key.task_id,
        version=head.version,
        quarantine=head.quarantine,
        newest_version=located.newest,
        intact_version=intact.loaded.task.version if intact else None,
        younger=found_beside(intact, head, deps).younger if intact else (),
        task=summarise(intact.loaded.task) if intact else None,
    )
