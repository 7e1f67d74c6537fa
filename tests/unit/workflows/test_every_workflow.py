"""Every workflow that is found keeps the contract, and each check of the contract can say no."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from shared.domain.action import EffectClass
from shared.domain.errors import InvalidRequest
from shared.domain.records import Record
from shared.domain.status import Status
from shared.domain.wait import OnDeadline, Rung, WaitRule
from shared.domain.workflow import (
    AskModel,
    AwaitInput,
    Compensate,
    ContinueCompensation,
    Finish,
    PerformAction,
    RequestApproval,
    Stage,
    StartChild,
    Step,
    TaskView,
    Workflow,
)
from shared.workflows.registry import discover
from tests.fakes.errand import DAY_SECONDS, Delegate, Do, WaitFor, a_ladder, a_rule, a_tool, an_errand, an_undo
from tests.unit.workflows import contract
from tests.unit.workflows.contract import CHECKS, Check
from tests.unit.workflows.samples import examples, requests_of
from tests.unit.workflows.walk import steps_of

PARCEL = a_tool()
HOLD = a_tool("book_hold", undo="drop_hold")
SOUND = an_errand(
    Do(tool=HOLD),
    Do(tool=PARCEL, rule=a_rule(), proposed=True),
    WaitFor(name="signed", ladder=a_ladder()),
    WaitFor(name="agreed", ladder=a_ladder(), person=True),
    undos=[an_undo("drop_hold")],
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("workflow", [*discover().values(), SOUND], ids=lambda workflow: workflow.name)
def test_every_workflow_keeps_the_contract(workflow: Workflow, check: Check) -> None:
    """Any workflow in the folder, the user's own included, can be run by the engine."""
    assert check(workflow) == []


@pytest.mark.parametrize("workflow", discover().values(), ids=lambda workflow: workflow.name)
def test_the_walk_meets_the_workflow(workflow: Workflow) -> None:
    """The rules are walked to an end, and through an approval where there is one; no check passes on nothing."""
    met = [type(each.step) for each in steps_of(workflow)]

    assert Finish in met
    assert {PerformAction, StartChild} & set(met)
    assert requests_of(workflow)


def stages(**changes: Stage) -> Workflow:
    """Change the table of stages."""
    return replace(SOUND, stages={**SOUND.stages, **changes})


def tool(**changes: Any) -> Workflow:
    """Change the tool that sends parcels."""
    return replace(SOUND, tools={**SOUND.tools, "send_parcel": replace(PARCEL, **changes)})


def always(step: Callable[[TaskView], Step]) -> Workflow:
    """Let the rules ask for one thing and nothing else."""
    return replace(SOUND, next_step=step)


def performed(view: TaskView) -> Step:
    """Perform the parcel's tool on code's word alone."""
    return PerformAction(stage="step_1", action=PARCEL.normalise(view.request.model_dump()))


def delegating(*, to: str, seconds: int = 14 * DAY_SECONDS) -> Workflow:
    """Leave everything to a task of another workflow."""
    rung = Rung(after_seconds=seconds, do=OnDeadline.REVIEW, to="operator")
    return an_errand(Delegate(to=to, ladder=WaitRule(ladder=(rung,))))


class Open(BaseModel):
    """Takes whatever comes."""

    model_config = ConfigDict(frozen=True)

    subject: str = "S-1"
    memo: str | None = None


class Nested(Record):
    """Holds more than plain values."""

    subject: str = "S-1"
    memo: str | None = None
    lines: dict[str, int]


class Unbounded(Record):
    """Takes numbers that lose their digits."""

    subject: Annotated[int, Field(ge=2**60)] = 2**60
    memo: str | None = None


class Unmakeable(Record):
    """No value that anybody could make up fits."""

    subject: Annotated[str, Field(min_length=50, max_length=49)]


def moody() -> Callable[[TaskView], Step]:
    """Answer differently every time."""
    asked: list[TaskView] = []

    def next_step(view: TaskView) -> Step:
        asked.append(view)
        return Finish(stage="closed", status=Status.COMPLETED, outcome=f"answer {len(asked)}")

    return next_step


def failing(_view: TaskView) -> Step:
    """Fail."""
    raise InvalidRequest("the rules do not know what to do")


def unexecutable(view: TaskView) -> Step:
    """Ask people about an action that is not in its normal form."""
    action = PARCEL.normalise(view.request.model_dump())
    short = action.model_copy(update={"arguments": {"subject": "S-1"}})
    return RequestApproval(stage="step_2", action=short, rule=a_rule(), wait=a_ladder())


