"""The contract of `ToolGateway`, on the fake, on a strict stub of Lambda, and against sockets that hang or break."""

import io
import json
from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError
from botocore.response import StreamingBody

from local.servers import LOOPBACK, free_port
from shared.adapters.aws import LIMITS, Limits
from shared.adapters.lambda_.tool_gateway import ANSWER_BYTES_MAX, LambdaToolGateway
from shared.domain.action import Arguments, ToolOutcome, ToolReply
from shared.ports.tool_gateway import ToolGateway, ToolOperation
from tests.contract.cloud import client, listening, stubbed
from tests.fakes.downstream import Downstream, Kind, Mishap
from tests.fakes.process import Process
from tests.fakes.store import World

KEY = "acme:tsk_1:v1:1:issue_refund"
ARGUMENTS: Arguments = {
    "order_reference": "A-1001",
    "amount_minor": 45_000,
    "currency": "EUR",
    "partial": False,
    "note": None,
}
DONE = {"outcome": "done", "reference": "re_1", "facts": {"amount_minor": 45_000, "n": None}, "reason": "carried out"}
# Short enough for a test, in the proportions of the real ones.
SHORT = Limits(connect_seconds=0.5, read_seconds=0.5)


def _body(payload: bytes) -> StreamingBody:
    return StreamingBody(io.BytesIO(payload), len(payload))


def call(gateway: ToolGateway, operation: ToolOperation = ToolOperation.PERFORM) -> ToolReply:
    """Ask the tool."""
    return gateway.call("issue_refund", operation, key=KEY, arguments=dict(ARGUMENTS))


def answered(payload: bytes, **more: Any) -> ToolReply:
    """Let the stub answer once with a payload."""
    with stubbed("lambda") as (lambda_, stub):
        stub.add_response("invoke", {"StatusCode": 200, "Payload": _body(payload), **more})
        return call(LambdaToolGateway(lambda_, {"issue_refund": "holdfast-test-issue_refund"}))


def test_a_tool_is_asked_in_one_form() -> None:
    """Operation, key and arguments, typed as they are digested; the same bytes on every attempt."""
    payload = json.dumps(
        {"operation": "lookup", "key": KEY, "arguments": ARGUMENTS},
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    )
    expected = {
        "FunctionName": "holdfast-test-issue_refund",
        "InvocationType": "RequestResponse",
        "Payload": payload.encode(),
    }
    with stubbed("lambda") as (lambda_, stub):
        stub.add_response("invoke", {"StatusCode": 200, "Payload": _body(json.dumps(DONE).encode())}, expected)
        reply = call(LambdaToolGateway(lambda_, {"issue_refund": "holdfast-test-issue_refund"}), ToolOperation.LOOKUP)
    assert reply == ToolReply(
        outcome=ToolOutcome.DONE,
        reference="re_1",
        facts={"amount_minor": 45_000, "n": None},
        reason="carried out",
    )


@pytest.mark.parametrize("outcome", ["done", "failed", "absent", "pending", "not_sent", "unknown"])
def test_a_tools_own_word_is_taken(outcome: str) -> None:
    """What it promises with the word is the tool's contract."""
    assert answered(json.dumps(DONE | {"outcome": outcome}).encode()).outcome == outcome


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"null",
        b"[]",
        b'"done"',
        b"{",
        b"\xff\xfe",
        b'{"outcome":"Done"}',
        b'{"outcome":"success"}',
        b'{"reference":"re_1"}',
        b'{"outcome":"done","surprise":1}',
        b'{"outcome":"failed","reference":7}',
        b'{"outcome":"failed","facts":{"amount":4.5}}',
        b'{"outcome":"failed","facts":{"nested":{}}}',
        b'{"errorMessage":"boom","errorType":"KeyError"}',
        b'{"outcome":"failed","reason":"' + b"x" * ANSWER_BYTES_MAX + b'"}',
    ],
)
def test_an_answer_that_cannot_be_read_is_unknown(payload: bytes) -> None:
    """B07: it is never taken for a refusal: the effect may have happened."""
    reply = answered(payload)
    assert reply.outcome is ToolOutcome.UNKNOWN
    assert reply.reference is None


@pytest.mark.parametrize("error", ["Unhandled", "Handled"])
def test_a_tool_that_failed_is_unknown(error: str) -> None:
    """B01, B07: an exception, an exit or a timeout of the function, whatever its payload looks like."""
    assert answered(json.dumps(DONE | {"outcome": "failed"}).encode(), FunctionError=error).outcome == "unknown"


@pytest.mark.parametrize(
    ("code", "status", "outcome"),
    [
        ("TooManyRequestsException", 429, "not_sent"),
        ("ResourceNotFoundException", 404, "not_sent"),
        ("AccessDeniedException", 403, "not_sent"),
        ("ServiceException", 500, "unknown"),
        ("InternalFailure", 500, "unknown"),
        ("EC2ThrottledException", 502, "unknown"),
        ("RequestTimeoutException", 408, "unknown"),
        ("SomethingNew", 400, "unknown"),
    ],
)
def test_only_proof_that_nothing_ran_is_not_sent(code: str, status: int, outcome: str) -> None:
    """Law 5: a throttle, a missing function, a missing right; everything else may have run."""
    with stubbed("lambda") as (lambda_, stub):
        stub.add_client_error("invoke", service_error_code=code, http_status_code=status)
        reply = call(LambdaToolGateway(lambda_, {"issue_refund": "f"}))
    assert reply.outcome == outcome
    assert code in reply.reason


