"""A workflow made to order: a list of things to do, one after the other, each decided by code or proposed by the model.

It exists to bring the engine into situations that no single product workflow is in: every effect class, downstreams
that can do little, undos, waits in the middle, approvals of several people.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Final, TypeAlias

from pydantic import Field

from shared.domain.action import Action, Arguments, EffectClass
from shared.domain.approval import ApprovalRule
from shared.domain.proposal import Proposal
from shared.domain.records import Record
from shared.domain.status import Status
from shared.domain.wait import OnDeadline, Rung, WaitRule
from shared.domain.workflow import (
    AskModel,
    AwaitEvent,
    AwaitInput,
    Child,
    Compensate,
    Finish,
    PerformAction,
    RequestApproval,
    Review,
    Stage,
    StartChild,
    Step,
    TaskView,
    Tool,
    UndoApproval,
    Workflow,
)
from tests.fakes.calls import Calls
from tests.fakes.downstream import Downstream
from tests.fakes.story import Story

DAY_SECONDS: Final = 86_400


class ErrandRequest(Record):
    """What is asked for. A memo may be left out: a field without a value has to survive storage too."""

    subject: Annotated[str, Field(max_length=100)] = "S-1"
    memo: Annotated[str, Field(max_length=100)] | None = None


class ErrandArguments(Record):
    """What every tool of an errand is told."""

    subject: Annotated[str, Field(max_length=100)]
    memo: Annotated[str, Field(max_length=100)] | None = None


class ErrandAnswer(Record):
    """What is answered to every wait of an errand."""

    agreed: bool


class UndoArguments(Record):
    """What an undo needs to know."""

    reference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Do:
    """Perform a tool; with an approval where a rule is given, and on the model's proposal where it says so."""

    tool: Tool
    rule: ApprovalRule | None = None
    proposed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitFor:
    """Wait for an outside event or a person's answer."""

    name: str
    ladder: WaitRule
    person: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegate:
    """Start a task of another errand and wait for it. Where it does not complete, undo and fail, or go on without."""

    to: str
    ladder: WaitRule
    name: str = "delegated"
    needed: bool = True


Thing: TypeAlias = Do | WaitFor | Delegate


def a_tool(
    name: str = "send_parcel",
    *,
    effect: EffectClass = EffectClass.KEYED_WRITE,
    can_look_up: bool = True,
    key_window: timedelta | None = None,
    undo: str | None = None,
    undo_approval: UndoApproval | None = None,
    no_undo_because: str | None = "what is sent is sent",
) -> Tool:
    """Make a tool."""
    return Tool(
        name=name,
        description=f"Do {name}.",
        arguments=ErrandArguments,
        effect=effect,
        fact=f"{name}_done",
        can_look_up=can_look_up,
        key_window=key_window,
        undo=undo,
        undo_arguments=_by_reference if undo else None,
        undo_approval=undo_approval,
        no_undo_because=None if undo else no_undo_because,
    )


def an_undo(name: str, *, effect: EffectClass = EffectClass.KEYED_WRITE, can_look_up: bool = True) -> Tool:
    """Make a tool that undoes another by its reference."""
    return Tool(
        name=name,
        description=f"Do {name}.",
        arguments=UndoArguments,
        effect=effect,
        fact=f"{name}_done",
        can_look_up=can_look_up,
        no_undo_because="an undo stays undone",
    )


def a_rule(*, role: str = "refund_approver", quorum: int = 1, valid_for: timedelta = timedelta(days=7)) -> ApprovalRule:
    """Make a rule for an approval."""
    return ApprovalRule(
        role=role, quorum=quorum, valid_for_seconds=int(valid_for.total_seconds()), because="somebody has to look"
    )


def a_ladder(*, days: int = 7, end: OnDeadline = OnDeadline.EXPIRE) -> WaitRule:
    """Make a wait with nothing but an end."""
    return WaitRule(ladder=(Rung(after_seconds=days * DAY_SECONDS, do=end, to="operator"),))


def an_errand(
    *things: Thing,
    undos: Sequence[Tool] = (),
    name: str = "errand",
    version: int = 1,
    task_deadline: timedelta = timedelta(days=30),
    policies: str = "// everybody may",
) -> Workflow:
    """Make the workflow that does these things in this order."""
    tools = {thing.tool.name: thing.tool for thing in things if isinstance(thing, Do)}
    tools |= {tool.name: tool for tool in undos}
    return Workflow(
        name=name,
        version=version,
        title="Errand",
        request=ErrandRequest,
        stages=_stages(things),
        first_stage="opened",
        tools=tools,
        prompts={"errand": "Propose what the task card says."},
        policies=policies,
        task_deadline=task_deadline,
        next_step=_next_step(things),
        judge=_judge(tools),
        answers={thing.name: ErrandAnswer for thing in things if isinstance(thing, WaitFor)},
        children={
            thing.name: Child(workflow=thing.to, result=ErrandAnswer) for thing in things if isinstance(thing, Delegate)
        },
        input_roles={thing.name: "clerk" for thing in things if isinstance(thing, WaitFor) and thing.person},
    )


