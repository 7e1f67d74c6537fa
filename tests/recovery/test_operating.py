"""Operators and people who stop a part of a task, at every call: nothing happens twice, and nothing is lost."""

from typing import Final

import pytest

from shared.domain.action import EffectClass
from shared.domain.checkpoint import CancelScope
from shared.domain.status import Status
from shared.domain.workflow import Workflow
from tests.builders import CLERK, MANAGER
from tests.fakes.downstream import Kind, Mishap
from tests.fakes.errand import Do, a_rule, a_tool, an_errand, an_undo
from tests.fakes.operating import OPERATOR
from tests.recovery.acts import Asks, Decides
from tests.recovery.crash_table import EVERYBODY_MAY
from tests.recovery.operating import LooksAfter, Patiently, Quarantines, Stops
from tests.recovery.points import Trouble, points_of
from tests.recovery.promises import ending_of
from tests.recovery.story import Ending, Outside, Story
from tests.recovery.telling import Telling

PEOPLE: Final = {
    CLERK: frozenset({"clerk"}),
    MANAGER: frozenset({"refund_approver"}),
    OPERATOR: frozenset({"operator"}),
}
STOPS_CALL: Final = Stops(by=CLERK, scope=CancelScope.TOOL_CALL)
STOPS_TURN: Final = Stops(by=CLERK, scope=CancelScope.MODEL_TURN)
QUARANTINES: Final = Quarantines(by=OPERATOR)
LOOKS_AFTER: Final = Patiently(act=LooksAfter(by=OPERATOR))
DECIDES: Final = Patiently(act=Decides(by=MANAGER))
# However the first round ends, somebody looks after the task and decides again, until there is nothing left to do.
ROUNDS: Final = (DECIDES, LOOKS_AFTER) * 3


def an_order(act: Asks) -> tuple[Story, Workflow]:
    """Reserve, then pay what a model proposes and a manager approves; the bank is silent once and can be asked."""
    payment = a_tool("pay", effect=EffectClass.REVERSIBLE_WRITE, can_look_up=True)
    workflow = an_errand(
        Do(tool=a_tool("reserve", undo="release")),
        Do(tool=payment, rule=a_rule(), proposed=True),
        undos=(an_undo("release"),),
        policies=EVERYBODY_MAY,
    )
    keyed = Outside(kind=Kind.HONOURS_KEYS)
    bank = Outside(kind=Kind.LOOKUP_ONLY, mishaps=(Mishap.RECORDED_NO_ANSWER,))
    story = Story(
        name="order",
        claim="whoever steps in, the order is paid once",
        request={},
        people=PEOPLE,
        outside={"reserve": keyed, "release": keyed, "pay": bank},
        acts=ROUNDS,
        meanwhile=(act,),
        ends=Ending(status=Status.COMPLETED, effects={"reserve": 1, "pay": 1}),
    )
    return story, workflow


@pytest.mark.parametrize("act", [STOPS_CALL, STOPS_TURN, QUARANTINES], ids=str)
def test_whoever_steps_in_the_order_is_paid_once(act: Asks) -> None:
    """I4, O2, B17, B19: a stop or a quarantine right before every call, and then somebody who looks after the task."""
    story, workflow = an_order(act)
    told = Telling(story, workflow).tell()
    assert told.violations == []
    points = [p for p in points_of(told.calls, told.deliveries, story.meanwhile) if p.trouble is Trouble.MEANWHILE]

    let_in = 0
    broken: dict[str, list[str]] = {}
    for point in points:
        telling = Telling(story, workflow, point)
        lines = telling.tell().violations + _not_paid(telling)
        broken |= {str(point): lines} if lines else {}
        let_in += any(answer.request.act is act and answer.refused is None for answer in telling.scene.answers)

    assert broken == {}
    assert len(points) > 50
    assert let_in > 5


def _not_paid(telling: Telling) -> list[str]:
    ended = ending_of(telling.scene)
    return [] if ended == telling.scene.story.ends else [f"it ended {ended}"]
