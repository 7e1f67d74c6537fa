"""Resuming on the deployed system: what may happen to a task while it waits, and between the answer and the effect.

That an approval does not outlive the request it was given for is a scene of the walk-through.
"""

import base64
import json
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import pytest

from local.http_client import Answer
from local.instance import Instance
from local.walkthrough import Observer
from shared.adapters.dynamodb.authority import principal_record
from shared.domain.identity import PrincipalRef
from tests.scenario.partner import Partner, let_in
from tests.scenario.power_cut import held
from tests.scenario.stored import open_earlier, rows, timer_of, version
from tests.scenario.test_webhook import DOCUMENT, REQUEST, SOURCE, read, subject_of, until

AMOUNT = 45_000
# The provider keeps its answer back for as long as the tool waits for one, and a little less.
HOLD_SECONDS = 5

# A moment is missed on a machine that is busy enough; then it is waited for once more.
TRIES = 4


def started(observer: Observer, order: str) -> str:
    """Start a refund and return its task when its machine waits for the approval."""
    request = {"amount_minor": AMOUNT, "currency": "EUR", "order_reference": order}
    answer = observer.start("clerk-1", order, request)
    assert answer.status == HTTPStatus.CREATED, answer.body
    task_id = str(answer.json()["task_id"])
    observer.until_waiting(task_id, "Await approval")
    return task_id


def fresh_order() -> str:
    """An order that no other test knows."""
    return f"ord-resume-{secrets.token_hex(4)}"


def approve(observer: Observer, task_id: str) -> HTTPStatus:
    """Approve a refund as the manager, and return how that was answered."""
    return HTTPStatus(observer.decide("manager-7", task_id, observer.approval_id(task_id), version=1).status)


def paid_once(observer: Observer, task_id: str, order: str) -> None:
    """Wait for the end of a task, and check that the bank paid once."""
    assert observer.until_status(task_id, "completed", "needs_review", "failed")["status"] == "completed"
    assert len(observer.refunds(order)) == 1


def lines_about(deployed: Instance, words: str, *, of: str = "") -> list[str]:
    """Every line with these words in the log of any function, or of one."""
    logs = deployed.aws.client("logs")
    groups = logs.describe_log_groups(logGroupNamePrefix=f"/aws/lambda/holdfast-local-{of}")["logGroups"]
    return [
        event["message"]
        for group in groups
        for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group["logGroupName"])
        for event in page["events"]
        if words in event["message"]
    ]


# --- I1: waiting ------------------------------------------------------------------------------------------------------


def test_a_task_that_waits_holds_no_worker(deployed: Instance, observer: Observer) -> None:
    """I1: it outlives every process there is, nothing is called for it, and the answer goes through its token."""
    order = fresh_order()
    opened = len(lines_about(deployed, "REPORT RequestId", of="open_wait"))
    task_id = started(observer, order)
    reported = "its token is stored, and the call that did so has ended"
    observer.until(lambda: len(lines_about(deployed, "REPORT RequestId", of="open_wait")) > opened or None, reported)
    [wait] = observer.task(task_id)["waits"]
    token = {"wait": {"S": f"acme#{wait['wait_id']}"}}
    functions = deployed.aws.client("lambda").get_paginator("list_functions").paginate()
    names = [f["FunctionName"].removeprefix("holdfast-local-") for page in functions for f in page["Functions"]]
    before = lines_about(deployed, task_id)

    killed = sum(len(observer.kill_workers(name)) for name in names if name != "sandbox")
    # A whole other refund goes by meanwhile.
    other = fresh_order()
    request = {"amount_minor": 4_500, "currency": "EUR", "order_reference": other}
    paid_once(observer, observer.start("clerk-1", other, request).json()["task_id"], other)

    assert killed > 0
    assert lines_about(deployed, task_id) == before
    assert rows(deployed, "leases", task_id) == []
    assert observer.execution_status(task_id) == "RUNNING"
    assert observer.states(task_id)[-1] == "Await approval"
    assert "Item" in deployed.aws.client("dynamodb").get_item(TableName="holdfast-local-tokens", Key=token)

    assert approve(observer, task_id) == HTTPStatus.OK
    paid_once(observer, task_id, order)
    assert observer.states(task_id)[2:4] == ["Await approval", "Wake"]
    assert ("Await approval", "") in observer.calls(task_id)


