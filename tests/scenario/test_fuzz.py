"""Every field of the API, and of the webhook, fuzzed from the published description on the deployed system.

Schemathesis makes the cases: one for every way in which every field can be wrong or at its limit, always the same
ones, and a few random ones from a fixed seed. Nothing is answered with 5xx, everything is answered as described, and
what is refused, or comes from nobody, changes nothing.
"""

import base64
import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import cycle
from typing import Any, Final

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from schemathesis.generation.meta import TestPhase

from local.instance import Instance
from local.walkthrough import Observer
from tests.fakes.signed_event import Sender
from tests.scenario.fuzzing import (
    ALWAYS_THE_SAME,
    BODIES,
    CHECKS,
    DESCRIPTION,
    Bench,
    Target,
    about,
    correlation_of,
    described,
    is_right,
    is_wrong,
    operation_of,
)
from tests.scenario.partner import let_in
from tests.scenario.test_webhook import subject_of

each_field, random_only = described(each_field=True), described(each_field=False)
# Who may do what is asked for, so that a case is not refused before anybody has looked at its fields.
WHO: Final[Mapping[str, str]] = {
    "read_approval": "manager-7",
    "decide_approval": "manager-7",
    "answer_wait": "newcomer-10",
    **dict.fromkeys(("list_tasks", "inspect_record", "retry_task", "settle_action"), "operator-1"),
    **dict.fromkeys(("release_task", "close_task", "quarantine_task", "escalate_wait"), "operator-1"),
}
# By a field of its request: the workflow, and who may start it.
STARTERS: Final = {
    "order_reference": ("refund", "clerk-1"),
    "vendor_id": ("vendor_payment", "buyer-3"),
    "employee_reference": ("onboarding", "recruiter-8"),
}


@pytest.fixture(scope="module")
def bench(deployed: Instance, observer: Observer) -> Iterator[Bench]:
    """Let an outside system in, and begin what takes a while."""
    with let_in(deployed, "esign") as partner:
        made = Bench(
            deployed, observer, subject_of(deployed, "newcomer-10"), Sender(source=partner.source, secret=partner.key)
        )
        # What it would put right elsewhere is nothing that these tests have moved.
        deployed.aws.client("events").disable_rule(Name="holdfast-local-sweep")
        yield made
        made.tidy()
        deployed.aws.client("events").enable_rule(Name="holdfast-local-sweep")
        made.session.close()


def test_the_deployed_description_is_the_one_that_cases_are_made_from(bench: Bench) -> None:
    """What is fuzzed is what the deployed API publishes, the webhook included."""
    published = bench.deployed.api().get("/openapi.json").json()

    assert published == DESCRIPTION
    assert "/webhooks/{tenant}/{source}" in published["paths"]


# --- from nobody ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def before(bench: Bench) -> Mapping[str, list[str]]:
    """What is stored once everything that these tests aim at is there, and nothing moves any more."""
    assert bench.onboardings[0]["status"] == "waiting_event"
    assert bench.blocked.path
    return bench.until_quiet()


@pytest.fixture
def unmoved(bench: Bench, before: Mapping[str, list[str]]) -> Iterator[None]:
    """Hold whoever tries things to having changed nothing in any table."""
    yield
    after = bench.stored()
    moved = {name: sorted(set(after[name]) ^ set(before[name])) for name in before}
    assert moved == {name: [] for name in before}


@pytest.fixture(scope="module")
def forgeries(bench: Bench) -> Iterator[Mapping[str, str]]:
    """Ways to be nobody, one after the other, for ever."""
    header, claims, signature = bench.token("manager-7").split(".")
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').decode().rstrip("=")
    tokens = (f"{header}.{claims}.{signature[::-1]}", f"{unsigned}.{claims}.", "nonsense")
    forged = base64.b64encode(hashlib.sha256(b"guessed").digest()).decode()
    made_up = {"webhook-id": "msg_1", "webhook-timestamp": str(int(time.time())), "webhook-signature": f"v1,{forged}"}
    return cycle([{}, *({"Authorization": f"Bearer {token}"} | made_up for token in tokens)])


