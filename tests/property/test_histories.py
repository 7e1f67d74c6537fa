"""Long random histories: people, operators, clocks, deployments, freezes, kills and repeated deliveries in any order.

At every instant the record is intact and nothing has happened twice; whenever an effect leaves, everything that permits
it holds at that very moment; and when the disturbances end, every task comes to rest where somebody owns it.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from shared.domain.action import EffectClass
from shared.domain.approval import DecisionWord
from shared.domain.identity import PrincipalRef
from shared.domain.status import Status
from shared.domain.wait import OnDeadline
from shared.domain.workflow import Workflow
from shared.runtime.observability import logger
from shared.workflows.registry import discover
from tests.builders import CLERK, MANAGER
from tests.fakes.calls import Fault, When
from tests.fakes.downstream import Kind, Mishap
from tests.fakes.errand import Delegate, Do, a_ladder, a_rule, a_tool, an_errand, an_undo
from tests.fakes.operating import OPERATOR
from tests.fakes.story import INTERN, SECOND_MANAGER
from tests.recovery.acts import Amends, Cancels, Decides
from tests.recovery.crash_table import EVERYBODY_MAY
from tests.recovery.dispatch import DispatchWatch
from tests.recovery.invariants import broken, broken_at_this_instant
from tests.recovery.operating import LooksAfter, Quarantines
from tests.recovery.scene import Request, Scene, authoriser_of, scene_of
from tests.recovery.story import TENANT, Ending, Outside, Story
from tests.workflows.refund.story import LARGE, LARGER, SMALL

# The service's own patience, far below what a freeze of a day would take if every pause were played.
STEPS_TO_REST: Final = 4_000
SWEEPS_TO_REST: Final = 4
SWEEP_EVERY: Final = timedelta(minutes=35)
PEOPLE: Final = {
    CLERK: frozenset({"refund_clerk"}),
    MANAGER: frozenset({"refund_approver"}),
    SECOND_MANAGER: frozenset({"refund_approver"}),
    INTERN: frozenset({"viewer"}),
    OPERATOR: frozenset({"operator"}),
}
SCOPES: Final = ("all", f"tenant#{TENANT}", "workflow#{workflow}", "tool#{tool}")
persons = st.sampled_from(sorted(PEOPLE, key=lambda ref: ref.key))
managers = st.sampled_from([MANAGER, SECOND_MANAGER])
words = st.sampled_from(DecisionWord)


def may_be_stopped(histories: "Histories") -> bool:
    """Whether this history has come far enough for somebody to stop it."""
    return len(histories.machine.triggers) >= histories.peaceful_until


class Histories(RuleBasedStateMachine):
    """One task of one workflow, and everything that can happen around it."""

    story: Story
    workflow: Workflow
    requests: tuple[dict[str, object], ...]
    tool: str

    def __init__(self) -> None:
        super().__init__()
        logger.setLevel("CRITICAL")
        self.scene: Scene = scene_of(self.story, self.workflow)
        self.machine = self.scene.machine
        self.world = self.scene.world
        self.release = 1
        self.peaceful_until = 0
        self.watch = DispatchWatch(self.scene)
        self.machine.calls.step_in = self.watch.at_call

    @initialize(
        progress=st.lists(st.tuples(managers, st.integers(0, 9)), max_size=4),
        fault=st.none() | st.tuples(st.sampled_from(When), st.integers(1, 50)),
        deliveries=st.integers(0, 25),
    )
    def start(self, progress: list[tuple[PrincipalRef, int]], fault: tuple[When, int] | None, deliveries: int) -> None:
        """Every history begins with a request that has come some way, perhaps with something going wrong on it."""
        self.peaceful_until = deliveries
        if fault is not None:
            self.machine.calls.plan(Fault(when=fault[0], at=fault[1]))
        self.scene.start()
        for who, passes in progress:
            self.approve_and_go_on(who, passes)

    # --- what people do -----------------------------------------------------------------------------------------------

    @rule(who=managers)
    def approve(self, who: PrincipalRef) -> None:
        self._ask(Decides(by=who).request(self.scene))

    @rule(who=managers, passes=st.integers(0, 8))
    def approve_and_go_on(self, who: PrincipalRef, passes: int) -> None:
        self.approve(who)
        self.go_on(passes)

    @precondition(may_be_stopped)
    @rule(who=persons, word=words)
    def decide(self, who: PrincipalRef, word: DecisionWord) -> None:
        self._ask(Decides(by=who, word=word).request(self.scene))

    @precondition(may_be_stopped)
    @rule(which=st.integers(0, 2))
    def amend(self, which: int) -> None:
        self._ask(Amends(by=CLERK, to=self.requests[which % len(self.requests)]).request(self.scene))

    @precondition(may_be_stopped)
    @rule(who=persons)
    def cancel(self, who: PrincipalRef) -> None:
        self._ask(Cancels(by=who).request(self.scene))

    @precondition(may_be_stopped)
    @rule()
    def quarantine(self) -> None:
        self._ask(Quarantines(by=OPERATOR).request(self.scene))

    @rule()
    def look_after(self) -> None:
        self._ask(LooksAfter(by=OPERATOR).request(self.scene))

    @precondition(may_be_stopped)
    @rule(who=persons)
    def lose_every_right(self, who: PrincipalRef) -> None:
        self.world.authority.disable(who)

    @rule(who=persons)
    def get_rights_back(self, who: PrincipalRef) -> None:
        self.world.authority.grant(who, tenant=TENANT, roles=set(PEOPLE[who]))

    @precondition(may_be_stopped)
    @rule(scope=st.sampled_from(SCOPES))
    def freeze(self, scope: str) -> None:
        self.world.authority.freezes[scope.format(workflow=self.workflow.name, tool=self.tool)] = "an incident"

    @rule()
    def unfreeze(self) -> None:
        self.world.authority.freezes.clear()

    # --- what the services do -----------------------------------------------------------------------------------------

    @rule(passes=st.integers(1, 12))
    def go_on(self, passes: int) -> None:
        for _ in range(passes):
            self.machine.step()

    @rule(passes=st.integers(1, 4))
    def go_on_without_time(self, passes: int) -> None:
        for _ in range(passes):
            self.machine.step(patience=False)

    @precondition(lambda self: self.machine.triggers)
    @rule(data=st.data())
    def deliver_again(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, len(self.machine.triggers) - 1))
        self.machine.repeat(self.machine.triggers[number])

    @precondition(lambda self: self.world.outbox)
    @rule(data=st.data())
    def deliver_out_of_turn(self, data: st.DataObject) -> None:
        self.machine.deliver_row(data.draw(st.sampled_from([row for _, row in sorted(self.world.outbox.items())])))

    @rule(seconds=st.sampled_from([1, 30, 90, 600]))
    def let_a_moment_pass(self, seconds: int) -> None:
        self.machine.pass_time(self.world.clock.now() + timedelta(seconds=seconds))

    @precondition(may_be_stopped)
    @rule(seconds=st.sampled_from([3_600, 86_400, 4 * 86_400]))
    def let_time_pass(self, seconds: int) -> None:
        self.machine.pass_time(self.world.clock.now() + timedelta(seconds=seconds))

    @rule()
    def sweep(self) -> None:
        self.machine.sweep()

    @rule()
    def deploy_other_policies(self) -> None:
        self.release += 1
        self._deploy(replace(self.workflow, policies=f"{self.workflow.policies}\n// release {self.release}"))

    @rule()
    def deploy_another_tool_description(self) -> None:
        self.release += 1
        tool = self.workflow.tools[self.tool]
        described = replace(tool, description=f"{tool.description} Release {self.release}.")
        self._deploy(replace(self.workflow, tools={**self.workflow.tools, self.tool: described}))

    # --- what goes wrong ----------------------------------------------------------------------------------------------

    @rule(when=st.sampled_from(When), calls=st.integers(1, 12))
    def something_breaks_soon(self, when: When, calls: int) -> None:
        self.machine.calls.plan(Fault(when=when, at=len(self.machine.calls.names) + calls))

    @rule(mishap=st.sampled_from([Mishap.RECORDED_NO_ANSWER, Mishap.LOST, Mishap.PENDING, Mishap.NOT_SENT]))
    def the_outside_falters(self, mishap: Mishap) -> None:
        self.world.downstreams[self.tool].mishaps.append(mishap)

    # --- what holds ---------------------------------------------------------------------------------------------------

    @invariant()
    def nothing_is_broken(self) -> None:
        assert not self.watch.wrong
        assert not broken_at_this_instant(self.machine)
        assert len([task for task in self.scene.tasks() if task.execution.parent is None]) <= 1
        for tool, most in self.story.ends.effects.items():
            assert len(self.world.downstreams[tool].effects) <= most, tool

    def teardown(self) -> None:
        """The disturbances end; what is left has to come to rest by itself."""
        self.machine.calls.call_off()
        self.world.authority.freezes.clear()
        for who, roles in PEOPLE.items():
            self.world.authority.grant(who, tenant=TENANT, roles=set(roles))
        for _ in range(SWEEPS_TO_REST):
            self._rest()
            self.machine.pass_time(self.world.clock.now() + SWEEP_EVERY)
            self.machine.sweep()
        self._rest()
        self.nothing_is_broken()
        assert not broken(self.machine)

    def _rest(self) -> None:
        for _ in range(STEPS_TO_REST):
            if not self.machine.step():
                return
        raise AssertionError("no rest")

    def _ask(self, request: Request | None) -> None:
        """Ask once; whether an answer comes is the history's business."""
        if request is None:
            return
        try:
            self.machine.fire(request.trigger())
        except BaseException as failure:
            if isinstance(failure, AssertionError | KeyboardInterrupt):
                raise

    def _deploy(self, workflow: Workflow) -> None:
        self.workflow = workflow
        self.machine.deploy(workflow, authoriser_of(workflow, *self.story.others))


