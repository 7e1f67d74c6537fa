"""The contract of `Executions`, on the fake and on moto's Step Functions; tokens on a strict stub (B12, B61)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError
from moto import mock_aws

from shared.adapters.stepfunctions.executions import StepFunctionsExecutions
from shared.domain.errors import InvariantBroken, Throttled
from shared.domain.identity import TaskKey
from shared.ports.executions import Executions, ExecutionState
from tests.builders import a_task_key
from tests.contract.cloud import client, stubbed
from tests.fakes.process import Process
from tests.fakes.store import World

MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:holdfast-test-refund"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One implementation, and what it has started: name and input."""

    executions: Executions
    world: World | None
    sfn: Any = None
    machine: str = ""

    def started(self, key: TaskKey) -> list[tuple[str, dict[str, Any]]]:
        """What runs of the task were started with."""
        if self.world is not None:
            return [
                (e.name, {"tenant": e.key.tenant, "task_id": e.key.task_id, "run": e.run, "version": e.version})
                for e in self.world.machines.executions.values()
                if e.key == key
            ]
        every = self.sfn.list_executions(stateMachineArn=self.machine)["executions"]
        mine = [e for e in every if e["name"].startswith(key.task_id)]
        return [
            (e["name"], json.loads(self.sfn.describe_execution(executionArn=e["executionArn"])["input"])) for e in mine
        ]


@pytest.fixture(params=["fake", "real"])
def service(request: pytest.FixtureRequest) -> Service:
    """Make the fake, then the real thing."""
    if request.param == "fake":
        world = World()
        world.machines.deployed = frozenset({"refund"})
        return Service(executions=Process(world).executions, world=world)
    made: Service = request.getfixturevalue("real_service")
    return made


@pytest.fixture(scope="module")
def real_service() -> Iterator[Service]:
    """Make a machine on moto; starting it takes longer than a test does."""
    with mock_aws():
        sfn = client("stepfunctions")
        machine = sfn.create_state_machine(
            name="holdfast-test-refund",
            definition='{"StartAt":"Wait","States":{"Wait":{"Type":"Wait","Seconds":60,"End":true}}}',
            roleArn="arn:aws:iam::123456789012:role/machine",
        )["stateMachineArn"]
        executions = StepFunctionsExecutions(sfn, {"refund": machine})
        yield Service(executions=executions, world=None, sfn=sfn, machine=machine)


def test_a_run_is_started_under_its_own_name(service: Service) -> None:
    """B61: the name is task and run, the input says whose task it is and from which version."""
    key = a_task_key(1)
    service.executions.start(key, workflow="refund", run=1, version=4)
    (started,) = service.started(key)
    assert started == (f"{key.task_id}-1", {"tenant": "acme", "task_id": key.task_id, "run": 1, "version": 4})


def test_a_run_started_twice_is_started_once(service: Service) -> None:
    """B61 a-d: again, with other input, from anywhere: the first one stands."""
    key = a_task_key(2)
    for version in (1, 1, 2):
        service.executions.start(key, workflow="refund", run=1, version=version)
    assert [given["version"] for _, given in service.started(key)] == [1]

    service.executions.start(key, workflow="refund", run=2, version=9)
    assert sorted(name for name, _ in service.started(key)) == [f"{key.task_id}-1", f"{key.task_id}-2"]


def test_a_workflow_without_machine_is_loud(service: Service) -> None:
    """Nothing can run it, however often it is tried."""
    with pytest.raises(InvariantBroken):
        service.executions.start(a_task_key(3), workflow="unheard_of", run=1, version=1)


def test_a_run_is_running_or_was_never_started(service: Service) -> None:
    """O3: the sweep asks before it starts another one."""
    key = a_task_key(4)
    assert service.executions.state(key, workflow="refund", run=1) is ExecutionState.ABSENT
    service.executions.start(key, workflow="refund", run=1, version=1)
    assert service.executions.state(key, workflow="refund", run=1) is ExecutionState.RUNNING


