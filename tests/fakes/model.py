"""A model that says what its script says."""

from pydantic import JsonValue

from shared.domain.errors import ModelUnavailable
from shared.domain.proposal import STOP_TOOL_USE, Residue, ToolUse
from shared.domain.window import Window
from tests.fakes.calls import Calls
from tests.fakes.store import World


def proposes(tool: str, arguments: JsonValue) -> Residue:
    """Make the answer of a model that calls one tool."""
    use = ToolUse(tool_use_id="use-1", name=tool, input=arguments)
    return Residue(stop_reason=STOP_TOOL_USE, tool_uses=(use,), model_id="scripted")


def _no_answer() -> Exception:
    return ModelUnavailable("the model did not answer")


class FakeModel:
    """Takes the next answer of the world's script; being asked more often than scripted is a failed test."""

    def __init__(self, world: World, calls: Calls | None = None) -> None:
        self._world = world
        self._calls = calls or Calls()

    def ask(self, window: Window) -> Residue:
        with self._calls.around("model.ask", dropped=_no_answer), self._world as world:
            script = world.model
            script.windows.append(window)
            answer = script.answers.popleft() if script.answers else script.always
            if answer is None:
                raise AssertionError("the model was asked more often than its script foresaw")
            if isinstance(answer, Exception):
                raise answer
            return answer if isinstance(answer, Residue) else answer(window)
