"""Signed events of an outside system on the deployed stack, from the sender's bytes to the task and to the mailbox."""

import base64
import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from local.deploy import output
from local.instance import Instance
from local.walkthrough import Observer
from tests.scenario.partner import Partner, let_in

SOURCE = "esign"
REQUEST = {
    "employee_reference": "E-123",
    "start_on": "2027-01-11",
    "time_zone": "Europe/Berlin",
    "business_calendar": "DE-BE",
    "desk_location": "B-4",
}
DOCUMENT = {"document_reference": "doc-9", "signed_on": "2026-11-20"}
# What was read is fresh for a second, and is kept for sixty.
SOON = 10


@pytest.fixture(scope="module")
def partner(deployed: Instance) -> Iterator[Partner]:
    """The service that says which documents are signed."""
    with let_in(deployed, SOURCE) as made:
        yield made


@dataclass
class Mailbox:
    """What the subscriber of the notices was told."""

    deployed: Instance
    observer: Observer
    url: str
    told: list[str] = field(default_factory=list)

    def until_told(self, *words: str) -> str:
        """Wait for a notice with all of these words."""

        def look() -> str | None:
            queues = self.deployed.aws.client("sqs")
            found = queues.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
            for message in found.get("Messages", []):
                self.told.append(json.loads(message["Body"])["Message"])
                queues.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
            return next((text for text in self.told if all(word in text for word in words)), None)

        notice: str = self.observer.until(look, f"people were told of {' '.join(words)}")
        return notice


@pytest.fixture(scope="module")
def mailbox(deployed: Instance, observer: Observer) -> Iterator[Mailbox]:
    """Subscribe a queue to the notices, before anything is sent."""
    queues, topics = deployed.aws.client("sqs"), deployed.aws.client("sns")
    url: str = queues.create_queue(QueueName="mailbox")["QueueUrl"]
    queue = queues.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    topic = output(deployed.outputs, "Engine", "NoticeTopicArn")
    allows = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": queue,
        "Condition": {"ArnEquals": {"aws:SourceArn": topic}},
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allows]})
    queues.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    subscribed = topics.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue, ReturnSubscriptionArn=True)
    yield Mailbox(deployed, observer, url)
    topics.unsubscribe(SubscriptionArn=subscribed["SubscriptionArn"])
    queues.delete_queue(QueueUrl=url)


