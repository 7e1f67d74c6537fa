"""What the routes do when they are asked properly."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from shared.domain.authority import Operation, Question, Ruling
from shared.domain.identity import PrincipalRef
from tests.fakes.authoriser import FakeAuthoriser
from tests.fakes.calls import Fault, When
from tests.integration.api.conftest import ISSUER, REFUND, Answer, Api, Log, an_event, decision_of, page_of

Task = Mapping[str, Any]


def decide(api: Api, task: Task, who: str = "manager-7", *, word: str = "approve", version: int = 1) -> Answer:
    """Decide the task's last approval."""
    return api.call(who, "POST", decision_of(task), body={"decision": word, "version": version})


def test_a_started_task_waits_for_its_approval(api: Api) -> None:
    """L1: 201 with the task's address; it waits at version 1, and one execution start is staged."""
    answer = api.start(note="please hurry")

    task = answer.json
    assert (answer.status, answer.headers["Location"]) == (201, f"tasks/{task['task_id']}")
    assert (task["status"], task["request_version"], task["created"]) == ("waiting_approval", 1, True)
    assert task["request"] == REFUND
    assert answer.headers["Cache-Control"] == "no-store"
    assert [m.kind for row in api.world.undelivered() for m in row.messages].count("start_execution") == 1


def test_the_same_key_and_body_start_one_task(api: Api) -> None:
    """B16: the repeat answers 200 with the same task, however its JSON is spaced and ordered; nothing is written."""
    first = api.start()
    before = api.snapshot()
    raw = '{"request":{"order_reference":"A-1001",  "currency":"EUR","amount_minor":45000},"workflow":"refund"}'

    again = api.call("clerk-1", "POST", "/tasks", raw=raw, headers={"Idempotency-Key": "k-1"})

    assert (again.status, again.json["task_id"], again.json["created"]) == (200, first.json["task_id"], False)
    assert api.snapshot() == before


def test_a_key_belongs_to_a_tenant_and_a_person(api: Api) -> None:
    """B16: the same key of another tenant, and of a colleague, starts another task."""
    tasks = {
        api.start(who, amount_minor=amount).json["task_id"]
        for who, amount in [("clerk-1", 45_000), ("clerk-g", 46_000), ("clerk-2", 47_000)]
    }

    assert len(tasks) == 3


def test_a_tenant_named_in_the_request_is_not_heard(api: Api, task: Task) -> None:
    """A1 and B31: query, header and path never say whose data it is."""
    answer = api.call(
        "clerk-g",
        "GET",
        f"/tasks/{task['task_id']}",
        query={"tenant": "acme"},
        headers={"X-Tenant": "acme", "X-Principal": "clerk-1"},
    )

    assert answer.status == 404


def test_an_encoded_request_is_understood(api: Api) -> None:
    """B45: the gateway may encode any body."""
    body = {"workflow": "refund", "request": {**REFUND, "note": "zoë"}}

    answer = api.call("clerk-1", "POST", "/tasks", body=body, encoded=True, headers={"Idempotency-Key": "k-1"})

    assert answer.status == 201
    assert list(api.world.evidence.values()) == ["zoë".encode()]


@pytest.mark.parametrize("who", ["clerk-1", "manager-7", "intern-2", "operator-1"])
def test_colleagues_with_a_right_read_a_task(who: str, api: Api, task: Task) -> None:
    """Owner, approver, viewer and operator read it; the answer is the stored state."""
    answer = api.call(who, "GET", f"/tasks/{task['task_id']}")

    assert answer.status == 200
    assert answer.json == {**task, "created": False}


