"""Amend a request: a new request version, and every approval of the old one is void."""

from dataclasses import dataclass

from shared.domain.action import ActionStatus, EffectClass
from shared.domain.authority import Operation, Principal
from shared.domain.change import (
    Change,
    begin,
    count_attempts,
    refer_to,
    restamp,
    set_business,
    set_execution,
    settle_waits,
    stamps_of,
    void_approvals,
    withdraw,
)
from shared.domain.checkpoint import Attempts, Checkpoint
from shared.domain.directive import unsettled_action
from shared.domain.errors import ActionInFlight, StaleApproval, TaskClosed
from shared.domain.status import Status
from shared.domain.steps import plan, take
from shared.domain.wait import WaitStatus
from shared.domain.workflow import Workflow
from shared.usecases.engine import ApiDeps
from shared.usecases.fresh import decide_on_fresh
from shared.usecases.permission import load_permitted, require_on_workflow
from shared.usecases.request_form import RequestForm, read_request
from shared.usecases.start_task import store_untrusted
from shared.usecases.stored_task import commit_change
from shared.usecases.summary import TaskSummary, summarise


@dataclass(frozen=True, slots=True, kw_only=True)
class AmendTask:
    """A whole new request for a task; `request_version` is the one that the caller saw."""

    principal: Principal
    task_id: str
    request: dict[str, object]
    request_version: int


def amend_task(command: AmendTask, deps: ApiDeps) -> TaskSummary:
    """Replace the request and plan the task anew.

    Raises:
        InvalidRequest, RequestTooLarge, TaskNotFound, NotAuthorised: nothing was changed.
        StaleApproval: the caller saw an older version of the request.
        TaskClosed: the task has ended.
        ActionInFlight: an effect of the current request is under way or has happened.

    If killed here:
        The task has the old request with its approvals or the new one without; nothing between.
    """
    return decide_on_fresh(lambda: _amend(command, deps))


def _amend(command: AmendTask, deps: ApiDeps) -> TaskSummary:
    loaded = load_permitted(command.principal, command.task_id, Operation.AMEND, tasks=deps.tasks, rights=deps.rights)
    task = loaded.task
    if task.closed:
        msg = f"the task has ended: {task.business.outcome}"
        raise TaskClosed(msg)
    if command.request_version != task.business.request_version:
        msg = f"you saw version {command.request_version}, the request is now version {task.business.request_version}"
        raise StaleApproval(msg)
    workflow = deps.tasks.workflows[task.business.workflow]
    form = read_request(workflow, command.request)
    # Nobody reaches by amending what they could not have started.
    require_on_workflow(
        command.principal,
        Operation.START,
        workflow,
        rights=deps.rights,
        attributes=workflow.attributes(form.record),
    )
    change = _amended(task, workflow, form, command.principal, deps)
    return summarise(commit_change(change, deps.tasks, previous=loaded).task)


def _amended(task: Checkpoint, workflow: Workflow, form: RequestForm, principal: Principal, deps: ApiDeps) -> Change:
    ground = deps.tasks.ground(workflow, stamps_of(workflow, deps.model_id))
    change = begin(task, because=f"the request was amended by {principal.ref.subject}", ground=ground)
    change = _without_actions(change, task)
    change = void_approvals(settle_waits(change, WaitStatus.VOID))
    # Whoever amends has looked: nobody else has to look first.
    change = set_execution(change, hold=None, children=())
    change = set_business(
        change,
        request=form.record,
        request_version=task.business.request_version + 1,
        stage=workflow.first_stage,
        # What was read or refused for the old request says nothing about the new one; answers that came stay.
        facts=tuple(fact for fact in task.business.facts if fact.ordinal is None),
    )
    evidence = store_untrusted(task.key, form, workflow, deps) or task.references.evidence
    change = restamp(refer_to(change, evidence), ground.stamps)
    change = count_attempts(change, Attempts(turns=task.attempts.turns))
    return take(plan(change, ground), change, ground)


def _without_actions(change: Change, task: Checkpoint) -> Change:
    happened = [
        a
        for a in task.execution.actions
        if a.effect is not EffectClass.READ and a.status is ActionStatus.DONE and a.undoes is None
    ]
    if task.live_children or any(child.stands for child in task.execution.children):
        msg = "a child task of the current request is under way or has done something; cancel child_tasks, or the task"
        raise ActionInFlight(msg)
    if happened or task.business.status in {Status.OUTCOME_UNKNOWN, Status.COMPENSATING, Status.CANCEL_REQUESTED}:
        msg = "an effect of the current request has happened or may have; it can no longer be amended"
        raise ActionInFlight(msg)
    pending = unsettled_action(task)
    # The commit fails if a worker has claimed the intent meanwhile.
    return change if pending is None else withdraw(change, pending)