# --- R2: events twice, and before anybody waits for them --------------------------------------------------------------


@pytest.fixture(scope="module")
def partner(deployed: Instance) -> Iterator[Partner]:
    """Let the signature service in."""
    with let_in(deployed, SOURCE) as made:
        yield made


def posting_packet(deployed: Instance, observer: Observer, employee: str) -> tuple[str, str]:
    """Start an onboarding and approve its packet; return the task and the packet's id once the post has it."""
    request = REQUEST | {
        "employee_reference": employee,
        "employee_subject": subject_of(deployed, "newcomer-10"),
    }
    start = deployed.api("recruiter-8").post(
        "/tasks", {"workflow": "onboarding", "request": request}, idempotency_key=employee
    )
    assert start.status == HTTPStatus.CREATED, start.body
    task_id = str(start.json()["task_id"])
    waiting = until(observer, deployed, task_id, "waiting_approval")
    [approval] = [a["approval_id"] for a in waiting["approvals"] if a["status"] == "open"]
    decision = deployed.api("lead-9").post(
        f"/tasks/{task_id}/approvals/{approval}/decision", {"decision": "approve", "version": 1}
    )
    assert decision.status == HTTPStatus.OK, decision.body

    def posted() -> str | None:
        packets = deployed.payments().get("/packets").json()["items"]
        return next((str(p["id"]) for p in packets if p["recipient"] == employee), None)

    return task_id, observer.until(posted, f"a packet for {employee} is posted")


def test_an_event_that_comes_before_its_wait_moves_the_task_when_the_wait_opens(
    deployed: Instance, observer: Observer, partner: Partner
) -> None:
    """R2, B05: signed before the post's own answer is in; kept, told twice and under two ids, taken in once."""
    # The first delivery finds the function cold; the others come while the post still keeps its answer back.
    assert partner.send({"correlation_id": "warm-up", "answer": DOCUMENT}).status == HTTPStatus.ACCEPTED
    # So nobody waits for a signature yet.
    fault = {"hold_after_recording_seconds": HOLD_SECONDS, "times": 1, "collection": "packets"}
    assert deployed.payments().put("/faults", fault).status == HTTPStatus.OK
    task_id, packet = posting_packet(deployed, observer, f"E-{secrets.token_hex(4)}")
    event = {"correlation_id": packet, "answer": DOCUMENT}

    with held(deployed, "perform"):
        assert read(deployed, task_id)["waits"] == []
        early = [partner.send(event, f"{packet}-{number}") for number in (1, 1, 2)]
    asked = until(observer, deployed, task_id, "waiting_input")
    late = [partner.send(event, f"{packet}-{number}") for number in (1, 3)]

    assert [(a.status, a.json()["reception"]) for a in early] == [(HTTPStatus.ACCEPTED, "kept")] * 3
    assert [(a.status, a.json()["reception"]) for a in late] == [(HTTPStatus.OK, "duplicate")] * 2
    assert [fact["values"] for fact in asked["facts"] if fact["name"] == "document_signed"] == [DOCUMENT]
    machine = replace(observer, workflow="onboarding")
    machine.until_waiting(task_id, "Await input")
    assert machine.states(task_id).count("Await input") == 1


