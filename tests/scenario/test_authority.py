"""Authority on the deployed system: who is speaking, for whom, and what the model's function cannot do."""

import json
from http import HTTPStatus
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from local.instance import Instance
from local.walkthrough import Observer

REQUEST = {"amount_minor": 45_000, "currency": "EUR", "order_reference": "ord-2001"}


@pytest.fixture(scope="module")
def task_id(observer: Observer) -> str:
    """A refund of acme that waits for approval."""
    answer = observer.start("clerk-1", "scenario-authority", REQUEST)
    assert answer.status in {HTTPStatus.CREATED, HTTPStatus.OK}
    found = str(answer.json()["task_id"])
    observer.until_waiting(found, "Await approval")
    return found


def test_a_tenant_in_the_body_is_refused(observer: Observer) -> None:
    """A1, B16: tenant and principal are never taken from a request field; unknown fields are refused."""
    body = {"workflow": "refund", "request": REQUEST, "tenant": "globex", "principal": "manager-7"}
    answer = observer.instance.api("clerk-1").post("/tasks", body, idempotency_key="scenario-a1")

    assert (answer.status, answer.json()["code"]) == (HTTPStatus.BAD_REQUEST, "invalid_request")


def test_a_tenant_in_a_header_or_query_changes_nothing(observer: Observer, task_id: str) -> None:
    """A1: another tenant's name in a header or the query opens nothing."""
    answer = observer.instance.api("manager-g").get(f"/tasks/{task_id}?tenant=acme", x_tenant="acme")

    assert (answer.status, answer.json()["code"]) == (HTTPStatus.NOT_FOUND, "task_not_found")


@pytest.mark.parametrize("path", ["", "/approvals/{approval}"])
def test_knowing_an_id_gives_nothing(observer: Observer, task_id: str, path: str) -> None:
    """A2: another tenant's task answers exactly as one that does not exist."""
    approval = observer.approval_id(task_id)
    theirs = observer.instance.api("manager-g").get(f"/tasks/{task_id}" + path.format(approval=approval))
    nowhere = observer.instance.api("manager-g").get(f"/tasks/tsk_{'0' * 32}" + path.format(approval=approval))

    assert theirs.status == nowhere.status == HTTPStatus.NOT_FOUND
    assert without_traces(theirs.json()) == without_traces(nowhere.json())


def test_the_same_idempotency_key_of_two_tenants_is_two_tasks(observer: Observer) -> None:
    """B16: a key is scoped to tenant and principal."""
    ours = observer.start("clerk-1", "scenario-shared-key", REQUEST).json()["task_id"]
    theirs = observer.start("clerk-g", "scenario-shared-key", REQUEST).json()["task_id"]

    assert ours != theirs
    assert observer.instance.api("clerk-g").get(f"/tasks/{ours}").status == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_opening_a_decision_decides_nothing(observer: Observer, task_id: str, method: str) -> None:
    """B02: a mail scanner's GET or HEAD, logged in or not, changes nothing."""
    before = observer.task(task_id)
    path = f"/tasks/{task_id}/approvals/{observer.approval_id(task_id)}/decision"
    for client in (observer.instance.api(), observer.instance.api("manager-7")):
        answer = client.request(method, path, headers={"purpose": "prefetch"})
        assert answer.status >= HTTPStatus.BAD_REQUEST

    assert observer.task(task_id) == before


def test_no_token_or_a_broken_one_is_refused(observer: Observer, task_id: str) -> None:
    """Nobody is let in without a valid access token of this application."""
    broken = observer.instance.api("clerk-1").headers["authorization"][:-3] + "abc"
    for headers in ({}, {"authorization": "Bearer nonsense"}, {"authorization": broken}):
        answer = observer.instance.api().request("GET", f"/tasks/{task_id}", headers=headers)
        assert answer.status == HTTPStatus.UNAUTHORIZED


def test_the_models_function_cannot_reach_a_record_a_tool_or_a_machine(deployed: Instance) -> None:
    """A4: with the credentials of `propose`, IAM refuses every write, every tool and every task token."""
    session = as_function(deployed, "propose")
    attempts = {
        "write a checkpoint": lambda: session("dynamodb").put_item(
            TableName="holdfast-local-checkpoints", Item={"task": {"S": "acme#x"}, "version": {"N": "1"}}
        ),
        "read a head": lambda: session("dynamodb").get_item(
            TableName="holdfast-local-heads", Key={"task": {"S": "acme#x"}}
        ),
        "write an action": lambda: session("dynamodb").put_item(
            TableName="holdfast-local-actions", Item={"task": {"S": "acme#x"}, "operation": {"S": "o"}}
        ),
        "read a token": lambda: session("dynamodb").get_item(
            TableName="holdfast-local-tokens", Key={"wait": {"S": "acme#w"}}
        ),
        "call a tool": lambda: session("lambda").invoke(
            FunctionName="holdfast-local-tool-issue_refund", Payload=json.dumps({}).encode()
        ),
        "start an execution": lambda: session("stepfunctions").start_execution(
            stateMachineArn=deployed.machine_arn("refund"), input="{}"
        ),
        "read the payments key": lambda: session("secretsmanager").get_secret_value(
            SecretId="holdfast-local-payments-api-key"
        ),
        "make a seal": lambda: session("kms").generate_mac(
            KeyId=seal_key(deployed), Message=b"x", MacAlgorithm="HMAC_SHA_256"
        ),
    }

    refused = {what: refusal(attempt) for what, attempt in attempts.items()}

    assert refused == dict.fromkeys(attempts, "access denied")


def as_function(deployed: Instance, function: str) -> Any:
    """Make clients with a function's own role."""
    aws = deployed.aws
    configuration = aws.client("lambda").get_function_configuration(FunctionName=f"holdfast-local-{function}")
    credentials = aws.client("sts").assume_role(RoleArn=configuration["Role"], RoleSessionName="scenario")[
        "Credentials"
    ]

    session = boto3.Session(
        aws_access_key_id=credentials["AccessKeyId"],
        aws_secret_access_key=credentials["SecretAccessKey"],
        aws_session_token=credentials["SessionToken"],
        region_name="us-east-1",
    )
    make: Any = session.client
    return lambda service: make(service, endpoint_url=aws.endpoint)


def refusal(attempt: Any) -> str:
    """Make an attempt and say how it was refused."""
    try:
        attempt()
    except ClientError as error:
        code = error.response["Error"]["Code"]
        return "access denied" if code in {"AccessDenied", "AccessDeniedException"} else code
    return "it was allowed"


def seal_key(deployed: Instance) -> str:
    """The ARN of the key that seals checkpoints."""
    configuration = deployed.aws.client("lambda").get_function_configuration(FunctionName="holdfast-local-wake")
    return str(configuration["Environment"]["Variables"]["SEAL_KEY_ID"])


def without_traces(problem: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is different on every request."""
    return {name: value for name, value in problem.items() if name not in {"instance", "correlation_id", "request_id"}}
