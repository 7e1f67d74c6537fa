"""A sample of the crash points on DynamoDB Local, and two workers at once on real threads: one winner, one effect."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import pytest

from shared.domain.status import Status
from tests.builders import CLERK, MANAGER
from tests.contract.stores import race
from tests.fakes.machine import Trigger
from tests.recovery.acts import Amends, Asks, Cancels, Decides
from tests.recovery.points import Point, Trouble, points_of
from tests.recovery.promises import ending_of
from tests.recovery.scene import Scene
from tests.recovery.story import stories_of
from tests.recovery.tables import Tables, tables
from tests.recovery.telling import Telling
from tests.workflows.refund.story import LARGER, PAID

STORY, REFUND = next(told for told in stories_of("refund").told if told[0].name == "approved")
ONCE = Telling(STORY, REFUND).tell()
POINTS = points_of(ONCE.calls, ONCE.deliveries, ())

# Where something becomes durable or leaves us, and what can go wrong there.
WRITES: Final = ("task_records.commit", "action_ledger.claim", "tool_gateway.perform", "action_ledger.settle")
TROUBLES: Final = (Trouble.KILL_AFTER, Trouble.DROP_REPLY, Trouble.OVERTAKEN)
SAMPLE: Final = [p for p in POINTS if p.trouble in TROUBLES and p.where.startswith(WRITES)]


@pytest.fixture(scope="module")
def stage() -> Iterator[Tables]:
    """Start DynamoDB Local once for all of them."""
    with tables() as made:
        yield made


def test_it_is_the_same_story(stage: Tables) -> None:
    """On the tables every call is made in the same order as on the fakes; so the points are the same points."""
    told = Telling(STORY, REFUND, backing=stage.backing()).tell()

    assert told.violations == []
    assert [call.name for call in told.calls] == [call.name for call in ONCE.calls]


@pytest.mark.parametrize("point", SAMPLE, ids=str)
def test_a_crash_point_on_the_tables(point: Point, stage: Tables) -> None:
    """R1, R2, B05, B11: at every write the worker dies, its reply is lost, or a copy of its delivery overtakes it."""
    told = Telling(STORY, REFUND, point, backing=stage.backing()).tell()

    assert told.violations == []


@pytest.mark.parametrize("number", range(len(ONCE.deliveries)), ids=lambda n: f"{ONCE.deliveries[n]} {n + 1}")
def test_the_same_delivery_twice_at_once(number: int, stage: Tables) -> None:
    """R8, B22: two workers take the same delivery on two threads; the task moves once and is paid once."""
    telling = Telling(STORY, REFUND, backing=stage.backing())
    machine = telling.scene.machine
    raced: list[Trigger] = []

    def work_on(trigger: Trigger) -> object:
        if raced or len(machine.triggers) - 1 != number:
            return trigger.work()
        raced.append(trigger)
        return _first_answer(race([trigger.work, trigger.work]))

    machine.work_on = work_on
    told = telling.tell()

    assert raced
    assert told.violations == []


@dataclass(frozen=True, slots=True, kw_only=True)
class AtOnce:
    """Two people act on what they both see, on two threads."""

    one: Asks
    other: Asks

    def __call__(self, scene: Scene) -> None:
        requests = [act.request(scene) for act in (self.one, self.other)]
        asked = [request for request in requests if request is not None]
        for request, came in zip(asked, race([request.work for request in asked]), strict=True):
            if not scene.told(request, came if isinstance(came, Exception) else None):
                scene.ask(request)
        scene.machine.after(Trigger(function="api", subject="both", work=lambda: None))


APPROVES: Final = Decides(by=MANAGER)
CANCELS: Final = Cancels(by=CLERK)
AMENDS: Final = Amends(by=CLERK, to=LARGER)


@pytest.mark.parametrize("turn", range(3))
@pytest.mark.parametrize(
    ("one", "other"),
    [(APPROVES, CANCELS), (APPROVES, AMENDS), (AMENDS, CANCELS), (APPROVES, APPROVES)],
    ids=["approve, cancel", "approve, amend", "amend, cancel", "approve, approve"],
)
def test_two_people_at_once(one: Asks, other: Asks, turn: int, stage: Tables) -> None:
    """B17, R3: each is told the truth, and the refund is paid once or not at all."""
    story = replace(STORY, acts=(AtOnce(one=one, other=other),), meanwhile=(), ends=PAID)
    telling = Telling(story, REFUND, backing=stage.backing())
    # Somebody else's act may change how it ends; the promises stay.
    violations = [line for line in telling.tell().violations if not line.startswith("it ended")]

    assert violations == []
    assert ending_of(telling.scene).status in {Status.COMPLETED, Status.CANCELED, Status.WAITING_APPROVAL}
    assert len(telling.scene.answers) == 3


def _first_answer(came: list[object | Exception]) -> object:
    answers = [each for each in came if not isinstance(each, Exception)]
    if answers:
        return answers[0]
    raise came[0]  # type: ignore[misc]
