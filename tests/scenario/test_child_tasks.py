"""A task and the task that it starts, on the deployed stack: two machines, two records, one story."""

import secrets
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from local.instance import Instance
from local.walkthrough import Observer
from tests.scenario.partner import Partner, let_in


@pytest.fixture(scope="module")
def warehouse(deployed: Instance) -> Iterator[Partner]:
    """The system that says that goods have come."""
    with let_in(deployed, "warehouse") as partner:
        yield partner


@pytest.fixture
def order() -> str:
    """An order of its own, so that the bank's ledger can be read by it."""
    return f"ord-return-{secrets.token_hex(4)}"


def announce(deployed: Instance, order: str, amount_minor: int) -> str:
    """Start a return and say its task id."""
    request = {
        "return_reference": f"RMA-{order}",
        "order_reference": order,
        "amount_minor": amount_minor,
        "currency": "EUR",
    }
    body = {"workflow": "goods_return", "request": request}
    started = deployed.api("clerk-1").post("/tasks", body, idempotency_key=order)
    assert started.status == 201, started.body
    return str(started.json()["task_id"])


def arrives(warehouse: Partner, order: str) -> None:
    """The goods are there, as they were sold."""
    sent = warehouse.send({"correlation_id": f"RMA-{order}", "answer": {"condition": "as_sold"}})
    assert sent.status in {200, 202}, sent.body


def refund_of(observer: Observer, task_id: str) -> str:
    """Wait until the return waits for its refund, and say the refund's task id."""
    waiting = observer.until_status(task_id, "waiting_child")
    [child] = waiting["children"]
    assert (child["name"], child["status"]) == ("refund", None)
    return str(child["task_id"])


def fact(task: dict[str, Any], name: str) -> dict[str, Any]:
    """A fact of a task."""
    found: dict[str, Any] = next(each for each in task["facts"] if each["name"] == name)
    return found


def test_a_return_is_refunded_by_a_task_of_its_own(
    deployed: Instance, observer: Observer, warehouse: Partner, order: str
) -> None:
    """R2, I1: the event starts the child in its own commit; its end wakes the parent by the callback token."""
    observer = replace(observer, workflow="goods_return")
    task_id = announce(deployed, order, 4_500)
    observer.until_waiting(task_id, "Await event")
    arrives(warehouse, order)

    task = observer.until_status(task_id, "completed")

    assert task["outcome"] == "the goods came back and were refunded"
    [paid] = observer.refunds(order)
    refund = fact(task, "refund")
    assert (refund["happened"], refund["values"]["issued"]) == (True, True)
    assert refund["values"]["reference"] == paid["id"]
    child = observer.task(refund["reference"])
    assert (child["status"], child["workflow"], child["parent"]) == ("completed", "refund", task_id)
    assert task["children"] == [{"task_id": child["task_id"], "name": "refund", "status": "completed"}]
    states = observer.until_waiting(task_id, "Completed")
    assert "Await child task" in states
    assert deployed.api("clerk-g").get(f"/tasks/{refund['reference']}").status == 404


def test_stopping_a_return_stops_its_refund(
    deployed: Instance, observer: Observer, warehouse: Partner, order: str
) -> None:
    """I4: one commit tells both; the return ends after its refund has, and nothing was paid."""
    observer = replace(observer, workflow="goods_return")
    task_id = announce(deployed, order, 45_000)
    observer.until_waiting(task_id, "Await event")
    arrives(warehouse, order)
    child_id = refund_of(observer, task_id)
    observer.until_status(child_id, "waiting_approval")

    canceled = deployed.api("clerk-1").post(f"/tasks/{task_id}/cancel", {})
    assert canceled.status == 200, canceled.body

    assert observer.until_status(task_id, "canceled")["outcome"] == "canceled on request"
    assert observer.task(child_id)["status"] == "canceled"
    assert observer.refunds(order) == []


def test_stopping_the_refund_alone_leaves_the_return_to_a_person(
    deployed: Instance, observer: Observer, warehouse: Partner, order: str
) -> None:
    """I4: the scope `child_tasks` stops the refund; what that means for the return its own rules say."""
    observer = replace(observer, workflow="goods_return")
    task_id = announce(deployed, order, 45_000)
    arrives(warehouse, order)
    child_id = refund_of(observer, task_id)

    stopped = deployed.api("clerk-1").post(f"/tasks/{task_id}/cancel", {"scope": "child_tasks"})
    assert stopped.status == 200, stopped.body

    reviewed = observer.until_status(task_id, "needs_review")
    assert child_id in reviewed["because"]
    assert observer.task(child_id)["status"] == "canceled"
    assert observer.refunds(order) == []
    again = deployed.api("clerk-1").post(f"/tasks/{task_id}/cancel", {"scope": "child_tasks"})
    assert (again.status, again.json()["code"]) == (409, "no_child_tasks")
