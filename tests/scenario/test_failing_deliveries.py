"""What has to be told to somebody survives whoever does not take it: the scheduler, the bus, the topic, the stream.

Each of them really fails on the deployed system, by a policy that IAM enforces, or by being taken away, and is mended
again. What a commit has promised is stored with it, so the task is as it was; the failure can be seen; and afterwards
the stream, the sweep, or the wait's own deadline brings about what was promised.

A task that began a while ago is started by the product's own code with a clock that is late, under the same seal and
in the same tables: the deadline of its wait is seconds away, and its rows in the outbox are old.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import pytest

from local.deploy import output
from local.instance import Instance
from local.walkthrough import Observer
from shared.adapters.cedar.authoriser import CedarAuthoriser, PolicyFault
from shared.adapters.dynamodb.action_ledger import DynamoActionLedger
from shared.adapters.dynamodb.authority import DynamoAuthority
from shared.adapters.dynamodb.inbox import DynamoInbox
from shared.adapters.dynamodb.task_records import DynamoTaskRecords
from shared.adapters.dynamodb.transaction import TaskTables
from shared.adapters.dynamodb.wait_store import DynamoWaitStore
from shared.adapters.kms.sealer import KmsSealer
from shared.adapters.s3.evidence_store import S3EvidenceStore
from shared.adapters.system import SystemClock, SystemIds
from shared.domain.identity import PrincipalRef
from shared.runtime.claims import Identity, known_principal
from shared.usecases.engine import ApiDeps, Records, Rights
from shared.usecases.recover import OUTBOX_STALE_AFTER
from shared.usecases.start_task import StartTask, start_task
from shared.workflows.refund.workflow import APPROVAL_WAIT
from shared.workflows.registry import discover
from tests.scenario import test_webhook
from tests.scenario.test_webhook import Mailbox, subject_of

# Its fixture serves this module as well.
mailbox = test_webhook.mailbox
OUTAGE: Final = "outage"
# The last rung of an approval's ladder, counted from its opening.
WAITS_FOR: Final = timedelta(seconds=APPROVAL_WAIT.ladder[-1].after_seconds or 0)


@dataclass(frozen=True)
class LateClock:
    """A clock that is late by a fixed time."""

    by: timedelta

    def now(self) -> datetime:
        return SystemClock().now() - self.by


@dataclass(frozen=True)
class Operations:
    """Somebody with the account's own credentials, who breaks things and mends them."""

    deployed: Instance
    observer: Observer

    def client(self, service: str) -> Any:
        """A client with all rights."""
        client: Any = self.deployed.aws.client(service)
        return client

    @contextmanager
    def denied(self, function: str, *actions: str) -> Iterator[None]:
        """Take rights away from a function by an explicit policy, and give them back."""
        configuration = self.client("lambda").get_function_configuration(FunctionName=f"holdfast-local-{function}")
        role = configuration["Role"].rpartition("/")[2]
        denial = {"Effect": "Deny", "Action": list(actions), "Resource": "*"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [denial]})
        self.client("iam").put_role_policy(RoleName=role, PolicyName=OUTAGE, PolicyDocument=document)
        try:
            yield
        finally:
            self.client("iam").delete_role_policy(RoleName=role, PolicyName=OUTAGE)

    @contextmanager
    def stream(self, **changed: Any) -> Iterator[None]:
        """Change how the outbox's stream is followed, and change it back."""
        client = self.client("lambda")
        [mapping] = client.list_event_source_mappings(FunctionName="holdfast-local-deliver")["EventSourceMappings"]
        before = {"Enabled": True, "MaximumRecordAgeInSeconds": mapping["MaximumRecordAgeInSeconds"]}
        client.update_event_source_mapping(UUID=mapping["UUID"], **changed)
        try:
            yield
        finally:
            client.update_event_source_mapping(UUID=mapping["UUID"], **before)

    @contextmanager
    def topic_away(self) -> Iterator[None]:
        """Take the topic of the notices away, and bring it back with its policy and its subscribers."""
        client, arn = self.client("sns"), output(self.deployed.outputs, "Engine", "NoticeTopicArn")
        policy = client.get_topic_attributes(TopicArn=arn)["Attributes"]["Policy"]
        subscribers = client.list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"]
        client.delete_topic(TopicArn=arn)
        try:
            yield
        finally:
            client.create_topic(Name=arn.rpartition(":")[2], Attributes={"Policy": policy})
            for each in subscribers:
                client.subscribe(TopicArn=arn, Protocol=each["Protocol"], Endpoint=each["Endpoint"])

    def start(self, order: str, *, ago: timedelta) -> str:
        """Start a refund that waits for approval since a while ago."""
        person = PrincipalRef(issuer=self._environment["OIDC_ISSUER"], subject=subject_of(self.deployed, "clerk-1"))
        deps = self._deps(LateClock(ago))
        identity = Identity(ref=person, groups=frozenset(), authenticated_seconds_ago=None)
        command = StartTask(
            principal=known_principal(identity, deps.rights.authority),
            workflow="refund",
            request={"amount_minor": 45_000, "currency": "EUR", "order_reference": order},
            idempotency_key=order,
        )
        return start_task(command, deps).task_id

    @property
    def _environment(self) -> Mapping[str, str]:
        configuration = self.client("lambda").get_function_configuration(FunctionName="holdfast-local-api")
        variables: Mapping[str, str] = configuration["Environment"]["Variables"]
        return variables

    def _deps(self, clock: LateClock) -> ApiDeps:
        settings, tables, workflows = self._environment, self.client("dynamodb"), discover()
        kinds = ("heads", "checkpoints", "waits", "actions", "inbox", "outbox")
        names = {kind: settings[f"{kind.upper()}_TABLE"] for kind in kinds}
        faults: list[PolicyFault] = []
        return ApiDeps(
            tasks=Records(
                records=DynamoTaskRecords(tables, TaskTables(**names)),
                sealer=KmsSealer(self.client("kms"), settings["SEAL_KEY_ID"]),
                clock=clock,
                ids=SystemIds(),
                workflows=workflows,
            ),
            rights=Rights(
                authority=DynamoAuthority(tables, settings["AUTHORITY_TABLE"]),
                authoriser=CedarAuthoriser(workflows, audit=faults.append),
            ),
            inbox=DynamoInbox(tables, names["inbox"]),
            waits=DynamoWaitStore(tables, names["waits"]),
            ledger=DynamoActionLedger(tables, names["actions"], SystemIds()),
            evidence=S3EvidenceStore(self.client("s3"), settings["EVIDENCE_BUCKET"]),
            model_id=settings["MODEL_ID"],
        )

    def sweep(self) -> Mapping[str, int]:
        """Let the sweep run now, as its rule does every five minutes, and return what it counted."""
        answer = self.client("lambda").invoke(FunctionName="holdfast-local-recover", Payload=b"{}")
        counted: Mapping[str, int] = json.load(answer["Payload"])
        assert "FunctionError" not in answer, counted
        return counted

    def undelivered(self, task_id: str) -> list[str]:
        """The rows that wait in the outbox for a task."""
        items = self.client("dynamodb").scan(TableName="holdfast-local-outbox", ConsistentRead=True)["Items"]
        return [item["messages"]["S"] for item in items if item["task"]["S"].endswith(task_id)]

    def logged(self, function: str, *words: str) -> list[dict[str, Any]]:
        """The lines of a function's log that hold all of these words."""
        pages = (
            self.client("logs")
            .get_paginator("filter_log_events")
            .paginate(logGroupName=f"/aws/lambda/holdfast-local-{function}")
        )
        lines = [event["message"] for page in pages for event in page["events"]]
        return [json.loads(line) for line in lines if line.startswith("{") and all(word in line for word in words)]

    def waiting_in(self, queue: str) -> int:
        """How many messages wait in a queue: what the alarm on it watches."""
        client = self.client("sqs")
        url = client.get_queue_url(QueueName=f"holdfast-local-{queue}")["QueueUrl"]
        name = "ApproximateNumberOfMessages"
        return int(client.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name])

    def set_aside(self) -> list[dict[str, Any]]:
        """The events that could not be told, as an operator reads them."""
        client = self.client("sqs")
        url = client.get_queue_url(QueueName="holdfast-local-notices-dead-letters")["QueueUrl"]
        found = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0)
        return [json.loads(message["Body"]) for message in found.get("Messages", [])]

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds."""
        self.observer.until(lambda: holds() or None, what)


@pytest.fixture(scope="module")
def operations(deployed: Instance, observer: Observer) -> Iterator[Operations]:
    """Somebody who may break things. Nobody but they start the sweep meanwhile."""
    made = Operations(deployed, observer)
    made.client("events").disable_rule(Name="holdfast-local-sweep")
    yield made
    made.client("events").enable_rule(Name="holdfast-local-sweep")


def test_a_bus_that_refuses_loses_no_prompt(operations: Operations, observer: Observer, mailbox: Mailbox) -> None:
    """B05: the stream gives the row up, visibly; it stays in the outbox, and the sweep has it delivered."""
    before = operations.waiting_in("deliver-dead-letters")
    # A stream that gives up after an hour would be a long test; everything else is as deployed.
    with operations.stream(MaximumRecordAgeInSeconds=2), operations.denied("deliver", "events:PutEvents"):
        task_id = operations.start("ord-bus", ago=2 * OUTBOX_STALE_AFTER)
        operations.until(lambda: operations.waiting_in("deliver-dead-letters") > before, "the stream gives up")
        observer.until_waiting(task_id, "Await approval")
        assert observer.task(task_id)["status"] == "waiting_approval"
        assert [row for row in operations.undelivered(task_id) if "approval.requested" in row]
        assert operations.logged("deliver", "the bus refused the event: AccessDenied")

    assert operations.sweep()["restaged"] >= 1
    mailbox.until_told("approval", task_id)

    operations.until(lambda: not operations.undelivered(task_id), "the outbox is empty again")
    assert observer.decide("manager-7", task_id, observer.approval_id(task_id), version=1).status == 200
    observer.until_status(task_id, "completed")
    assert len(observer.refunds("ord-bus")) == 1


def test_a_scheduler_that_refuses_leaves_no_wait_without_an_end(
    operations: Operations, observer: Observer, mailbox: Mailbox
) -> None:
    """B15, B67: people are asked and alarmed; at its deadline, not before, the sweep alone ends the wait."""

    def standing() -> tuple[str, str, str]:
        task = observer.task(task_id)
        [wait] = task["waits"]
        return task["status"], wait["wait_id"], wait["deadline_at"]

    def ended() -> bool:
        operations.sweep()
        return bool(observer.task(task_id)["status"] == "expired")

    soon = timedelta(seconds=25)
    with operations.denied("deliver", "scheduler:*"):
        task_id = operations.start("ord-timer", ago=WAITS_FOR - soon)
        approval = observer.approval_id(task_id)
        mailbox.until_told("approval", task_id)
        observer.until_waiting(task_id, "Await approval")
        status, wait_id, deadline_at = standing()
        operations.sweep()
        assert standing() == (status, wait_id, deadline_at)
        assert status == "waiting_approval"
        assert SystemClock().now() < datetime.fromisoformat(deadline_at), "all of this took too long to tell"
        operations.until(ended, "the sweep has ended the wait")
        operations.until(lambda: observer.execution_status(task_id) != "RUNNING", "the execution has ended")
        operations.until(lambda: not operations.undelivered(task_id), "everything else is delivered")

    assert SystemClock().now() >= datetime.fromisoformat(deadline_at)
    assert observer.decide("manager-7", task_id, approval, version=1).status == 409
    assert observer.refunds("ord-timer") == []
    assert operations.logged("deliver", f"no timer for {wait_id} of {task_id}", "needs_attention")
    assert operations.logged("deliver", "NeedsAttention", '"Namespace":"Holdfast"')


def test_a_scheduler_that_refuses_keeps_no_decision_up(
    operations: Operations, observer: Observer, mailbox: Mailbox
) -> None:
    """B15, B67: a timer that may not be removed holds up nothing; people are alarmed, and told how the task ended."""
    request = {"amount_minor": 45_000, "currency": "EUR", "order_reference": "ord-stays"}
    task_id = str(observer.start("clerk-1", "failing-removal", request).json()["task_id"])
    observer.until_waiting(task_id, "Await approval")
    [wait] = observer.task(task_id)["waits"]
    with operations.denied("deliver", "scheduler:*"):
        assert observer.decide("manager-7", task_id, observer.approval_id(task_id), version=1).status == 200
        observer.until_status(task_id, "completed")
        mailbox.until_told("has ended: completed", task_id)
        operations.until(lambda: not operations.undelivered(task_id), "everything is delivered")

    assert operations.logged("deliver", f"the timer of {wait['wait_id']} of {task_id} stays", "needs_attention")
    assert len(observer.refunds("ord-stays")) == 1


def test_a_stream_that_stands_still_loses_nothing(operations: Operations, observer: Observer, mailbox: Mailbox) -> None:
    """B05: a start and a decision are stored and wait in the outbox; when it flows again, each counts once."""
    with operations.stream(Enabled=False):
        request = {"amount_minor": 45_000, "currency": "EUR", "order_reference": "ord-stream"}
        task_id = str(observer.start("clerk-1", "failing-stream", request).json()["task_id"])
        decided = observer.decide("manager-7", task_id, observer.approval_id(task_id), version=1)
        assert (decided.status, observer.task(task_id)["status"]) == (200, "ready")
        assert len(operations.undelivered(task_id)) == 2
        assert observer.execution_status(task_id) == "NONE"

    observer.until_status(task_id, "completed")
    operations.until(lambda: not operations.undelivered(task_id), "the outbox is empty again")
    assert len(observer.refunds("ord-stream")) == 1


def test_a_topic_that_is_away_keeps_nobody_from_deciding(
    operations: Operations, observer: Observer, mailbox: Mailbox
) -> None:
    """B72: what could not be told waits in the rules' own queue, where people are alarmed of it; the task goes on.

    That the bus hands an untold event to that queue is the emulator's correction. That every rule names the queue, that
    only rules may fill it, and that an alarm watches it, is the deployed template's.
    """
    request = {"amount_minor": 45_000, "currency": "EUR", "order_reference": "ord-topic"}
    with operations.topic_away():
        before = operations.waiting_in("notices-dead-letters")
        task_id = str(observer.start("clerk-1", "failing-topic", request).json()["task_id"])
        observer.until_waiting(task_id, "Await approval")
        operations.until(lambda: operations.waiting_in("notices-dead-letters") > before, "the prompt is kept aside")
        assert not operations.undelivered(task_id)
    [kept] = [event for event in operations.set_aside() if event["detail"]["task_id"] == task_id]

    assert (kept["source"], kept["detail-type"]) == ("holdfast", "approval.requested")
    assert kept["detail"]["detail"]["role"] == "refund_approver"
    assert observer.decide("manager-7", task_id, observer.approval_id(task_id), version=1).status == 200
    observer.until_status(task_id, "completed")
    mailbox.until_told("has ended: completed", task_id)
    assert len(observer.refunds("ord-topic")) == 1