def test_the_same_event_many_times_at_once_moves_the_task_once(
    deployed: Instance, observer: Observer, partner: Partner
) -> None:
    """R2: four deliveries at the same instant, under one id and under others; one moves the task."""
    task_id, packet = posting_packet(deployed, observer, f"E-{secrets.token_hex(4)}")
    until(observer, deployed, task_id, "waiting_event")
    event = {"correlation_id": packet, "answer": DOCUMENT}

    with ThreadPoolExecutor(max_workers=4) as senders:
        answers = list(senders.map(lambda number: partner.send(event, f"{packet}-{number}"), (1, 1, 2, 3)))
    repeated = [partner.send(event, f"{packet}-{number}") for number in (1, 2, 3)]

    receptions = sorted(a.json()["reception"] for a in answers if a.status == HTTPStatus.OK)
    assert receptions == ["accepted", *["duplicate"] * (len(receptions) - 1)]
    # Whoever lost the race may be asked to come again, and nothing else.
    assert {a.status for a in answers} <= {HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE}
    assert [a.json()["reception"] for a in repeated] == ["duplicate"] * 3
    asked = until(observer, deployed, task_id, "waiting_input")
    assert [fact["name"] for fact in asked["facts"]].count("document_signed") == 1


def test_a_webhook_that_is_killed_after_its_commit_is_asked_again(
    deployed: Instance, observer: Observer, partner: Partner
) -> None:
    """R1, R2, B05: the sender hears nothing and sends it again; the event is known, and moved the task once."""
    for _ in range(TRIES):
        task_id, event, unheard = cut_off_webhook(deployed, observer, partner)
        if unheard.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            break
    else:
        pytest.fail("the answer was always quicker than the look at the record")

    again = partner.send(event, task_id)

    assert (again.status, again.json()["reception"]) == (HTTPStatus.OK, "duplicate")
    asked = until(observer, deployed, task_id, "waiting_input")
    assert [fact["name"] for fact in asked["facts"]].count("document_signed") == 1


def cut_off_webhook(deployed: Instance, observer: Observer, partner: Partner) -> tuple[str, dict[str, object], Answer]:
    """Kill the function when an event is in the record; return the task, the event, and what its sender heard."""
    task_id, packet = posting_packet(deployed, observer, f"E-{secrets.token_hex(4)}")
    until(observer, deployed, task_id, "waiting_event")
    event: dict[str, object] = {"correlation_id": packet, "answer": DOCUMENT}
    with held(deployed, "webhook") as workers, ThreadPoolExecutor(max_workers=1) as sender:
        before = version(deployed, task_id)
        sending = sender.submit(lambda: partner.send(event, task_id))
        workers.run_until(lambda: version(deployed, task_id) > before, "the event is in the record")
        assert workers.kill()
    return task_id, event, sending.result()


# --- R4: the approver's right is taken away ---------------------------------------------------------------------------


@contextmanager
def revoked(deployed: Instance, person: str) -> Iterator[None]:
    """Take a person's roles away in the Authority records for as long as the block lasts."""
    dynamodb = deployed.aws.client("dynamodb")
    claims = deployed.token(person).split(".")[1]
    told = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    key = {"record": {"S": principal_record(PrincipalRef(issuer=told["iss"], subject=told["sub"]))}}
    stored = dynamodb.get_item(TableName="holdfast-local-authority", Key=key)["Item"]
    dynamodb.put_item(TableName="holdfast-local-authority", Item={**stored, "roles": {"L": []}})
    try:
        yield
    finally:
        dynamodb.put_item(TableName="holdfast-local-authority", Item=stored)


def test_an_approver_who_lost_the_right_while_the_task_waits_cannot_decide(
    deployed: Instance, observer: Observer
) -> None:
    """R4, B06: the right is read live at the click; given back, the same approval can be decided."""
    order = fresh_order()
    task_id = started(observer, order)
    before = observer.task(task_id)
    approval = observer.approval_id(task_id)

    with revoked(deployed, "manager-7"):
        refused = observer.decide("manager-7", task_id, approval, version=1)

    # To somebody without any role the task is not even there.
    assert refused.status in {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}
    assert observer.task(task_id) == before
    assert observer.refunds(order) == []
    assert observer.decide("manager-7", task_id, approval, version=1).status == HTTPStatus.OK
    paid_once(observer, task_id, order)


