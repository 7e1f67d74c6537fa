"""Telling a story whose every sentence is checked."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from local.walkthrough.observer import Observer


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One expectation and what was seen."""

    claim: str
    expected: object
    seen: object

    @property
    def holds(self) -> bool:
        """Whether what was seen is what was expected."""
        return self.expected == self.seen


class Scene(Protocol):
    """One scene: does something, and tells it."""

    __name__: str
    __doc__: str | None

    def __call__(self, story: Story, observer: Observer) -> None:
        """Play the scene."""


@dataclass(slots=True, kw_only=True)
class Story:
    """What was told so far. `memory` carries what a later scene needs from an earlier one."""

    say: Callable[[str], None]
    checks: dict[str, list[Check]] = field(default_factory=dict)
    memory: dict[str, str] = field(default_factory=dict)
    _scene: str = ""

    @property
    def holds(self) -> bool:
        """Whether every check of every scene holds, and there were some."""
        return bool(self.checks) and all(checks and all(c.holds for c in checks) for checks in self.checks.values())

    def play(self, scene: Scene, observer: Observer) -> None:
        """Play a scene; an exception in it is a check that does not hold."""
        self._scene = scene.__name__
        self.checks[self._scene] = []
        title = (scene.__doc__ or scene.__name__).strip().splitlines()[0]
        self.say(f"\n── {self._scene.upper()}  {title}")
        try:
            scene(self, observer)
        except Exception as error:  # noqa: BLE001 - whatever stops a scene is told as its failure
            self.say("".join(traceback.format_exception(error)))
            self.expect("the scene could be played", "to its end", f"{type(error).__name__}: {error}")

    def did(self, what: str) -> None:
        """Say what was done."""
        self.say(f"   did       {what}")

    def expect(self, claim: str, expected: object, seen: object) -> None:
        """Say what was expected and what was seen, and keep both."""
        check = Check(claim=claim, expected=expected, seen=seen)
        self.checks[self._scene].append(check)
        if check.holds:
            self.say(f"   ✓ {claim}: {_shown(seen)}")
            return
        self.say(f"   ✗ {claim}\n       expected  {_shown(expected)}\n       seen      {_shown(seen)}")

    def show(self, title: str, lines: Sequence[str]) -> None:
        """Show something to look at."""
        self.say(f"   {title}")
        for line in lines or ["(nothing)"]:
            self.say(f"     {line}")

    def summary(self) -> str:
        """Say how it ended."""
        checks = [c for scene in self.checks.values() for c in scene]
        failed = [c for c in checks if not c.holds]
        ending = "all as expected" if self.holds else f"{len(failed)} not as expected"
        return f"\n{len(self.checks)} scenes, {len(checks)} checks: {ending}."


def _shown(value: object) -> str:
    return value if isinstance(value, str) else repr(value)
