"""A chosen dozen of crashes on the deployed system: the worker process is killed in the middle of a call.

All of them happen first, one after another, and recover side by side. A crash counts only if the system itself says
that the call broke off; a moment that was missed is tried again with another task.
"""

import json
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import pytest

from local.http_client import Answer
from local.instance import Instance
from local.walkthrough import Observer
from local.walkthrough.observer import PATIENCE_SECONDS, OutOfPatience
from tests.scenario.conftest import SUMMARY
from tests.scenario.power_cut import Workers, held
from tests.scenario.stored import faults_left, open_earlier, rows, timer_of, version

KILLED = "Runtime.ExitError"
# Below the limit nobody is asked; above it a manager is.
SMALL, LARGE = 4_500, 45_000
# A moment is missed on a machine that is busy enough; then it is waited for once more, with another task.
TRIES = 6
# The longest of the leases that have to lapse is 75 s; a loaded machine gets twice that.
RECOVERY_SECONDS = 200.0
# The machine hears of a worker's end at once; a loaded machine gets many times that.
NOTICED_SECONDS = 12.0
# The provider and the model keep their answers back for longer than it takes to see it and to kill somebody.
HOLD_SECONDS = 4

# The first test of the module waits for all crashes to happen.
pytestmark = pytest.mark.timeout(900)


class Missed(Exception):
    """The call ended before it could be killed."""