def run_errand(
    *things: Thing,
    undos: Sequence[Tool] = (),
    downstreams: Mapping[str, Downstream] | None = None,
    calls: Calls | None = None,
    request: Mapping[str, object] | None = None,
    others: Sequence[Workflow] = (),
    task_deadline: timedelta = timedelta(days=30),
    workflow: Callable[[Workflow], Workflow] = lambda workflow: workflow,
) -> Story:
    """Start an errand, with a downstream that honours keys behind every tool that is given no other, and let it run.

    `workflow` may turn the errand into something that no sane team would write. `others` are what it may delegate to.
    """
    made = workflow(an_errand(*things, undos=undos, task_deadline=task_deadline))
    tools = [name for each in (made, *others) for name in each.tools]
    outside = {name: Downstream() for name in tools} | dict(downstreams or {})
    story = Story(made, *others, calls=calls, downstreams=outside)
    story.start(workflow=made.name, request=request or {})
    return story


def _by_reference(_action: Action, reference: str | None) -> Arguments:
    return {"reference": reference}


def _stages(things: Sequence[Thing]) -> dict[str, Stage]:
    names = [f"step_{number}" for number, _ in enumerate(things, start=1)]
    anywhere = frozenset({*names, "closed"})
    asked = {name: (thing.tool.name,) for name, thing in zip(names, things, strict=True) if isinstance(thing, Do)}
    steps = {name: Stage(next=anywhere - {name}, tools=asked.get(name, ()), prompt="errand") for name in names}
    return {"opened": Stage(next=anywhere), **steps, "closed": Stage(next=frozenset())}


def _next_step(things: Sequence[Thing]) -> Callable[[TaskView], Step]:
    def next_step(view: TaskView) -> Step:
        for number, thing in enumerate(things, start=1):
            stage = f"step_{number}"
            step = _STEPS[type(thing)](thing, stage, view)
            if step is not None:
                return step
        return Finish(stage="closed", status=Status.COMPLETED, outcome="everything is done", result={"agreed": True})

    return next_step


def _do(thing: Do, stage: str, view: TaskView) -> Step | None:
    tool = thing.tool
    if view.happened(tool.fact):
        return None
    action = tool.normalise(view.request.model_dump())
    if view.refused(tool.fact):
        return Compensate(stage="closed", status=Status.FAILED, outcome=f"{tool.name} was refused")
    approval = view.approval_of(action)
    if thing.rule is not None and approval is None:
        if view.rejected(action):
            return Compensate(stage="closed", status=Status.FAILED, outcome=f"{tool.name} was not approved")
        return RequestApproval(stage=stage, action=action, rule=thing.rule, wait=a_ladder())
    if thing.proposed:
        return AskModel(stage=stage, record=action.arguments)
    return PerformAction(stage=stage, action=action, approval=approval)


def _wait_for(thing: WaitFor, stage: str, view: TaskView) -> Step | None:
    if view.happened(thing.name):
        return None
    if thing.person:
        return AwaitInput(stage=stage, name=thing.name, role="clerk", wait=thing.ladder)
    return AwaitEvent(
        stage=stage, name=thing.name, correlation_id=f"{thing.name}-R-88", sources=("partner",), wait=thing.ladder
    )


def _delegate(thing: Delegate, stage: str, view: TaskView) -> Step | None:
    fact = view.fact(thing.name)
    if fact is None and view.happened(f"{thing.name}_expired"):
        return None
    if fact is None:
        record = view.request.model_dump()
        return StartChild(stage=stage, name=thing.name, request=record, wait=thing.ladder)
    if thing.needed and not fact.happened:
        return Compensate(stage="closed", status=Status.FAILED, outcome=f"{thing.name} did not complete")
    return None


_STEPS: Final[Mapping[type, Callable[[Any, str, TaskView], Step | None]]] = {
    Do: _do,
    WaitFor: _wait_for,
    Delegate: _delegate,
}


def _judge(tools: dict[str, Tool]) -> Callable[[TaskView, Proposal], Step]:
    def judge(view: TaskView, proposal: Proposal) -> Step:
        tool = tools[proposal.tool]
        record = tool.normalise(view.request.model_dump())
        if tool.normalise(proposal.input) != record:
            return Review(stage=view.stage, reason="blocked: that is not what was asked for")
        return PerformAction(stage=view.stage, action=record, approval=view.approval_of(record))

    return judge
