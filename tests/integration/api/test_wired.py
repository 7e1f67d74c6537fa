"""The deployed entry point as it is: settings from the environment, real adapters, the cloud played by moto."""

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

import boto3
import pytest
from moto import mock_aws

from functions.api.call import wired_parts
from functions.api.handler import handler
from shared.adapters import aws
from shared.adapters.dynamodb.authority import principal_item
from shared.domain.identity import PrincipalRef
from shared.runtime import wiring
from tests.contract.tables import create_tables, table_name
from tests.integration.api.conftest import CLIENT, ISSUER, REFUND, Answer, Context, an_event, decision_of, page_of

EVIDENCE = "evidence-of-a-test"
REGION: Final = "eu-central-1"
KINDS = ("heads", "checkpoints", "waits", "inbox", "outbox", "actions", "authority")


def forget_wiring() -> None:
    """Make the next call a cold start."""
    for cached in (wired_parts, wiring.api, aws.dynamodb, aws.kms, aws.s3, aws._session):
        cached.cache_clear()


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Deploy what the function uses, with two people in it."""
    for name, value in {
        "AWS_DEFAULT_REGION": REGION,
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "HOLDFAST_STAGE": "test",
        "EVIDENCE_BUCKET": EVIDENCE,
        "MODEL_ID": "model-1",
        "OIDC_ISSUER": ISSUER,
        "OIDC_CLIENT_ID": CLIENT,
        "POWERTOOLS_METRICS_NAMESPACE": "Holdfast",
        "POWERTOOLS_SERVICE_NAME": "api",
        **{f"{kind.upper()}_TABLE": table_name(kind) for kind in KINDS},
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        dynamodb = boto3.client("dynamodb", region_name=REGION)
        create_tables(dynamodb)
        s3 = boto3.client("s3", region_name=REGION)
        s3.create_bucket(Bucket=EVIDENCE, CreateBucketConfiguration={"LocationConstraint": REGION})
        s3.put_bucket_versioning(Bucket=EVIDENCE, VersioningConfiguration={"Status": "Enabled"})
        key = boto3.client("kms", region_name=REGION).create_key(KeySpec="HMAC_256", KeyUsage="GENERATE_VERIFY_MAC")
        monkeypatch.setenv("SEAL_KEY_ID", key["KeyMetadata"]["Arn"])
        for subject, role in {
            "clerk-1": "refund_clerk",
            "manager-7": "refund_approver",
            "operator-1": "operator",
        }.items():
            ref = PrincipalRef(issuer=ISSUER, subject=subject)
            item = principal_item(ref, tenant="acme", roles=frozenset({role}))
            dynamodb.put_item(TableName=table_name("authority"), Item=item)
        forget_wiring()
        yield
    forget_wiring()


def call(who: str, method: str, path: str, **parts: Any) -> Answer:
    """Call the deployed handler as somebody."""
    claims = {
        "iss": ISSUER,
        "sub": who,
        "client_id": CLIENT,
        "token_use": "access",
        "exp": str(int(time.time()) + 600),
        "cognito:groups": "[approvers finance]",
    }
    result = handler(an_event(method, path, claims=claims, **parts), Context())
    return Answer(status=result["statusCode"], headers=result["headers"], text=result["body"])


def started() -> Mapping[str, Any]:
    """Start a refund with a note."""
    body = {"workflow": "refund", "request": {**REFUND, "note": "please"}}
    answer = call("clerk-1", "POST", "/tasks", body=body, headers={"Idempotency-Key": "k-1"})
    assert answer.status == 201, answer.text
    return dict(answer.json)


@pytest.mark.usefixtures("cloud")
def test_a_refund_is_started_shown_amended_and_decided() -> None:
    """L1, L4, L7: the whole of the API against real adapters; every read is of what was stored."""
    task = started()
    path = f"/tasks/{task['task_id']}"
    queue = call("manager-7", "GET", "/tasks", query={"status": "waiting_approval"}).json
    assert [entry["task_id"] for entry in queue["entries"]] == [task["task_id"]]
    assert call("manager-7", "GET", page_of(task)).json["evidence"][0]["untrusted_text"] == "please"

    amendment = {"request": {**REFUND, "amount_minor": 50_000}, "request_version": 1}
    amended = call("clerk-1", "PATCH", path, body=amendment).json
    stale = call("manager-7", "POST", decision_of(task), body={"decision": "approve", "version": 1})
    decided = call("manager-7", "POST", decision_of(amended), body={"decision": "approve", "version": 2})

    assert (stale.status, stale.code) == (409, "stale_approval")
    assert (decided.status, decided.json["status"]) == (200, "ready")
    assert call("clerk-1", "GET", path).json == decided.json


@pytest.mark.usefixtures("cloud")
def test_a_repeat_after_a_cold_start_finds_its_task() -> None:
    """B16: the idempotency record is in the store, not in the process."""
    task = started()
    forget_wiring()

    body = {"workflow": "refund", "request": {**REFUND, "note": "please"}}
    again = call("clerk-1", "POST", "/tasks", body=body, headers={"Idempotency-Key": "k-1"})
    other = call(
        "clerk-1",
        "POST",
        "/tasks",
        body={"workflow": "refund", "request": dict(REFUND)},
        headers={"Idempotency-Key": "k-1"},
    )

    assert (again.status, again.json["task_id"]) == (200, task["task_id"])
    assert (other.status, other.code) == (422, "idempotency_key_reused")


@pytest.mark.usefixtures("cloud")
def test_refusals_write_nothing() -> None:
    """L3, A2, B31, B55: after a row of refusals every table holds what it held."""
    task = started()
    dynamodb = boto3.client("dynamodb", region_name=REGION)

    def stored() -> list[object]:
        return [dynamodb.scan(TableName=table_name(kind))["Items"] for kind in KINDS]

    before = stored()
    statuses = [
        call("clerk-1", "POST", decision_of(task), body={"decision": "approve", "version": 1}).status,
        call("nobody", "GET", page_of(task)).status,
        call("manager-7", "POST", decision_of(task), body={"decision": "no", "version": 1}).status,
        call("manager-7", "POST", decision_of(task), body={"decision": "approve", "version": 1, "by": "x"}).status,
        call("manager-7", "POST", decision_of(task), body={"decision": "approve", "version": 3}).status,
        call(
            "manager-7",
            "POST",
            "/tasks",
            body={"workflow": "refund", "request": dict(REFUND)},
            headers={"Idempotency-Key": "k"},
        ).status,
        call("manager-7", "GET", f"/tasks/tsk_{'0' * 32}").status,
    ]

    assert statuses == [403, 403, 400, 400, 409, 403, 404]
    assert stored() == before


@pytest.mark.usefixtures("cloud")
def test_a_deployment_without_a_setting_says_so_in_its_log_and_not_to_callers(
    monkeypatch: pytest.MonkeyPatch, log: Any
) -> None:
    """A missing variable is our fault: 500 for the caller, its name in the log."""
    monkeypatch.delenv("OIDC_ISSUER")

    answer = call("clerk-1", "GET", "/tasks", query={"status": "ready"})

    assert (answer.status, answer.code) == (500, "internal_error")
    assert "OIDC_ISSUER" not in answer.text
    assert "OIDC_ISSUER" in log.lines("request failed")[0]["exception"]


@pytest.mark.usefixtures("cloud")
def test_a_refund_is_quarantined_looked_at_and_released() -> None:
    """O2, R6: the operators' routes against real adapters: the mark, the queue, the record, the new version."""
    task = started()
    path = f"/tasks/{task['task_id']}"

    def command(name: str, **more: object) -> Answer:
        body = {"version": 1, "reason": "to have a look", **more}
        return call("operator-1", "POST", f"{path}/operations/{name}", body=body)

    marked = command("quarantine")
    (line,) = call("operator-1", "GET", "/tasks", query={"status": "quarantined"}).json["entries"]
    record = call("operator-1", "GET", f"{path}/record")
    refused = call("clerk-1", "GET", path)
    released = command("release", from_version=1)
    again = command("release", from_version=1)
    canceled = call("clerk-1", "POST", f"{path}/cancel", body={})

    assert (marked.status, marked.json["intact_version"]) == (200, 1)
    assert line["reason"] == record.json["quarantine"] == "quarantined by operator-1: to have a look"
    assert (record.status, record.json["younger"]) == (200, [])
    assert (refused.status, refused.code) == (409, "checkpoint_quarantined")
    assert (released.status, released.json["status"], released.json["version"]) == (200, "resume_validation", 2)
    assert (again.status, again.code) == (409, "illegal_transition")
    assert (canceled.status, canceled.json["status"]) == (200, "cancel_requested")


@pytest.mark.usefixtures("cloud")
def test_a_quarantined_refund_is_closed() -> None:
    """O2: as failed, with its wait and its review ended, in one transaction of real tables."""
    task = started()
    path = f"/tasks/{task['task_id']}/operations"
    body = {"version": 1, "reason": "to have a look"}
    call("operator-1", "POST", f"{path}/quarantine", body=body)

    closed = call("operator-1", "POST", f"{path}/close", body=body)

    waits = boto3.client("dynamodb", region_name=REGION).scan(TableName=table_name("waits"))["Items"]
    assert (closed.status, closed.json["outcome"]) == (200, "closed out of quarantine; nothing is open")
    assert sorted(wait["status"]["S"] for wait in waits) == ["settled", "void"]