@dataclass
class Stage:
    """Where crashes are played: the deployed system, seen from outside."""

    deployed: Instance
    observer: Observer
    threads: ThreadPoolExecutor
    closed: str = ""

    @staticmethod
    def order() -> str:
        """A fresh order."""
        return f"ord-cut-{secrets.token_hex(4)}"

    def start(self, order: str, amount: int, note: str | None = None) -> str:
        """Start a refund and return its task."""
        request: dict[str, Any] = {"amount_minor": amount, "currency": "EUR", "order_reference": order}
        answer = self.observer.start("clerk-1", order, request if note is None else {**request, "note": note})
        assert answer.status == HTTPStatus.CREATED, answer.body
        return str(answer.json()["task_id"])

    def waiting(self, order: str) -> str:
        """Start a refund and return its task when its machine waits for the approval."""
        task_id = self.start(order, LARGE)
        self.observer.until_waiting(task_id, "Await approval")
        return task_id

    def approve(self, task_id: str) -> Answer:
        """Approve it."""
        return self.observer.decide("manager-7", task_id, self.observer.approval_id(task_id), version=1)

    def rows(self, kind: str, task_id: str) -> list[dict[str, Any]]:
        """What a table holds of a task."""
        return rows(self.deployed, kind, task_id)

    def version(self, task_id: str) -> int:
        """How far the task's record has come."""
        return version(self.deployed, task_id)

    def effect_is(self, task_id: str, *statuses: str) -> bool:
        """Whether the ledger has a row of the task in one of these statuses."""
        return any(row["status"]["S"] in statuses for row in self.rows("actions", task_id))

    def kept_answer(self, task_id: str) -> bool:
        """Whether a model's answer is kept for the task."""
        client = self.deployed.aws.client("s3")
        found = client.list_objects_v2(
            Bucket="holdfast-local-artifacts-000000000000-us-east-1", Prefix=f"residue/acme/{task_id}/"
        )
        return bool(found.get("KeyCount"))

    def wait_id(self, task_id: str) -> str:
        """The task's open wait."""
        [wait] = self.observer.task(task_id)["waits"]
        return str(wait["wait_id"])

    def has_token(self, wait_id: str) -> bool:
        """Whether the machine's handle of a wait is stored."""
        client = self.deployed.aws.client("dynamodb")
        key = {"wait": {"S": f"acme#{wait_id}"}}
        return "Item" in client.get_item(TableName="holdfast-local-tokens", Key=key, ConsistentRead=True)

    def post(self, path: str, person: str, body: object, **headers: str) -> "Future[Answer]":
        """Send a request without waiting for its answer."""
        api = self.deployed.api(person)
        return self.threads.submit(lambda: api.post(path, body, **headers))

    def call(self, function: str, event: object) -> "Future[dict[str, Any]]":
        """Call a function as a rule would, without waiting for it; the future has the error or what was answered."""
        client = self.deployed.aws.client("lambda")

        def invoke() -> dict[str, Any]:
            answer = client.invoke(FunctionName=f"holdfast-local-{function}", Payload=json.dumps(event).encode())
            told: dict[str, Any] = json.loads(answer["Payload"].read())
            return told

        return self.threads.submit(invoke)

    def warm(self, function: str, event: object) -> None:
        """Let a function start a worker if its last one was killed; a cold start takes long in slices."""
        told = self.call(function, event).result(timeout=PATIENCE_SECONDS)
        assert "errorType" not in told, told

    def story_of(self, task_id: str) -> str:
        """Everything that says where a task is and how it came there."""
        task = self.observer.task(task_id)
        lines = [
            f"{task['status']} at version {task['version']}: {task['because']}",
            f"states: {' > '.join(self.observer.states(task_id))}",
            f"calls: {self.observer.calls(task_id)}",
            f"execution: {self.observer.execution_status(task_id)}",
            *(f"{kind}: {self.rows(kind, task_id)}" for kind in ("actions", "leases", "outbox")),
        ]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A task whose worker was killed."""

    task_id: str
    order: str
    killed: int
    # Why a person has to look before it goes on, where that is the truth.
    review: str | None = None


Play = Callable[[Stage], Cut]
PLAYS: dict[str, Play] = {}


def crash(what: str) -> Callable[[Play], Play]:
    """Add a crash to those that are played, in this order."""

    def add(play: Play) -> Play:
        PLAYS[what] = play
        return play

    return add


def cut_off(on: Stage, workers: Workers, task_id: str, state: str) -> int:
    """Kill workers in the middle of a call that the machine makes; return how many.

    Raises:
        Missed: the call that ended next is another one, or it had an answer.
    """
    before = len(on.observer.calls(task_id))
    killed = workers.kill()

    def ended() -> list[tuple[str, str]] | None:
        running = on.observer.execution_status(task_id) == "RUNNING"
        calls = on.observer.calls(task_id)
        return calls if len(calls) > before or not running else None

    try:
        broken = on.observer.until(ended, f"a call of {state} has ended", seconds=NOTICED_SECONDS)[before:]
    except OutOfPatience as waits:
        # The call had ended well, and the machine waits for something else.
        raise Missed(str(waits)) from waits
    if broken[:1] != [(state, KILLED)]:
        msg = f"the workers were killed, and the next calls to end were {broken}"
        raise Missed(msg)
    return len(killed)


@crash("wake, after it took the lease of the model turn")
def _(on: Stage) -> Cut:
    order = on.order()
    with held(on.deployed, "wake") as workers:
        task_id = on.start(order, SMALL)
        workers.run_until(lambda: bool(on.rows("leases", task_id)), "the lease is taken")
        return Cut(task_id=task_id, order=order, killed=cut_off(on, workers, task_id, "Wake"))


@crash("perform, after the bank had paid and before the tool said so")
def _(on: Stage) -> Cut:
    order = on.order()
    on.observer.hold_answers_after_recording(HOLD_SECONDS)
    task_id = on.start(order, SMALL)
    on.observer.until(lambda: on.observer.refunds(order) or None, "the bank has paid")
    with held(on.deployed, "perform") as workers:
        return Cut(task_id=task_id, order=order, killed=cut_off(on, workers, task_id, "Perform action"))


@crash("tool issue_refund, before the bank had paid")
def _(on: Stage) -> Cut:
    order = on.order()
    on.observer.break_before_recording(HTTPStatus.SERVICE_UNAVAILABLE)
    with held(on.deployed, "tool-issue_refund") as workers:
        task_id = on.start(order, SMALL)
        workers.run_until(lambda: faults_left(on.deployed) == 0, "the bank broke before it paid")
        assert on.observer.refunds(order) == []
        return Cut(task_id=task_id, order=order, killed=_tool_cut_off(on, workers, task_id))


@crash("tool issue_refund, after the bank had paid")
def _(on: Stage) -> Cut:
    order = on.order()
    on.observer.hold_answers_after_recording(HOLD_SECONDS)
    task_id = on.start(order, SMALL)
    on.observer.until(lambda: on.observer.refunds(order) or None, "the bank has paid")
    with held(on.deployed, "tool-issue_refund") as workers:
        return Cut(task_id=task_id, order=order, killed=_tool_cut_off(on, workers, task_id))


def _tool_cut_off(on: Stage, workers: Workers, task_id: str) -> int:
    """Kill the tool's workers; the ledger has to say that nobody knows the outcome."""
    killed = workers.kill()
    on.observer.until(lambda: on.effect_is(task_id, "outcome_unknown", "done") or None, "the attempt has ended")
    if not on.effect_is(task_id, "outcome_unknown"):
        msg = "the tool had answered"
        raise Missed(msg)
    return len(killed)


