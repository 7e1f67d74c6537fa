"""The door to the world's downstreams."""

from shared.domain.action import Arguments, ToolOutcome, ToolReply
from shared.ports.tool_gateway import ToolOperation
from tests.fakes.calls import Calls
from tests.fakes.store import World


class _AnswerLost(Exception):
    pass


class FakeToolGateway:
    """Passes a call on, once. A lost answer is an unknown outcome; a tool without downstream was never sent to."""

    def __init__(self, world: World, calls: Calls | None = None) -> None:
        self._world = world
        self._calls = calls or Calls()

    def call(self, tool: str, operation: ToolOperation, *, key: str, arguments: Arguments) -> ToolReply:
        downstream = self._world.downstreams.get(tool)
        try:
            with self._calls.around(f"tool_gateway.{operation}", dropped=_AnswerLost):
                if downstream is None:
                    return ToolReply(outcome=ToolOutcome.NOT_SENT, reason="no such tool is deployed")
                return downstream.answer(tool, operation, key=key, arguments=arguments)
        except _AnswerLost:
            return ToolReply(outcome=ToolOutcome.UNKNOWN, reason="the answer was lost")
