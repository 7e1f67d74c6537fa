"""Random lives of one task: people, mishaps, deaths, releases and time in any order; the promises hold throughout."""

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from shared.domain.action import SETTLED, EffectClass
from shared.domain.approval import DecisionWord
from shared.domain.checkpoint import decode_checkpoint, encode_checkpoint
from shared.domain.errors import EngineError
from shared.domain.identity import PrincipalRef
from shared.domain.status import TERMINAL, Status
from shared.domain.workflow import UndoApproval, Workflow
from tests.fakes.calls import Fault, Killed, When
from tests.fakes.downstream import Downstream, Kind, Mishap
from tests.fakes.errand import Do, a_ladder, a_rule, a_tool, an_errand, an_undo
from tests.fakes.story import CLERK, MANAGER, SECOND_MANAGER, Story

PEOPLE = st.sampled_from([MANAGER, SECOND_MANAGER])
# Lives that end at once find nothing; what ends them is rare here.
MOSTLY_YES = st.sampled_from([DecisionWord.APPROVE] * 5 + [DecisionWord.REJECT])
SELDOM = st.sampled_from([False] * 5 + [True])
HOLD = a_tool("book_hold", undo="drop_hold")
GUARDED = a_tool("pay", undo="take_back", undo_approval=UndoApproval(rule=a_rule(), wait=a_ladder()))
LETTER = a_tool("send_letter", effect=EffectClass.IRREVERSIBLE_WRITE, can_look_up=False)
ERRAND = an_errand(
    Do(tool=HOLD),
    Do(tool=GUARDED, rule=a_rule(quorum=2), proposed=True),
    Do(tool=LETTER, rule=a_rule()),
    undos=[an_undo("drop_hold"), an_undo("take_back")],
)
KINDS = {"send_letter": Kind.NEITHER}
# A status in which something is known to happen next, or somebody owns what does.
OWNED = {Status.WAITING_APPROVAL, Status.NEEDS_REVIEW, Status.QUARANTINED}


