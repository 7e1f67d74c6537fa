"""What all operators' commands have in common: who, about which version of which task, and why."""

from dataclasses import dataclass

from shared.domain.authority import Operation, Principal
from shared.domain.change import Ground, Reason, stamps_of
from shared.domain.checkpoint import Checkpoint
from shared.domain.errors import StaleCommand
from shared.usecases.engine import ApiDeps
from shared.usecases.permission import load_permitted
from shared.usecases.stored_task import Loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCommand:
    """A command about the task as it was at `version`: a repeat finds that it has moved on and does nothing."""

    principal: Principal
    task_id: str
    version: int
    reason: str

    def sentence(self, done: str) -> Reason:
        """The sentence that stays in the task's record."""
        return Reason(says=f"{done} by {self.principal.ref.subject}", quotes=self.reason)


def load_operated(command: OperatorCommand, operation: Operation, deps: ApiDeps) -> Loaded:
    """Load the task of a command, if the principal may give it and speaks of the current version.

    Raises:
        TaskNotFound, NotAuthorised, CheckpointQuarantined: nothing was changed.
        StaleCommand: the task has moved on since it was seen.
    """
    loaded = load_permitted(command.principal, command.task_id, operation, tasks=deps.tasks, rights=deps.rights)
    require_version(command, loaded.task.version)
    return loaded


def require_version(command: OperatorCommand, version: int) -> None:
    """Check that a command speaks of the current version.

    Raises:
        StaleCommand: it does not.
    """
    if command.version != version:
        msg = f"you saw version {command.version} of the task, it is now at version {version}"
        raise StaleCommand(msg)


def ground_of(task: Checkpoint, deps: ApiDeps) -> Ground:
    """Make what an operator's change stands on."""
    workflow = deps.tasks.workflows[task.business.workflow]
    return deps.tasks.ground(workflow, stamps_of(workflow, deps.model_id))
