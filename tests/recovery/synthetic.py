"""Stories of workflows made to order, for what no product workflow does.

Every effect class on every kind of outside system, undos, approvals of several people, and answers that never come.
"""

from typing import Final

from shared.domain.action import EffectClass
from shared.domain.approval import DecisionWord
from shared.domain.status import Status
from shared.domain.wait import OnDeadline
from shared.domain.workflow import Workflow
from tests.builders import CLERK, MANAGER
from tests.fakes.downstream import Kind, Mishap
from tests.fakes.errand import Delegate, Do, a_ladder, a_rule, a_tool, an_errand, an_undo
from tests.fakes.story import SECOND_MANAGER
from tests.recovery.acts import Cancels, Decides
from tests.recovery.crash_table import EVERYBODY_MAY, EXPECTED, story_of
from tests.recovery.story import Ending, Outside, Stories, Story

PEOPLE: Final = {
    CLERK: frozenset({"clerk"}),
    MANAGER: frozenset({"refund_approver"}),
    SECOND_MANAGER: frozenset({"refund_approver"}),
}


KEYED: Final = Outside(kind=Kind.HONOURS_KEYS)
WITHDRAWN: Final = {"reserve": 1, "announce": 1, "withdraw": 1}


def _trip(*, release: EffectClass = EffectClass.KEYED_WRITE, can_look_up: bool = True) -> Workflow:
    """Reserve, announce, pay; the first two can be undone."""
    return an_errand(
        Do(tool=a_tool("reserve", effect=EffectClass.REVERSIBLE_WRITE, undo="release")),
        Do(tool=a_tool("announce", undo="withdraw")),
        Do(tool=a_tool("pay")),
        undos=(an_undo("release", effect=release, can_look_up=can_look_up), an_undo("withdraw")),
        policies=EVERYBODY_MAY,
    )


def _outside(**kinds: Outside) -> dict[str, Outside]:
    tools = ("reserve", "announce", "pay", "release", "withdraw")
    return dict.fromkeys(tools, KEYED) | {"reserve": Outside(kind=Kind.LOOKUP_ONLY)} | kinds


_REFUSED: Final = Outside(kind=Kind.HONOURS_KEYS, mishaps=(Mishap.REFUSED,))

SAGAS: Final = (
    (
        Story(
            name="undone",
            claim="when the last step is refused for good, what came before is undone, newest first, each once",
            request={},
            people=PEOPLE,
            outside=_outside(pay=_REFUSED),
            meanwhile=(Cancels(by=CLERK),),
            ends=Ending(status=Status.FAILED, effects=WITHDRAWN | {"release": 1}),
            # A refusal whose answer is lost is asked for again; by then the provider takes the payment.
            may_end=(Ending(status=Status.COMPLETED, effects={"reserve": 1, "announce": 1, "pay": 1}),),
        ),
        _trip(),
    ),
    (
        Story(
            name="undo unknown",
            claim="an undo with an unknown outcome that nobody can be asked about ends with a person, never green",
            request={},
            people=PEOPLE,
            outside=_outside(pay=_REFUSED, release=Outside(kind=Kind.NEITHER, mishaps=(Mishap.RECORDED_NO_ANSWER,))),
            ends=Ending(status=Status.NEEDS_REVIEW, effects=WITHDRAWN | {"release": 1}),
            may_end=(
                Ending(status=Status.NEEDS_REVIEW, effects=WITHDRAWN),
                Ending(status=Status.COMPLETED, effects={"reserve": 1, "announce": 1, "pay": 1}),
                # The answer got lost before the outside system could lose it.
                Ending(status=Status.FAILED, effects=WITHDRAWN | {"release": 1}),
            ),
        ),
        _trip(release=EffectClass.REVERSIBLE_WRITE, can_look_up=False),
    ),
)

APPROVED: Final = (
    (
        Story(
            name="two people",
            claim="an action that needs two people is done once, after the second",
            request={},
            people=PEOPLE,
            outside={"pay": KEYED},
            acts=(Decides(by=MANAGER), Decides(by=SECOND_MANAGER)),
            meanwhile=(Cancels(by=CLERK), Decides(by=SECOND_MANAGER, word=DecisionWord.REJECT)),
            ends=Ending(status=Status.COMPLETED, effects={"pay": 1}),
        ),
        an_errand(Do(tool=a_tool("pay"), rule=a_rule(quorum=2)), policies=EVERYBODY_MAY),
    ),
    (
        Story(
            name="canceled after the first effect",
            claim="what was done before a cancellation is undone, and nothing is paid",
            request={},
            people=PEOPLE,
            outside=_outside(),
            acts=(Cancels(by=CLERK), Decides(by=MANAGER)),
            ends=Ending(status=Status.CANCELED, effects={"reserve": 1, "release": 1}),
        ),
        an_errand(
            Do(tool=a_tool("reserve", effect=EffectClass.REVERSIBLE_WRITE, undo="release")),
            Do(tool=a_tool("pay"), rule=a_rule()),
            undos=(an_undo("release"),),
            policies=EVERYBODY_MAY,
        ),
    ),
    (
        Story(
            name="read, then write",
            claim="the model reads, then proposes a write; each is done as it may be",
            request={},
            people=PEOPLE,
            outside={"look": Outside(kind=Kind.NEITHER), "pay": KEYED},
            meanwhile=(Cancels(by=CLERK),),
            ends=Ending(status=Status.COMPLETED, effects={"pay": 1}),
        ),
        an_errand(
            Do(tool=a_tool("look", effect=EffectClass.READ), proposed=True),
            Do(tool=a_tool("pay"), proposed=True),
            policies=EVERYBODY_MAY,
        ),
    ),
)