def _story(
    name: str,
    request: dict[str, object],
    outside: dict[str, Outside],
    effects: dict[str, int],
    others: tuple[Workflow, ...] = (),
) -> Story:
    return Story(
        name=name,
        claim="whatever happens around it, nothing happens twice",
        request=request,
        people=PEOPLE,
        outside=outside,
        others=others,
        ends=Ending(status=Status.COMPLETED, effects=effects),
    )


class Refunds(Histories):
    """A provider that honours keys, above and below the limit that needs an approval."""

    workflow = discover()["refund"]
    story = _story("refund", LARGE, {"issue_refund": Outside(kind=Kind.HONOURS_KEYS)}, {"issue_refund": 1})
    requests = (LARGE, LARGER, SMALL)
    tool = "issue_refund"


class FinalEffects(Histories):
    """An effect that cannot be undone, on a system that can neither deduplicate nor be asked."""

    workflow = an_errand(
        Do(tool=a_tool("pay", effect=EffectClass.IRREVERSIBLE_WRITE, can_look_up=False), rule=a_rule()),
        policies=EVERYBODY_MAY,
    )
    story = _story("final", {"subject": "S-1"}, {"pay": Outside(kind=Kind.NEITHER)}, {"pay": 1})
    requests = ({"subject": "S-1"}, {"subject": "S-2"}, {"subject": "S-3", "memo": "soon"})
    tool = "pay"


