"""Points: each is one place in a story and one thing that goes wrong there, once."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One place and one trouble.

    `at` counts calls from 1, and `delivery` says which delivery makes that call, counted from 0. For `Trouble.TWICE`
    it counts deliveries, and `again_after` is the one after which the copy comes, or None for long after the end.
    """

    trouble: Trouble
    at: int
    where: str
    delivery: int
    again_after: int | None = None
    act: Act | None = None

    def __str__(self) -> str:
        words = f"{self.at} ({self.where}): {self.trouble}"
        if self.trouble is Trouble.TWICE:
            words += f", after delivery {self.again_after}" if self.again_after is not None else ", after the end"
        return words + (f": {self.act}" if self.act else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallMade:
    """One call of a telling: the port's name for it, and the delivery that made it, counted from 0."""

    name: str
    function: str
    delivery: int

    def __str__(self) -> str:
        return f"{self.name} in {self.function} #{self.delivery + 1}"


AT_EVERY_CALL: Final = (
    Trouble.KILL_BEFORE,
    Trouble.KILL_AFTER,
    Trouble.DROP_REPLY,
    Trouble.LOSE_REQUEST,
    Trouble.STALL,
    Trouble.STALL_ON,
    Trouble.OVERTAKEN,
)


def points_of(calls: list[CallMade], deliveries: list[str], meanwhile: tuple[Act, ...]) -> list[Point]:
    """Enumerate every point of a story that was told once as it should go.

    Args:
        calls: every call that the story made, in order.
        deliveries: the function of every delivery, in order.
        meanwhile: what others do in the middle of every call.
    """
    points = []
    for number, call in enumerate(calls, start=1):
        where, delivery = str(call), call.delivery
        troubles = [*AT_EVERY_CALL, *([Trouble.DIE_UNHEARD] if call.function == "wake" else [])]
        points += [Point(trouble=t, at=number, where=where, delivery=delivery) for t in troubles]
        points += [
            Point(trouble=Trouble.MEANWHILE, at=number, where=where, delivery=delivery, act=act) for act in meanwhile
        ]
    for first, function in enumerate(deliveries):
        later = [*range(first + 1, len(deliveries) + 1), None]
        points += [
            Point(trouble=Trouble.TWICE, at=first + 1, where=function, delivery=first, again_after=after)
            for after in later
        ]
    return points
