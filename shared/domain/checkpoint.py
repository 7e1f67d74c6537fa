"""The checkpoint: the authoritative, append-only record of a task, in the five layers a resume needs.

No bodies, no credentials, no free text written by a model or a stranger: those are referenced, not stored here.
"""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from shared.domain.action import Action, Arguments
from shared.domain.approval import Approval
from shared.domain.errors import RequestTooLarge
from shared.domain.evidence import EvidenceRef
from shared.domain.identity import Name, PrincipalRef, TaskId, TaskKey, TenantId
from shared.domain.instants import Instant, format_instant
from shared.domain.records import Record
from shared.domain.status import TERMINAL, Status
from shared.domain.stored_form import restore, shorten
from shared.domain.wait import PendingWait

SCHEMA_VERSION: Final = 1
# DynamoDB holds 400 KB an item. A task that needs a tenth of that keeps bodies where references belong.
CHECKPOINT_BYTES_MAX: Final = 40_000
# What a task may still need after it has begun its last action: the outcome, undos, an end. Kept free for that.
CLOSING_ROOM_BYTES: Final = 40_000
# No step of a live task takes this long: the longest function runs for a minute, the longest retry pause is this.
CHECK_UP: Final = timedelta(minutes=15)
WATCH_SHARDS: Final = tuple(f"live#{digit:x}" for digit in range(16))
# A sentence says why; what is longer is evidence.
BECAUSE_CHARACTERS_MAX: Final = 500
# What the operators' queue shows of it.
SHOWN_REASON_CHARACTERS_MAX: Final = 200
# The window shows the last few events; everything older is in the append-only history.
RECENT_MAX: Final = 6


class Fact(Record):
    """Something that happened, named in the past tense by the workflow's tool or wait."""

    name: Name
    happened: bool
    # The action or child task that brought it about, by its ordinal; None for an answered wait.
    ordinal: int | None = None
    # When the ledger had it from the system of record; what was read there grows old.
    settled_at: Instant | None = None
    reference: str | None = None
    values: Arguments = Field(default_factory=dict)


class RecentEvent(Record):
    """One line of the progress log, written by code."""

    at: Instant
    what: Annotated[str, Field(max_length=300)]


class CancelScope(StrEnum):
    """How far a request to stop reaches."""

    TASK = "task"
    TOOL_CALL = "tool_call"
    MODEL_TURN = "model_turn"
    CHILD_TASKS = "child_tasks"


class CancelRequest(Record):
    """A request to stop: who, when, how far. It stands in the record until what is in flight has been found out."""

    scope: CancelScope
    principal: PrincipalRef
    requested_at: Instant


class Ending(Record):
    """How a task will end once everything that was done is undone."""

    stage: Name
    status: Status
    outcome: Annotated[str, Field(max_length=500)]


class ChildTask(Record):
    """A task that this one has started. `status` is None until its end is known here.

    `stands` names what it did that is not undone, in words for a person.
    """

    task_id: TaskId
    name: Name
    # Children and actions share one count.
    ordinal: Annotated[int, Field(ge=1)]
    status: Status | None = None
    stands: Annotated[str, Field(max_length=300)] = ""


class Business(Record):
    """Layer 1: what the task is about and where it stands."""

    workflow: Name
    stage: Name
    status: Status
    because: Annotated[str, Field(max_length=BECAUSE_CHARACTERS_MAX)]
    owner: PrincipalRef
    request: Arguments
    request_version: Annotated[int, Field(ge=1)]
    deadline_at: Instant
    facts: tuple[Fact, ...] = ()
    outcome: str | None = None
    # What the task came to, as typed fields, for the task that started it.
    result: Arguments = Field(default_factory=dict)


class Execution(Record):
    """Layer 2: work under way.

    `run` counts executions, `ordinal` actions and child tasks; `fence` is the last lease used.
    """

    run: Annotated[int, Field(ge=1)]
    ordinal: Annotated[int, Field(ge=0)] = 0
    fence: Annotated[int, Field(ge=0)] = 0
    waits: tuple[PendingWait, ...] = ()
    actions: tuple[Action, ...] = ()
    children: tuple[ChildTask, ...] = ()
    # The task that started this one and waits for it, if any.
    parent: TaskId | None = None
    recent: tuple[RecentEvent, ...] = ()
    cancel: CancelRequest | None = None
    ending: Ending | None = None
    # Why a person has to look as soon as nothing is in flight; set when an operator took the execution away.
    hold: Annotated[str, Field(max_length=300)] | None = None

    @property
    def is_ending(self) -> bool:
        """Whether the task is on its way to an end, whatever its workflow would do next."""
        canceled = self.cancel is not None and self.cancel.scope is CancelScope.TASK
        return canceled or self.ending is not None


class References(Record):
    """Layer 3: where the bulky things are."""

    evidence: tuple[EvidenceRef, ...] = ()


class Security(Record):
    """Layer 4: the security scope, as references; the requester is the task's owner. Rights are never stored."""

    tenant: TenantId
    on_behalf_of: PrincipalRef | None = None
    approvals: tuple[Approval, ...] = ()


class Stamps(Record):
    """Layer 5: the versions this task was last judged under."""

    workflow: int
    policy: str
    catalogue: str
    prompt: str
    model: str


