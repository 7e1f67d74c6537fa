"""The state machine service, in memory. It records and drives nothing: a test plays the machine."""

from shared.domain.errors import InvariantBroken, Throttled
from shared.domain.identity import TaskKey, execution_name
from shared.ports.executions import ExecutionState
from tests.fakes.calls import Calls
from tests.fakes.store import StartedExecution, World


def _no_answer() -> Exception:
    return Throttled("the state machine service did not answer")


class FakeExecutions:
    def __init__(self, world: World, calls: Calls | None = None) -> None:
        self._world = world
        self._calls = calls or Calls()

    def start(self, key: TaskKey, *, workflow: str, run: int, version: int) -> None:
        with self._calls.around("executions.start", dropped=_no_answer), self._world as world:
            machines = world.machines
            if machines.deployed is not None and workflow not in machines.deployed:
                msg = f"no machine is deployed for {workflow}"
                raise InvariantBroken(msg)
            name = execution_name(key.task_id, run)
            started = StartedExecution(name=name, workflow=workflow, key=key, run=run, version=version)
            machines.executions.setdefault(name, started)

    def state(self, key: TaskKey, *, workflow: str, run: int) -> ExecutionState:
        with self._calls.around("executions.state", dropped=_no_answer), self._world as world:
            name = execution_name(key.task_id, run)
            if name not in world.machines.executions:
                return ExecutionState.ABSENT
            return world.machines.ended.get(name, ExecutionState.RUNNING)

    def answer(self, token: str, *, wait_id: str) -> bool:
        with self._calls.around("executions.answer", dropped=_no_answer), self._world as world:
            if token not in world.machines.waiting:
                return False
            world.machines.waiting.remove(token)
            world.machines.answers.append((token, wait_id))
            return True
