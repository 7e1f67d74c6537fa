"""The state machine's executions: disposable runs of a task."""

from enum import StrEnum
from typing import Protocol

from shared.domain.identity import TaskKey


class ExecutionState(StrEnum):
    """How an execution stands, as the state machine service says."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    ABORTED = "aborted"
    ABSENT = "absent"


class Executions(Protocol):
    """Starting and answering."""

    def start(self, key: TaskKey, *, workflow: str, run: int, version: int) -> None:
        """Start the run under its own name; starting it twice starts it once (B61).

        Raises:
            Throttled: try again later.
            InvariantBroken: no machine is deployed for the workflow.
        """

    def state(self, key: TaskKey, *, workflow: str, run: int) -> ExecutionState:
        """Say how a run stands now.

        Raises:
            Throttled: try again later; that is no verdict about the run.
        """

    def answer(self, token: str, *, wait_id: str) -> bool:
        """Tell the waiting state to go on. The answer carries no decision; the machine wakes and reads the record.

        Returns:
            False if the token is no longer waited for (answered before, timed out, or its execution has ended).

        Raises:
            Throttled: try again later.
        """
