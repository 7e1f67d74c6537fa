"""Points: each is one place in a story and one thing that goes wrong there, once."""

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tests.recovery.acts import Asks
from tests.recovery.story import Act


class Trouble(StrEnum):
    """What goes wrong."""

    KILL_BEFORE = "the worker dies before the call"
    KILL_AFTER = "the worker dies after the call"
    DROP_REPLY = "the reply is lost"
    LOSE_REQUEST = "the request is lost"
    DIE_UNHEARD = "the worker dies after the call, reported under a name that the graph does not retry"
    STALL = "the worker hangs at the call, is given up, and goes on at the end of its time"
    STALL_ON = "the worker hangs at the call, is given up, and goes on when everybody has done their part"
    OVERTAKEN = "the same delivery comes again at the call and overtakes it"
    TWICE = "the delivery comes again later"
    MEANWHILE = "somebody else acts at the call"
    INTERLEAVED = "two workers at once, each stopped before one of its calls"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One place and one trouble.

    `at` counts calls from 1, and `delivery` says which delivery makes that call, counted from 0. For `Trouble.TWICE`
    it counts deliveries, and `again_after` is the one after which the copy comes, or None for long after the end. For
    `Trouble.INTERLEAVED` it counts the delivery's own calls, `other_at` those of the other worker: the same delivery
    again, or somebody's `act`.
    """

    trouble: Trouble
    at: int
    where: str
    delivery: int
    again_after: int | None = None
    other_at: int | None = None
    act: Act | None = None

    def __str__(self) -> str:
        words = f"{self.at} ({self.where}): {self.trouble}"
        if self.trouble is Trouble.TWICE:
            words += f", after delivery {self.again_after}" if self.again_after is not None else ", after the end"
        if self.trouble is Trouble.INTERLEAVED:
            words += f", the other before its call {self.other_at}"
        return words + (f": {self.act}" if self.act else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallMade:
    """One call of a telling: the port's name for it, and the delivery that made it, counted from 0."""

    name: str
    function: str
    delivery: int

    def __str__(self) -> str:
        return f"{self.name} in {self.function} #{self.delivery + 1}"


AT_EVERY_CALL: Final = (Trouble.KILL_BEFORE, Trouble.KILL_AFTER, Trouble.DROP_REPLY)
# One fault at one call, and nobody else about.
AT_ONE_CALL: Final = frozenset({*AT_EVERY_CALL, Trouble.LOSE_REQUEST, Trouble.DIE_UNHEARD})
# A read whose request is lost and one whose reply is lost are the same to everybody.
READS: Final = frozenset(
    {
        "task_records.load",
        "authority.read",
        "action_ledger.get",
        "wait_store.get",
        "token_store.get",
        "inbox.get",
        "inbox.early",
        "sealer.verify",
        "sealer.seal",
        "artifacts.get_window",
        "artifacts.get_residue",
        "evidence_store.read",
        "executions.state",
        "tool_gateway.lookup",
    }
)
# Nobody can tell these and what another worker does into an order: they touch no record that anybody changes. Whoever
# hangs or is overtaken before one of them might as well be so before the next call.
ALONE: Final = ("sealer.", "artifacts.", "evidence_store.", "model.", "event_bus.", "timers.")


# A copy comes after each of the next few deliveries, and then after every so many, and long after the end.
SOON: Final = 4
# A request to the API makes fewer calls than this; a worker that has ended before its stop simply went first.
API_CALLS_MAX: Final = 6
# Whoever acts in the middle of these meets more than one write of theirs.
WRITES_TWICE: Final = frozenset({"perform", "open_wait"})


def points_of(calls: list[CallMade], deliveries: list[str], meanwhile: tuple[Act, ...]) -> list[Point]:
    """Enumerate every point of a story that was told once as it should go.

    Args:
        calls: every call that the story made, in order.
        deliveries: the function of every delivery, in order.
        meanwhile: what others do in the middle of every call.
    """
    last_request = max((n for n, function in enumerate(deliveries) if function == "api"), default=0)
    made: defaultdict[int, list[str]] = defaultdict(list)
    points = []
    for number, call in enumerate(calls, start=1):
        touches = not made[call.delivery] or not call.name.startswith(ALONE)
        made[call.delivery].append(call.name)
        points += _at_call(number, call)
        if touches:
            points += _beside(number, call, meanwhile, others_follow=call.delivery < last_request)
    for number, function in enumerate(deliveries):
        points += _twice(number, deliveries)
        points += _interleaved(number, function, made[number], meanwhile)
    return points


def _at_call(number: int, call: CallMade) -> list[Point]:
    """What can go wrong with a call by itself."""
    troubles = [
        *AT_EVERY_CALL,
        *([Trouble.LOSE_REQUEST] if call.name not in READS else []),
        *([Trouble.DIE_UNHEARD] if call.function == "wake" else []),
    ]
    return [Point(trouble=trouble, at=number, where=str(call), delivery=call.delivery) for trouble in troubles]


def _beside(number: int, call: CallMade, meanwhile: tuple[Act, ...], *, others_follow: bool) -> list[Point]:
    """What others may do before a call is made."""
    where, delivery = str(call), call.delivery
    troubles = [Trouble.STALL, *([Trouble.STALL_ON] if others_follow else []), Trouble.OVERTAKEN]
    return [
        *(Point(trouble=trouble, at=number, where=where, delivery=delivery) for trouble in troubles),
        *(Point(trouble=Trouble.MEANWHILE, at=number, where=where, delivery=delivery, act=act) for act in meanwhile),
    ]


def _twice(delivery: int, deliveries: list[str]) -> list[Point]:
    soon = range(delivery + 1, min(delivery + SOON, len(deliveries)) + 1)
    later = range(delivery + SOON + 1, len(deliveries) + 1, SOON)
    afters = [*soon, *later, None]
    where = deliveries[delivery]
    return [
        Point(trouble=Trouble.TWICE, at=delivery + 1, where=where, delivery=delivery, again_after=after)
        for after in afters
    ]


def _interleaved(delivery: int, function: str, names: list[str], meanwhile: tuple[Act, ...]) -> list[Point]:
    """Two workers that both pass a look before either writes.

    The delivery and its copy stop at every pair of calls that touch what others may change. Somebody else's request is
    stopped at each of its calls while the delivery runs to its end; where the delivery writes more than once, it is
    stopped at each of its own too.
    """

    def point(at: int, other_at: int, act: Act | None) -> Point:
        where = f"{function} #{delivery + 1}"
        return Point(trouble=Trouble.INTERLEAVED, at=at, where=where, delivery=delivery, other_at=other_at, act=act)

    touching = [number for number, name in enumerate(names, start=1) if not name.startswith(ALONE)]
    copies = [point(at, other, None) for at in touching for other in touching]
    stops = touching if function in WRITES_TWICE else touching[:1]
    others = [
        point(at, other, act)
        for act in meanwhile
        if isinstance(act, Asks)
        for at in stops
        for other in range(1, API_CALLS_MAX + 1)
    ]
    return [*copies, *others]