def of_another_action(workflow: Workflow) -> Workflow:
    """Use one action's approval for another."""

    def next_step(view: TaskView) -> Step:
        parcel = PARCEL.normalise(view.request.model_dump())
        approval = view.approval_of(parcel)
        if approval is None:
            return RequestApproval(stage="step_2", action=parcel, rule=a_rule(), wait=a_ladder())
        hold = HOLD.normalise(view.request.model_dump())
        return PerformAction(stage="step_2", action=hold, approval=approval)

    return replace(workflow, next_step=next_step)


IRREVERSIBLE = replace(PARCEL, effect=EffectClass.IRREVERSIBLE_WRITE)
BROKEN: list[tuple[Check, str, Workflow]] = [
    (contract.stages_can_be_reached, "island cannot be reached", stages(island=Stage(next=frozenset({"closed"})))),
    (contract.stages_can_be_reached, "nowhere is named", stages(step_1=Stage(next=frozenset({"nowhere"})))),
    (contract.stages_can_be_reached, "lobby is named", replace(SOUND, first_stage="lobby")),
    (
        contract.stages_lead_to_an_end,
        "loop leads to no end",
        stages(step_1=Stage(next=frozenset({"loop", "closed"})), loop=Stage(next=frozenset({"loop"}))),
    ),
    (
        contract.stages_lead_to_an_end,
        "closed leads nowhere",
        stages(closed=Stage(next=frozenset(), tools=("send_parcel",))),
    ),
    (contract.stages_instruct_the_model, "step_2 offers tools and has no prompt", replace(SOUND, prompts={})),
    (contract.stages_instruct_the_model, "has no prompt", replace(SOUND, prompts={"errand": "  \n"})),
    (contract.stages_instruct_the_model, "prompt extra", replace(SOUND, prompts={**SOUND.prompts, "extra": "x"})),
    (
        contract.stages_instruct_the_model,
        "offers fly, which does not exist",
        stages(step_1=Stage(next=frozenset({"closed"}), tools=("fly",), prompt="errand")),
    ),
    (
        contract.tools_are_safe_to_retry,
        "without a key",
        tool(effect=EffectClass.REVERSIBLE_WRITE, can_look_up=False, no_undo_because=None),
    ),
    (
        contract.tools_are_safe_to_retry,
        "without a key",
        tool(effect=EffectClass.IRREVERSIBLE_WRITE, can_look_up=False, no_undo_because=" "),
    ),
    (contract.tools_are_safe_to_retry, "no repeat fits into", tool(key_window=timedelta(seconds=30))),
    (contract.tools_can_be_undone_or_say_why_not, "no undo and no reason", tool(no_undo_because=None)),
    (contract.tools_can_be_undone_or_say_why_not, "undone by fly", tool(undo="fly", undo_arguments=lambda *_: {})),
    (contract.tools_can_be_undone_or_say_why_not, "gets no arguments", tool(undo="drop_hold")),
    (
        contract.tools_can_be_undone_or_say_why_not,
        "undoes nothing",
        replace(
            tool(undo="drop_hold", undo_arguments=lambda *_: {}),
            tools={
                "send_parcel": replace(PARCEL, undo="look", undo_arguments=lambda *_: {}),
                "look": a_tool("look", effect=EffectClass.READ),
            },
        ),
    ),
    (contract.tools_are_named_once, "is called send_parcel", replace(SOUND, tools={"other": PARCEL})),
    (contract.tools_are_named_once, "noted by two", tool(fact=HOLD.fact)),
    (contract.tools_are_named_once, "is no name", tool(fact="Parcel sent!")),
    (contract.tools_are_named_once, "kept for fly", tool(kept_for=("fly",))),
    (contract.models_round_trip, "takes fields", replace(SOUND, request=Open)),
    (contract.models_round_trip, "no plain value", replace(SOUND, request=Nested)),
    (contract.models_round_trip, "does not take back", tool(arguments=Unbounded)),
    (contract.models_round_trip, "no values", tool(arguments=Unmakeable)),
    (contract.attributes_are_as_declared, "attribute amount", replace(SOUND, attribute_types={"amount": int})),
    (
        contract.attributes_are_as_declared,
        "attribute amount is True",
        replace(SOUND, attribute_types={"amount": int}, attributes=lambda _: {"amount": True}),
    ),
    (
        contract.rules_take_lawful_steps,
        "which the table does not permit",
        stages(opened=Stage(next=frozenset({"closed"}))),
    ),
    (contract.rules_take_lawful_steps, "the rules failed", always(failing)),
    (
        contract.rules_take_lawful_steps,
        "offered nothing",
        always(lambda _: AskModel(stage="opened", record={"subject": "S-1", "memo": None})),
    ),
    (
        contract.rules_take_lawful_steps,
        "ready is no end",
        always(lambda _: Finish(stage="closed", status=Status.READY, outcome="?")),
    ),
    (
        contract.rules_take_lawful_steps,
        "does not end as completed",
        always(lambda _: Compensate(stage="closed", status=Status.COMPLETED, outcome="?")),
    ),
    (contract.rules_take_lawful_steps, "engine's step", always(lambda _: ContinueCompensation())),
    (contract.rules_take_lawful_steps, "not its normal one", always(unexecutable)),
    (contract.rules_take_lawful_steps, "does not exist", replace(SOUND, tools={"drop_hold": an_undo("drop_hold")})),
    (contract.rules_answer_alike, "answered differently", always(moody())),
    (contract.waits_end_in_time, "longer than the whole task", replace(SOUND, task_deadline=timedelta(days=6))),
    (
        contract.waits_end_in_time,
        "runs out before its wait",
        an_errand(Do(tool=PARCEL, rule=a_rule(valid_for=timedelta(days=6)))),
    ),
    (contract.waits_end_in_time, "signed takes no answer", replace(SOUND, answers={})),
    (contract.waits_end_in_time, "nobody may answer agreed", replace(SOUND, input_roles={})),
    (contract.children_can_be_started, "nowhere is no workflow", delegating(to="nowhere")),
    (contract.children_can_be_started, "without end", delegating(to="errand")),
    (contract.children_can_be_started, "not declared", replace(delegating(to="refund"), children={})),
    (contract.children_can_be_started, "a form that is not its own", delegating(to="refund")),
    (contract.children_can_be_started, "no time to end in", delegating(to="refund", seconds=3_600)),
    (
        contract.what_cannot_be_undone_is_approved,
        "without an approval",
        replace(always(performed), tools={**SOUND.tools, "send_parcel": IRREVERSIBLE}),
    ),
    (contract.what_cannot_be_undone_is_approved, "the approval of another action", of_another_action(SOUND)),
    (contract.approved_actions_rest_on_fresh_facts, "could grow old", tool(fresh_for=timedelta(minutes=1))),
    (contract.approved_actions_rest_on_fresh_facts, "could grow old", tool(material=("weight",))),
    (contract.approved_actions_rest_on_fresh_facts, "rests on something", tool(rests_on=("book_hold",))),
    (contract.approved_actions_rest_on_fresh_facts, "rests on something", tool(rests_on=("gone",))),
    (
        contract.approved_actions_rest_on_fresh_facts,
        "send_parcel would be asked for on what look told long ago",
        an_errand(
            Do(tool=replace(a_tool("look", effect=EffectClass.READ), fresh_for=timedelta(minutes=1))),
            Do(tool=replace(PARCEL, rests_on=("look",)), rule=a_rule()),
        ),
    ),
]


