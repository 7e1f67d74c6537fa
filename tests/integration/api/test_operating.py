"""Stopping tasks, answering their questions, and what operators do, over the real routes and policies."""

import threading
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from shared.domain.answer import SignedEvent
from shared.domain.identity import PrincipalRef, TaskKey
from shared.usecases.engine import WebhookDeps
from shared.usecases.receive_event import receive_event
from tests.fakes.downstream import Downstream, Mishap
from tests.fakes.machine import Machine
from tests.fakes.model import proposes
from tests.integration.api.conftest import ISSUER, REFUND, Answer, Api, Log, an_event, decision_of

Task = Mapping[str, Any]
COMMANDS = ("retry", "settle", "release", "close", "quarantine", "escalate")


@pytest.fixture
def machine(api: Api) -> Machine:
    """Play the machine over the API's world, with a bank that honours keys and a model that proposes the record."""
    api.world.downstreams["issue_refund"] = Downstream()
    api.world.model.always = proposes("issue_refund", dict(REFUND))
    return Machine(api.world, api.calls, authoriser=api.parts.deps.rights.authoriser)


def path_of(task: Task, *more: str) -> str:
    """Return an address under a task."""
    return "/".join(["/tasks", str(task["task_id"]), *more])


def cancel(api: Api, task: Task, who: str = "clerk-1", **body: Any) -> Answer:
    """Cancel."""
    return api.call(who, "POST", path_of(task, "cancel"), body=body)


def read(api: Api, task: Task, who: str = "clerk-1") -> Any:
    """Read a task that can be read."""
    answer = api.call(who, "GET", path_of(task))
    assert answer.status == 200, answer.text
    return answer.json


def operate(api: Api, task: Task, command: str, who: str = "operator-1", **body: Any) -> Answer:
    """Give a command about the task as it is stored now, with everything that the command wants."""
    head = api.world.heads[TaskKey(tenant="acme", task_id=str(task["task_id"])).key]
    wants: dict[str, dict[str, Any]] = {
        "settle": {"operation": "none", "outcome": "failed", "evidence": "case 4711"},
        "release": {"from_version": head.version},
        "escalate": {"wait_id": "wai_none"},
    }
    parts = {"version": head.version, "reason": "I looked at it", **wants.get(command, {}), **body}
    return api.call(who, "POST", path_of(task, "operations", command), body=parts)


def approve(api: Api, machine: Machine, task: Task) -> None:
    """Approve, and let the machine go on."""
    api.call("manager-7", "POST", decision_of(task), body={"decision": "approve", "version": 1})
    machine.settle()


@pytest.fixture
def in_doubt(api: Api, machine: Machine, task: Task) -> Any:
    """Bring a refund to where the bank was asked, its answer was lost, and no look-up is answered."""
    bank = Downstream(mishaps=deque([Mishap.RECORDED_NO_ANSWER] * 3), lookups_unclear=100)
    api.world.downstreams["issue_refund"] = bank
    api.call("manager-7", "POST", decision_of(task), body={"decision": "approve", "version": 1})
    machine.settle()
    stuck = read(api, task)
    assert (stuck["status"], stuck["effects"][0]["status"]) == ("needs_review", "intent")
    return stuck


# --- cancel -----------------------------------------------------------------------------------------------------------


def test_a_cancel_is_asked_for_and_ends_as_what_is_true(api: Api, machine: Machine, task: Task) -> None:
    """I4: 200 with the request in the record; the machine ends the task; asking again answers how it ended."""
    asked = cancel(api, task)
    machine.settle()
    again = cancel(api, task, scope="task")

    assert (asked.status, asked.json["status"]) == (200, "cancel_requested")
    assert asked.json["waits"] == []
    assert (again.status, again.json["status"], again.json["outcome"]) == (200, "canceled", "canceled on request")


def test_an_approval_after_a_cancel_is_told_the_true_state(api: Api, task: Task) -> None:
    """B17: the loser gets 409 with the task as it is."""
    cancel(api, task)

    late = api.call("manager-7", "POST", decision_of(task), body={"decision": "approve", "version": 1})

    assert (late.status, late.code) == (409, "decision_closed")
    assert late.json["current"]["status"] == "cancel_requested"


@pytest.mark.parametrize(
    ("scope", "code"),
    [("tool_call", "nothing_to_cancel"), ("model_turn", "nothing_to_cancel"), ("child_tasks", "no_child_tasks")],
)
def test_a_cancel_of_what_is_not_under_way_says_so(scope: str, code: str, api: Api, task: Task) -> None:
    """I4: 409 with a code of its own and the task as it is; nothing is changed."""
    before = api.snapshot()

    answer = cancel(api, task, scope=scope)

    assert (answer.status, answer.code) == (409, code)
    assert answer.json["current"]["status"] == "waiting_approval"
    assert api.snapshot() == before


