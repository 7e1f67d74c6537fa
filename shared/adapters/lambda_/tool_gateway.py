"""The door to tools: one Lambda function each, called once per call."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from shared.adapters.cloud_errors import CLOUD_ERRORS, code_of, never_left
from shared.domain.action import Arguments, ToolOutcome, ToolReply
from shared.domain.canonical import canonical
from shared.ports.tool_gateway import ToolOperation

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

# Refusals that Lambda gives before anything of the tool has run.
_BEFORE_IT_RAN: Final = frozenset({"AccessDeniedException", "ResourceNotFoundException", "TooManyRequestsException"})
# A tool answers in a few hundred bytes. More is no answer to what was asked.
ANSWER_BYTES_MAX: Final = 65_536


class LambdaToolGateway:
    """Calls the function that stands behind each tool."""

    def __init__(self, client: "LambdaClient", functions: Mapping[str, str]) -> None:
        self._client = client
        self._functions = functions

    def call(self, tool: str, operation: ToolOperation, *, key: str, arguments: Arguments) -> ToolReply:
        """See `ToolGateway.call`."""
        function = self._functions.get(tool)
        if function is None:
            return _not_sent("no function is deployed for the tool")
        request = canonical({"operation": str(operation), "key": key, "arguments": dict(arguments)})
        try:
            reply = self._client.invoke(FunctionName=function, InvocationType="RequestResponse", Payload=request)
            failure = reply.get("FunctionError")
            payload = reply["Payload"].read(ANSWER_BYTES_MAX + 1)
        except CLOUD_ERRORS as error:
            if never_left(error) or code_of(error) in _BEFORE_IT_RAN:
                return _not_sent(f"the tool was not reached: {code_of(error)}")
            return _unknown(f"no answer from the tool: {code_of(error)}")
        except OSError as error:
            return _unknown(f"the tool's answer broke off: {type(error).__name__}")
        if failure:
            return _unknown(f"the tool failed: {failure}")
        return _read(payload)


def _read(payload: bytes) -> ToolReply:
    if len(payload) > ANSWER_BYTES_MAX:
        return _unknown("the tool's answer is too long to be one")
    try:
        return ToolReply.model_validate_json(payload)
    except ValidationError:
        return _unknown("the tool's answer cannot be read")


def _not_sent(reason: str) -> ToolReply:
    return ToolReply(outcome=ToolOutcome.NOT_SENT, reason=reason)


def _unknown(reason: str) -> ToolReply:
    return ToolReply(outcome=ToolOutcome.UNKNOWN, reason=reason)
