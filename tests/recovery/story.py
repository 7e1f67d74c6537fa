"""Stories: what happens to one task, told once as it should go, and then again with everything that can go wrong.

A story is data beside the tests of its workflow, in ``tests/workflows/<workflow>/story.py``: the request, what the
model proposes, what kind of outside system stands behind each tool, who does what when the system is quiet, and how it
ends. The suite needs nothing else to try a workflow at every call it makes.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol

from shared.domain.action import Arguments
from shared.domain.identity import PrincipalRef
from shared.domain.proposal import Residue
from shared.domain.status import Status
from shared.domain.window import Window
from shared.domain.workflow import Workflow
from shared.workflows.registry import discover
from tests.builders import CLERK
from tests.fakes.downstream import Kind, Mishap
from tests.fakes.model import proposes

if TYPE_CHECKING:
    from tests.recovery.scene import Scene

TENANT: Final = "acme"


class Act(Protocol):
    """What a person or an outside system does when the task has come to rest."""

    def __call__(self, scene: "Scene") -> None:
        """Do it, as often as a patient client would until it is answered."""


def _no_facts(_: Arguments) -> Arguments:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """The system behind a tool: what it does with keys, what it answers, and what goes wrong with it in this story."""

    kind: Kind
    facts: Callable[[Arguments], Arguments] = _no_facts
    mishaps: tuple[Mishap, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Where a story may come to rest, and how often each writing tool has then acted."""

    status: Status
    effects: Mapping[str, int]

    def __hash__(self) -> int:
        """Agree with equality, which compares the counts too."""
        return hash((self.status, frozenset(self.effects.items())))

    def __str__(self) -> str:
        acted = ", ".join(f"{tool} {times}x" for tool, times in sorted(self.effects.items())) or "no effect"
        return f"{self.status} with {acted}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One task from its request to its end.

    The model proposes the first tool that it is offered, with the arguments of the record on the task card or those
    that `says` has for it; `answers` are said first, whatever is offered. `may_end` lists further endings that a crash
    or a lost answer may lead to, for outside systems that cannot be asked. `tells` are events that have been published
    when it ends as it should. `outside` has the tools of child tasks too, and endings count what those did. `meanwhile`
    are acts that the suite lets happen in the middle of every call of the story.
    """

    name: str
    claim: str
    request: Mapping[str, object]
    people: Mapping[PrincipalRef, frozenset[str]]
    outside: Mapping[str, Outside]
    ends: Ending
    says: Mapping[str, Arguments] = field(default_factory=dict)
    answers: tuple[Residue, ...] = ()
    acts: tuple[Act, ...] = ()
    meanwhile: tuple[Act, ...] = ()
    may_end: tuple[Ending, ...] = ()
    tells: frozenset[str] = frozenset()
    # The workflows that its child tasks are of.
    others: tuple[Workflow, ...] = ()
    requester: PrincipalRef = CLERK

    def proposal(self, window: Window) -> Residue:
        """What the model says to a window."""
        tool: str = window.tool_config["tools"][0]["toolSpec"]["name"]
        return proposes(tool, dict(self.says.get(tool) or _record_on(window)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stories:
    """Stories, each with the workflow it is about, and the number of points below which they may not fall unnoticed."""

    name: str
    told: tuple[tuple[Story, Workflow], ...]
    points_min: int


def stories_of(workflow: str) -> Stories:
    """Find the stories of a workflow.

    Raises:
        LookupError: the workflow has none; whoever adds a workflow says how its tasks go.
    """
    known = discover()
    if workflow not in known:
        msg = f"no workflow is called {workflow}; there are {', '.join(sorted(known))}"
        raise LookupError(msg)
    name = f"tests.workflows.{workflow}.story"
    try:
        module = import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not name.startswith(missing.name):
            raise
        msg = f"{workflow} has no stories: write tests/workflows/{workflow}/story.py (docs/crash-suite.md says how)"
        raise LookupError(msg) from missing
    told = tuple((story, known[workflow]) for story in module.STORIES)
    return Stories(name=workflow, told=told, points_min=module.POINTS_MIN)


def _record_on(window: Window) -> Arguments:
    card = next(layer["text"] for layer in window.layers if layer["name"] == "task card")
    record: Arguments = json.loads(card.rpartition("record: ")[2].splitlines()[0])
    return record
