"""What every workflow has to keep, so that the engine can run it: each check answers with what is wrong."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from pydantic import BaseModel, TypeAdapter, ValidationError

from shared.domain.action import ACTION_LEASE, EffectClass
from shared.domain.canonical import canonical
from shared.domain.child import HEARD_IN_TIME
from shared.domain.errors import EngineError
from shared.domain.identity import Name
from shared.domain.status import TERMINAL, Status
from shared.domain.workflow import (
    AskModel,
    AwaitChildren,
    AwaitEvent,
    AwaitInput,
    Compensate,
    ContinueCompensation,
    Finish,
    PerformAction,
    RequestApproval,
    StandStill,
    StartChild,
    Tool,
    Workflow,
)
from shared.workflows.registry import discover
from tests.unit.workflows.samples import examples, requests_of
from tests.unit.workflows.walk import Met, ladder_of, steps_of

Check = Callable[[Workflow], list[str]]


def stages_can_be_reached(workflow: Workflow) -> list[str]:
    """Every stage lies on a way from the first one, and no way leads out of the table."""
    unknown = {name for stage in workflow.stages.values() for name in stage.next} - set(workflow.stages)
    if workflow.first_stage not in workflow.stages:
        unknown.add(workflow.first_stage)
    if unknown:
        return [f"stage {name} is named and does not exist" for name in sorted(unknown)]
    reached = _reachable(workflow, workflow.first_stage)
    return [f"stage {name} cannot be reached" for name in sorted(set(workflow.stages) - reached)]


def stages_lead_to_an_end(workflow: Workflow) -> list[str]:
    """From every stage an end can be reached, and in an end there is nothing left to do."""
    ends = {name for name, stage in workflow.stages.items() if not stage.next}
    faults = [f"stage {name} leads nowhere and offers tools" for name in sorted(ends) if workflow.stages[name].tools]
    known = set(workflow.stages)
    stuck = sorted(name for name in known if not _reachable(workflow, name) & ends)
    return faults + [f"stage {name} leads to no end" for name in stuck]


def stages_instruct_the_model(workflow: Workflow) -> list[str]:
    """Where the model is offered tools there is an instruction that says something, and none is left over."""
    faults = []
    for name, stage in workflow.stages.items():
        faults += [
            f"stage {name} offers {tool}, which does not exist" for tool in stage.tools if tool not in workflow.tools
        ]
        if stage.tools and not (stage.prompt and workflow.prompts.get(stage.prompt, "").strip()):
            faults.append(f"stage {name} offers tools and has no prompt")
    used = {stage.prompt for stage in workflow.stages.values()}
    return faults + [f"prompt {name} is used nowhere" for name in workflow.prompts if name not in used]


def tools_are_safe_to_retry(workflow: Workflow) -> list[str]:
    """A writing tool honours a key, can be asked, can be undone, or says why none of it is possible."""
    faults = []
    for tool in workflow.tools.values():
        if tool.effect is EffectClass.READ:
            continue
        keyed = tool.effect is EffectClass.KEYED_WRITE
        if not (keyed or tool.can_look_up or tool.undo or _says_something(tool.no_undo_because)):
            faults.append(f"{tool.name} writes without a key, a look-up, an undo or a reason")
        if tool.key_window is not None and (not keyed or tool.key_window <= 2 * ACTION_LEASE):
            faults.append(f"{tool.name} has a key window that no repeat fits into")
    return faults


def tools_can_be_undone_or_say_why_not(workflow: Workflow) -> list[str]:
    """What was done can be taken back by a tool that exists, or there is a sentence for the person who has to."""
    faults = []
    for tool in workflow.tools.values():
        if tool.undo is None:
            if tool.effect is not EffectClass.READ and not _says_something(tool.no_undo_because):
                faults.append(f"{tool.name} has no undo and no reason")
            continue
        undo = workflow.tools.get(tool.undo)
        if undo is None or tool.undo_arguments is None:
            faults.append(f"{tool.name} is undone by {tool.undo}, which does not exist or gets no arguments")
        elif undo.effect is EffectClass.READ or undo.undo == tool.name:
            faults.append(f"{tool.name} is undone by {tool.undo}, which undoes nothing")
    return faults


def tools_are_named_once(workflow: Workflow) -> list[str]:
    """A tool is found by its own name, and its fact is nobody else's."""
    faults = [f"{key} is called {tool.name}" for key, tool in workflow.tools.items() if key != tool.name]
    facts = [tool.fact for tool in workflow.tools.values()] + list(workflow.answers) + list(workflow.children)
    faults += [f"fact {fact} is noted by two" for fact in sorted(set(facts)) if facts.count(fact) > 1]
    names = [workflow.name, *workflow.tools, *workflow.stages, *facts, *workflow.input_roles.values()]
    faults += [f"{name} is no name" for name in sorted(set(names)) if not _is_name(name)]
    faults += [
        f"{tool.name} is kept for {other}, which does not exist"
        for tool in workflow.tools.values()
        for other in tool.kept_for
        if other not in workflow.tools
    ]
    return faults