class Life(RuleBasedStateMachine):
    """One task of an errand that books, pays and writes, with everything that can happen to it."""

    @initialize()
    def start(self) -> None:
        """Start the task and let it come to rest."""
        downstreams = {name: Downstream(kind=KINDS.get(name, Kind.HONOURS_KEYS)) for name in ERRAND.tools}
        self.story = Story(ERRAND, downstreams=downstreams)
        self.story.start(workflow=ERRAND.name, request={})
        self.versions = 0

    def attempt(self, act: Any) -> None:
        """Do something that may be refused, or be cut short, and let the machine go on."""
        # Nothing to decide, nobody there to ask, refused, or the worker died on it.
        with suppress(EngineError, Killed, StopIteration, KeyError):
            act()
        self.story.machine.settle(patience=not self.story.world.authority.freezes)

    @rule(who=PEOPLE, word=MOSTLY_YES)
    def somebody_decides(self, who: PrincipalRef, word: DecisionWord) -> None:
        """A manager decides what is open."""
        self.attempt(lambda: self.story.click(word, by=who))

    @rule()
    def everybody_approves(self) -> None:
        """Both managers approve what is open, one after the other."""
        for who in (MANAGER, SECOND_MANAGER):
            self.attempt(lambda who=who: self.story.click(by=who))

    @rule(who=PEOPLE)
    def somebody_clicks_an_old_link(self, who: PrincipalRef) -> None:
        """A manager decides about the first approval there ever was."""
        approvals = self.story.task.security.approvals
        if approvals:
            self.attempt(lambda: self.story.click(by=who, approval_id=approvals[0].approval_id, request_version=1))

    @rule(really=SELDOM)
    def the_owner_cancels(self, really: bool) -> None:
        """The owner gives up."""
        if really:
            self.attempt(self.story.ask_to_cancel)

    @rule(subject=st.sampled_from(["S-2", "S-3"]))
    def the_owner_amends(self, subject: str) -> None:
        """The owner wants something else."""
        self.attempt(lambda: self.story.amend_quietly(subject=subject))

    @rule(tool=st.sampled_from(sorted(ERRAND.tools)), mishap=st.sampled_from(Mishap))
    def a_provider_is_about_to_fail(self, tool: str, mishap: Mishap) -> None:
        """The next request to a provider goes wrong."""
        self.story.world.downstreams[tool].mishaps.append(mishap)

    @rule(at=st.integers(1, 40), when=st.sampled_from(When))
    def a_worker_is_about_to_die(self, at: int, when: When) -> None:
        """Some call from now on goes wrong."""
        self.story.calls.plan(Fault(when=when, at=len(self.story.calls.names) + at))

    @rule(hours=st.sampled_from([1, 1, 1, 25, 25, 24 * 8]))
    def time_passes(self, hours: int) -> None:
        """Nobody does anything for a while."""
        self.story.world.clock.advance(timedelta(hours=hours))
        self.attempt(lambda: None)

    @rule(who=st.sampled_from([CLERK, MANAGER, SECOND_MANAGER]), active=st.booleans())
    def rights_change(self, who: PrincipalRef, active: bool) -> None:
        """Somebody loses or regains every right."""
        row = self.story.world.authority.principals[who.key]
        self.story.world.authority.principals[who.key] = replace(row, active=active)

    @rule(scope=st.sampled_from(["all", "tool#pay", "workflow#errand"]))
    def a_freeze_comes_and_goes(self, scope: str) -> None:
        """An operator freezes something and lifts it again later."""
        self.story.world.authority.freezes[scope] = "incident"
        self.attempt(lambda: None)
        self.story.world.authority.freezes.clear()
        self.attempt(lambda: None)

    @rule()
    def a_release_is_deployed(self) -> None:
        """Policies change under the task."""
        self.versions += 1
        policies = f"// release {self.versions}"
        self.story.machine.workflows[ERRAND.name] = _with_policies(ERRAND, policies)
        self.attempt(lambda: None)

    @precondition(lambda self: self.story.world.heads[self.story.key.key].quarantine is None)
    @rule()
    def somebody_else_wakes_the_task(self) -> None:
        """A second worker looks at the task."""
        self.attempt(self.story.wake)

    @invariant()
    def no_effect_happens_twice(self) -> None:
        """R1, B01 and B25: each operation has one effect at most, and no more effects than permitted actions."""
        for downstream in self.story.world.downstreams.values():
            keys = [effect.key for effect in downstream.effects]
            assert len(set(keys)) == len(keys)

    @invariant()
    def effects_are_known_or_open(self) -> None:
        """I3: nothing has happened that the ledger takes for failed, void or never sent."""
        for row in self.story.rows:
            happened = self.story.world.downstreams[row.tool].effects_of(row.operation)
            if row.status in SETTLED:
                assert bool(happened) == (row.status == "done"), row

    @invariant()
    def what_ended_says_what_stands(self) -> None:
        """B17 and B28: a task that has ended knows every effect, and green is only what was all done."""
        task = self.story.task
        if task.business.status not in TERMINAL:
            return
        assert all(row.status in SETTLED for row in self.story.rows)
        assert task.business.outcome
        if task.business.status is Status.COMPLETED:
            done = {effect.tool for d in self.story.world.downstreams.values() for effect in d.effects}
            assert {"book_hold", "pay", "send_letter"} <= done

    @invariant()
    def a_payment_had_its_approvals(self) -> None:
        """A7 and B03: every payment was approved by two people, for exactly that action, used once."""
        history = [
            decode_checkpoint(stored.body)
            for (task, _), stored in self.story.world.checkpoints.items()
            if task == self.story.key.key
        ]
        for effect in self.story.world.downstreams["pay"].effects:
            (action,) = {
                a.ordinal: a for task in history for a in task.execution.actions if a.operation == effect.key
            }.values()
            used = [a for task in history for a in task.security.approvals if a.approval_id == action.approval_id]
            assert len({decision.principal for decision in used[-1].decisions}) >= 2
            assert used[-1].spec.arguments == effect.arguments
            assert {a.used_by for a in used if a.used_by is not None} == {action.ordinal}

    @invariant()
    def the_record_is_sound(self) -> None:
        """R6: nothing that people and machines may do makes a task untrustworthy or unreadable."""
        head = self.story.world.heads[self.story.key.key]
        assert head.quarantine is None, head.quarantine
        assert decode_checkpoint(encode_checkpoint(self.story.task, begins_something=False)) == self.story.task

    @invariant()
    def somebody_or_something_moves_it_on(self) -> None:
        """B15: a live task waits with a deadline, or its execution is alive."""
        task = self.story.task
        if task.business.status in TERMINAL:
            return
        alive = [run for run in self.story.machine.runs.values() if run.ended is None and run.key == self.story.key]
        assert alive or "Wake failed" in {run.ended for run in self.story.machine.runs.values()}
        if task.business.status in OWNED:
            assert task.execution.waits


def _with_policies(workflow: Workflow, policies: str) -> Workflow:
    return replace(workflow, policies=policies)


Life.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=25,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TestLife = Life.TestCase