@pytest.mark.parametrize(("check", "fault", "workflow"), BROKEN, ids=[f"{c.__name__}: {f}" for c, f, _ in BROKEN])
def test_a_broken_workflow_is_told_what_is_wrong_with_it(check: Check, fault: str, workflow: Workflow) -> None:
    """Each check of the contract refuses what it is there to refuse, and says so in words."""
    faults = check(workflow)

    assert any(fault in each for each in faults), faults


def test_every_check_is_shown_to_refuse_something() -> None:
    """No check is in the contract that has never said no."""
    assert {check for check, _, _ in BROKEN} == set(CHECKS)


def test_a_wait_has_its_deadline_and_owner_by_construction() -> None:
    """A ladder without an end, or a rung without somebody to go to, cannot be written down at all."""
    with pytest.raises(ValueError, match=r".+"):
        a_ladder().model_copy().model_validate({"ladder": []})
    with pytest.raises(TypeError):
        AwaitInput(stage="step_1", name="agreed", role="clerk")  # type: ignore[call-arg]


def test_examples_are_valid_and_differ() -> None:
    """The values that checks are made with are the models' own, smallest and largest."""

    class Sample(Record):
        count: Annotated[int, Field(ge=3, le=9)]
        word: Annotated[str, Field(pattern=r"^[a-z]{2,4}$")]
        flag: bool
        note: str | None = None

    values = examples(Sample)

    assert {value["count"] for value in values} == {3, 9}
    assert {value["flag"] for value in values} == {True, False}
    assert None in {value["note"] for value in values}