def models_round_trip(workflow: Workflow) -> list[str]:
    """Requests, arguments and answers are flat, exact and closed: what is stored is what comes back."""
    faults = []
    for model, values in _models(workflow):
        if model.model_config.get("extra") != "forbid":
            faults.append(f"{model.__name__} takes fields that it does not know")
        if not values:
            faults.append(f"{model.__name__} has no values that could be made up for it")
        for value in values:
            faults += _round_trip(model, value)
    return faults


def attributes_are_as_declared(workflow: Workflow) -> list[str]:
    """Policies get every attribute that is declared, with its type, from every request."""
    faults = []
    for request in requests_of(workflow):
        given = workflow.attributes(request)
        faults += [
            f"attribute {name} is {given.get(name)!r}"
            for name, kind in workflow.attribute_types.items()
            if type(given.get(name)) is not kind
        ]
    return faults


def rules_take_lawful_steps(workflow: Workflow) -> list[str]:
    """Whatever people, models and providers answer, the rules ask for steps that the tables permit."""
    faults = []
    try:
        for met in steps_of(workflow):
            faults += _lawful(workflow, met)
    except EngineError as error:
        faults.append(f"the rules failed: {error.message}")
    return _once(faults)


def rules_answer_alike(workflow: Workflow) -> list[str]:
    """The same view gives the same step: the rules read no clock and throw no dice."""
    return _once(
        f"asked twice in {met.view.stage}, the rules answered differently"
        for met in _steps(workflow)
        if met.view.stage and workflow.next_step(met.view) != workflow.next_step(met.view)
    )


def waits_end_in_time(workflow: Workflow) -> list[str]:
    """Every wait has a deadline within the task's, somebody who owns it, and an answer that can be given until then."""
    faults = []
    for met in _steps(workflow):
        ladder = ladder_of(met.step)
        if ladder is None:
            continue
        until = ladder.deadline_at(met.view.now)
        name = getattr(met.step, "name", "the approval")
        if until > met.view.now + workflow.task_deadline:
            faults.append(f"{name} waits longer than the whole task may last")
        if isinstance(met.step, RequestApproval):
            good_until = met.view.now + timedelta(seconds=met.step.rule.valid_for_seconds)
            if good_until < until:
                faults.append("an approval runs out before its wait does")
        if isinstance(met.step, AwaitEvent | AwaitInput) and met.step.name not in workflow.answers:
            faults.append(f"{name} takes no answer")
        if isinstance(met.step, AwaitInput) and met.step.name not in workflow.input_roles:
            faults.append(f"nobody may answer {name}")
        if isinstance(met.step, AwaitEvent) and not met.step.sources:
            faults.append(f"nobody may report {name}")
    return _once(faults)


def children_can_be_started(workflow: Workflow) -> list[str]:
    """A child is of a known workflow, asked for in its form, heard of in time, and never its own ancestor."""
    workflows = {**discover(), workflow.name: workflow}
    faults = [
        f"{each.workflow} is no workflow" for each in workflow.children.values() if each.workflow not in workflows
    ]
    if workflow.name in _descendants(workflow.name, workflows):
        faults.append("a task of it could start tasks like itself without end")
    for met in _steps(workflow):
        if not isinstance(met.step, StartChild):
            continue
        child = workflow.children.get(met.step.name)
        if child is None:
            faults.append(f"{met.step.name} is started and not declared")
            continue
        if met.step.wait.deadline_at(met.view.now) - met.view.now < 2 * HEARD_IN_TIME:
            faults.append(f"{met.step.name} has no time to end in")
        faults += _asked_for_rightly(workflows.get(child.workflow), met.step)
    return _once(faults)


def _asked_for_rightly(workflow: Workflow | None, step: StartChild) -> list[str]:
    try:
        if workflow is not None:
            workflow.read_request(step.request)
    except EngineError as error:
        return [f"{step.name} is asked for in a form that is not its own: {error.message}"]
    return []


def _descendants(name: str, workflows: Mapping[str, Workflow]) -> set[str]:
    found: set[str] = set()
    frontier = [name]
    while frontier:
        here = workflows.get(frontier.pop())
        fresh = {each.workflow for each in here.children.values()} - found if here else set()
        found |= fresh
        frontier += fresh
    return found


def what_cannot_be_undone_is_approved(workflow: Workflow) -> list[str]:
    """No irreversible tool is performed without an approval of exactly that action."""
    faults = []
    for met in _steps(workflow):
        step = met.step
        if not isinstance(step, PerformAction) or step.action.tool not in workflow.tools:
            continue
        irreversible = workflow.tools[step.action.tool].effect is EffectClass.IRREVERSIBLE_WRITE
        if irreversible and step.approval is None:
            faults.append(f"{step.action.tool} cannot be taken back and is performed without an approval")
        if step.approval is not None and step.approval.spec != step.action:
            faults.append(f"{step.action.tool} is performed with the approval of another action")
    return _once(faults)


