"""The door to outside operations."""

from enum import StrEnum
from typing import Protocol

from shared.domain.action import Arguments, ToolReply


class ToolOperation(StrEnum):
    """What is asked of a tool."""

    PERFORM = "perform"
    LOOKUP = "lookup"


class ToolGateway(Protocol):
    """Calls tools, once per call: no retries underneath."""

    def call(self, tool: str, operation: ToolOperation, *, key: str, arguments: Arguments) -> ToolReply:
        """Ask a tool to act, or what became of a key. Never raises for what happens outside.

        A timeout, an error, a crash of the tool or an unreadable answer is `ToolOutcome.UNKNOWN`. Only what proves
        that nothing left us (no such function, no permission, throttled before the call) is `ToolOutcome.NOT_SENT`.
        """
