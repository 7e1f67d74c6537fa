"""Walking a workflow's rules: every answer that people, models and providers could give, to some depth.

Nothing is executed. The rules are pure, so the walk asks them what a task needs now, supposes each way in which that
may turn out, and asks again.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from shared.domain.action import ActionSpec
from shared.domain.approval import Approval, ApprovalRule, ApprovalStatus, Basis
from shared.domain.checkpoint import Fact
from shared.domain.errors import EngineError
from shared.domain.proposal import Proposal
from shared.domain.wait import WaitRule
from shared.domain.workflow import (
    AskModel,
    AwaitEvent,
    AwaitInput,
    PerformAction,
    RequestApproval,
    StartChild,
    Step,
    TaskView,
    Workflow,
)
from tests.fakes.clock import NOON
from tests.unit.workflows.samples import examples, facts_of, requests_of

# Enough for every workflow so far to end on all of its ways; a longer walk only repeats itself.
PLACES_MAX: Final = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """A step that the rules asked for, where they did, and what it leads to."""

    view: TaskView
    step: Step


def steps_of(workflow: Workflow) -> Iterator[Met]:
    """Every step that is met on a walk from each request.

    Raises:
        EngineError: the rules themselves failed somewhere.
    """
    for request in requests_of(workflow):
        start = TaskView(
            request=workflow.request.model_validate(request, strict=False),
            request_version=1,
            stage=workflow.first_stage,
            facts=(),
            approvals=(),
            now=NOON,
        )
        yield from _walk(workflow, start)


def _walk(workflow: Workflow, start: TaskView) -> Iterator[Met]:
    places, seen = [start], 0
    while places and seen < PLACES_MAX:
        view = places.pop(0)
        seen += 1
        step = workflow.next_step(view)
        yield Met(view=view, step=step)
        for proposed in _judged(workflow, view, step):
            yield Met(view=replace(view, stage=step.stage), step=proposed)  # type: ignore[union-attr]
            places += _turns(workflow, replace(view, stage=step.stage), proposed)  # type: ignore[union-attr]
        places += _turns(workflow, view, step)


def _judged(workflow: Workflow, view: TaskView, step: Step) -> list[Step]:
    if not isinstance(step, AskModel):
        return []
    there = replace(view, stage=step.stage)
    judged = []
    for tool in workflow.stages[step.stage].tools:
        for arguments in (dict(step.record), *examples(workflow.tools[tool].arguments)):
            try:
                judged.append(workflow.judge(there, Proposal(tool=tool, input=arguments)))  # type: ignore[arg-type]
            except EngineError:
                # Unusable arguments are refused; that is no step.
                continue
    return judged


def _turns(workflow: Workflow, view: TaskView, step: Step) -> list[TaskView]:
    """The places that a step may lead to."""
    match step:
        case RequestApproval():
            there = replace(view, stage=step.stage)
            ends = (ApprovalStatus.GRANTED, ApprovalStatus.REJECTED, ApprovalStatus.EXPIRED)
            return [_with(there, _approval(there, step.action, step.rule, status)) for status in ends]
        case AwaitEvent() | AwaitInput():
            there = replace(view, stage=step.stage)
            answers = [Fact(name=step.name, happened=True, values=v) for v in _answers(workflow, step.name)]
            silence = Fact(name=f"{step.name}_expired"[:40], happened=True)
            return [replace(there, facts=(*there.facts, fact)) for fact in (*answers, silence)]
        case StartChild():
            there = replace(view, stage=step.stage)
            silence = Fact(name=f"{step.name}_expired"[:40], happened=True)
            return [
                replace(there, facts=(*there.facts, fact)) for fact in (*_ends_of_child(workflow, there, step), silence)
            ]
        case PerformAction():
            return _performed(workflow, replace(view, stage=step.stage), step)
        case _:
            return []


def _answers(workflow: Workflow, name: str) -> list[dict[str, str | int | bool | None]]:
    return examples(workflow.answers[name]) if name in workflow.answers else []


def _ends_of_child(workflow: Workflow, view: TaskView, step: StartChild) -> list[Fact]:
    ordinal = 1 + sum(fact.ordinal is not None for fact in view.facts)
    completed = [
        Fact(name=step.name, happened=True, ordinal=ordinal, settled_at=view.now, reference="tsk_1", values=values)
        for values in (examples(workflow.children[step.name].result) if step.name in workflow.children else [])
    ]
    return [*completed, Fact(name=step.name, happened=False, ordinal=ordinal, settled_at=view.now, reference="tsk_1")]


def _performed(workflow: Workflow, view: TaskView, step: PerformAction) -> list[TaskView]:
    tool = workflow.tools.get(step.action.tool)
    if tool is None:
        return []
    ordinal = 1 + sum(fact.ordinal is not None for fact in view.facts)
    used = tuple(
        a.consumed(ordinal) if step.approval is not None and a.approval_id == step.approval.approval_id else a
        for a in view.approvals
    )
    told = facts_of(workflow, tool.name, step.action.arguments)
    done = [
        Fact(name=tool.fact, happened=True, ordinal=ordinal, settled_at=view.now, reference="R-1", values=values)
        for values in told
    ]
    failed = Fact(name=tool.fact, happened=False, ordinal=ordinal, settled_at=view.now)
    return [replace(view, facts=(*view.facts, fact), approvals=used) for fact in (*done, failed)]


def _with(view: TaskView, approval: Approval) -> TaskView:
    return replace(view, approvals=(*view.approvals, approval))


def _approval(view: TaskView, spec: ActionSpec, rule: ApprovalRule, status: ApprovalStatus) -> Approval:
    return Approval(
        approval_id=f"apr_{len(view.approvals)}",
        spec=spec,
        basis=Basis(request_version=view.request_version, evidence="e", policy="p", catalogue="c"),
        digest="d",
        rule=rule,
        requested_at=view.now,
        expires_at=view.now + timedelta(seconds=rule.valid_for_seconds),
        status=status,
    )


def ladder_of(step: Step) -> WaitRule | None:
    """The ladder of a step that waits."""
    return step.wait if isinstance(step, RequestApproval | AwaitEvent | AwaitInput | StartChild) else None