@each_field.parametrize()
@ALWAYS_THE_SAME
def test_nobody_changes_anything(
    case: Any, bench: Bench, forgeries: Iterator[Mapping[str, str]], unmoved: None
) -> None:
    """Bad input: without a token, with a forged one, or without a signature, whatever the fields are."""
    target = Target.at(bench.onboardings[0])
    if operation_of(case) == "receive_event":
        target = Target(path={"tenant": "acme", "source": "esign"}, words={})
        case.body = about({"correlation_id": correlation_of(bench.onboardings[0])}, case.body, schema="EventBody")

    answer = bench.send(case, target, **next(forgeries))

    assert answer.status_code == HTTPStatus.UNAUTHORIZED


# --- raw bytes, signed ------------------------------------------------------------------------------------------------

RIGHT: Final = b'{"correlation_id":"%s","answer":{"document_reference":"doc-9","signed_on":"2026-11-20"}}'
ODD_BODIES: Final[Mapping[str, bytes]] = {
    "nothing": b"",
    "not text": b"\xff\xfe\x00\x80",
    "broken UTF-8 in a field": RIGHT.replace(b"doc-9", b"doc-\xc3\x28"),
    "another encoding": RIGHT.decode().encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf" + RIGHT,
    "half of it": RIGHT[:40],
    "twice": RIGHT + RIGHT,
    "a field twice": RIGHT.replace(b'"answer"', b'"correlation_id":"other","answer"'),
    "an answer's field twice": RIGHT.replace(b'"signed_on"', b'"document_reference":"doc-8","signed_on"'),
    "not a number": RIGHT.replace(b'"doc-9"', b"NaN"),
    "infinity": RIGHT.replace(b'"doc-9"', b"-Infinity"),
    "a number of a billion digits": RIGHT.replace(b'"doc-9"', b"1e999999999"),
    "half a number": RIGHT.replace(b'"doc-9"', b"1.5"),
    "a number that loses digits": RIGHT.replace(b'"doc-9"', b"9007199254740993"),
    "ten thousand digits": RIGHT.replace(b'"doc-9"', b"9" * 10_000),
    "half a character": RIGHT.replace(b"doc-9", b"\\ud800"),
    "a control character": RIGHT.replace(b"doc-9", b"doc\x00"),
    "deep lists": b"[" * 30_000 + b"]" * 30_000,
    "deep objects": b'{"a":' * 12_000,
    "a deep answer": RIGHT.replace(b'"doc-9"', b"[" * 20_000 + b"]" * 20_000),
    "many fields": RIGHT.replace(b'"answer":{', b'"answer":{' + b"".join(b'"f%d":1,' % n for n in range(5_000))),
    "a long name": RIGHT.replace(b'"answer":{', b'"answer":{"%s":1,' % (b"a" * 50_000)),
    "one byte too many": RIGHT + b" " * (64_001 - len(RIGHT)),
    "a megabyte": RIGHT + b" " * 1_000_000,
    "nothing but null": b"null",
    "a list": b"[" + RIGHT + b"]",
    "a text": b'"' + base64.b64encode(RIGHT) + b'"',
}
# What the gateway hands over as text, and what it encodes.
MEDIA_TYPES: Final = ("application/json", "application/octet-stream")
ODD_TIMESTAMPS: Final = (
    *("", "0", "-1", "+1796000000", "1796000000.0", "1.796e9", "0x6b0c1a00", "1_796_000_000", "NaN", "9" * 400),
    *("now", "2026-11-30T20:00:00Z", "1796000000 1796000000", "1796000000,1796000000", "01796000000"),
)
RANDOM_BODIES: Final = 30
REFUSALS: Final = {HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.REQUEST_ENTITY_TOO_LARGE}


