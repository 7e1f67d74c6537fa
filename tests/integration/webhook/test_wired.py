"""The deployed entry point as it is: settings from the environment, real adapters, the cloud played by moto."""

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import boto3
import pytest
from moto import mock_aws

from functions.webhook.handler import handler
from shared.adapters import aws
from shared.domain.change import Change, begin, stamps_of
from shared.domain.checkpoint import Fact
from shared.domain.identity import TaskKey
from shared.domain.status import Status
from shared.domain.steps import plan, take
from shared.runtime import wiring
from shared.usecases.stored_task import commit_change, load_task
from tests.builders import a_checkpoint, a_task_key
from tests.contract.tables import create_tables, table_name
from tests.fakes.signed_event import OTHER_SECRET, SECRET, Sender
from tests.integration.webhook.conftest import Answer, Context

REGION: Final = "eu-central-1"
KINDS = ("heads", "checkpoints", "waits", "inbox", "outbox", "actions")
PREFIX = "holdfast-test-webhook/"
REQUEST: Final = {
    "employee_reference": "E-123",
    "employee_subject": "employee-123",
    "start_on": "2026-12-01",
    "time_zone": "Europe/Berlin",
    "business_calendar": "DE-BE",
    "desk_location": "B-4",
}
ESIGN = Sender(source="esign")
SIGNED = {"correlation_id": "parcel-7", "answer": {"document_reference": "doc-9", "signed_on": "2026-11-20"}}


def forget_wiring() -> None:
    """Make the next call a cold start."""
    for cached in (wiring.webhook, aws.dynamodb, aws.kms, aws.secretsmanager, aws._session):
        cached.cache_clear()


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Deploy what the function uses, with one source of one tenant."""
    for name, value in {
        "AWS_DEFAULT_REGION": REGION,
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "HOLDFAST_STAGE": "test",
        "WEBHOOK_SECRET_PREFIX": PREFIX,
        "POWERTOOLS_METRICS_NAMESPACE": "Holdfast",
        "POWERTOOLS_SERVICE_NAME": "webhook",
        **{f"{kind.upper()}_TABLE": table_name(kind) for kind in KINDS},
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        create_tables(boto3.client("dynamodb", region_name=REGION))
        key = boto3.client("kms", region_name=REGION).create_key(KeySpec="HMAC_256", KeyUsage="GENERATE_VERIFY_MAC")
        monkeypatch.setenv("SEAL_KEY_ID", key["KeyMetadata"]["Arn"])
        secret = "whsec_" + base64.b64encode(SECRET).decode()
        boto3.client("secretsmanager", region_name=REGION).create_secret(
            Name=f"{PREFIX}acme/esign", SecretString=json.dumps({"secrets": [{"secret": secret}]})
        )
        forget_wiring()
        yield
    forget_wiring()


@pytest.fixture
def key(cloud: None) -> TaskKey:
    """Store an onboarding that waits for a signed document."""
    deps = wiring.webhook().deps.tasks
    now = datetime.now(tz=UTC)
    workflow = deps.workflows["onboarding"]
    first = a_checkpoint(a_task_key(7), workflow="onboarding", stage="welcoming", now=now)
    packet = Fact(name=workflow.tools["send_welcome_packet"].fact, happened=True, reference="parcel-7")
    business = first.business.model_copy(
        update={"request": dict(REQUEST), "facts": (packet,), "deadline_at": now + timedelta(days=60)}
    )
    stored = commit_change(
        Change(task=first.model_copy(update={"business": business}), before=Status.READY), deps, previous=None
    )
    ground = deps.ground(workflow, stamps_of(workflow, "model-1"))
    change = begin(stored.task, because="the packet is sent", ground=ground)
    waiting = commit_change(take(plan(change, ground), change, ground), deps, previous=stored)
    assert waiting.task.business.status is Status.WAITING_EVENT
    return waiting.task.key


def send(body: Any, event_id: str = "msg_1", *, by: Sender = ESIGN, **parts: Any) -> Answer:
    """Deliver to the entry point."""
    result = handler(by.event(body, at=datetime.now(tz=UTC), event_id=event_id, **parts), Context())
    return Answer(status=result["statusCode"], headers=result["headers"], text=result["body"])


def test_a_signed_event_is_taken_in_by_the_real_thing(key: TaskKey) -> None:
    """R2, B05: accepted once, also after a cold start and under another id; the record says what was said."""
    first = send(SIGNED)
    forget_wiring()
    again, renamed = send(SIGNED, encoded=True), send(SIGNED, "msg_2", version="1.0")
    task = load_task(key, wiring.webhook().deps.tasks).task

    assert (first.status, first.json["reception"]) == (200, "accepted"), first.text
    assert [(a.status, a.json["reception"]) for a in (again, renamed)] == [(200, "duplicate")] * 2
    assert task.business.facts[-1].values == SIGNED["answer"]
    assert task.business.status is Status.WAITING_INPUT


def test_refusals_write_nothing(key: TaskKey) -> None:
    """B14, B80: after a row of refusals every table holds what it held."""
    dynamodb = boto3.client("dynamodb", region_name=REGION)

    def stored() -> list[object]:
        return [dynamodb.scan(TableName=table_name(kind))["Items"] for kind in KINDS]

    before = stored()
    answers = [
        send(SIGNED, by=Sender(source="esign", secret=OTHER_SECRET)),
        send(SIGNED, by=Sender(source="esign", tenant="globex")),
        send(SIGNED, by=Sender(source="nobody")),
        send(b"{}"),
        send({**SIGNED, "answer": {"document_reference": "doc-9", "signed_on": "never"}}),
        send({**SIGNED, "request_version": 2}),
    ]

    assert [a.status for a in answers] == [401, 401, 401, 400, 400, 409]
    assert len({a.text for a in answers[:3]}) == 1
    assert stored() == before


def test_an_early_event_is_kept_in_the_store(cloud: None) -> None:
    """B05: with nobody waiting, one row; again, still one."""
    answers = [send(SIGNED), send(SIGNED)]
    rows = boto3.client("dynamodb", region_name=REGION).scan(TableName=table_name("inbox"))["Items"]

    assert [(a.status, a.json) for a in answers] == [(202, {"reception": "kept"})] * 2
    assert [row["source"]["S"] for row in rows] == ["acme#early:esign:parcel-7"]