_SENDS: Final = an_errand(Do(tool=a_tool("send"), proposed=True), name="sends", policies=EVERYBODY_MAY)
_ASKS: Final = an_errand(Do(tool=a_tool("send"), rule=a_rule()), name="asks", policies=EVERYBODY_MAY)


def _delegates(to: Workflow) -> Workflow:
    """Reserve, leave the sending to a task of its own, pay."""
    return an_errand(
        Do(tool=a_tool("reserve", effect=EffectClass.REVERSIBLE_WRITE, undo="release")),
        Delegate(to=to.name, ladder=a_ladder(days=14, end=OnDeadline.REVIEW)),
        Do(tool=a_tool("pay")),
        undos=(an_undo("release"),),
        policies=EVERYBODY_MAY,
    )


_FAMILY: Final = dict.fromkeys(("release", "send", "pay"), KEYED) | {"reserve": Outside(kind=Kind.LOOKUP_ONLY)}

FAMILIES: Final = (
    (
        Story(
            name="delegated",
            claim="a child does its work once, and its parent goes on after it, once",
            request={},
            people=PEOPLE,
            outside=_FAMILY,
            others=(_SENDS,),
            meanwhile=(Cancels(by=CLERK),),
            ends=Ending(status=Status.COMPLETED, effects={"reserve": 1, "send": 1, "pay": 1}),
        ),
        _delegates(_SENDS),
    ),
    (
        Story(
            name="delegated in vain",
            claim="what was done before a child that is refused is undone, once",
            request={},
            people=PEOPLE,
            outside=_FAMILY | {"send": Outside(kind=Kind.HONOURS_KEYS, mishaps=(Mishap.REFUSED,))},
            others=(_SENDS,),
            ends=Ending(status=Status.FAILED, effects={"reserve": 1, "release": 1}),
            # A refusal whose answer is lost is asked for again; by then the provider takes it.
            may_end=(Ending(status=Status.COMPLETED, effects={"reserve": 1, "send": 1, "pay": 1}),),
        ),
        _delegates(_SENDS),
    ),
    (
        Story(
            name="canceled with its child",
            claim="whoever stops a task stops its child; what was done before is undone, and nothing is sent",
            request={},
            people=PEOPLE,
            outside=_FAMILY,
            others=(_ASKS,),
            acts=(Cancels(by=CLERK),),
            ends=Ending(status=Status.CANCELED, effects={"reserve": 1, "release": 1}),
        ),
        _delegates(_ASKS),
    ),
)

_SLOW: Final = {Kind.HONOURS_KEYS: EffectClass.KEYED_WRITE, Kind.LOOKUP_ONLY: EffectClass.REVERSIBLE_WRITE}


def _unclear(mishap: Mishap, kind: Kind) -> tuple[Story, Workflow]:
    effect = _SLOW[kind]
    story = Story(
        name=f"{mishap}, {kind}",
        claim=f"a {effect} whose first answer is '{mishap}' happens once in the end",
        request={},
        people=PEOPLE,
        outside={"pay": Outside(kind=kind, mishaps=(mishap,))},
        ends=Ending(status=Status.COMPLETED, effects={"pay": 1}),
    )
    return story, an_errand(Do(tool=a_tool("pay", effect=effect)), policies=EVERYBODY_MAY)


UNCLEAR: Final = tuple(
    _unclear(mishap, kind)
    for kind in _SLOW
    for mishap in (Mishap.RECORDED_NO_ANSWER, Mishap.LOST, Mishap.PENDING, Mishap.NOT_SENT)
)

SYNTHETIC: Final = Stories(
    name="synthetic",
    told=(*(story_of(effect, kind) for effect, kind in EXPECTED), *SAGAS, *APPROVED, *FAMILIES, *UNCLEAR),
    # Counted when they were written; fewer means that a story or a kind of trouble has been lost.
    points_min=13_200,
)