def approved_actions_rest_on_fresh_facts(workflow: Workflow) -> list[str]:
    """Approvals rest on readings, and one that has grown old is read again before the action is asked for."""
    faults = []
    for tool in workflow.tools.values():
        readings = [workflow.tools.get(name) for name in tool.rests_on]
        if any(reading is None or reading.effect is not EffectClass.READ for reading in readings):
            faults.append(f"{tool.name} rests on something that is no reading")
        if (tool.material or tool.fresh_for) and tool.effect is not EffectClass.READ:
            faults.append(f"{tool.name} is no reading and tells nothing that could grow old")
    for met in _steps(workflow):
        if not isinstance(met.step, PerformAction) or met.step.approval is None:
            continue
        for name in workflow.tools[met.step.action.tool].rests_on:
            reading = workflow.tools.get(name)
            faults += [] if reading is None else _asked_for_on_old_facts(workflow, met, reading)
    return _once(faults)


def _asked_for_on_old_facts(workflow: Workflow, met: Met, reading: Tool) -> list[str]:
    if reading.fresh_for is None:
        return []
    step = workflow.next_step(replace(met.view, now=met.view.now + reading.fresh_for + timedelta(seconds=1)))
    if not isinstance(step, PerformAction) or reading.name not in workflow.tools[step.action.tool].rests_on:
        return []
    return [f"{step.action.tool} would be asked for on what {reading.name} told long ago"]


CHECKS: Final[tuple[Check, ...]] = (
    stages_can_be_reached,
    stages_lead_to_an_end,
    stages_instruct_the_model,
    tools_are_safe_to_retry,
    tools_can_be_undone_or_say_why_not,
    tools_are_named_once,
    models_round_trip,
    attributes_are_as_declared,
    rules_take_lawful_steps,
    rules_answer_alike,
    waits_end_in_time,
    children_can_be_started,
    what_cannot_be_undone_is_approved,
    approved_actions_rest_on_fresh_facts,
)


def _lawful(workflow: Workflow, met: Met) -> list[str]:
    step, stage = met.step, met.view.stage
    if isinstance(step, ContinueCompensation | AwaitChildren | StandStill):
        return [f"{type(step).__name__} is the engine's step"]
    faults = []
    if step.stage != stage and step.stage not in workflow.stages[stage].next:
        faults.append(f"{type(step).__name__} leads from {stage} to {step.stage}, which the table does not permit")
    if isinstance(step, AskModel) and not (step.stage in workflow.stages and workflow.stages[step.stage].tools):
        faults.append(f"the model is asked in {step.stage} and offered nothing")
    if isinstance(step, Finish | Compensate) and step.status not in TERMINAL:
        faults.append(f"{step.status} is no end")
    if isinstance(step, Compensate) and step.status is Status.COMPLETED:
        faults.append("what is being undone does not end as completed")
    if isinstance(step, RequestApproval | PerformAction):
        faults += _executable(workflow.tools.get(step.action.tool), step)
    return faults


def _executable(tool: Tool | None, step: RequestApproval | PerformAction) -> list[str]:
    """Nobody is asked about, and nothing is begun, that could never run (B73)."""
    if tool is None:
        return [f"{step.action.tool} does not exist"]
    try:
        same = tool.normalise(step.action.arguments) == step.action
    except EngineError as error:
        return [error.message]
    return [] if same else [f"{tool.name} is asked for in a form that is not its normal one"]


def _steps(workflow: Workflow) -> list[Met]:
    try:
        return list(steps_of(workflow))
    except EngineError:
        # `rules_take_lawful_steps` says so.
        return []


def _reachable(workflow: Workflow, start: str) -> set[str]:
    reached, frontier = {start}, [start]
    while frontier:
        stage = workflow.stages.get(frontier.pop())
        fresh = (set(stage.next) if stage else set()) - reached
        reached |= fresh
        frontier += fresh
    return reached


def _models(workflow: Workflow) -> list[tuple[type[BaseModel], list[dict[str, str | int | bool | None]]]]:
    arguments = [(tool.arguments, examples(tool.arguments)) for tool in workflow.tools.values()]
    forms = [*workflow.answers.values(), *(child.result for child in workflow.children.values())]
    answers = [(answer, examples(answer)) for answer in forms]
    return [(workflow.request, requests_of(workflow)), *arguments, *answers]


def _round_trip(model: type[BaseModel], value: Mapping[str, object]) -> list[str]:
    try:
        again = model.model_validate(dict(value), strict=True).model_dump(mode="json")
        canonical(again)
    except (ValidationError, ValueError) as error:
        return [f"{model.__name__} does not take back what it gave: {error}"]
    odd = [name for name, field in again.items() if not isinstance(field, str | int | bool | None)]
    faults = [f"{model.__name__}.{name} is no plain value" for name in odd]
    return faults if again == value else [*faults, f"{model.__name__} comes back as another value"]


def _says_something(reason: str | None) -> bool:
    return bool(reason and reason.strip())


def _is_name(text: str) -> bool:
    try:
        TypeAdapter(Name).validate_python(text)
    except ValidationError:
        return False
    return True


def _once(faults: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(faults))
