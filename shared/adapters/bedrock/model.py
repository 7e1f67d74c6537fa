"""A model behind Bedrock's Converse: one request, one answer, no second try underneath (B58)."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from shared.adapters.cloud_errors import CLOUD_ERRORS, code_of
from shared.domain.errors import InvariantBroken, ModelUnavailable
from shared.domain.proposal import Residue, ToolUse
from shared.domain.window import Window

if TYPE_CHECKING:
    from mypy_boto3_bedrock_runtime import BedrockRuntimeClient

# The request is wrong and stays wrong. A model that is not there or not ours to use is a matter for people, who are
# reached by the task's own limit on unanswered turns.
_OUR_BUG: Final = frozenset({"ParamValidationError", "ValidationException"})
# What the answer is called when it has not the form that was promised.
UNREADABLE: Final = "unreadable"


class BedrockModel:
    """Asks the model that the window names."""

    def __init__(self, client: "BedrockRuntimeClient") -> None:
        self._client: Any = client

    def ask(self, window: Window) -> Residue:
        """See `Model.ask`. Every ending comes back as residue, with the reason the model gave for stopping.

        Raises:
            InvariantBroken: Bedrock says that the request cannot be served as it is.
        """
        try:
            reply = self._client.converse(
                modelId=window.model_id,
                system=window.system,
                messages=window.messages,
                toolConfig=window.tool_config,
                inferenceConfig={"maxTokens": window.max_tokens},
            )
        except CLOUD_ERRORS as error:
            if code_of(error) in _OUR_BUG:
                msg = f"the model refused the form of our request: {code_of(error)}"
                raise InvariantBroken(msg) from error
            msg = f"the model did not answer: {code_of(error)}"
            raise ModelUnavailable(msg) from error
        return _residue(window.model_id, reply)


def _residue(model_id: str, reply: Mapping[str, Any]) -> Residue:
    try:
        blocks = reply["output"]["message"]["content"]
        return Residue(
            stop_reason=reply["stopReason"],
            tool_uses=tuple(_tool_uses(blocks)),
            text="\n".join(block["text"] for block in blocks if "text" in block),
            usage={name: count for name, count in reply.get("usage", {}).items() if type(count) is int},
            model_id=model_id,
        )
    except (AttributeError, KeyError, TypeError, ValidationError):
        return Residue(stop_reason=UNREADABLE, model_id=model_id)


def _tool_uses(blocks: list[dict[str, Any]]) -> Iterator[ToolUse]:
    for block in blocks:
        if "toolUse" in block:
            use = block["toolUse"]
            yield ToolUse(tool_use_id=use["toolUseId"], name=use["name"], input=use["input"])