class Sagas(Histories):
    """Two effects, the first of which is undone when the second is not to be, and two people who have to agree."""

    workflow = an_errand(
        Do(tool=a_tool("reserve", effect=EffectClass.REVERSIBLE_WRITE, undo="release")),
        Do(tool=a_tool("pay"), rule=a_rule(quorum=2), proposed=True),
        undos=(an_undo("release"),),
        policies=EVERYBODY_MAY,
    )
    story = _story(
        "saga",
        {"subject": "S-1"},
        {
            "reserve": Outside(kind=Kind.LOOKUP_ONLY),
            "pay": Outside(kind=Kind.HONOURS_KEYS),
            "release": Outside(kind=Kind.HONOURS_KEYS),
        },
        {"reserve": 1, "pay": 1, "release": 1},
    )
    requests = ({"subject": "S-1"}, {"subject": "S-2"}, {"subject": "S-3"})
    tool = "pay"


class Families(Histories):
    """An effect, then a child task whose own effect people have to agree to, and another effect after it."""

    workflow = an_errand(
        Do(tool=a_tool("reserve", effect=EffectClass.REVERSIBLE_WRITE, undo="release")),
        Delegate(to="asks", ladder=a_ladder(days=14, end=OnDeadline.REVIEW)),
        Do(tool=a_tool("pay")),
        undos=(an_undo("release"),),
        policies=EVERYBODY_MAY,
    )
    story = _story(
        "family",
        {"subject": "S-1"},
        {
            "reserve": Outside(kind=Kind.LOOKUP_ONLY),
            "send": Outside(kind=Kind.HONOURS_KEYS),
            "pay": Outside(kind=Kind.HONOURS_KEYS),
            "release": Outside(kind=Kind.HONOURS_KEYS),
        },
        {"reserve": 1, "send": 1, "pay": 1, "release": 1},
        others=(an_errand(Do(tool=a_tool("send"), rule=a_rule()), name="asks", policies=EVERYBODY_MAY),),
    )
    requests = ({"subject": "S-1"}, {"subject": "S-2"}, {"subject": "S-3"})
    tool = "pay"


# Some twenty thousand steps in all: enough to meet most pairs of rules in both orders, in well under a minute.
for _histories in (Refunds, FinalEffects, Sagas, Families):
    _histories.TestCase.settings = settings(max_examples=150, stateful_step_count=35)

TestRefunds = Refunds.TestCase
TestFinalEffects = FinalEffects.TestCase
TestSagas = Sagas.TestCase
TestFamilies = Families.TestCase
