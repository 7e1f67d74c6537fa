"""Looking at a deployed system from outside: its API, its executions, the bank's ledger, its workers."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeVar

from local.http_client import Answer
from local.instance import Instance

T = TypeVar("T")

# Everything asked for here happens within seconds; a minute and a half covers a lease that has to lapse as well.
PATIENCE_SECONDS: Final = 90.0
_PAUSE_SECONDS: Final = 0.2
# A run that no task gets to by itself.
RUN_BY_HAND: Final = 9_999


class OutOfPatience(Exception):
    """What was waited for did not happen in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observer:
    """A person with a browser, a console and a view into the bank.

    Args:
        workflow: whose executions are looked at.
    """

    instance: Instance
    workflow: str = "refund"

    def start(self, person: str, key: str, request: dict[str, Any]) -> Answer:
        """Start a refund."""
        body = {"workflow": "refund", "request": request}
        return self.instance.api(person).post("/tasks", body, idempotency_key=key)

    def task(self, task_id: str, person: str = "clerk-1") -> dict[str, Any]:
        """Read a task."""
        answer = self.instance.api(person).get(f"/tasks/{task_id}")
        if answer.status != HTTPStatus.OK:
            msg = f"reading the task was answered {answer.status}: {answer.body!r}"
            raise AssertionError(msg)
        task: dict[str, Any] = answer.json()
        return task

    def approval_id(self, task_id: str) -> str:
        """The id of the task's open approval."""
        return next(str(a["approval_id"]) for a in self.task(task_id)["approvals"] if a["status"] == "open")

    def decide(self, person: str, task_id: str, approval_id: str, *, version: int, decision: str = "approve") -> Answer:
        """Decide an approval."""
        body = {"decision": decision, "version": version}
        return self.instance.api(person).post(f"/tasks/{task_id}/approvals/{approval_id}/decision", body)

    def until_status(self, task_id: str, *statuses: str) -> dict[str, Any]:
        """Wait until the task has one of these statuses, and return it."""
        return self.until(
            lambda: task if (task := self.task(task_id))["status"] in statuses else None,
            f"task {task_id} is {' or '.join(statuses)}",
        )

    def until_waiting(self, task_id: str, state: str) -> list[str]:
        """Wait until the task's execution has entered a state and stays in it, and return all its states."""
        return self.until(
            lambda: states if (states := self.states(task_id)) and states[-1] == state else None,
            f"the execution of {task_id} is in {state}",
        )

    def states(self, task_id: str) -> list[str]:
        """The states that the task's executions have entered, as the console shows them."""
        client = self.instance.aws.client("stepfunctions")
        return [state for arn in self._executions(client, task_id) for state in self._entered(client, arn)]

    def calls(self, task_id: str) -> list[tuple[str, str]]:
        """The calls of functions that the task's executions have seen the end of: the state, and the error or nothing.

        A wait's call ends when the wait is answered.
        """
        client = self.instance.aws.client("stepfunctions")
        return [call for arn in self._executions(client, task_id) for call in self._called(client, arn)]

    def run_by_hand(self, task_id: str) -> list[str]:
        """Start an execution of a task by hand, as an operator might, wait until it ends, and return its states."""
        client = self.instance.aws.client("stepfunctions")
        document = {"tenant": "acme", "task_id": task_id, "run": RUN_BY_HAND, "version": 1}
        name = f"by-hand-{task_id}-{time.monotonic_ns()}"
        arn = client.start_execution(
            stateMachineArn=self.instance.machine_arn(self.workflow), name=name, input=json.dumps(document)
        )["executionArn"]
        self.until(
            lambda: client.describe_execution(executionArn=arn)["status"] != "RUNNING" or None, f"{name} has ended"
        )
        return self._entered(client, arn)

    def execution_status(self, task_id: str) -> str:
        """The status of the task's newest execution."""
        client = self.instance.aws.client("stepfunctions")
        arns = self._executions(client, task_id)
        return str(client.describe_execution(executionArn=arns[-1])["status"]) if arns else "NONE"

    def refunds(self, order: str) -> list[dict[str, Any]]:
        """The bank's ledger for one order."""
        ledger: list[dict[str, Any]] = self.instance.payments().get("/refunds").json()["items"]
        return [entry for entry in ledger if entry["order_reference"] == order]

    def hold_answers_after_recording(self, seconds: int) -> None:
        """Let the bank record its next refund and then keep its answer back."""
        self._order_fault({"hold_after_recording_seconds": seconds, "times": 1})

    def break_before_recording(self, status: int) -> None:
        """Let the bank answer its next refund with an error status, and record nothing."""
        self._order_fault({"answer_status_before_recording": status, "times": 1})

    def _order_fault(self, fault: dict[str, int]) -> None:
        answer = self.instance.payments().put("/faults", {**fault, "collection": "refunds"})
        if answer.status >= HTTPStatus.BAD_REQUEST:
            msg = f"the bank took no fault: {answer.status} {answer.body!r}"
            raise AssertionError(msg)

    def kill_workers(self, function: str) -> list[int]:
        """Kill the processes of a function, as a power cut would, and return their pids."""
        pids = self.instance.worker_pids(function)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return pids

    def model_requests(self) -> int:
        """How often the model was asked so far."""
        return self.instance.model_requests()

    @staticmethod
    def until(look: Callable[[], T | None], what: str, *, seconds: float = PATIENCE_SECONDS) -> T:
        """Look again and again until there is something to see.

        Raises:
            OutOfPatience: it did not happen in time.
        """
        give_up_at = time.monotonic() + seconds
        while time.monotonic() < give_up_at:
            seen = look()
            if seen is not None:
                return seen
            time.sleep(_PAUSE_SECONDS)
        msg = f"not within {seconds:.0f} s: {what}"
        raise OutOfPatience(msg)

    def _entered(self, client: Any, arn: str) -> list[str]:  # noqa: ANN401 - a boto3 client
        return [
            event["stateEnteredEventDetails"]["name"]
            for event in self._history(client, arn)
            if "stateEnteredEventDetails" in event
        ]

    def _called(self, client: Any, arn: str) -> list[tuple[str, str]]:  # noqa: ANN401 - a boto3 client
        state, calls = "", []
        for event in self._history(client, arn):
            state = event.get("stateEnteredEventDetails", {}).get("name", state)
            if event["type"] == "TaskSucceeded":
                calls.append((state, ""))
            elif event["type"] in {"TaskFailed", "TaskTimedOut"}:
                details = event.get("taskFailedEventDetails") or event.get("taskTimedOutEventDetails") or {}
                calls.append((state, str(details.get("error"))))
        return calls

    @staticmethod
    def _history(client: Any, arn: str) -> list[dict[str, Any]]:  # noqa: ANN401 - a boto3 client
        pages = client.get_paginator("get_execution_history").paginate(executionArn=arn)
        return [event for page in pages for event in page["events"]]

    def _executions(self, client: Any, task_id: str) -> list[str]:  # noqa: ANN401 - a boto3 client
        machine = self.instance.machine_arn(self.workflow)
        found: list[dict[str, Any]] = []
        for page in client.get_paginator("list_executions").paginate(stateMachineArn=machine):
            found += [e for e in page["executions"] if e["name"].startswith(f"{task_id}-")]
        return [e["executionArn"] for e in sorted(found, key=lambda e: int(e["name"].rsplit("-", 1)[-1]))]