def is_json(raw: bytes) -> bool:
    """Whether bytes are JSON of whatever form: that may well be an event about something else."""
    try:
        json.loads(raw)
    except ValueError:
        return False
    return True


def problem_of(answer: Any) -> Mapping[str, Any]:
    """The problem that answers a delivery."""
    assert answer.headers["content-type"] == "application/problem+json"
    problem: Mapping[str, Any] = answer.json()
    assert problem["status"] == answer.status_code
    return problem


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
def test_odd_bytes_are_refused(bench: Bench, unmoved: None, media_type: str) -> None:
    """B14, B45: signed by who may, and still no event: 400 or 413, or 401 where the gateway has changed the bytes."""
    correlation_id = correlation_of(bench.onboardings[0]).encode()

    answers = {
        what: bench.tell(raw.replace(b"%s", correlation_id), content_type=media_type)
        for what, raw in ODD_BODIES.items()
    }

    assert {what: a.status_code for what, a in answers.items() if a.status_code not in REFUSALS} == {}
    too_large = {what for what, a in answers.items() if a.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE}
    assert too_large == {"one byte too many", "a megabyte"}
    assert all(problem_of(answer)["code"] for answer in answers.values())


def test_random_bytes_are_refused(bench: Bench, unmoved: None) -> None:
    """B14: whatever the bytes are, signed or not."""
    right = RIGHT.replace(b"%s", correlation_of(bench.onboardings[0]).encode())

    @settings(ALWAYS_THE_SAME, max_examples=RANDOM_BODIES)
    @given(raw=st.binary(max_size=300), cut=st.integers(0, len(right)), media_type=st.sampled_from(MEDIA_TYPES))
    def hold(raw: bytes, cut: int, media_type: str) -> None:
        mixed = right[:cut] + raw + right[cut + 1 :]
        assume(not is_json(mixed))
        answer = bench.tell(mixed, content_type=media_type)
        assert answer.status_code in REFUSALS
        assert problem_of(answer)

    hold()


def test_odd_timestamps_are_refused(bench: Bench, unmoved: None) -> None:
    """B51: the signature fits and the instant cannot be one, or is none of now."""
    raw = RIGHT.replace(b"%s", correlation_of(bench.onboardings[0]).encode())
    now = int(time.time())

    answers = [bench.tell(raw, at=at) for at in (*ODD_TIMESTAMPS, str(now - 310), str(now + 60))]

    assert {answer.status_code for answer in answers} == {HTTPStatus.UNAUTHORIZED}
    assert {problem_of(answer)["detail"] for answer in answers} == {"no valid signature of a known source"}


# --- signed events, whose content is wrong ----------------------------------------------------------------------------


@each_field.include(operation_id="receive_event").parametrize()
@settings(ALWAYS_THE_SAME, max_examples=RANDOM_BODIES)
def test_a_signed_event_of_a_wrong_form_moves_nothing(case: Any, bench: Bench, unmoved: None) -> None:
    """B14, R2: every field of the event, and of the answer that its wait asks for: 400, and no transition."""
    words = {"correlation_id": correlation_of(bench.onboardings[0]), "request_version": 1}
    body = about(words, case.body, schema="EventBody")
    assume(is_value(body) and not is_right("EventBody", body))

    answer = bench.tell(json.dumps(body).encode())

    case.validate_response(answer, checks=CHECKS)
    assert (answer.status_code, problem_of(answer)["code"]) == (HTTPStatus.BAD_REQUEST, "invalid_request")


@each_field.include(operation_id="receive_event").parametrize()
@ALWAYS_THE_SAME
def test_a_signed_event_of_the_right_form_is_taken_in(case: Any, bench: Bench) -> None:
    """R2: once; each further one is a repeat, or contradicts the first and is refused."""
    words = {"correlation_id": correlation_of(bench.onboardings[1]), "request_version": 1}
    body = about(words, case.body, schema="EventBody")
    assume(is_value(body) and is_right("EventBody", body))

    answer = bench.tell(json.dumps(body).encode())

    case.validate_response(answer, checks=CHECKS)
    # A day of the right form need not be in the calendar.
    assert answer.status_code in {HTTPStatus.OK, HTTPStatus.CONFLICT, HTTPStatus.BAD_REQUEST}