class Attempts(Record):
    """Counts that bound loops.

    Proposals refused since the last one that was taken, model turns in all, and executions that died in a row.
    """

    refusals: int = 0
    turns: int = 0
    restarts: int = 0


class Checkpoint(Record):
    """One version of a task."""

    schema_version: int = SCHEMA_VERSION
    task_id: TaskId
    version: Annotated[int, Field(ge=1)]
    business: Business
    execution: Execution
    references: References = References()
    security: Security
    stamps: Stamps
    attempts: Attempts = Attempts()
    trace: str
    created_at: Instant
    updated_at: Instant
    status_since: Instant
    previous_seal: str
    # The version that this one is chained to, where that is not the one right before it: a release skips what it
    # cannot trust.
    follows: Annotated[int, Field(ge=1)] | None = None

    @property
    def key(self) -> TaskKey:
        """The task's key."""
        return TaskKey(tenant=self.security.tenant, task_id=self.task_id)

    @property
    def closed(self) -> bool:
        """Whether the task has ended."""
        return self.business.status in TERMINAL

    def action(self, operation: str) -> Action | None:
        """Find an action by its operation key."""
        return next((a for a in self.execution.actions if a.operation == operation), None)

    def approval(self, approval_id: str) -> Approval | None:
        """Find an approval by its id."""
        return next((a for a in self.security.approvals if a.approval_id == approval_id), None)

    @property
    def live_children(self) -> tuple[ChildTask, ...]:
        """The child tasks that have not ended, as far as this record knows."""
        return tuple(child for child in self.execution.children if child.status is None)

    def wait(self, wait_id: str) -> PendingWait | None:
        """Find an open wait by its id."""
        return next((w for w in self.execution.waits if w.wait_id == wait_id), None)


def encode_checkpoint(checkpoint: Checkpoint, *, begins_something: bool = True) -> str:
    """Return the stored body: canonical JSON text in its short form (see `shared.domain.stored_form`).

    Args:
        begins_something: whether this version takes on a request or an action. What only records what has happened
            has more room, so that an outcome can always be written down.

    Raises:
        RequestTooLarge: the body would be larger than a checkpoint may be. Checked before anything is dispatched.
    """
    written = checkpoint.model_dump(mode="json", exclude_defaults=True)
    body = shorten(written | {"schema_version": checkpoint.schema_version})
    allowed = CHECKPOINT_BYTES_MAX + (0 if begins_something else CLOSING_ROOM_BYTES)
    if len(body) > allowed:
        msg = f"the task would need {len(body)} bytes of checkpoint, {allowed} are allowed"
        raise RequestTooLarge(msg)
    return body.decode()


def decode_checkpoint(body: str) -> Checkpoint:
    """Read a stored body.

    Raises:
        ValueError: the body is not a checkpoint of this schema version.
    """
    return Checkpoint.model_validate_json(restore(body))


def recent_with(checkpoint: Checkpoint, event: RecentEvent) -> tuple[RecentEvent, ...]:
    """Append to the progress log, dropping what is older than the last few."""
    return (*checkpoint.execution.recent, event)[-RECENT_MAX:]


def head_columns(checkpoint: Checkpoint) -> dict[str, str | int]:
    """Derive the head's indexed columns. They are checked against the sealed body at every load (B19)."""
    key = checkpoint.key
    columns: dict[str, str | int] = {
        "version": checkpoint.version,
        "run": checkpoint.execution.run,
        "workflow": checkpoint.business.workflow,
        "status": str(checkpoint.business.status),
        "stage": checkpoint.business.stage,
        "owner": checkpoint.business.owner.key,
        "queue": f"{key.tenant}#{checkpoint.business.status}",
        "since": f"{format_instant(checkpoint.status_since)}#{key.task_id}",
    }
    if not checkpoint.closed:
        due = [w.deadline_at for w in checkpoint.execution.waits]
        columns["due_at"] = format_instant(min([*due, checkpoint.business.deadline_at]))
        columns["watch"] = watch_shard(key.task_id)
        columns["check_at"] = format_instant(_check_at(checkpoint))
    if checkpoint.business.status in _NEEDS_A_REASON:
        columns["reason"] = shown_reason(checkpoint.business.because)
    return columns


def shown_reason(because: str) -> str:
    """The part of a reason that the operators' queue shows."""
    return because[:SHOWN_REASON_CHARACTERS_MAX]


def watch_shard(task_id: str) -> str:
    """The shard of the sweep's index that a live task is in; a closed task is in none."""
    return f"live#{task_id[-1]}"


def _check_at(checkpoint: Checkpoint) -> datetime:
    """When the sweep has to look whether the task still has a next event.

    A waiting task has one until its wait's next rung. Any other must move within the check-up time; its instant is
    rounded up to whole check-ups, so that a task on its way does not rewrite the index at every step.
    """
    if checkpoint.execution.waits:
        return min(w.acts_at for w in checkpoint.execution.waits)
    whole = checkpoint.updated_at.timestamp() // CHECK_UP.total_seconds()
    return datetime.fromtimestamp((whole + 2) * CHECK_UP.total_seconds(), tz=UTC)


# Where a queue without a reason would send its reader to every task in it.
_NEEDS_A_REASON: Final = frozenset({Status.NEEDS_REVIEW, Status.OUTCOME_UNKNOWN})
