"""Waits: what for, which, until when, and who is next. Nothing waits without all four."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field, model_validator

from shared.domain.identity import Name, Reference, TaskId, TenantId
from shared.domain.instants import Instant
from shared.domain.records import Record

# The state's own timeout is a net under the wait row's deadline: it fires later than the row's owner does.
STATE_TIMEOUT_MARGIN: Final = timedelta(minutes=5)
# Step Functions keeps an execution for a year at most; the net may not be longer than a state can wait.
WAIT_SECONDS_MAX: Final = 99_999_999
# Whenever a wait opens, the rungs that are counted from it are in the same order.
_ANY_OPENING: Final = datetime(2000, 1, 1, tzinfo=UTC)


class WaitKind(StrEnum):
    """What kind of answer ends the wait."""

    APPROVAL = "approval"
    INPUT = "input"
    EVENT = "event"
    CHILD = "child"
    REVIEW = "review"


class WaitStatus(StrEnum):
    """What became of a wait."""

    OPEN = "open"
    SETTLED = "settled"
    VOID = "void"
    EXPIRED = "expired"


class OnDeadline(StrEnum):
    """What a rung of the ladder does when its time has come."""

    REMIND = "remind"
    ESCALATE = "escalate"
    EXPIRE = "expire"
    FAIL = "fail"
    REVIEW = "review"
    # The task goes on without the answer: its workflow knows that nobody gave one.
    PROCEED = "proceed"


class Rung(Record):
    """One step of an escalation ladder: so long after the opening of the wait, or at an instant.

    An instant is what a workflow computes where business days or a local time count. It is computed once, when the wait
    opens, and stored with it: later changes of calendars and clocks do not move it.
    """

    after_seconds: Annotated[int, Field(ge=1)] | None = None
    at: Instant | None = None
    do: OnDeadline
    to: Name

    @model_validator(mode="after")
    def _one_time(self) -> "Rung":
        if (self.after_seconds is None) == (self.at is None):
            msg = "a rung has one time: so long after the opening, or an instant"
            raise ValueError(msg)
        return self

    @property
    def ends(self) -> bool:
        """Whether this rung ends the wait."""
        return self.do not in {OnDeadline.REMIND, OnDeadline.ESCALATE}

    def acts_at(self, opened_at: datetime) -> datetime:
        """The instant at which the rung acts. One that has passed when the wait opens acts at once (B49)."""
        return self.at if self.at is not None else opened_at + timedelta(seconds=self.after_seconds or 0)


class WaitRule(Record):
    """A workflow's rule for a wait: a ladder whose last rung, and only that, ends it. Its time is the deadline."""

    ladder: Annotated[tuple[Rung, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _ordered_and_ending(self) -> "WaitRule":
        if len({rung.at is None for rung in self.ladder}) > 1:
            msg = "a ladder is counted from the opening of its wait, or goes by instants, and never mixes the two"
            raise ValueError(msg)
        times = [rung.acts_at(_ANY_OPENING) for rung in self.ladder]
        if times != sorted(set(times)):
            msg = "a ladder climbs in time: each rung later than the one before"
            raise ValueError(msg)
        if [rung.ends for rung in self.ladder] != [False] * (len(self.ladder) - 1) + [True]:
            msg = "the last rung of a ladder ends the wait, and no other does"
            raise ValueError(msg)
        return self

    def deadline_at(self, opened_at: datetime) -> datetime:
        """The instant at which a wait that opens now has to have been answered."""
        return self.ladder[-1].acts_at(opened_at)


class PendingWait(Record):
    """A task's open wait as the sealed checkpoint remembers it."""

    wait_id: Reference
    kind: WaitKind
    name: Name
    correlation_id: Reference
    request_version: int
    # When its next rung acts: the sweep looks after a rung whose timer was lost.
    acts_at: Instant
    deadline_at: Instant
    ends_by: OnDeadline


class Wait(Record):
    """The stored wait. The row owns the deadline; a schedule is a timer for it and the sweep is the net."""

    tenant: TenantId
    task_id: TaskId
    wait_id: Reference
    kind: WaitKind
    name: Name
    correlation_id: Reference
    request_version: int
    # The task version whose commit opened the wait.
    version: int
    # The role that may answer, or the sources whose signature is accepted.
    answered_by: tuple[str, ...]
    rule: WaitRule
    rung: int = 0
    opened_at: Instant
    deadline_at: Instant
    status: WaitStatus = WaitStatus.OPEN
    settled_at: Instant | None = None

    @property
    def owner(self) -> str:
        """Who owns the deadline now: the target of the next rung."""
        return self.rule.ladder[min(self.rung, len(self.rule.ladder) - 1)].to

    @property
    def next_rung_at(self) -> datetime:
        """The instant at which the next rung acts: its own, or the deadline if that comes first."""
        rung = self.rule.ladder[min(self.rung, len(self.rule.ladder) - 1)]
        return min(rung.acts_at(self.opened_at), self.deadline_at)

    def pending(self) -> PendingWait:
        """The part that the checkpoint keeps."""
        return PendingWait(
            wait_id=self.wait_id,
            kind=self.kind,
            name=self.name,
            correlation_id=self.correlation_id,
            request_version=self.request_version,
            acts_at=self.next_rung_at,
            deadline_at=self.deadline_at,
            ends_by=self.rule.ladder[-1].do,
        )


class WaitSettlement(Record):
    """The end of an open wait, written in the commit that moves the task on."""

    tenant: TenantId
    correlation_id: Reference
    wait_id: Reference
    status: WaitStatus


def state_timeout_seconds(deadline_at: datetime, *, now: datetime) -> int:
    """How long the machine's state may wait: the deadline plus a margin, since the row, not the state, owns it."""
    left = deadline_at - now + STATE_TIMEOUT_MARGIN
    return min(max(int(left.total_seconds()), 60), WAIT_SECONDS_MAX)