def test_a_model_turn_is_stopped(api: Api, machine: Machine, task: Task) -> None:
    """I4: its answer is not heard, a person says how to go on, and an operator lets it go on."""
    stopped: list[Answer] = []

    def step_in(name: str) -> None:
        if name == "model.ask" and not stopped:
            stopped.append(cancel(api, task, scope="model_turn"))

    api.calls.step_in = step_in
    approve(api, machine, task)

    assert (stopped[0].status, stopped[0].json["status"]) == (200, "needs_review")
    assert read(api, task)["status"] == "needs_review"
    retried = operate(api, task, "retry")
    machine.settle()
    assert (retried.status, retried.json["status"]) == (200, "ready")
    assert read(api, task)["status"] == "completed"


def test_a_task_that_has_ended_is_not_canceled(api: Api, machine: Machine, task: Task) -> None:
    """B17: 409 with how it ended."""
    approve(api, machine, task)

    answer = cancel(api, task)

    assert (answer.status, answer.code) == (409, "task_closed")
    assert answer.json["current"]["status"] == "completed"


@pytest.mark.parametrize(("who", "status"), [("intern-2", 403), ("manager-7", 403), ("guest-3", 404), ("clerk-g", 404)])
def test_only_some_may_cancel(who: str, status: int, api: Api, task: Task, log: Log) -> None:
    """A2, B31: refused and unchanged, with an audit line; another tenant does not learn that it exists."""
    before = api.snapshot()

    answer = cancel(api, task, who)

    assert answer.status == status
    assert api.snapshot() == before
    [line] = log.lines("request denied")
    assert (line["operation"], line["task_id"]) == ("cancel_task", task["task_id"])


# --- answers ----------------------------------------------------------------------------------------------------------

ONBOARDING = {
    "employee_reference": "E-7",
    "employee_subject": "emp-7",
    "start_on": "2026-12-01",
    "time_zone": "Europe/Berlin",
    "business_calendar": "DE-BE",
    "desk_location": "B-12",
}
CHOICE = {"decision": "choose", "keyboard": "compact", "screen": "two"}


@pytest.fixture
def question(api: Api, machine: Machine) -> Any:
    """Bring an onboarding to where it asks its employee to choose."""
    people = {"hr-1": "hr_clerk", "hr-9": "hr_lead", "emp-7": "employee", "emp-8": "employee"}
    for subject, role in people.items():
        api.world.authority.grant(PrincipalRef(issuer=ISSUER, subject=subject), tenant="acme", roles={role})
    for tool in ("send_welcome_packet", "order_equipment"):
        api.world.downstreams[tool] = Downstream()
    body = {"workflow": "onboarding", "request": ONBOARDING}
    task = api.call("hr-1", "POST", "/tasks", body=body, headers={"Idempotency-Key": "k-9"}).json
    machine.settle()
    api.call("hr-9", "POST", decision_of(task), body={"decision": "approve", "version": 1})
    machine.settle()
    _sign(machine, read(api, task, "hr-1"))
    machine.settle()
    waiting = read(api, task, "hr-1")
    assert waiting["status"] == "waiting_input", waiting
    return waiting


def _sign(machine: Machine, task: Task) -> None:
    process = machine.process()
    deps = WebhookDeps(
        tasks=machine.records(process), waits=process.waits, inbox=process.inbox, alarm=machine.world.alarms.append
    )
    event = SignedEvent(
        source="esign",
        event_id="evt-1",
        correlation_id=task["waits"][0]["correlation_id"],
        answer={"document_reference": "D-1", "signed_on": "2026-10-09"},
    )
    receive_event("acme", event, deps)


def answer_to(task: Task) -> str:
    """Return the address that answers a task's question."""
    return path_of(task, "waits", task["waits"][0]["wait_id"], "answer")


def say(api: Api, task: Task, who: str = "emp-7", *, answer: Any = None, version: Any = 1) -> Answer:
    """Answer the question."""
    return api.call(
        who, "POST", answer_to(task), body={"answer": CHOICE if answer is None else answer, "version": version}
    )


