"""The contract of `Model`, on the fake, on a strict stub, and against sockets that hang or break (B18, B58)."""

from typing import Any

import pytest

from shared.adapters.aws import LIMITS, Limits
from shared.adapters.bedrock.model import UNREADABLE, BedrockModel
from shared.domain.errors import InvariantBroken, ModelUnavailable
from shared.domain.proposal import Refusal, Residue, ToolUse, read_proposal
from shared.domain.window import Window
from shared.ports.model import Model
from tests.contract.cloud import client, listening, stubbed
from tests.fakes.model import proposes
from tests.fakes.process import Process
from tests.fakes.store import World

WINDOW = Window(
    model_id="model-1",
    max_tokens=1000,
    system=[{"text": "rules"}],
    messages=[{"role": "user", "content": [{"text": "the task"}]}],
    tool_config={
        "tools": [{"toolSpec": {"name": "issue_refund", "inputSchema": {"json": {"type": "object"}}}}],
        "toolChoice": {"any": {}},
    },
    layers=[{"name": "instructions", "text": "rules"}],
)
USE = {"toolUse": {"toolUseId": "use-1", "name": "issue_refund", "input": {"amount_minor": 45_000}}}
USAGE = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
ANSWER = {
    "output": {"message": {"role": "assistant", "content": [{"text": "I shall."}, USE]}},
    "stopReason": "tool_use",
    "usage": USAGE,
    "metrics": {"latencyMs": 1},
}
# Short enough for a test, in the proportions of the real ones.
SHORT = Limits(connect_seconds=0.5, read_seconds=0.5)


def ask(answer: dict[str, Any]) -> Residue:
    """Let the stub answer once."""
    with stubbed("bedrock-runtime") as (bedrock, stub):
        stub.add_response("converse", answer)
        return BedrockModel(bedrock).ask(WINDOW)


def _fake(answer: Residue | Exception) -> Residue:
    world = World()
    world.model.answers.append(answer)
    model: Model = Process(world).model
    return model.ask(WINDOW)


def test_the_fake_says_what_its_script_says() -> None:
    """And fails loudly once it has been asked more often."""
    assert _fake(proposes("issue_refund", {"amount_minor": 1})).tool_uses[0].name == "issue_refund"
    with pytest.raises(ModelUnavailable):
        _fake(ModelUnavailable("throttled"))
    with pytest.raises(AssertionError):
        Process(World()).model.ask(WINDOW)


def test_the_window_is_sent_as_it_was_prepared() -> None:
    """`propose` adds nothing and leaves nothing out."""
    expected = {
        "modelId": "model-1",
        "system": WINDOW.system,
        "messages": WINDOW.messages,
        "toolConfig": WINDOW.tool_config,
        "inferenceConfig": {"maxTokens": 1000},
    }
    with stubbed("bedrock-runtime") as (bedrock, stub):
        stub.add_response("converse", ANSWER, expected)
        BedrockModel(bedrock).ask(WINDOW)


def test_a_tool_call_comes_back_whole() -> None:
    """Name, id and arguments as the model gave them, its words beside them."""
    assert ask(ANSWER) == Residue(
        stop_reason="tool_use",
        tool_uses=(ToolUse(tool_use_id="use-1", name="issue_refund", input={"amount_minor": 45_000}),),
        text="I shall.",
        usage=USAGE,
        model_id="model-1",
    )


@pytest.mark.parametrize(
    "stop_reason",
    [
        "end_turn",
        "max_tokens",
        "stop_sequence",
        "guardrail_intervened",
        "content_filtered",
        "malformed_model_output",
        "malformed_tool_use",
        "model_context_window_exceeded",
        "a_reason_of_next_year",
    ],
)
def test_every_other_ending_is_residue_that_proposes_nothing(stop_reason: str) -> None:
    """B18: a tool block beside another reason for stopping is kept for audit and never taken."""
    residue = ask(ANSWER | {"stopReason": stop_reason})
    assert residue.stop_reason == stop_reason
    assert len(residue.tool_uses) == 1
    assert isinstance(read_proposal(residue, frozenset({"issue_refund"})), Refusal)


def _content(*blocks: dict[str, Any]) -> dict[str, Any]:
    return ANSWER | {"output": {"message": {"role": "assistant", "content": list(blocks)}}}


