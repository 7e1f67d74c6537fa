"""Messages staged in a commit and delivered after it, at least once, in order."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from shared.domain.action import Arguments
from shared.domain.identity import Name, Reference, TaskId, TaskKey
from shared.domain.instants import Instant
from shared.domain.records import Record


class StartExecution(Record):
    """Start the execution of a run. Its name is derived from task and run, so starting twice starts once."""

    kind: Literal["start_execution"] = "start_execution"
    workflow: Name
    run: int
    version: int


class AnswerWait(Record):
    """Tell the machine that a wait is settled. A token that is not there yet will be answered by `open_wait`."""

    kind: Literal["answer_wait"] = "answer_wait"
    wait_id: Reference
    correlation_id: Reference
    version: int


class AnswerParent(Record):
    """Wake the task that waits for this one, which has ended. What to make of that, it reads in our record."""

    kind: Literal["answer_parent"] = "answer_parent"
    child: TaskId


class ArmTimer(Record):
    """Set the wait's one timer to its next rung. The wait row owns the deadline; a lost timer loses nothing."""

    kind: Literal["arm_timer"] = "arm_timer"
    wait_id: Reference
    correlation_id: Reference
    rung: int
    at: Instant


class DisarmTimer(Record):
    """Remove the timer of a wait that has ended; one that is gone already is as good."""

    kind: Literal["disarm_timer"] = "disarm_timer"
    wait_id: Reference


class PublishEvent(Record):
    """Publish a business event with controlled fields on the bus.

    One that names a wait is a prompt: it asks somebody for something, and is published only while that wait is open.
    """

    kind: Literal["publish_event"] = "publish_event"
    event: Annotated[str, Field(pattern=r"^[a-z]+\.[a-z_]+$")]
    schema_version: int = 1
    version: int
    detail: Arguments
    wait_id: Reference | None = None
    correlation_id: Reference | None = None


Message = Annotated[
    StartExecution | AnswerWait | AnswerParent | ArmTimer | DisarmTimer | PublishEvent, Field(discriminator="kind")
]
MESSAGES: TypeAdapter[tuple[Message, ...]] = TypeAdapter(tuple[Message, ...])


class OutboxRow(Record):
    """All messages of one commit. `part` is 0, or 1 for what a quarantine staged at the same version."""

    key: TaskKey
    version: int
    part: Annotated[int, Field(ge=0)] = 0
    messages: tuple[Message, ...]