def at_the_gates(deployed: Instance, observer: Observer, task_id: str) -> None:
    """The decision is in the record, and the machine's next wake-up has not begun."""
    observer.until(lambda: observer.states(task_id)[-1] == "Wake" or None, "the machine wakes")


def at_the_dispatch(deployed: Instance, observer: Observer, task_id: str) -> None:
    """The action is decided and written down, and nothing is sent yet."""
    observer.until(lambda: observer.states(task_id)[-1] == "Perform action" or None, "the action is about to be sent")
    assert [row["status"]["S"] for row in rows(deployed, "actions", task_id)] == ["intent"]


@pytest.mark.parametrize(("function", "reached"), [("wake", at_the_gates), ("perform", at_the_dispatch)])
def test_an_approver_who_lost_the_right_before_the_dispatch_no_longer_counts(
    deployed: Instance, observer: Observer, function: str, reached: Callable[[Instance, Observer, str], None]
) -> None:
    """R4, B06: nothing is sent on it, the task asks anew, and what was asked before cannot be decided any more."""
    order = fresh_order()
    task_id = started(observer, order)
    first = observer.approval_id(task_id)

    with held(deployed, function) as workers:
        assert approve(observer, task_id) == HTTPStatus.OK
        reached(deployed, observer, task_id)
        with revoked(deployed, "manager-7"):
            workers.release()
            asked = observer.until_status(task_id, "waiting_approval", "completed", "needs_review")
            assert asked["status"] == "waiting_approval"
            assert observer.refunds(order) == []

    assert {a["approval_id"]: a["status"] for a in asked["approvals"]}[first] == "void"
    assert {row["status"]["S"] for row in rows(deployed, "actions", task_id)} <= {"void"}
    # The same word of the same person once more is told the true state, and changes nothing.
    late = observer.decide("manager-7", task_id, first, version=1)
    assert (late.status, late.json()["status"]) == (HTTPStatus.OK, "waiting_approval")
    assert observer.task(task_id) == asked
    observer.until_waiting(task_id, "Await approval")
    assert approve(observer, task_id) == HTTPStatus.OK
    paid_once(observer, task_id, order)


# --- R7: what a purge takes away --------------------------------------------------------------------------------------


def test_a_token_that_was_purged_is_loud_and_the_task_goes_on(deployed: Instance, observer: Observer) -> None:
    """R7, B52: the machine's handle is gone; people are told which, take the execution away, and the task goes on."""
    order = fresh_order()
    task_id = started(observer, order)
    [wait] = observer.task(task_id)["waits"]
    wait_id = wait["wait_id"]
    open_earlier(deployed, task_id, timedelta(hours=1))
    deployed.aws.client("dynamodb").delete_item(
        TableName="holdfast-local-tokens", Key={"wait": {"S": f"acme#{wait_id}"}}
    )

    assert approve(observer, task_id) == HTTPStatus.OK

    told = observer.until(
        lambda: lines_about(deployed, f"no token for {wait_id} of {task_id}") or None, "people are told"
    )
    assert "needs_attention" in told[0]
    assert (observer.task(task_id)["status"], observer.states(task_id)[-1]) == ("ready", "Await approval")
    assert observer.refunds(order) == []
    take_execution_away(deployed, task_id)
    owned = observer.until_status(task_id, "needs_review")
    assert owned["because"] == "an operator aborted the execution"
    operate(deployed, task_id, "retry", {"version": owned["version"], "reason": "the token was purged"})
    paid_once(observer, task_id, order)