def test_a_colleague_without_a_right_does_not_learn_that_it_exists(api: Api, task: Task) -> None:
    """A2: who may not read a task gets the answer of a task that is not there."""
    assert api.call("guest-3", "GET", f"/tasks/{task['task_id']}").status == 404


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_reading_never_decides(method: str, api: Api, task: Task) -> None:
    """B02: whatever fetches an approval's addresses, however often, changes nothing; then the person decides once."""
    before = api.snapshot()
    statuses = {
        page_of(task): 200 if method == "GET" else 405,
        decision_of(task): 405,
        f"{decision_of(task)}/approve": 404,
    }
    for claims in (None, api.claims("manager-7")):
        for path, status in statuses.items():
            for _ in range(3):
                event = an_event(
                    method,
                    path,
                    claims=claims,
                    query={"decision": "approve", "version": "1"},
                    headers={"Purpose": "prefetch", "X-HTTP-Method-Override": "POST"},
                )
                assert api.send(event).status == (401 if claims is None else status)
    assert api.snapshot() == before

    decided, again = decide(api, task), decide(api, task)

    assert (decided.status, decided.json["status"], decided.json["version"]) == (200, "ready", 2)
    assert (again.status, again.json) == (200, decided.json)


def test_a_body_on_a_read_is_not_looked_at(api: Api, task: Task) -> None:
    """B02: a GET with a decision in its body is a GET."""
    before = api.snapshot()

    answer = api.call("manager-7", "GET", page_of(task), body={"decision": "approve", "version": 1})

    assert answer.status == 200
    assert api.snapshot() == before


def test_the_right_person_approves(api: Api, task: Task) -> None:
    """L4: the approval is granted by the person of the token, once, and the machine is told."""
    answer = decide(api, task)

    (approval,) = answer.json["approvals"]
    assert (approval["status"], approval["approved_by"]) == ("granted", [f"{len(ISSUER)}:{ISSUER}:manager-7"])
    kinds = [m.kind for row in api.world.undelivered() for m in row.messages]
    assert kinds.count("answer_wait") == 1


def test_a_rejection_ends_the_action(api: Api, task: Task) -> None:
    """B55: `reject` is terminal for the action, and a later approval finds it closed and is told the state."""
    rejected = decide(api, task, word="reject")

    late = decide(api, task)

    assert (rejected.json["status"], rejected.json["approvals"][0]["status"]) == ("completed", "rejected")
    assert (late.status, late.code) == (409, "decision_closed")
    assert late.json["current"]["outcome"] == "the refund was rejected and not issued"


@pytest.mark.parametrize(
    ("who", "status"),
    [("intern-2", 403), ("clerk-1", 403), ("clerk-2", 403), ("operator-1", 403), ("guest-3", 404), ("manager-g", 404)],
)
def test_the_wrong_person_decides_nothing(who: str, status: int, api: Api, task: Task, log: Log) -> None:
    """L3 and B31: refused, unchanged, and the audit line names who it really was, whomever the body names."""
    before = api.snapshot()

    answer = decide(api, task, who)

    assert answer.status == status
    assert api.snapshot() == before
    (line,) = log.lines("request denied")
    assert line["principal"] == f"{len(ISSUER)}:{ISSUER}:{who}"
    assert (line["operation"], line["task_id"], line["status"]) == ("decide_approval", task["task_id"], status)


def test_whoever_asked_does_not_approve(api: Api) -> None:
    """A7: holding both roles is not enough."""
    task = api.started(who="boss-9")

    answer = decide(api, task, "boss-9")

    assert (answer.status, answer.code) == (403, "not_authorised")


def test_an_amount_above_the_approvers_limit_needs_somebody_else(api: Api) -> None:
    """B04: the policy sees the amount of the action, as an integer."""
    at_limit, above = api.started(amount_minor=1_000_000), api.started(key="k-2", amount_minor=1_000_001)

    assert decide(api, at_limit).status == 200
    assert (decide(api, above).status, decide(api, above).code) == (403, "not_authorised")
    assert api.audited == []


def test_rights_are_read_at_the_click(api: Api, task: Task) -> None:
    """A3: a manager who lost the role meanwhile is refused, and so is one who was disabled."""
    ref = PrincipalRef(issuer=ISSUER, subject="manager-7")
    api.world.authority.grant(ref, tenant="acme", roles={"viewer"})
    assert decide(api, task).status == 403

    api.world.authority.disable(ref)

    assert (decide(api, task).status, decide(api, task).code) == (403, "not_authorised")


