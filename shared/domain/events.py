"""Business events: what each one that is published holds, by name, with the version of its form.

Subscribers rely on these forms. A field is never renamed, retyped or taken away under the same version: such a change
gets a new `schema_version`, and old rows of the outbox keep the version they were written with. Details hold
identifiers and controlled words only: never a link that decides anything, a token, or outside words.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, ValidationError

from shared.domain.action import Arguments
from shared.domain.errors import InvariantBroken
from shared.domain.identity import Name, Reference, TaskId, TenantId
from shared.domain.records import Record

Sentence = Annotated[str, Field(max_length=500)]
Version = Annotated[int, Field(ge=1)]


class EventDetail(Record):
    """What an event holds beside the common envelope."""

    event: ClassVar[str]
    schema_version: ClassVar[int] = 1


class TaskDetail(EventDetail):
    """An event of a task whose record is trusted."""

    workflow: Annotated[Name, Field(description="Which kind of task it is")]
    stage: Annotated[Name, Field(description="Where it stands in its workflow")]


class PromptDetail(TaskDetail):
    """An event that asks somebody for something. It is published only while its wait is open."""

    wait_id: Annotated[Reference, Field(description="The wait; a prompt is one per wait, version and kind")]
    wait: Annotated[Name, Field(description="What is waited for")]
    request_version: Annotated[Version, Field(description="The version of the request that is asked about")]


class ApprovalRequested(PromptDetail):
    """Somebody with a role is asked to decide about one action."""

    event = "approval.requested"

    approval_id: Annotated[Reference, Field(description="Identifies the approval; knowing it gives no right")]
    role: Annotated[Name, Field(description="Who may decide")]


class InputRequested(PromptDetail):
    """Somebody with a role is asked a question of the workflow."""

    event = "input.requested"

    role: Annotated[Name, Field(description="Who may answer")]


class WaitReminded(PromptDetail):
    """An open wait has reached a reminder of its ladder."""

    event = "wait.reminded"

    to: Annotated[Name, Field(description="Who is reminded")]


class TaskEscalated(PromptDetail):
    """An open wait has a new owner."""

    event = "task.escalated"

    to: Annotated[Name, Field(description="Who owns the wait from now on")]


class TaskNeedsReview(PromptDetail):
    """The engine will not go on by itself."""

    event = "task.needs_review"

    reason: Annotated[Sentence, Field(description="Why, in the engine's words")]


class TaskQuarantined(EventDetail):
    """The stored record is not trusted, so nothing is taken from it."""

    event = "task.quarantined"

    reason: Annotated[Sentence, Field(description="Which check failed")]


class ApprovalDecided(TaskDetail):
    """Somebody has decided. With more than one approver it may take further decisions."""

    event = "approval.decided"

    approval_id: Annotated[Reference, Field(description="Identifies the approval")]
    decision: Annotated[Literal["approve", "reject"], Field(description="What was decided")]


class ActionOutcomeUnknown(TaskDetail):
    """Something was sent and nobody knows what became of it; it is being asked."""

    event = "action.outcome_unknown"

    operation: Annotated[str, Field(max_length=300, description="The idempotency key it was sent under")]


class TaskRecovered(TaskDetail):
    """A task without a next event was given one."""

    event = "task.recovered"

    reason: Annotated[Sentence, Field(description="What had happened to its execution")]


class TaskOperated(TaskDetail):
    """An operator has given a command. Their reason stands in the task's record."""

    event = "task.operated"

    command: Annotated[Literal["retry", "settle", "release", "close", "escalate"], Field(description="Which command")]
    by: Annotated[str, Field(max_length=700, description="Who, as issuer and subject")]


class TaskClosed(TaskDetail):
    """The task has ended."""

    event = "task.closed"

    status: Annotated[
        Literal["completed", "failed", "canceled", "expired"], Field(description="How it ended, for the engine")
    ]
    outcome: Annotated[Sentence, Field(description="How it ended, for its workflow")]


EVENTS: Final[Mapping[str, type[EventDetail]]] = {
    form.event: form
    for form in (
        ApprovalRequested,
        InputRequested,
        WaitReminded,
        TaskEscalated,
        TaskNeedsReview,
        TaskQuarantined,
        ApprovalDecided,
        ActionOutcomeUnknown,
        TaskRecovered,
        TaskOperated,
        TaskClosed,
    )
}


class Envelope(Record):
    """What every event has in common: the `detail` of the event on the bus, whose source is `holdfast`."""

    schema_version: Annotated[Version, Field(description="Version of the form of `detail`")]
    event_id: Annotated[str, Field(description="The same on every delivery of the same event, and on no other")]
    event: Annotated[str, Field(description="The event's name, also the bus's detail type")]
    tenant: Annotated[TenantId, Field(description="Whose task it is")]
    task_id: Annotated[TaskId, Field(description="The task")]
    version: Annotated[Version, Field(description="The version of the task whose commit published it")]
    detail: Annotated[Arguments, Field(description="Further fields, by event")]


def detail_of(event: str, fields: Mapping[str, object]) -> Arguments:
    """Check the fields of an event against its published form.

    Raises:
        InvariantBroken: there is no such event, or it does not hold what was promised. Nothing may be published.
    """
    form = EVENTS.get(event)
    if form is None:
        msg = f"{event} is no event that is published"
        raise InvariantBroken(msg)
    try:
        detail: Arguments = form.model_validate(dict(fields)).model_dump(mode="json")
    except ValidationError as error:
        faults = ", ".join(sorted({".".join(map(str, e["loc"])) for e in error.errors()}))
        msg = f"{event} does not have its published form: {faults}"
        raise InvariantBroken(msg) from error
    return detail


def schema_version_of(event: str) -> int:
    """The version of an event's form.

    Raises:
        InvariantBroken: there is no such event.
    """
    if event not in EVENTS:
        msg = f"{event} is no event that is published"
        raise InvariantBroken(msg)
    return EVENTS[event].schema_version
