"""Answer an input wait: a person's typed answer to one question, bound to the version they saw."""

from dataclasses import dataclass

from shared.domain.action import Arguments
from shared.domain.answer import answered, read_answer
from shared.domain.authority import Operation, Principal, Question
from shared.domain.checkpoint import Checkpoint
from shared.domain.dispatch import resource_of
from shared.domain.errors import DecisionClosed, NotAuthorised, StaleApproval, TaskNotFound
from shared.domain.wait import WaitKind
from shared.usecases.engine import ApiDeps
from shared.usecases.fresh import decide_on_fresh
from shared.usecases.permission import load_permitted
from shared.usecases.stored_task import commit_change
from shared.usecases.summary import TaskSummary, summarise


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerInput:
    """An answer. Who answers is the authenticated principal."""

    principal: Principal
    task_id: str
    wait_id: str
    request_version: int
    answer: Arguments


def answer_input(command: AnswerInput, deps: ApiDeps) -> TaskSummary:
    """Record an answer and move the task on. The same answer again answers with the current state (B78).

    Raises:
        TaskNotFound: no such task for this principal, or it never had such a wait.
        NotAuthorised: the principal has not the role that the question is for.
        InvalidRequest: the answer has not the form that the question asks for; nothing was changed.
        StaleApproval: the answer is for another version of the request.
        DecisionClosed: the question is answered, void, or its time is over.

    If killed here:
        The answer, the settled wait and the machine's wake-up are stored together or not at all.
    """
    return decide_on_fresh(lambda: _answer(command, deps))


def _answer(command: AnswerInput, deps: ApiDeps) -> TaskSummary:
    loaded = load_permitted(command.principal, command.task_id, Operation.READ, tasks=deps.tasks, rights=deps.rights)
    task = loaded.task
    wait = task.wait(command.wait_id)
    if wait is None:
        if _was_given(command, task, deps):
            return summarise(task)
        msg = f"nobody waits for this answer; the task is {task.business.status}"
        raise DecisionClosed(msg)
    if wait.kind is not WaitKind.INPUT:
        msg = "no such question"
        raise TaskNotFound(msg)
    _require_right(command.principal, task, wait.name, deps)
    if command.request_version != task.business.request_version:
        msg = f"the answer is for version {command.request_version}, the request is {task.business.request_version}"
        raise StaleApproval(msg)
    now = deps.tasks.clock.now()
    if now >= wait.deadline_at:
        msg = "the time to answer is over"
        raise DecisionClosed(msg)
    workflow = deps.tasks.workflows[task.business.workflow]
    values = read_answer(workflow, wait.name, command.answer)
    ground = deps.tasks.ground(workflow, task.stamps)
    change = answered(task, wait, values, by=command.principal.ref.subject, reference=wait.wait_id, ground=ground)
    return summarise(commit_change(change, deps.tasks, previous=loaded).task)


def _was_given(command: AnswerInput, task: Checkpoint, deps: ApiDeps) -> bool:
    """Whether this very answer has ended the question. What was answered is told only to those who may answer."""
    fact = next((f for f in task.business.facts if f.ordinal is None and f.reference == command.wait_id), None)
    workflow = deps.tasks.workflows[task.business.workflow]
    if fact is None or fact.name not in workflow.answers:
        return False
    _require_right(command.principal, task, fact.name, deps)
    return read_answer(workflow, fact.name, command.answer) == fact.values


def _require_right(principal: Principal, task: Checkpoint, name: str, deps: ApiDeps) -> None:
    workflow = deps.tasks.workflows[task.business.workflow]
    role = workflow.input_roles.get(name, "")
    ruling = deps.rights.authoriser.rule(
        Question(
            principal=principal,
            operation=Operation.ANSWER,
            resource=resource_of(task).model_copy(update={"required_role": role, "requester_excluded": False}),
            attributes=workflow.attributes(task.business.request),
        )
    )
    if not ruling.allowed:
        raise NotAuthorised(ruling.reason)
