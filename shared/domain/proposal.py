"""Proposals: a model's advice. Nothing in here is permission."""

from typing import Annotated, Final

from pydantic import Field, JsonValue

from shared.domain.records import Record

# After this many unusable answers in a row a person looks; re-wording the same refusal does not reset it (B63).
REFUSALS_MAX: Final = 2
STOP_TOOL_USE: Final = "tool_use"
STOP_MAX_TOKENS: Final = "max_tokens"
# How a turn can end without a proposal. Only these words are repeated in reasons; anything else might be anybody's.
_STOPS_WITHOUT_TOOL: Final = frozenset(
    {
        "end_turn",
        "stop_sequence",
        "guardrail_intervened",
        "content_filtered",
        "malformed_model_output",
        "malformed_tool_use",
        "model_context_window_exceeded",
    }
)


class ObjectRef(Record):
    """One version of an object in the artifacts bucket."""

    key: str
    version_id: str


class ToolUse(Record):
    """One tool block of a model's answer."""

    tool_use_id: str
    name: str
    input: JsonValue


class Residue(Record):
    """Everything a model answered. Kept for audit, read once, never promoted (M5)."""

    stop_reason: str
    tool_uses: tuple[ToolUse, ...] = ()
    text: str = ""
    usage: dict[str, int] = Field(default_factory=dict)
    model_id: str


class Proposal(Record):
    """The one tool call that a model proposes."""

    tool: str
    input: dict[str, JsonValue]


class Refusal(Record):
    """Why a model's answer is no proposal."""

    reason: Annotated[str, Field(max_length=300)]
    # Whether asking once more, with more room, can help.
    worth_asking_again: bool


def read_proposal(residue: Residue, permitted: frozenset[str]) -> Proposal | Refusal:
    """Take the one valid, permitted tool call from a model's answer, or say why there is none.

    A call that was cut off at the token limit is no proposal, even if what is left of it parses (B18).
    """
    if residue.stop_reason == STOP_MAX_TOKENS:
        return Refusal(reason="the answer was cut off at the token limit", worth_asking_again=True)
    if residue.stop_reason != STOP_TOOL_USE:
        said = residue.stop_reason if residue.stop_reason in _STOPS_WITHOUT_TOOL else "unknown"
        return Refusal(reason=f"the model proposed no action (stop reason {said})", worth_asking_again=True)
    if len(residue.tool_uses) != 1:
        return Refusal(reason=f"{len(residue.tool_uses)} actions were proposed at once", worth_asking_again=True)
    use = residue.tool_uses[0]
    if use.name not in permitted:
        return Refusal(reason="the proposed tool is not permitted at this stage", worth_asking_again=False)
    if not isinstance(use.input, dict):
        return Refusal(reason="the proposed arguments are not an object", worth_asking_again=True)
    return Proposal(tool=use.name, input=use.input)