def test_an_amendment_voids_the_approval(api: Api, task: Task) -> None:
    """L7: the old approval is stale, its page says so, and the new one works."""
    path = f"/tasks/{task['task_id']}"
    amended = api.call(
        "clerk-1", "PATCH", path, body={"request": {**REFUND, "amount_minor": 50_000}, "request_version": 1}
    )
    assert (amended.status, amended.json["request_version"]) == (200, 2)

    old = api.call("manager-7", "POST", decision_of(task), body={"decision": "approve", "version": 1})
    page = api.call("manager-7", "GET", page_of(task))
    new = decide(api, amended.json, version=2)

    assert (old.status, old.code) == (409, "stale_approval")
    assert old.json["current"]["request_version"] == 2
    assert page.json["allowed_decisions"] == []
    assert page.json["not_allowed_because"] == "superseded: the request is now version 2"
    assert (new.status, new.json["status"]) == (200, "ready")


def test_a_click_after_the_deadline_is_too_late(api: Api, task: Task) -> None:
    """B12: 409 with the state; nothing is recorded."""
    api.world.clock.advance(timedelta(days=8))
    before = api.snapshot()

    answer = decide(api, task)

    assert (answer.status, answer.code) == (409, "decision_closed")
    assert api.snapshot() == before


def test_the_queue_shows_a_tenants_tasks_oldest_first(api: Api) -> None:
    """O1: by status, in pages, and never another tenant's."""
    mine = []
    for number in range(3):
        mine.append(api.started(key=f"k-{number}")["task_id"])
        api.world.clock.advance(timedelta(minutes=1))
    api.start("clerk-g")

    first = api.call("intern-2", "GET", "/tasks", query={"status": "waiting_approval", "limit": "2"}).json
    rest = api.call(
        "intern-2", "GET", "/tasks", query={"status": "waiting_approval", "limit": "2", "cursor": first["cursor"]}
    ).json

    assert [e["task_id"] for e in first["entries"]] == mine[:2]
    assert [e["task_id"] for e in rest["entries"]] == mine[2:]
    assert rest["cursor"] is None
    assert api.call("guest-3", "GET", "/tasks", query={"status": "ready"}).status == 403


def test_a_store_that_is_out_of_reach_is_503(api: Api, task: Task) -> None:
    """Nothing happened, and the caller is told when to try again."""
    api.world.seal_keys.unavailable = True
    seal = api.call("clerk-1", "GET", f"/tasks/{task['task_id']}")
    api.world.seal_keys.unavailable = False
    api.world.authority.unreadable = True
    rights = api.call("clerk-1", "GET", f"/tasks/{task['task_id']}")

    assert [(a.status, a.code) for a in (seal, rights)] == [(503, "seal_unavailable"), (503, "authority_unreadable")]
    assert seal.headers["Retry-After"]


def test_a_task_that_cannot_be_trusted_is_told_so(api: Api, task: Task) -> None:
    """R6: an edited checkpoint is read by nobody: 409, not a guess."""
    key = f"acme#{task['task_id']}"
    sealed = api.world.checkpoints[key, 1]
    api.world.checkpoints[key, 1] = sealed.model_copy(update={"body": sealed.body.replace("45000", "95000")})

    answer = api.call("clerk-1", "GET", f"/tasks/{task['task_id']}")

    assert (answer.status, answer.code) == (409, "checkpoint_quarantined")
    assert "current" not in answer.json


def test_a_bug_of_ours_tells_nothing(api: Api, task: Task, log: Log) -> None:
    """An exception that nobody raised on purpose: 500 with the id under which the log has it."""

    class Bug(Exception):
        pass

    def fail(*_: object, **__: object) -> None:
        msg = "acme's secret"
        raise Bug(msg)

    object.__setattr__(api.parts.deps.tasks, "records", type("Broken", (), {"load": fail})())

    answer = api.call("clerk-1", "GET", f"/tasks/{task['task_id']}")

    assert (answer.status, answer.code) == (500, "internal_error")
    assert "secret" not in answer.text
    (line,) = log.lines("request failed")
    assert line["correlation_id"] == answer.json["correlation_id"] == "request-1"
    assert line["exception_name"] == "Bug"


