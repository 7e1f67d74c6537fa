"""Cancellation: how far a request to stop reaches, and what it changes at once.

A request to stop promises that nothing new is begun. It never promises that nothing has happened: what is in flight is
found out first, and what cannot be undone is named where the task ends (B17).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from shared.domain.action import Action
from shared.domain.change import (
    Change,
    Ground,
    begin,
    move_to,
    set_execution,
    settle_waits,
    void_approvals,
    void_consumed,
    withdraw,
)
from shared.domain.checkpoint import CancelRequest, CancelScope, Checkpoint
from shared.domain.directive import unsettled_action
from shared.domain.errors import NoChildTasks, NothingToCancel
from shared.domain.status import Status
from shared.domain.steps import plan, take
from shared.domain.wait import WaitKind, WaitStatus
from shared.domain.workflow import AskModel, Review


def is_covered(task: Checkpoint, scope: CancelScope) -> bool:
    """Whether a request that reaches at least as far stands in the record already."""
    under_way = task.execution.cancel
    return under_way is not None and under_way.scope in {CancelScope.TASK, scope}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A request to stop, before the task that it is about.

    `unsent` says that by the ledger the task's open action has not left and no attempt is at work on it. It is then
    taken back in the same commit, which fails if somebody claims it meanwhile.
    """

    task: Checkpoint
    request: CancelRequest
    ground: Ground
    unsent: bool

    @property
    def by(self) -> str:
        """Who asks."""
        return self.request.principal.subject

    @property
    def action(self) -> Action | None:
        """The action whose outcome the record does not know yet."""
        return unsettled_action(self.task)


def canceled(stop: Stop) -> Change:
    """Make the change that a request to stop means for a live task.

    Raises:
        NothingToCancel: what is to be stopped is not under way.
        NoChildTasks: the task has none.
    """
    return _CHANGES[stop.request.scope](stop)


def _whole(stop: Stop) -> Change:
    task = stop.task
    change = begin(task, because=f"cancellation requested by {stop.by}", ground=stop.ground)
    change = move_to(change, status=Status.CANCEL_REQUESTED, stage=task.business.stage, ground=stop.ground)
    # A child that was told to stop has to say first what it came to.
    change = void_approvals(settle_waits(change, WaitStatus.VOID, but=WaitKind.CHILD))
    # An undo serves to end the task: stopping the task does not stop it.
    if stop.unsent and stop.action is not None and stop.action.undoes is None:
        change = _taken_back(change, stop.action)
    # Whoever cancels has looked: nobody else has to look first.
    return set_execution(change, cancel=stop.request, hold=None)


def _tool_call(stop: Stop) -> Change:
    task, action = stop.task, stop.action
    if action is None or task.execution.waits:
        msg = f"no tool call is under way; the task is {task.business.status}"
        raise NothingToCancel(msg)
    if action.undoes is not None:
        msg = "the call under way undoes an effect and serves to end the task"
        raise NothingToCancel(msg)
    said = f"the call of {action.spec.tool} was canceled by {stop.by}"
    change = begin(task, because=said, ground=stop.ground)
    if stop.unsent:
        review = Review(stage=task.business.stage, reason=f"{said} before it was sent")
        return take(review, _taken_back(change, action), stop.ground)
    change = move_to(change, status=Status.CANCEL_REQUESTED, stage=task.business.stage, ground=stop.ground)
    return set_execution(change, cancel=stop.request)


def _model_turn(stop: Stop) -> Change:
    """Discard the model's answer before it comes: it was asked about a version that is no longer the current one."""
    task = stop.task
    said = f"the model turn was canceled by {stop.by}"
    change = begin(task, because=said, ground=stop.ground)
    elsewhere = task.execution.waits or stop.action or task.business.status is not Status.READY
    if elsewhere or not isinstance(plan(change, stop.ground), AskModel):
        msg = f"no model turn is due or under way; the task is {task.business.status}"
        raise NothingToCancel(msg)
    # Only a model turn could take the task on, and that is what was stopped.
    return take(Review(stage=task.business.stage, reason=said), change, stop.ground)


def _child_tasks(stop: Stop) -> Change:
    """Note who stopped the children; each has the request in its own record, and says itself what it came to."""
    task = stop.task
    if not task.live_children:
        msg = "the task has no child task under way"
        raise NoChildTasks(msg)
    change = begin(task, because=f"cancellation of its child tasks requested by {stop.by}", ground=stop.ground)
    return move_to(change, status=task.business.status, stage=task.business.stage, ground=stop.ground)


def _taken_back(change: Change, action: Action) -> Change:
    return void_consumed(withdraw(change, action), action)


_CHANGES: Final[Mapping[CancelScope, Callable[[Stop], Change]]] = MappingProxyType(
    {
        CancelScope.TASK: _whole,
        CancelScope.TOOL_CALL: _tool_call,
        CancelScope.MODEL_TURN: _model_turn,
        CancelScope.CHILD_TASKS: _child_tasks,
    }
)