def test_input_has_one_form_to_the_byte() -> None:
    """B61 c: canonical, so that a repeat is the same request for the service too."""
    key = a_task_key()
    expected = {
        "stateMachineArn": MACHINE,
        "name": f"{key.task_id}-3",
        "input": f'{{"run":3,"task_id":"{key.task_id}","tenant":"acme","version":7}}',
    }
    with stubbed("stepfunctions") as (sfn, stub):
        stub.add_response("start_execution", {"executionArn": "a" * 10, "startDate": 0}, expected)
        StepFunctionsExecutions(sfn, {"refund": MACHINE}).start(key, workflow="refund", run=3, version=7)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("RUNNING", "running"),
        ("SUCCEEDED", "succeeded"),
        ("FAILED", "failed"),
        ("TIMED_OUT", "timed_out"),
        ("ABORTED", "aborted"),
        ("PENDING_REDRIVE", "running"),
    ],
)
def test_every_status_of_the_service_is_known(status: str, state: str) -> None:
    """O3: asked by the execution's own name; nothing is ended or replaced on a status that nobody knows."""
    key = a_task_key()
    execution = f"arn:aws:states:us-east-1:123456789012:execution:holdfast-test-refund:{key.task_id}-2"
    answer = {"executionArn": execution, "stateMachineArn": MACHINE, "status": status, "startDate": 0}
    with stubbed("stepfunctions") as (sfn, stub):
        stub.add_response("describe_execution", answer, {"executionArn": execution})
        assert StepFunctionsExecutions(sfn, {"refund": MACHINE}).state(key, workflow="refund", run=2) == state


def test_the_fake_answers_a_waiting_token_once() -> None:
    """As the service does: the second answer finds nobody waiting."""
    world = World()
    executions = Process(world).executions
    token = world.issue_token()
    assert executions.answer(token, wait_id="wai_1")
    assert not executions.answer(token, wait_id="wai_1")
    assert not executions.answer("malformed", wait_id="wai_1")
    assert world.machines.answers == [(token, "wai_1")]


def test_an_answer_carries_no_decision() -> None:
    """The machine wakes and reads the record; the output names the wait and nothing else."""
    with stubbed("stepfunctions") as (sfn, stub):
        stub.add_response("send_task_success", {}, {"taskToken": "token", "output": '{"wait_id":"wai_1"}'})
        assert StepFunctionsExecutions(sfn, {}).answer("token", wait_id="wai_1") is True


@pytest.mark.parametrize("code", ["TaskTimedOut", "TaskDoesNotExist", "InvalidToken"])
def test_a_token_that_nobody_waits_with_is_no_error(code: str) -> None:
    """B12: answered before, timed out, its execution over, or malformed: the task's own record says what is true."""
    with stubbed("stepfunctions") as (sfn, stub):
        stub.add_client_error("send_task_success", service_error_code=code, http_status_code=400)
        assert StepFunctionsExecutions(sfn, {}).answer("token", wait_id="wai_1") is False


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("ThrottlingException", 400, Throttled),
        ("ServiceUnavailable", 503, Throttled),
        ("InternalServerError", 500, Throttled),
        ("AccessDeniedException", 400, InvariantBroken),
        ("ValidationException", 400, InvariantBroken),
        ("SomethingNew", 400, InvariantBroken),
    ],
)
@pytest.mark.parametrize("operation", ["start_execution", "describe_execution", "send_task_success"])
def test_what_may_pass_is_tried_again_and_the_rest_is_loud(
    operation: str, code: str, status: int, error: type[Exception]
) -> None:
    """B12: throttling is not swallowed: the row stays in the outbox; what can never succeed alarms."""
    with stubbed("stepfunctions") as (sfn, stub):
        stub.add_client_error(operation, service_error_code=code, http_status_code=status)
        with pytest.raises(error):
            _call(StepFunctionsExecutions(sfn, {"refund": MACHINE}), operation)


def test_too_many_executions_may_pass() -> None:
    """An account's limit is a matter of time."""
    with stubbed("stepfunctions") as (sfn, stub):
        stub.add_client_error("start_execution", service_error_code="ExecutionLimitExceeded", http_status_code=400)
        with pytest.raises(Throttled):
            _call(StepFunctionsExecutions(sfn, {"refund": MACHINE}), "start_execution")


@pytest.mark.parametrize("operation", ["start_execution", "describe_execution", "send_task_success"])
def test_no_answer_is_tried_again(operation: str) -> None:
    """Both are harmless twice."""

    def fail(**_: object) -> None:
        raise ConnectionClosedError(endpoint_url="the service")

    sfn = client("stepfunctions")
    sfn.meta.events.register("before-call.stepfunctions", fail)
    try:
        with pytest.raises(Throttled):
            _call(StepFunctionsExecutions(sfn, {"refund": MACHINE}), operation)
    finally:
        sfn.meta.events.unregister("before-call.stepfunctions", fail)


def _call(executions: Executions, operation: str) -> None:
    if operation == "start_execution":
        executions.start(a_task_key(), workflow="refund", run=1, version=1)
    elif operation == "describe_execution":
        executions.state(a_task_key(), workflow="refund", run=1)
    else:
        executions.answer("token", wait_id="wai_1")
