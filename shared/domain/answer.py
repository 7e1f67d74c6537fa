"""Answers: what a person, an outside system or a child task says to an open wait, as typed facts."""

from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from shared.domain.action import Arguments
from shared.domain.canonical import digest
from shared.domain.change import Change, Ground, begin, note_fact, settle_waits
from shared.domain.checkpoint import Checkpoint, Fact
from shared.domain.child import note_end
from shared.domain.errors import InvalidRequest
from shared.domain.identity import Name, Reference
from shared.domain.records import Record
from shared.domain.status import Status
from shared.domain.steps import plan, take
from shared.domain.wait import PendingWait, WaitStatus
from shared.domain.workflow import Review, Workflow


class SignedEvent(Record):
    """An event whose signature was verified. Its words are facts only in the typed form that the wait asks for.

    `request_version` is the version of the request that the sender speaks about, when it knows one.
    """

    source: Name
    event_id: Annotated[str, Field(min_length=1, max_length=200)]
    correlation_id: Reference
    request_version: Annotated[int, Field(ge=1)] | None = None
    answer: Arguments

    @property
    def digest(self) -> str:
        """What makes two events say the same, whatever their ids are."""
        return digest("event", {"correlation_id": self.correlation_id, "answer": dict(self.answer)})


def read_answer(workflow: Workflow, name: str, answer: Arguments) -> Arguments:
    """Validate an answer strictly against the form that the workflow gives for the wait of that name.

    Raises:
        InvalidRequest: names the fields that are wrong; nothing was stored.
    """
    return _in_form(workflow.answers.get(name), name, answer)


def _in_form(form: type[BaseModel] | None, name: str, answer: Arguments) -> Arguments:
    if form is None:
        msg = f"{name} takes no answer"
        raise InvalidRequest(msg)
    try:
        return form.model_validate(answer, strict=True).model_dump(mode="json")
    except ValidationError as error:
        faults = [f"answer.{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_url=False)]
        raise InvalidRequest("; ".join(faults)) from error


def child_ended(task: Checkpoint, child: Checkpoint, ground: Ground) -> Change:
    """Take in the end of a child task as its own record tells it, and go on.

    A result in another form than this release asks for is not taken in: a person looks, and a retry reads it again.
    """
    name = next(c.name for c in task.execution.children if c.task_id == child.task_id)
    if child.business.status is Status.COMPLETED and not task.execution.is_ending:
        try:
            expected = ground.workflow.children.get(name)
            _in_form(expected.result if expected else None, name, child.business.result)
        except InvalidRequest as unusable:
            reason = f"{name} came to something else than was asked for: {unusable.message}"
            change = begin(task, because=reason, ground=ground)
            return take(Review(stage=task.business.stage, reason=reason[:500]), change, ground)
    change = note_end(task, child, ground)
    return take(plan(change, ground), change, ground)


def answered(
    task: Checkpoint, wait: PendingWait, values: Arguments, *, by: str, reference: str, ground: Ground
) -> Change:
    """Settle a wait with its answer and go on."""
    change = begin(task, because=f"{wait.name} answered by {by}", ground=ground)
    change = settle_waits(change, WaitStatus.SETTLED, only=wait.wait_id)
    change = note_fact(change, Fact(name=wait.name, happened=True, reference=reference, values=values))
    return take(plan(change, ground), change, ground)