@crash("perform, after the outcome was in the ledger")
def _(on: Stage) -> Cut:
    order = on.order()
    on.observer.hold_answers_after_recording(2)
    task_id = on.start(order, SMALL)
    on.observer.until(lambda: on.observer.refunds(order) or None, "the bank has paid")
    with held(on.deployed, "perform") as workers:
        workers.run_until(lambda: on.effect_is(task_id, "done"), "the outcome is in the ledger")
        return Cut(task_id=task_id, order=order, killed=cut_off(on, workers, task_id, "Perform action"))


@crash("wake, after it wrote the intent")
def _(on: Stage) -> Cut:
    order = on.order()
    on.warm("wake", {"tenant": "acme", "task_id": on.closed, "run": 1, "execution": f"{on.closed}-1"})
    with held(on.deployed, "wake") as workers:
        task_id = on.start(order, SMALL)
        workers.run_until(lambda: on.effect_is(task_id, "intent"), "the intent is written")
        return Cut(task_id=task_id, order=order, killed=cut_off(on, workers, task_id, "Wake"))


@crash("propose, while the model thinks")
def _(on: Stage) -> Cut:
    order, asked = on.order(), on.observer.model_requests()
    task_id = on.start(order, SMALL, note=f"[[model: hang {HOLD_SECONDS}]]")
    on.observer.until(lambda: on.observer.model_requests() > asked or None, "the model is asked")
    with held(on.deployed, "propose") as workers:
        return Cut(task_id=task_id, order=order, killed=cut_off(on, workers, task_id, "Propose action"))


@crash("propose, after it kept the answer")
def _(on: Stage) -> Cut:
    order, asked = on.order(), on.observer.model_requests()
    task_id = on.start(order, SMALL, note="[[model: hang 2]]")
    on.observer.until(lambda: on.observer.model_requests() > asked or None, "the model is asked")
    with held(on.deployed, "propose") as workers:
        workers.run_until(lambda: on.kept_answer(task_id), "the answer is kept")
        return Cut(task_id=task_id, order=order, killed=cut_off(on, workers, task_id, "Propose action"))


@crash("open_wait, after it stored the token")
def _(on: Stage) -> Cut:
    order = on.order()
    with held(on.deployed, "open_wait") as workers:
        task_id = on.start(order, LARGE)
        wait_id = on.wait_id(task_id)
        workers.run_until(lambda: on.has_token(wait_id), "the token is stored")
        return Cut(task_id=task_id, order=order, killed=cut_off(on, workers, task_id, "Await approval"))


@crash("open_wait, before it stored the token")
def _(on: Stage) -> Cut:
    order = on.order()
    on.waiting(on.order())
    with held(on.deployed, "open_wait") as workers:
        task_id = on.start(order, LARGE)

        def called() -> bool | None:
            workers.hold()
            return on.observer.states(task_id)[-1:] == ["Await approval"] or None

        # The call cannot end, because its workers stand still, also one that is only being started.
        on.observer.until(called, "it is called")
        assert not on.has_token(on.wait_id(task_id))
        return Cut(task_id=task_id, order=order, killed=cut_off(on, workers, task_id, "Await approval"))


@crash("deliver, after it started the execution")
def _(on: Stage) -> Cut:
    order = on.order()
    with held(on.deployed, "deliver") as workers:
        task_id = on.start(order, SMALL)
        workers.run_until(lambda: on.observer.execution_status(task_id) != "NONE", "the execution is started")
        return Cut(task_id=task_id, order=order, killed=_deliver_cut_off(on, workers, task_id))