def test_a_question_is_answered_once(api: Api, question: Task) -> None:
    """B78: the answer moves the task; its copy answers the state; another answer is told that it comes too late."""
    given, copy = say(api, question), say(api, question)
    other = say(api, question, answer={"decision": "decline"})

    assert (given.status, given.json["status"]) == (200, "ready")
    assert given.json["facts"][-1]["values"] == CHOICE
    assert (copy.status, copy.json) == (200, given.json)
    assert (other.status, other.code) == (409, "decision_closed")
    assert other.json["current"] == {**given.json, "created": False}


def test_copies_at_the_same_time_move_the_task_once(api: Api, question: Task) -> None:
    """B78: three copies of one answer at once: one transition, three answers, and none of them an error."""
    version = question["version"]
    start = threading.Barrier(3)

    def send(_: int) -> Answer:
        start.wait(timeout=30)
        return say(api, question)

    with ThreadPoolExecutor(max_workers=3) as pool:
        answers = list(pool.map(send, range(3)))

    assert [answer.status for answer in answers] == [200] * 3
    assert {answer.json["version"] for answer in answers} == {version + 1}
    assert read(api, question, "hr-1")["version"] == version + 1


def test_clicks_at_the_same_time_decide_once(api: Api, task: Task) -> None:
    """B78: a click and its copies, all at once: one decision, and every copy is told that it was made."""
    start = threading.Barrier(3)

    def click(_: int) -> Answer:
        start.wait(timeout=30)
        return api.call("manager-7", "POST", decision_of(task), body={"decision": "approve", "version": 1})

    with ThreadPoolExecutor(max_workers=3) as pool:
        answers = list(pool.map(click, range(3)))

    assert [answer.status for answer in answers] == [200] * 3
    assert read(api, task)["version"] == task["version"] + 1


def test_an_answer_after_the_deadline_is_told_the_true_state(api: Api, question: Task) -> None:
    """B12: 409 with the task as it is, never 5xx, and nothing is changed."""
    api.world.clock.advance(timedelta(days=40))
    before = api.snapshot()

    late = say(api, question)

    assert (late.status, late.code) == (409, "decision_closed")
    assert late.json["current"]["status"] == "waiting_input"
    assert api.snapshot() == before


@pytest.mark.parametrize(("who", "status"), [("emp-8", 404), ("hr-1", 403), ("hr-9", 403), ("clerk-g", 404)])
def test_nobody_answers_for_somebody_else(who: str, status: int, api: Api, question: Task) -> None:
    """B31: who answers is whoever is logged in, and it is asked of one person."""
    before = api.snapshot()
    assert say(api, question, who).status == status
    assert api.snapshot() == before


@pytest.mark.parametrize(
    ("answer", "version", "status"),
    [
        ({}, 1, 400),
        ({"decision": "choose"}, 1, 400),
        ({**CHOICE, "colour": "red"}, 1, 400),
        ({**CHOICE, "keyboard": 7}, 1, 400),
        ({**CHOICE, "keyboard": {"a": 1}}, 1, 400),
        ([], 1, 400),
        (CHOICE, 2, 409),
        (CHOICE, "1", 400),
    ],
)
def test_an_answer_of_another_form_changes_nothing(
    answer: Any, version: Any, status: int, api: Api, question: Task
) -> None:
    """B31, L7: only what was asked for, in its form, about the version that was seen."""
    before = api.snapshot()
    assert say(api, question, answer=answer, version=version).status == status
    assert api.snapshot() == before


def test_an_approval_is_no_question(api: Api, task: Task) -> None:
    """B31: a wait of another kind takes no answer, and an unknown one none either."""
    approval = api.call("clerk-1", "POST", answer_to(task), body={"answer": {"a": 1}, "version": 1})
    unknown = api.call("clerk-1", "POST", path_of(task, "waits", "wai_x", "answer"), body={"answer": {}, "version": 1})

    assert (approval.status, approval.code) == (404, "task_not_found")
    assert (unknown.status, unknown.code) == (409, "decision_closed")


# --- operators --------------------------------------------------------------------------------------------------------


def test_a_refund_in_doubt_is_settled_and_goes_on(
    api: Api, machine: Machine, task: Task, in_doubt: Task, log: Log
) -> None:
    """O2: as a person's word with reference and evidence; the audit names who, what, about which version, and why."""
    stuck = in_doubt
    operation = stuck["effects"][0]["operation"]

    settled = operate(api, task, "settle", operation=operation, outcome="done", reference="P-77")
    machine.settle()

    assert (settled.status, settled.json["status"]) == (200, "outcome_unknown")
    done = read(api, task)
    assert (done["status"], done["facts"][0]["reference"]) == ("completed", "P-77")
    assert done["facts"][0]["values"]["evidence"] == "case 4711"
    [line] = log.lines("operator's command")
    audit = {name: line[name] for name in ("audit", "command", "principal", "task_id", "seen_version", "reason")}
    assert audit == {
        "audit": "operator_command",
        "command": "settle",
        "principal": f"{len(ISSUER)}:{ISSUER}:operator-1",
        "task_id": task["task_id"],
        "seen_version": stuck["version"],
        "reason": "I looked at it",
    }


