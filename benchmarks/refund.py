"""One approved refund: what it asks of the stores, the key service, the machine and Lambda."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from benchmarks.meter import Meter
from benchmarks.parts import measured_process
from benchmarks.units import item_bytes
from shared.adapters.cedar.authoriser import CedarAuthoriser
from shared.domain.approval import DecisionWord
from shared.domain.identity import PrincipalRef, TaskKey
from shared.runtime.claims import Identity, known_principal
from shared.usecases.decide_approval import DecideApproval, decide_approval
from shared.usecases.start_task import StartTask, start_task
from shared.workflows.registry import discover
from tests.contract.stores import real_stores
from tests.contract.tables import table_name
from tests.fakes.calls import Calls
from tests.fakes.downstream import Downstream
from tests.fakes.machine import Machine
from tests.fakes.model import proposes
from tests.fakes.store import World

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from shared.domain.authority import Principal

# As long as a Cognito pool's, a key's and a model's are: they are in every checkpoint.
_ISSUER = "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_A1b2C3d4E"
KEY_ID = "1b6f0a3e-58c7-4d2e-9f41-c0a7d5e8b312"
MODEL_ID = "amazon.nova-pro-v1:0"
CLERK = PrincipalRef(issuer=_ISSUER, subject="7f3e2a10-4c55-4b8e-9a6f-0d1e2f3a4b5c")
MANAGER = PrincipalRef(issuer=_ISSUER, subject="0a1b2c3d-5e6f-4708-91a2-b3c4d5e6f708")
REQUEST: Final[dict[str, str | int]] = {"amount_minor": 45_000, "currency": "EUR", "order_reference": "ord-1001"}


def measure_refund(client: DynamoDBClient, observer: DynamoDBClient) -> dict[str, Any]:
    """Run one refund of 450.00 from request to closed and return its counts."""
    stores = real_stores(client)
    stores.back_door.grant(CLERK, tenant="acme", roles={"refund_clerk"})
    stores.back_door.grant(MANAGER, tenant="acme", roles={"refund_approver"})
    world, calls = World(), Calls()
    world.seal_keys.by_id = {KEY_ID: b"a key for measuring"}
    world.seal_keys.current = KEY_ID
    world.downstreams["issue_refund"] = Downstream()
    world.model.always = proposes("issue_refund", {**REQUEST})
    authoriser = CedarAuthoriser(discover(), audit=_fail)
    machine = Machine(world, calls, process=measured_process(stores), authoriser=authoriser, model_id=MODEL_ID)
    meter = Meter(client, observer)

    started = start_task(
        StartTask(
            principal=_known(CLERK, machine), workflow="refund", request=dict(REQUEST), idempotency_key="bench-1"
        ),
        machine.api(),
    )
    machine.settle()
    decide_approval(
        DecideApproval(
            principal=_known(MANAGER, machine),
            task_id=started.task_id,
            approval_id=started.approvals[0].approval_id,
            word=DecisionWord.APPROVE,
            request_version=1,
        ),
        machine.api(),
    )
    machine.settle()
    read = meter.read()
    states = [state for run in machine.runs.values() for state in run.states]
    functions = Counter(trigger.function for trigger in machine.triggers)
    functions["api"] += 2
    functions["tools/issue_refund"] += len(world.downstreams["issue_refund"].requests)
    if [len(world.downstreams["issue_refund"].effects), states[-1]] != [1, "completed"]:
        msg = f"the refund did not go as it should: {states}"
        raise AssertionError(msg)
    return {
        "store_calls": read.calls_in_all,
        "store_calls_by_operation": dict(sorted(read.calls.items())),
        "write_units": read.write_units,
        "write_units_by_table": {
            table.removeprefix(table_name("")): units for table, units in sorted(read.write_units_by_table.items())
        },
        "checkpoint_bytes": _checkpoint_bytes(observer, TaskKey(tenant="acme", task_id=started.task_id)),
        "read_units": read.read_units,
        "store_bytes_sent": read.bytes_sent,
        "store_bytes_received": read.bytes_received,
        "key_service_calls": sum(name.startswith("sealer.") for name in calls.names),
        "object_calls": sum(name.startswith(("artifacts.", "evidence_store.")) for name in calls.names),
        # `Wake` is noted once and answers one word, which is the choice; the word's own state is a third transition.
        "state_transitions": _transitions(states),
        "lambda_invocations": sum(functions.values()),
        "lambda_invocations_by_function": dict(sorted(functions.items())),
    }


def _checkpoint_bytes(observer: DynamoDBClient, key: TaskKey) -> dict[str, int]:
    """The size of every version of a task as it is stored: keys, body and seal."""
    found = observer.query(
        TableName=table_name("checkpoints"),
        KeyConditionExpression="task = :task",
        ExpressionAttributeValues={":task": {"S": key.key}},
        ConsistentRead=True,
    )
    return {f"version_{item['version']['N']}": item_bytes(item) for item in found["Items"]}


def _transitions(states: list[str]) -> int:
    """States entered: Wake, the choice after it, and the state that the choice leads to."""
    return 3 * states.count("Wake")


def _known(ref: PrincipalRef, machine: Machine) -> Principal:
    identity = Identity(ref=ref, groups=frozenset(), authenticated_seconds_ago=5)
    return known_principal(identity, machine.process().authority)


def _fail(fault: object) -> None:
    msg = f"a policy erred: {fault}"
    raise AssertionError(msg)