@crash("deliver, after it answered the machine")
def _(on: Stage) -> Cut:
    order = on.order()
    task_id = on.waiting(order)
    with held(on.deployed, "deliver") as workers:
        on.approve(task_id)
        answered = ("Await approval", "")
        workers.run_until(lambda: answered in on.observer.calls(task_id), "the machine is answered")
        return Cut(task_id=task_id, order=order, killed=_deliver_cut_off(on, workers, task_id))


def _deliver_cut_off(on: Stage, workers: Workers, task_id: str) -> int:
    """Kill it while the message is still there: to take it away is the last thing that it does."""
    if not on.rows("outbox", task_id):
        msg = "the message is gone already"
        raise Missed(msg)
    return len(workers.kill())


@crash("api, after it stored the task")
def _(on: Stage) -> Cut:
    order = on.order()
    request = {"amount_minor": SMALL, "currency": "EUR", "order_reference": order}
    on.deployed.api("clerk-1").get("/tasks?status=ready")
    with held(on.deployed, "api") as workers:
        posting = on.post("/tasks", "clerk-1", {"workflow": "refund", "request": request}, idempotency_key=order)
        workers.run_until(lambda: _inbox_knows(on, order), "the task is stored")
        killed = len(workers.kill())
    _require_no_answer(posting)
    again = on.observer.start("clerk-1", order, request)
    assert (again.status, again.json()["created"]) == (HTTPStatus.OK, False), again.body
    return Cut(task_id=str(again.json()["task_id"]), order=order, killed=killed)


@crash("api, after it stored the decision")
def _(on: Stage) -> Cut:
    order = on.order()
    task_id = on.waiting(order)
    path = f"/tasks/{task_id}/approvals/{on.observer.approval_id(task_id)}/decision"
    with held(on.deployed, "api") as workers:
        posting = on.post(path, "manager-7", {"decision": "approve", "version": 1})
        workers.run_until(lambda: on.version(task_id) > 1, "the decision is stored")
        killed = len(workers.kill())
    _require_no_answer(posting)
    return Cut(task_id=task_id, order=order, killed=killed)


def _inbox_knows(on: Stage, key: str) -> bool:
    found = on.deployed.aws.client("dynamodb").scan(TableName="holdfast-local-inbox", ConsistentRead=True)
    return any(key in str(item) for item in found["Items"])


def _require_no_answer(posting: "Future[Answer]") -> None:
    answer = posting.result(timeout=RECOVERY_SECONDS)
    if answer.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        msg = f"it was answered {answer.status}"
        raise Missed(msg)


@crash("deadline, after it acted on the rung")
def _(on: Stage) -> Cut:
    order = on.order()
    task_id = on.waiting(order)
    timer = json.loads(timer_of(on.deployed, on.wait_id(task_id)))
    assert on.call("deadline", timer).result(timeout=PATIENCE_SECONDS) == {"acted": False}
    open_earlier(on.deployed, task_id, timedelta(days=1, minutes=1))
    with held(on.deployed, "deadline") as workers:
        calling = on.call("deadline", timer)
        workers.run_until(lambda: on.version(task_id) > 1, "the reminder is in the record")
        killed = len(workers.kill())
    _require_broken(calling)
    # The scheduler tries again.
    assert on.call("deadline", timer).result(timeout=PATIENCE_SECONDS) == {"acted": False}
    return Cut(task_id=task_id, order=order, killed=killed)


def _require_broken(calling: "Future[dict[str, Any]]") -> None:
    told = calling.result(timeout=RECOVERY_SECONDS)
    if told.get("errorType") != KILLED:
        msg = f"it answered {told}"
        raise Missed(msg)


@crash("recover, after it gave the task its next execution")
def _(on: Stage) -> Cut:
    order = on.order()
    task_id = on.waiting(order)
    machines = on.deployed.aws.client("stepfunctions")
    arn = on.deployed.machine_arn("refund").replace(":stateMachine:", ":execution:") + f":{task_id}-1"
    ended = {
        "detail-type": "Step Functions Execution Status Change",
        "detail": {
            "name": f"{task_id}-1",
            "status": "ABORTED",
            "input": json.dumps({"tenant": "acme", "task_id": task_id, "run": 1}),
        },
    }
    # The rule calls it as well, so two of them stand in front of the same record.
    for sweeping in [on.call("recover", {}) for _ in range(2)]:
        assert "errorType" not in sweeping.result(timeout=PATIENCE_SECONDS)
    with held(on.deployed, "recover") as workers:
        calling = on.call("recover", ended)
        machines.stop_execution(executionArn=arn)
        workers.run_until(lambda: on.version(task_id) > 1, "the next execution is in the record")
        killed = len(workers.kill())
    _require_broken(calling)
    return Cut(task_id=task_id, order=order, killed=killed, review="an operator aborted the execution")