def test_a_quarantined_refund_is_looked_at_and_released(api: Api, machine: Machine, task: Task) -> None:
    """O2, R6: the queue says why, the record says from where, and the release asks the manager again."""
    machine.settle()
    quarantined = operate(api, task, "quarantine")
    queue = api.call("operator-1", "GET", "/tasks", query={"status": "quarantined"}).json["entries"]
    record = api.call("operator-1", "GET", path_of(task, "record"))

    assert (quarantined.status, quarantined.json["intact_version"]) == (200, 1)
    reason = "quarantined by operator-1: I looked at it"
    assert [(line["task_id"], line["reason"], line["age_seconds"]) for line in queue] == [(task["task_id"], reason, 0)]
    assert (record.json["quarantine"], record.json["younger"]) == (reason, [])
    assert record.json["task"]["status"] == "waiting_approval"
    assert api.call("clerk-1", "GET", path_of(task)).code == "checkpoint_quarantined"
    assert cancel(api, task).code == "checkpoint_quarantined"

    released = operate(api, task, "release", from_version=1)
    machine.settle()

    assert (released.status, released.json["status"]) == (200, "resume_validation")
    again = read(api, task)
    assert again["status"] == "waiting_approval"
    assert [a["status"] for a in again["approvals"]] == ["void", "open"]


def test_a_quarantined_refund_is_closed(api: Api, machine: Machine, task: Task) -> None:
    """O2: as failed, with what is open in its outcome; it can be read again."""
    machine.settle()
    operate(api, task, "quarantine")

    closed = operate(api, task, "close")

    assert (closed.status, closed.json["status"]) == (200, "failed")
    assert read(api, task)["outcome"] == "closed out of quarantine; nothing is open"


def test_a_wait_is_escalated(api: Api, task: Task) -> None:
    """O2: the next rung acts now, and the deadline stays."""
    wait = task["waits"][0]

    answer = operate(api, task, "escalate", wait_id=wait["wait_id"])

    assert (answer.status, answer.json["waits"]) == (200, [wait])
    assert answer.json["because"] == "approval: reminded refund_approver: wanted now by operator-1: I looked at it"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("who", "status"), [("clerk-1", 403), ("manager-7", 403), ("intern-2", 403), ("guest-3", 404), ("manager-g", 404)]
)
def test_only_operators_give_commands(command: str, who: str, status: int, api: Api, task: Task, log: Log) -> None:
    """O2, A2: refused and unchanged, the owner included, with an audit line of the attempt."""
    before = api.snapshot()

    answer = operate(api, task, command, who)

    assert answer.status == status
    assert api.snapshot() == before
    assert [line["task_id"] for line in log.lines("request denied")] == [task["task_id"]]
    assert log.lines("operator's command") == []


@pytest.mark.parametrize("command", COMMANDS)
def test_no_operator_works_on_their_own_task(command: str, api: Api) -> None:
    """O2: whoever asked for a refund does not say what became of it."""
    api.world.authority.grant(
        PrincipalRef(issuer=ISSUER, subject="both-4"), tenant="acme", roles={"operator", "refund_clerk"}
    )
    own = api.start("both-4").json

    answer = operate(api, own, command, "both-4")

    assert (answer.status, answer.code) == (403, "not_authorised")
    assert "owners-do-not-operate-on-their-own" in answer.json["detail"]


