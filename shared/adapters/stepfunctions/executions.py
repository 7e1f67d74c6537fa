"""Executions of the state machines: started by name, answered by token."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from shared.adapters.cloud_errors import CLOUD_ERRORS, code_of, may_pass
from shared.domain.canonical import canonical
from shared.domain.errors import InvariantBroken, Throttled
from shared.domain.identity import TaskKey, execution_name
from shared.ports.executions import ExecutionState

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

_STARTED_BEFORE: Final = "ExecutionAlreadyExists"
_NOT_THERE: Final = "ExecutionDoesNotExist"
_TOO_MANY: Final = "ExecutionLimitExceeded"
# Nobody waits with this token any more, or nobody ever did (B12).
_NOT_WAITED_FOR: Final = frozenset({"InvalidToken", "TaskDoesNotExist", "TaskTimedOut"})

_STATES: Final[Mapping[str, ExecutionState]] = {
    "RUNNING": ExecutionState.RUNNING,
    "SUCCEEDED": ExecutionState.SUCCEEDED,
    "FAILED": ExecutionState.FAILED,
    "TIMED_OUT": ExecutionState.TIMED_OUT,
    "ABORTED": ExecutionState.ABORTED,
}


class StepFunctionsExecutions:
    """The machines by workflow. A function that only answers needs none."""

    def __init__(self, client: "SFNClient", machines: Mapping[str, str]) -> None:
        self._client = client
        self._machines = machines

    def start(self, key: TaskKey, *, workflow: str, run: int, version: int) -> None:
        """See `Executions.start`. The input has one form only, so that a repeat is the same request to the byte."""
        machine = self._machine(workflow)
        document = canonical({"tenant": key.tenant, "task_id": key.task_id, "run": run, "version": version})
        name = execution_name(key.task_id, run)
        try:
            self._client.start_execution(stateMachineArn=machine, name=name, input=document.decode())
        except CLOUD_ERRORS as error:
            if code_of(error) != _STARTED_BEFORE:
                raise _failure(error) from error

    def state(self, key: TaskKey, *, workflow: str, run: int) -> ExecutionState:
        """See `Executions.state`. The service's answer may be some seconds behind.

        Raises:
            InvariantBroken: no machine is deployed for the workflow, or the service refuses to say.
        """
        execution = _execution_arn(self._machine(workflow), execution_name(key.task_id, run))
        try:
            status = self._client.describe_execution(executionArn=execution)["status"]
        except CLOUD_ERRORS as error:
            if code_of(error) == _NOT_THERE:
                return ExecutionState.ABSENT
            raise _failure(error) from error
        # An execution that an operator may redrive is as good as running: nobody else may take its place.
        return _STATES.get(status, ExecutionState.RUNNING)

    def answer(self, token: str, *, wait_id: str) -> bool:
        """See `Executions.answer`."""
        try:
            self._client.send_task_success(taskToken=token, output=canonical({"wait_id": wait_id}).decode())
        except CLOUD_ERRORS as error:
            if code_of(error) in _NOT_WAITED_FOR:
                return False
            raise _failure(error) from error
        return True

    def _machine(self, workflow: str) -> str:
        machine = self._machines.get(workflow)
        if machine is None:
            msg = f"no machine is deployed for {workflow}"
            raise InvariantBroken(msg)
        return machine


def _execution_arn(machine: str, name: str) -> str:
    """Name an execution as the service does: its machine's ARN with another kind of resource and the name behind it."""
    return f"{machine.replace(':stateMachine:', ':execution:', 1)}:{name}"


def _failure(error: Exception) -> Throttled | InvariantBroken:
    if may_pass(error) or code_of(error) == _TOO_MANY:
        msg = f"the state machine service did not answer: {code_of(error)}"
        return Throttled(msg)
    msg = f"the state machine service refused a request of ours: {code_of(error)}"
    return InvariantBroken(msg)