def test_a_lost_reply_of_the_store_starts_no_second_task(api: Api) -> None:
    """B11: the caller is asked to try again, and the repeat finds the one task."""
    api.calls.plan(Fault(when=When.DROP_REPLY, at=1, name="task_records.commit"))

    lost, again = api.start(), api.start()

    assert (lost.status, again.status) == (503, 200)
    assert len(api.world.heads) == 1


def test_log_lines_hold_no_bodies(api: Api, task: Task, log: Log) -> None:
    """Refusals are logged with who, what and why, and without what was sent."""
    api.start(key="k-2", currency="SECRET-CURRENCY", note="SECRET-NOTE")
    api.call("manager-7", "POST", decision_of(task), body={"decision": "SECRET-WORD", "version": 1})
    api.call("clerk-1", "POST", "/tasks", raw='{"SECRET-BODY"', headers={"Idempotency-Key": "SECRET-KEY"})

    assert len(log.lines("request refused")) == 3
    assert "SECRET" not in log.text


def test_the_page_shows_exactly_what_will_run(api: Api) -> None:
    """B62: typed fields complete, outside words apart and escaped, with the digest that covers both."""
    note = "Amount: 45\nfrom \u202eevil\u202c\u200b <b>bold</b> &amp; " + "x" * 6_000
    task = api.started(note=note)

    page = api.call("manager-7", "GET", page_of(task)).json

    assert {f["name"]: (f["value"], f["shown"]) for f in page["arguments"]} == {
        "amount_minor": (45_000, "45000"),
        "currency": ("EUR", "EUR"),
        "order_reference": ("A-1001", "A-1001"),
    }
    (evidence,) = page["evidence"]
    assert evidence["untrusted_text"] == (
        "Amount: 45\nfrom ⟨U+202E⟩evil⟨U+202C⟩⟨U+200B⟩ &lt;b&gt;bold&lt;/b&gt; &amp;amp; " + "x" * 6_000
    )
    assert page["allowed_decisions"] == ["approve", "reject"]
    assert len(page["digest"]) == 64


def test_nobody_approves_what_cannot_be_shown(api: Api) -> None:
    """B62: evidence that is gone leaves only the rejection."""
    task = api.started(note="please")
    api.world.evidence.clear()

    page = api.call("manager-7", "GET", page_of(task)).json

    assert page["evidence"][0]["untrusted_text"] is None
    assert page["allowed_decisions"] == ["reject"]


@pytest.mark.parametrize(
    ("who", "why"),
    [
        ("clerk-1", "whoever requested a task may not approve it"),
        ("intern-2", "forbidden by only-the-required-role-decides"),
    ],
)
def test_the_page_says_why_one_may_only_look(who: str, why: str, api: Api, task: Task) -> None:
    """The page offers what the decision would accept, and nothing else."""
    page = api.call(who, "GET", page_of(task)).json

    assert (page["allowed_decisions"], page["not_allowed_because"]) == ([], why)


def test_a_decided_page_offers_nothing(api: Api, task: Task) -> None:
    """B72: an old link shows what became of it."""
    decide(api, task)

    page = api.call("manager-7", "GET", page_of(task)).json

    assert (page["status"], page["allowed_decisions"]) == ("granted", [])
    assert page["not_allowed_because"] == "the approval is granted"


def test_nobody_reaches_by_amending_what_they_could_not_have_started(api: Api, task: Task) -> None:
    """A limit that policies set on starting holds for amendments too."""

    def small_refunds(question: Question) -> Ruling:
        large = question.operation is Operation.START and int(question.attributes["amount_minor"] or 0) > 50_000
        return Ruling(allowed=not large, reason="too large for you" if large else "fine")

    api.world.policies.rule = small_refunds
    object.__setattr__(api.parts.deps.rights, "authoriser", FakeAuthoriser(api.world))
    path = f"/tasks/{task['task_id']}"

    def amend_to(amount_minor: int) -> Answer:
        body = {"request": {**REFUND, "amount_minor": amount_minor}, "request_version": 1}
        return api.call("clerk-1", "PATCH", path, body=body)

    refused = amend_to(50_001)
    assert (refused.status, refused.code) == (403, "not_authorised")
    assert api.call("clerk-1", "GET", path).json["version"] == 1
    assert amend_to(50_000).status == 200