@dataclass
class Played:
    """What became of each crash: the task, or why it could not be played."""

    cuts: dict[str, Cut] = field(default_factory=dict)
    failures: dict[str, Exception] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def stage(deployed: Instance, observer: Observer) -> Iterator[Stage]:
    """The deployed system, every function of it warm."""
    with ThreadPoolExecutor(max_workers=4) as threads:
        on = Stage(deployed=deployed, observer=observer, threads=threads)
        on.closed = on.waiting(on.order())
        on.approve(on.closed)
        observer.until_status(on.closed, "completed")
        yield on


@pytest.fixture(scope="module")
def played(stage: Stage) -> Played:
    """Every crash, one after another."""
    result = Played()
    for what, play in PLAYS.items():
        for _ in range(TRIES):
            try:
                result.cuts[what] = play(stage)
                result.failures.pop(what, None)
                break
            except (Missed, OutOfPatience) as missed:
                result.missed.append(what)
                result.failures[what] = missed
            except Exception as error:  # noqa: BLE001 - one crash that cannot be played does not hide the others
                result.failures[what] = error
                break
    return result


@pytest.mark.parametrize("what", list(PLAYS))
def test_a_worker_that_is_killed_in_a_call_changes_nothing(stage: Stage, played: Played, what: str) -> None:
    """R1, I2, I3, C-B, C-C, C-D: after recovery the bank has one refund, and the task is completed."""
    if what in played.failures:
        raise played.failures[what]
    cut, observer = played.cuts[what], stage.observer
    assert cut.killed

    try:
        if cut.review is not None:
            _retry(stage, observer.until_status(cut.task_id, "needs_review"), cut.review)
        task = observer.until(lambda: _settled(stage, cut), "the task has settled", seconds=RECOVERY_SECONDS)
        observer.until(lambda: observer.execution_status(cut.task_id) != "RUNNING" or None, "its execution has ended")
    except OutOfPatience as late:
        pytest.fail(f"{late}: {cut}\n{stage.story_of(cut.task_id)}")

    assert (task["status"], task["stage"]) == ("completed", "closed"), stage.story_of(cut.task_id)
    assert [refund["key"] for refund in observer.refunds(cut.order)] == [f"acme:{cut.task_id}:v1:1:issue_refund"]
    assert observer.execution_status(cut.task_id) == "SUCCEEDED"


def _retry(stage: Stage, task: dict[str, Any], because: str) -> None:
    """Let a task go on that a person has to look at, for the reason that is the truth."""
    assert task["because"] == because
    path = f"/tasks/{task['task_id']}/operations/retry"
    command = {"version": task["version"], "reason": "the execution was aborted by mistake"}
    assert stage.deployed.api("operator-1").post(path, command).status == HTTPStatus.OK


def _settled(stage: Stage, cut: Cut) -> dict[str, Any] | None:
    """The task if nothing more happens to it by itself; a manager approves on the way."""
    task = stage.observer.task(cut.task_id)
    if task["status"] == "waiting_approval" and stage.observer.states(cut.task_id)[-1] == "Await approval":
        stage.approve(cut.task_id)
    return task if task["status"] in {"completed", "needs_review", "quarantined", "failed", "expired"} else None


def test_so_many_workers_were_killed(played: Played, request: pytest.FixtureRequest) -> None:
    """R1: the dozen cannot shrink unnoticed."""
    killed = sum(cut.killed for cut in played.cuts.values())
    summary = f"workers killed in a call: {killed}, in {len(played.cuts)} crashes"
    missed = f"; moments missed and tried again: {', '.join(played.missed)}" if played.missed else ""
    request.config.stash[SUMMARY].append(summary + missed)

    assert len(played.cuts) == len(PLAYS) >= 16
    assert killed >= len(PLAYS)
