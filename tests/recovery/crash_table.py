"""The crash table: where a crash lands, for every effect class and every kind of outside system, and what is right.

The rows are written by hand from what each class promises; the suite plays every cell and compares.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from shared.domain.action import LOOKUPS_MAX, EffectClass
from shared.domain.status import Status
from shared.domain.workflow import Workflow
from shared.ports.tool_gateway import ToolOperation
from tests.builders import CLERK, MANAGER
from tests.fakes.calls import Calls, Fault, When
from tests.fakes.downstream import Kind
from tests.fakes.errand import Do, a_rule, a_tool, an_errand
from tests.recovery.acts import Cancels, Decides
from tests.recovery.invariants import broken
from tests.recovery.scene import Scene, scene_of
from tests.recovery.story import Ending, Outside, Story

TOOL: Final = "send_parcel"
EVERYBODY_MAY: Final = '@id("everybody-may") permit (principal, action, resource);'


class Lands(StrEnum):
    """Where the crash lands."""

    A = "C-A before the intent"
    B = "C-B after the intent, before the call"
    C = "C-C after the call, before the outcome"
    D = "C-D after the outcome, before the stage advances"


def fault_at(lands: Lands, effect: EffectClass) -> Fault:
    """The crash that lands there."""
    if lands is Lands.A:
        # The commit that decides the action: the task's first, or that of the approval that it needs.
        first = 2 if effect is EffectClass.IRREVERSIBLE_WRITE else 1
        return Fault(when=When.KILL_BEFORE, at=first, name="task_records.commit")
    if lands is Lands.B:
        # The claim is part of the intent: whoever holds it may have sent something already.
        return Fault(when=When.KILL_BEFORE, at=1, name="tool_gateway.perform")
    name = "tool_gateway.perform" if lands is Lands.C else "action_ledger.settle"
    return Fault(when=When.KILL_AFTER, at=1, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """How it has to end: the task's status, what happened outside, and what was asked of the outside to get there."""

    status: Status
    effects: int
    sends: int
    look_ups: int = 0

    def __str__(self) -> str:
        asked = f", looked up {self.look_ups}x" if self.look_ups else ""
        return f"{self.status}: sent {self.sends}x{asked}, happened {self.effects}x"


_ONCE: Final = Cell(status=Status.COMPLETED, effects=1, sends=1)
_SAME_KEY_AGAIN: Final = Cell(status=Status.COMPLETED, effects=1, sends=2)
_READ_AGAIN: Final = Cell(status=Status.COMPLETED, effects=0, sends=2)
_READ: Final = Cell(status=Status.COMPLETED, effects=0, sends=1)
_ASKED_AND_SENT: Final = Cell(status=Status.COMPLETED, effects=1, sends=1, look_ups=1)
_ASKED_AND_FOUND: Final = Cell(status=Status.COMPLETED, effects=1, sends=1, look_ups=1)
# A person decides: what is absent may still be on its way, and what cannot be asked may have happened.
_ASKED_IN_VAIN: Final = Cell(status=Status.NEEDS_REVIEW, effects=0, sends=0, look_ups=LOOKUPS_MAX)
_REVIEW_NOTHING_HAPPENED: Final = Cell(status=Status.NEEDS_REVIEW, effects=0, sends=0)
_REVIEW_IT_HAPPENED: Final = Cell(status=Status.NEEDS_REVIEW, effects=1, sends=1)

