"""Policies that a test writes as a function."""

from shared.domain.authority import Question, Ruling
from tests.fakes.calls import Calls
from tests.fakes.store import World


class FakeAuthoriser:
    """Allows everything unless the world's policies say otherwise; a policy that errors denies."""

    def __init__(self, world: World, calls: Calls | None = None) -> None:
        self._world = world
        self._calls = calls or Calls()

    def rule(self, question: Question) -> Ruling:
        with self._calls.around("authoriser.rule"), self._world as world:
            world.policies.questions.append(question)
            if world.policies.rule is None:
                return Ruling(allowed=True, reason="no policy forbids it", policies=("allow_all",))
            try:
                return world.policies.rule(question)
            except Exception as error:  # noqa: BLE001 - whatever a policy raises is a deny
                return Ruling(allowed=False, reason=f"a policy failed: {type(error).__name__}")
