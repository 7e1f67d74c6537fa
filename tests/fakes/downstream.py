"""Outside systems that tools act on: three kinds, told apart by what they can do about a repeated request."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from shared.domain.action import Arguments, ToolOutcome, ToolReply
from shared.ports.tool_gateway import ToolOperation


class Kind(StrEnum):
    """What the system does with keys."""

    HONOURS_KEYS = "honours keys"
    LOOKUP_ONLY = "lookup only"
    NEITHER = "neither"


class Mishap(StrEnum):
    """What goes wrong with one request to act."""

    # The effect has happened and the answer never arrives.
    RECORDED_NO_ANSWER = "recorded, no answer"
    # Nothing has happened and no answer arrives.
    LOST = "lost"
    # A definite refusal: nothing has happened.
    REFUSED = "refused"
    # The effect has happened, but the system cannot say so yet.
    PENDING = "pending"
    # The request never left us.
    NOT_SENT = "not sent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Something that really happened."""

    tool: str
    key: str
    arguments: Arguments
    reference: str


def _no_facts(_: Arguments) -> Arguments:
    return {}


@dataclass(slots=True, kw_only=True)
class Downstream:
    """One outside system with its ledger.

    `mishaps` are taken one by one by the coming requests to act; `lookups_unclear` counts the look-ups that still get
    no answer. `requests` are all requests that arrived, as (operation, key).
    """

    kind: Kind = Kind.HONOURS_KEYS
    facts: Callable[[Arguments], Arguments] = _no_facts
    mishaps: deque[Mishap] = field(default_factory=deque)
    lookups_unclear: int = 0
    refuses_with: str = "refused"
    effects: list[Effect] = field(default_factory=list)
    requests: list[tuple[ToolOperation, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, tool: str, operation: ToolOperation, *, key: str, arguments: Arguments) -> ToolReply:
        """Handle one request."""
        with self._lock:
            if operation is ToolOperation.LOOKUP:
                self.requests.append((operation, key))
                return self._look_up(key)
            mishap = self.mishaps.popleft() if self.mishaps else None
            if mishap is Mishap.NOT_SENT:
                return ToolReply(outcome=ToolOutcome.NOT_SENT, reason="the request never left us")
            self.requests.append((operation, key))
            return self._act(tool, key, arguments, mishap)

    def effects_of(self, key: str) -> list[Effect]:
        """What has happened under one key."""
        return [effect for effect in self.effects if effect.key == key]

    def _look_up(self, key: str) -> ToolReply:
        if self.kind is Kind.NEITHER:
            return ToolReply(outcome=ToolOutcome.UNKNOWN, reason="this system cannot be asked")
        if self.lookups_unclear > 0:
            self.lookups_unclear -= 1
            return ToolReply(outcome=ToolOutcome.UNKNOWN, reason="no answer")
        found = self.effects_of(key)
        if not found:
            return ToolReply(outcome=ToolOutcome.ABSENT, reason="no such key")
        return self._done(found[0])

    def _act(self, tool: str, key: str, arguments: Arguments, mishap: Mishap | None) -> ToolReply:
        if mishap is Mishap.LOST:
            return ToolReply(outcome=ToolOutcome.UNKNOWN, reason="no answer")
        if mishap is Mishap.REFUSED:
            return ToolReply(outcome=ToolOutcome.FAILED, reason=self.refuses_with)
        found = self.effects_of(key) if self.kind is Kind.HONOURS_KEYS else []
        if found and found[0].arguments != arguments:
            return ToolReply(outcome=ToolOutcome.FAILED, reason="the key was used for another request")
        effect = found[0] if found else self._record(tool, key, arguments)
        if mishap is Mishap.RECORDED_NO_ANSWER:
            return ToolReply(outcome=ToolOutcome.UNKNOWN, reason="no answer")
        if mishap is Mishap.PENDING:
            return ToolReply(outcome=ToolOutcome.PENDING, reason="being worked on")
        return self._done(effect)

    def _record(self, tool: str, key: str, arguments: Arguments) -> Effect:
        effect = Effect(tool=tool, key=key, arguments=dict(arguments), reference=f"{tool}-{len(self.effects) + 1}")
        self.effects.append(effect)
        return effect

    def _done(self, effect: Effect) -> ToolReply:
        return ToolReply(outcome=ToolOutcome.DONE, reference=effect.reference, facts=self.facts(effect.arguments))