def subject_of(deployed: Instance, person: str) -> str:
    """The subject that a person's tokens name."""
    claims = deployed.token(person).split(".")[1]
    return str(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sub"])


def read(deployed: Instance, task_id: str) -> dict[str, Any]:
    """Read an onboarding."""
    answer = deployed.api("recruiter-8").get(f"/tasks/{task_id}")
    assert answer.status == 200, answer.body
    task: dict[str, Any] = answer.json()
    return task


def until(observer: Observer, deployed: Instance, task_id: str, status: str) -> dict[str, Any]:
    """Wait until an onboarding has a status."""

    def look() -> dict[str, Any] | None:
        task = read(deployed, task_id)
        return task if task["status"] == status else None

    found: dict[str, Any] = observer.until(look, f"onboarding {task_id} is {status}")
    return found


@pytest.fixture(scope="module")
def onboarding(deployed: Instance, observer: Observer, mailbox: Mailbox) -> dict[str, Any]:
    """An onboarding whose packet was approved and sent, and which waits for a signature."""
    request = REQUEST | {"employee_subject": subject_of(deployed, "newcomer-10")}
    body = {"workflow": "onboarding", "request": request}
    started = deployed.api("recruiter-8").post("/tasks", body, idempotency_key="onboarding-1")
    assert started.status == 201, started.body
    task_id = started.json()["task_id"]
    waiting = until(observer, deployed, task_id, "waiting_approval")
    # Whoever decides before they are asked is not asked any more.
    mailbox.until_told("approval", task_id)
    [approval] = [a["approval_id"] for a in waiting["approvals"] if a["status"] == "open"]
    path = f"/tasks/{task_id}/approvals/{approval}/decision"
    decided = deployed.api("lead-9").post(path, {"decision": "approve", "version": 1})
    assert decided.status == 200, decided.body
    return until(observer, deployed, task_id, "waiting_event")


def state_of(deployed: Instance) -> dict[str, list[Any]]:
    """Everything that is stored about tasks."""
    client = deployed.aws.client("dynamodb")
    kinds = ("heads", "checkpoints", "waits", "actions", "inbox")
    return {kind: client.scan(TableName=f"holdfast-local-{kind}", ConsistentRead=True)["Items"] for kind in kinds}


def test_a_stranger_gets_one_answer_and_changes_nothing(
    deployed: Instance, partner: Partner, onboarding: dict[str, Any]
) -> None:
    """B14, B80: unknown tenant or source, wrong secret, old time, missing header: 401 alike, and nothing moved."""
    [wait] = onboarding["waits"]
    event = {"correlation_id": wait["correlation_id"], "answer": DOCUMENT}
    before = state_of(deployed)

    answers = [
        Partner(deployed=deployed, source=SOURCE, key=secrets.token_bytes(32)).send(event),
        partner.send(event, path="/webhooks/globex/esign"),
        partner.send(event, path="/webhooks/acme/nobody"),
        partner.send(event, webhook_timestamp=str(int(time.time()) - 301)),
        partner.send(event, webhook_signature="v1,AAAA"),
        partner.send(event, webhook_id=""),
    ]

    assert {a.status for a in answers} == {401}
    assert len({a.json()["detail"] for a in answers}) == 1
    assert partner.send({**event, "more": 1}).status == 400
    assert state_of(deployed) == before


def test_a_signed_event_moves_its_task_once(
    deployed: Instance, observer: Observer, partner: Partner, onboarding: dict[str, Any]
) -> None:
    """R2: accepted, and recognised again under the same and under another id; a contradiction is refused."""
    [wait] = onboarding["waits"]
    event = {"correlation_id": wait["correlation_id"], "answer": DOCUMENT}

    first, again = partner.send(event, "msg_1"), partner.send(event, "msg_1")
    waiting = until(observer, deployed, onboarding["task_id"], "waiting_input")
    renamed = partner.send(event, "msg_2")
    other = partner.send({**event, "answer": DOCUMENT | {"document_reference": "doc-10"}}, "msg_3")

    assert (first.status, first.json()["reception"]) == (200, "accepted"), first.body
    assert [(a.status, a.json()["reception"]) for a in (again, renamed)] == [(200, "duplicate")] * 2
    assert (other.status, other.json()["current"]["task_status"]) == (409, "waiting_input")
    [fact] = [fact for fact in waiting["facts"] if fact["name"] == "document_signed"]
    assert fact["values"] == DOCUMENT


def test_an_event_that_comes_early_is_kept(partner: Partner) -> None:
    """B05: nobody waits for it yet."""
    answer = partner.send({"correlation_id": "nobody-waits-for-this", "answer": DOCUMENT})
    assert (answer.status, answer.json()) == (202, {"reception": "kept"})


def test_a_rotated_secret_counts_on_a_running_function(
    deployed: Instance, observer: Observer, partner: Partner
) -> None:
    """B74: the new secret counts within moments, far sooner than what is kept grows old, and the old one beside it."""
    event = {"correlation_id": "rotation", "answer": DOCUMENT}
    new = Partner(deployed=deployed, source=SOURCE, key=secrets.token_bytes(24))
    assert partner.send(event).status == 202
    assert new.send(event).status == 401

    partner.store(partner.key, new.key)

    observer.until(lambda: True if new.send(event).status == 202 else None, "the new secret counts", seconds=SOON)
    assert partner.send(event).status == 202


def test_people_were_told_and_only_told(mailbox: Mailbox, onboarding: dict[str, Any]) -> None:
    """B72: the approver and the newcomer were asked, once each, in a sentence that names the task and opens nothing."""
    task_id = onboarding["task_id"]
    asked = [mailbox.until_told("approval by hr_lead", task_id), mailbox.until_told("question to employee", task_id)]

    assert sorted(text for text in mailbox.told if task_id in text) == sorted(asked)
    assert not [text for text in mailbox.told if "http" in text or "apr_" in text or "wai_" in text]