def test_a_wait_that_is_gone_is_quarantined_until_it_is_restored(deployed: Instance, observer: Observer) -> None:
    """R7, R6: a row that nothing purges is missing all the same: nothing runs until an operator has restored it."""
    order = fresh_order()
    task_id = started(observer, order)
    [wait] = observer.task(task_id)["waits"]
    key = {"correlation": {"S": f"acme#{wait['correlation_id']}"}}
    dynamodb, table = deployed.aws.client("dynamodb"), "holdfast-local-waits"
    backup = dynamodb.delete_item(TableName=table, Key=key, ReturnValues="ALL_OLD")["Attributes"]

    decided = observer.decide("manager-7", task_id, wait["correlation_id"], version=1)
    assert (decided.status, decided.json()["code"]) == (HTTPStatus.CONFLICT, "wait_settled")
    take_execution_away(deployed, task_id)

    def quarantined() -> dict[str, Any] | None:
        entries = deployed.api("operator-1").get("/tasks?status=quarantined").json()["entries"]
        return next((entry for entry in entries if entry["task_id"] == task_id), None)

    line = observer.until(quarantined, f"{task_id} is in the operators' queue")
    assert "a wait is not stored as open" in line["reason"]
    assert observer.refunds(order) == []
    record = deployed.api("operator-1").get(f"/tasks/{task_id}/record").json()
    release = {"version": record["version"], "from_version": record["intact_version"], "reason": "the wait was lost"}
    refused = deployed.api("operator-1").post(f"/tasks/{task_id}/operations/release", release)
    assert (refused.status, refused.json()["code"]) == (HTTPStatus.CONFLICT, "release_refused")
    dynamodb.put_item(TableName=table, Item=backup)
    operate(deployed, task_id, "release", release)
    observer.until_status(task_id, "waiting_approval")
    observer.until_waiting(task_id, "Await approval")
    assert approve(observer, task_id) == HTTPStatus.OK
    paid_once(observer, task_id, order)


def take_execution_away(deployed: Instance, task_id: str) -> None:
    """Stop the first execution of a refund, as an operator does in the console."""
    machine = deployed.machine_arn("refund").replace(":stateMachine:", ":execution:")
    deployed.aws.client("stepfunctions").stop_execution(executionArn=f"{machine}:{task_id}-1")


def operate(deployed: Instance, task_id: str, command: str, body: dict[str, Any]) -> None:
    """Give an operator's command, which has to be taken."""
    answer = deployed.api("operator-1").post(f"/tasks/{task_id}/operations/{command}", body)
    assert answer.status == HTTPStatus.OK, answer.body


# --- the ladder of a wait ---------------------------------------------------------------------------------------------


def test_a_timer_acts_once_and_only_when_its_time_has_come(deployed: Instance, observer: Observer) -> None:
    """R2, B67: what the schedule would send, sent too early, in time, and twice; the timer stands at the next rung."""
    order = fresh_order()
    task_id = started(observer, order)
    [wait] = observer.task(task_id)["waits"]
    armed = timer_of(deployed, wait["wait_id"])

    early = fired(deployed, armed)
    before = version(deployed, task_id)
    open_earlier(deployed, task_id, timedelta(days=1, minutes=1))
    acted, again = fired(deployed, armed), fired(deployed, armed)

    assert (early, acted, again) == ({"acted": False}, {"acted": True}, {"acted": False})
    assert version(deployed, task_id) == before + 1
    assert observer.task(task_id)["because"].startswith("approval: reminded")

    def rearmed() -> bool | None:
        return json.loads(timer_of(deployed, wait["wait_id"]))["rung"] == json.loads(armed)["rung"] + 1 or None

    observer.until(rearmed, "the timer stands at the next rung")
    assert approve(observer, task_id) == HTTPStatus.OK
    paid_once(observer, task_id, order)


def fired(deployed: Instance, what: str) -> dict[str, Any]:
    """Send to `deadline` what a schedule holds, and return the answer."""
    called = deployed.aws.client("lambda").invoke(FunctionName="holdfast-local-deadline", Payload=what.encode())
    answer: dict[str, Any] = json.loads(called["Payload"].read())
    return answer