@pytest.mark.parametrize("command", [c for c in COMMANDS if c != "quarantine"])
def test_a_command_that_does_not_fit_is_refused_with_the_state(command: str, api: Api, task: Task) -> None:
    """O2: 409 with the task as it is, and nothing is changed."""
    before = api.snapshot()

    answer = operate(api, task, command)

    assert (answer.status, answer.code) == (409, "illegal_transition")
    assert answer.json["current"]["status"] == "waiting_approval"
    assert api.snapshot() == before


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_about_another_version_is_refused(command: str, api: Api, task: Task) -> None:
    """B78: the copy of a command finds that the task has moved on."""
    if command in {"release", "close"}:
        operate(api, task, "quarantine")
    before = api.snapshot()

    answer = operate(api, task, command, version=7)

    assert (answer.status, answer.code) == (409, "stale_command")
    assert api.snapshot() == before


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "change",
    [
        {"reason": None},
        {"reason": ""},
        {"reason": " \t\n"},
        {"reason": "x" * 301},
        {"reason": 7},
        {"version": None},
        {"version": "1"},
        {"version": 0},
        {"by": "manager-7"},
        {"tenant": "globex"},
    ],
)
def test_a_command_of_another_form_is_refused(command: str, change: Mapping[str, Any], api: Api, task: Task) -> None:
    """O2: no command without a reason and a version, and none with fields that nobody asked for: 400."""
    before = api.snapshot()

    answer = operate(api, task, command, **change)

    assert (answer.status, answer.code) == (400, "invalid_request")
    assert api.snapshot() == before


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": "unknown"},
        {"outcome": "done", "reference": " P-77"},
        {"outcome": "done", "reference": "P\n77"},
        {"outcome": "done"},
        {"evidence": ""},
        {"evidence": "x" * 201},
        {"evidence": None},
        {"operation": ""},
    ],
)
def test_a_word_of_another_form_is_refused(change: Mapping[str, Any], api: Api, task: Task) -> None:
    """O2: what was done has a reference, every word has evidence: 400."""
    before = api.snapshot()

    answer = operate(api, task, "settle", **change)

    assert (answer.status, answer.code) == (400, "invalid_request")
    assert api.snapshot() == before


@pytest.mark.parametrize("scope", ["", "TASK", "everything", None, 7, ["task"], {"task": True}])
def test_a_cancel_of_another_reach_is_refused(scope: object, api: Api, task: Task) -> None:
    """B55: only the exact words; nothing is guessed: 400."""
    before = api.snapshot()
    answer = cancel(api, task, scope=scope)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert api.snapshot() == before


def test_nothing_of_this_is_done_without_a_token(api: Api, task: Task) -> None:
    """B02: no principal, no state change."""
    before = api.snapshot()
    paths = [path_of(task, "cancel"), answer_to(task), *(path_of(task, "operations", c) for c in COMMANDS)]

    answers = [api.send(an_event("POST", path, body={"version": 1, "reason": "x"})) for path in paths]
    answers.append(api.send(an_event("GET", path_of(task, "record"))))

    assert {(answer.status, answer.code) for answer in answers} == {(401, "not_authenticated")}
    assert api.snapshot() == before


def test_the_queue_says_why_and_for_how_long(api: Api, in_doubt: Task) -> None:
    """O1: owner, age and reason of a task that needs somebody."""
    api.world.clock.advance(timedelta(hours=2))

    (line,) = api.call("operator-1", "GET", "/tasks", query={"status": "needs_review"}).json["entries"]

    assert (line["task_id"], line["age_seconds"]) == (in_doubt["task_id"], 7_200)
    assert line["owner"].endswith("clerk-1")
    assert in_doubt["because"].startswith(line["reason"])
    assert line["reason"]


@pytest.mark.parametrize("who", ["operator-1", "clerk-1", "operator-g"])
@pytest.mark.parametrize("purged", [True, False])
def test_a_task_that_is_gone_or_of_another_tenant_is_not_made(who: str, purged: bool, api: Api, task: Task) -> None:
    """B64, A2: every late request for a purged, unknown or foreign task answers 404 alike and leaves no row behind."""
    api.world.authority.grant(PrincipalRef(issuer=ISSUER, subject="operator-g"), tenant="globex", roles={"operator"})
    gone: Task = task if who == "operator-g" else {**task, "task_id": "tsk_" + "0" * 32}
    if purged and who != "operator-g":
        gone = task
        for rows in (api.world.heads, api.world.checkpoints, api.world.waits, api.world.outbox):
            rows.clear()
    before = api.snapshot()
    body = {"version": 1, "reason": "late"}
    more: dict[str, dict[str, Any]] = {
        "settle": {"operation": "x", "outcome": "failed", "evidence": "x"},
        "release": {"from_version": 1},
        "escalate": {"wait_id": "wai_1"},
    }
    answers = [
        api.call(who, "POST", path_of(gone, "cancel"), body={}),
        api.call(who, "POST", path_of(gone, "waits", "wai_1", "answer"), body={"answer": {}, "version": 1}),
        api.call(who, "GET", path_of(gone, "record")),
        *(
            api.call(who, "POST", path_of(gone, "operations", command), body=body | more.get(command, {}))
            for command in COMMANDS
        ),
    ]

    assert {(answer.status, answer.code) for answer in answers} == {(404, "task_not_found")}
    assert len({answer.text for answer in answers}) == 1
    assert api.snapshot() == before