def is_value(body: object) -> bool:
    """Whether a case has a body at all: otherwise the library's own mark stands there."""
    return body is None or isinstance(body, (dict, list, str, int, float))


# --- from people ------------------------------------------------------------------------------------------------------


@dataclass
class Trial:
    """One operation's tasks: one that only wrong cases are aimed at, one for right ones, a new one for each more."""

    bench: Bench
    kept: Target | None = None
    spent: Target | None = None
    before: Any = None
    made: set[str] = field(default_factory=set)

    def aim(self, case: Any) -> Target:
        """Choose the task that a case is aimed at."""
        operation = operation_of(case)
        if is_wrong(case):
            if self.kept is None:
                self.kept = self._new(operation, to_be_kept=True)
                self.before = self.state()
            return self.kept
        if case.meta.phase.name is TestPhase.COVERAGE:
            self.spent = self.spent or self._new(operation)
            return self.spent
        return self._new(operation)

    def state(self) -> Any:
        """How the task that is kept stands now."""
        assert self.kept is not None
        return self.bench.call("operator-1", "GET", f"/tasks/{self.kept.path['task_id']}/record")

    def _new(self, operation: str, *, to_be_kept: bool = False) -> Target:
        target = self.bench.target(operation, to_be_kept=to_be_kept)
        self.made.add(target.path["task_id"])
        return target


def starting(case: Any) -> tuple[str, str]:
    """Which workflow a request is for, by its fields, and who may start it."""
    request = case.body.get("request") if isinstance(case.body, dict) else None
    named = request if isinstance(request, dict) else {}
    return next((found for name, found in STARTERS.items() if name in named), STARTERS["order_reference"])


@pytest.fixture
def trial(bench: Bench) -> Iterator[Trial]:
    """Hold what was wrong to having changed nothing, and started nothing."""
    before = bench.task_ids()
    made = Trial(bench)
    yield made
    assert made.kept is not None
    assert made.state() == made.before
    assert bench.task_ids() - before <= made.made


@each_field.parametrize()
@ALWAYS_THE_SAME
def test_every_field_is_checked(case: Any, bench: Bench, trial: Trial) -> None:
    """B31, B55, B59: every field of every operation, sent by who may: right ones count, wrong ones change nothing."""
    operation = operation_of(case)
    target = trial.aim(case)
    workflow, starter = starting(case)
    person = starter if operation == "start_task" else WHO.get(operation, "clerk-1")
    if operation in BODIES:
        case.body = about({**target.words, "workflow": workflow}, case.body, schema=BODIES[operation])

    answer = bench.send(case, target, Authorization=f"Bearer {bench.token(person)}")

    if answer.status_code == HTTPStatus.CREATED:
        trial.made.add(answer.json()["task_id"])
    if is_wrong(case) and case.method != "GET":
        assert answer.status_code >= HTTPStatus.BAD_REQUEST, f"{case.meta.phase.data} of {case.body!r}"


@pytest.fixture(scope="module")
def speakers(bench: Bench) -> Iterator[str]:
    """A clerk, a manager and an operator, by turns."""
    return cycle(["clerk-1", "manager-7", "operator-1"])


@random_only.parametrize()
@settings(ALWAYS_THE_SAME, max_examples=6)
def test_whoever_asks_is_answered_as_described(case: Any, bench: Bench, speakers: Iterator[str]) -> None:
    """Bad input: random cases, right and wrong ones, by a clerk, a manager and an operator, who may do some of it."""
    person = next(speakers)
    target = bench.passed_around
    if operation_of(case) in BODIES:
        case.body = about(target.words, case.body, schema=BODIES[operation_of(case)])

    bench.send(case, target, Authorization=f"Bearer {bench.token(person)}")