def test_blocks_that_are_neither_words_nor_tools_are_left_out() -> None:
    """A model's reasoning is not kept."""
    thought = {"reasoningContent": {"reasoningText": {"text": "hidden", "signature": "s"}}}
    residue = ask(_content(thought, {"text": "a"}, {"text": "b"}))
    assert residue.text == "a\nb"
    assert residue.tool_uses == ()
    assert "hidden" not in residue.model_dump_json()


@pytest.mark.parametrize("given", ['{"amount_minor": 45', "text", 7, [1, 2], None])
def test_arguments_of_any_form_are_kept_as_they_are(given: Any) -> None:
    """B18: what is no object is not repaired; the gate refuses it."""
    residue = ask(_content({"toolUse": {"toolUseId": "u", "name": "issue_refund", "input": given}}))
    assert residue.tool_uses[0].input == given
    assert isinstance(read_proposal(residue, frozenset({"issue_refund"})), Refusal)


class _Raw:
    """A client whose answers have not passed botocore's own reading."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def converse(self, **_: object) -> object:
        return self._answer


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"stopReason": "tool_use"},
        {"stopReason": "tool_use", "output": {}},
        {"stopReason": "tool_use", "output": {"message": {"content": None}}},
        {"stopReason": "tool_use", "output": {"message": {"content": [{"toolUse": {"name": "x"}}]}}},
        {"stopReason": None, "output": {"message": {"content": []}}},
        {"stopReason": "tool_use", "output": {"message": {"content": ["text"]}}, "usage": 3},
    ],
)
def test_an_answer_without_the_promised_form_is_an_ending_too(answer: Any) -> None:
    """It goes to an owned state, not up as an error."""
    raw: Any = _Raw(answer)
    assert BedrockModel(raw).ask(WINDOW) == Residue(stop_reason=UNREADABLE, model_id="model-1")


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("ThrottlingException", 429, ModelUnavailable),
        ("ServiceUnavailableException", 503, ModelUnavailable),
        ("InternalServerException", 500, ModelUnavailable),
        ("ModelTimeoutException", 408, ModelUnavailable),
        ("ModelNotReadyException", 429, ModelUnavailable),
        ("ModelErrorException", 424, ModelUnavailable),
        ("AccessDeniedException", 403, ModelUnavailable),
        ("ResourceNotFoundException", 404, ModelUnavailable),
        ("ValidationException", 400, InvariantBroken),
    ],
)
def test_what_keeps_a_model_from_answering(code: str, status: int, error: type[Exception]) -> None:
    """Nothing was decided; only a request that can never be served is our bug."""
    with stubbed("bedrock-runtime") as (bedrock, stub):
        stub.add_client_error("converse", service_error_code=code, http_status_code=status)
        with pytest.raises(error):
            BedrockModel(bedrock).ask(WINDOW)


def test_a_request_that_is_not_one_is_our_bug() -> None:
    """Refused before it leaves."""
    broken = WINDOW.model_copy(update={"messages": "no list"})
    with listening(None) as listener:
        with pytest.raises(InvariantBroken):
            BedrockModel(client("bedrock-runtime", listener.url, SHORT)).ask(broken)
        assert listener.requests == 0


@pytest.mark.parametrize(
    "answer",
    [
        None,
        b"",
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 429 Too Many\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
    ],
    ids=["hangs", "hangs up", "unavailable", "throttled", "no cloud", "cut off"],
)
def test_a_model_is_asked_once(answer: bytes | None) -> None:
    """B58: one request reaches the endpoint, however it ends; nothing underneath asks, or pays, again."""
    with listening(answer) as listener:
        model = BedrockModel(client("bedrock-runtime", listener.url, SHORT))
        with pytest.raises(ModelUnavailable):
            model.ask(WINDOW)
        assert listener.requests == 1


def test_the_clients_patience_ends_before_the_function() -> None:
    """B58: read timeout times attempts stays below the function's 60 s, with room to store the answer."""
    limits = LIMITS["bedrock-runtime"]
    assert limits.attempts == 1
    assert limits.seconds_max + LIMITS["s3"].seconds_max / 3 < 60