def test_a_tool_without_function_was_not_sent_to() -> None:
    """Nothing is deployed, so nothing left."""
    with stubbed("lambda") as (lambda_, _):
        assert call(LambdaToolGateway(lambda_, {})).outcome is ToolOutcome.NOT_SENT
    assert call(Process(World()).tools).outcome is ToolOutcome.NOT_SENT


@pytest.mark.parametrize(
    "answer",
    [
        None,
        b"",
        b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>",
        b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"outcome":',
        b"no HTTP at all\r\n\r\n",
    ],
    ids=["hangs", "hangs up", "server fault", "no cloud", "cut off", "nonsense"],
)
def test_a_tool_is_called_once_and_never_guessed_at(answer: bytes | None) -> None:
    """B01, B22: one request reaches the tool, however the call ends, and the outcome is unknown."""
    with listening(answer) as listener:
        gateway = LambdaToolGateway(client("lambda", listener.url, SHORT), {"issue_refund": "f"})
        assert call(gateway).outcome is ToolOutcome.UNKNOWN
        assert listener.requests == 1


def test_a_connection_that_was_never_made_sent_nothing() -> None:
    """Nobody listens: the same key may be sent again."""
    nowhere = f"http://{LOOPBACK}:{free_port()}"
    gateway = LambdaToolGateway(client("lambda", nowhere, SHORT), {"issue_refund": "f"})
    assert call(gateway).outcome is ToolOutcome.NOT_SENT


def test_a_call_that_could_not_be_signed_sent_nothing() -> None:
    """An error before any connection proves that nothing left."""

    class Unsigned:
        def invoke(self, **_: object) -> object:
            raise NoCredentialsError

    unsigned: Any = Unsigned()
    assert call(LambdaToolGateway(unsigned, {"issue_refund": "f"})).outcome is ToolOutcome.NOT_SENT


def test_the_gateways_patience_lies_between_the_tools_and_its_own_function() -> None:
    """A tool lives for 12 s, so it answers before we stop listening; `perform` lives for 20 s and settles it."""
    limits = LIMITS["lambda"]
    assert limits.attempts == 1
    assert limits.read_seconds > 12
    assert limits.seconds_max + LIMITS["dynamodb"].seconds_max < 20


# --- the fake's downstreams, on which the crash suites rest -----------------------------------------------------------


def _downstream(kind: Kind, *mishaps: Mishap) -> tuple[ToolGateway, Downstream]:
    world = World()
    downstream = Downstream(kind=kind, facts=lambda given: {"amount_minor": given["amount_minor"]})
    downstream.mishaps.extend(mishaps)
    world.downstreams["issue_refund"] = downstream
    return Process(world).tools, downstream


def test_a_downstream_that_honours_keys_acts_once() -> None:
    """B01: the same key is answered with the same effect; the key with another body is refused."""
    gateway, downstream = _downstream(Kind.HONOURS_KEYS, Mishap.RECORDED_NO_ANSWER)
    assert call(gateway).outcome is ToolOutcome.UNKNOWN
    assert call(gateway) == call(gateway)
    assert len(downstream.effects) == 1
    other = gateway.call("issue_refund", ToolOperation.PERFORM, key=KEY, arguments=ARGUMENTS | {"amount_minor": 1})
    assert other.outcome is ToolOutcome.FAILED
    assert call(gateway, ToolOperation.LOOKUP).facts == {"amount_minor": 45_000}


def test_a_downstream_that_can_only_be_looked_up_acts_every_time() -> None:
    """B01: sending again is paying again; asking tells."""
    gateway, downstream = _downstream(Kind.LOOKUP_ONLY)
    assert call(gateway, ToolOperation.LOOKUP).outcome is ToolOutcome.ABSENT
    call(gateway)
    assert call(gateway, ToolOperation.LOOKUP).outcome is ToolOutcome.DONE
    call(gateway)
    assert len(downstream.effects) == 2


def test_a_downstream_that_can_do_neither_tells_nothing() -> None:
    """B01: neither a key nor a question helps."""
    gateway, downstream = _downstream(Kind.NEITHER)
    call(gateway)
    assert call(gateway, ToolOperation.LOOKUP).outcome is ToolOutcome.UNKNOWN
    call(gateway)
    assert len(downstream.effects) == 2


@pytest.mark.parametrize(
    ("mishap", "outcome", "effects"),
    [
        (Mishap.RECORDED_NO_ANSWER, "unknown", 1),
        (Mishap.LOST, "unknown", 0),
        (Mishap.REFUSED, "failed", 0),
        (Mishap.PENDING, "pending", 1),
        (Mishap.NOT_SENT, "not_sent", 0),
    ],
)
def test_mishaps_are_what_they_are_called(mishap: Mishap, outcome: str, effects: int) -> None:
    """Each happens to one request, and what really happened is in the ledger."""
    gateway, downstream = _downstream(Kind.HONOURS_KEYS, mishap)
    assert call(gateway).outcome == outcome
    assert len(downstream.effects) == effects
    assert call(gateway).outcome is ToolOutcome.DONE
