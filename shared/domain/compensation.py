"""Compensation (saga): which effect is undone next, and what cannot be undone.

An undo is a new authorised action with its own key; nothing here assumes that the world rolls back.
"""

from dataclasses import dataclass

from shared.domain.action import SETTLED, Action, ActionSpec, ActionStatus, EffectClass
from shared.domain.approval import Approval, ApprovalStatus
from shared.domain.checkpoint import Checkpoint
from shared.domain.errors import InvalidRequest
from shared.domain.workflow import Workflow


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """An effect that stands, and the action that would undo it."""

    action: Action
    undo: ActionSpec
    # The live approval of exactly this undo, where there is one.
    approval: Approval | None = None


def standing_effects(task: Checkpoint) -> tuple[Action, ...]:
    """The effects that happened and are not undone, newest first."""
    undone = {a.undoes for a in task.execution.actions if a.undoes and a.status is ActionStatus.DONE}
    return tuple(
        a
        for a in reversed(task.execution.actions)
        if a.status is ActionStatus.DONE
        and a.effect is not EffectClass.READ
        and a.undoes is None
        and a.operation not in undone
    )


def next_undo(task: Checkpoint, workflow: Workflow) -> Undo | None:
    """The newest standing effect whose undo has not been tried yet."""
    tried = {a.undoes for a in task.execution.actions if a.undoes}
    for action in standing_effects(task):
        undo = _undo_of(action, task, workflow)
        if undo is None or action.operation in tried or _kept_for(action, task, workflow):
            continue
        asked = _asked(task, undo)
        granted = next((a for a in asked if a.status is ApprovalStatus.GRANTED), None)
        if granted is not None or not asked:
            return Undo(action=action, undo=undo, approval=granted)
    return None


def not_undone(task: Checkpoint, workflow: Workflow) -> tuple[str, ...]:
    """Say of every effect that still stands why it does, in words for a person; those of child tasks are among them."""
    effects = tuple(f"{action.operation} ({_why(action, task, workflow)})" for action in standing_effects(task))
    live = tuple(f"task {child.task_id} ({child.name} is still under way)" for child in task.live_children)
    return (*effects, *live, *(child.stands for child in task.execution.children if child.stands))


def _why(action: Action, task: Checkpoint, workflow: Workflow) -> str:
    attempt = next((a for a in reversed(task.execution.actions) if a.undoes == action.operation), None)
    if attempt is not None:
        return f"undo {attempt.status}" if attempt.status in SETTLED else "nobody knows whether its undo happened"
    undo = _undo_of(action, task, workflow)
    if undo is None:
        return workflow.tools[action.spec.tool].no_undo_because or "no undo could be made"
    if _asked(task, undo):
        return "its undo was not approved"
    rests = _kept_for(action, task, workflow)
    return f"kept while {rests} stands" if rests else "not undone yet"


def _kept_for(action: Action, task: Checkpoint, workflow: Workflow) -> str | None:
    """The tool of an effect that still stands and rests on this one, if any."""
    standing = [a.spec.tool for a in standing_effects(task)]
    return next((tool for tool in workflow.tools[action.spec.tool].kept_for if tool in standing), None)


def _asked(task: Checkpoint, undo: ActionSpec) -> list[Approval]:
    """The approvals of an undo that people were asked for; a void one covers nothing, so it has to be asked again."""
    return [a for a in task.security.approvals if a.spec == undo and a.status is not ApprovalStatus.VOID]


def _undo_of(action: Action, task: Checkpoint, workflow: Workflow) -> ActionSpec | None:
    tool = workflow.tools[action.spec.tool]
    if tool.undo is None or tool.undo_arguments is None:
        return None
    fact = next((f for f in task.business.facts if f.ordinal == action.ordinal), None)
    reference = fact.reference if fact else None
    try:
        return workflow.tools[tool.undo].normalise(tool.undo_arguments(action, reference))
    except InvalidRequest:
        # What the undo needs to know was never said; a person has to find it out.
        return None