# Cells in the order A, B, C, D. What is missing is no legal declaration: a keyed write is one whose provider honours
# keys. A tool that could be asked is declared so; a provider that honours keys may be used without relying on them.
EXPECTED: Final[Mapping[tuple[EffectClass, Kind], tuple[Cell, Cell, Cell, Cell]]] = {
    (EffectClass.READ, Kind.HONOURS_KEYS): (_READ, _READ, _READ_AGAIN, _READ),
    (EffectClass.READ, Kind.LOOKUP_ONLY): (_READ, _READ, _READ_AGAIN, _READ),
    (EffectClass.READ, Kind.NEITHER): (_READ, _READ, _READ_AGAIN, _READ),
    (EffectClass.KEYED_WRITE, Kind.HONOURS_KEYS): (_ONCE, _ONCE, _SAME_KEY_AGAIN, _ONCE),
    (EffectClass.REVERSIBLE_WRITE, Kind.HONOURS_KEYS): (_ONCE, _ASKED_AND_SENT, _ASKED_AND_FOUND, _ONCE),
    (EffectClass.REVERSIBLE_WRITE, Kind.LOOKUP_ONLY): (_ONCE, _ASKED_AND_SENT, _ASKED_AND_FOUND, _ONCE),
    (EffectClass.REVERSIBLE_WRITE, Kind.NEITHER): (_ONCE, _REVIEW_NOTHING_HAPPENED, _REVIEW_IT_HAPPENED, _ONCE),
    (EffectClass.IRREVERSIBLE_WRITE, Kind.HONOURS_KEYS): (_ONCE, _ASKED_IN_VAIN, _ASKED_AND_FOUND, _ONCE),
    (EffectClass.IRREVERSIBLE_WRITE, Kind.LOOKUP_ONLY): (_ONCE, _ASKED_IN_VAIN, _ASKED_AND_FOUND, _ONCE),
    (EffectClass.IRREVERSIBLE_WRITE, Kind.NEITHER): (_ONCE, _REVIEW_NOTHING_HAPPENED, _REVIEW_IT_HAPPENED, _ONCE),
}


def story_of(effect: EffectClass, kind: Kind) -> tuple[Story, Workflow]:
    """One action of one class on one kind of outside system, decided by code; what is final needs a person's word."""
    rule = a_rule() if effect is EffectClass.IRREVERSIBLE_WRITE else None
    tool = a_tool(TOOL, effect=effect, can_look_up=kind is not Kind.NEITHER)
    cells = EXPECTED[effect, kind]
    ends = {_ending(cell) for cell in cells}
    # A send whose answer is lost may have happened or not, wherever a person has to decide.
    if _REVIEW_IT_HAPPENED in cells or _ASKED_IN_VAIN in cells:
        ends |= {_ending(_REVIEW_NOTHING_HAPPENED), _ending(_REVIEW_IT_HAPPENED)}
    story = Story(
        name=f"{effect}, {kind}",
        claim=f"a {effect} on a system that {_CAN[kind]} happens once or is shown to a person",
        request={"subject": "S-1"},
        people={CLERK: frozenset({"clerk"}), MANAGER: frozenset({"refund_approver"})},
        outside={TOOL: Outside(kind=kind)},
        acts=(Decides(by=MANAGER),) if rule else (),
        meanwhile=(Cancels(by=CLERK),),
        ends=_ending(cells[0]),
        may_end=tuple(sorted(ends - {_ending(cells[0])}, key=str)),
    )
    return story, an_errand(Do(tool=tool, rule=rule), policies=EVERYBODY_MAY)


def play(effect: EffectClass, kind: Kind, lands: Lands) -> tuple[Cell, list[str]]:
    """Let the crash land there, let the system recover, and return what it came to and what is broken."""
    story, workflow = story_of(effect, kind)
    calls = Calls(fault_at(lands, effect))
    scene = scene_of(story, workflow, calls=calls)
    scene.start()
    scene.machine.settle()
    for act in story.acts:
        act(scene)
        scene.machine.settle()
    if calls.pending:
        return _seen(scene, effect), ["the crash never happened"]
    return _seen(scene, effect), broken(scene.machine)


def as_markdown() -> str:
    """The table as the documentation shows it."""
    lines = [
        f"| effect class | outside system | {' | '.join(lands.value for lands in Lands)} |",
        "|---|---|" + "---|" * len(Lands),
    ]
    lines += [
        f"| {effect} | {_CAN[kind]} | {' | '.join(map(str, cells))} |" for (effect, kind), cells in EXPECTED.items()
    ]
    return "\n".join(lines)


_CAN: Final = {
    Kind.HONOURS_KEYS: "honours keys",
    Kind.LOOKUP_ONLY: "can only be looked up",
    Kind.NEITHER: "can do neither",
}


def _ending(cell: Cell) -> Ending:
    return Ending(status=cell.status, effects={TOOL: cell.effects} if cell.effects else {})


def _seen(scene: Scene, effect: EffectClass) -> Cell:
    downstream = scene.world.downstreams[TOOL]
    asked = Counter(operation for operation, _ in downstream.requests)
    return Cell(
        status=scene.task.business.status if scene.task else Status.READY,
        # The outside notes reads too; they are no effects.
        effects=0 if effect is EffectClass.READ else len(downstream.effects),
        sends=asked[ToolOperation.PERFORM],
        look_ups=asked[ToolOperation.LOOKUP],
    )
