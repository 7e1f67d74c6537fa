"""The engine's lifecycle: one table, and one function that may use it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from shared.domain.errors import IllegalTransition


class Status(StrEnum):
    """Where a task stands in the engine's lifecycle. A worker's life or death is not in here: that is the lease."""

    READY = "ready"
    WAITING_APPROVAL = "waiting_approval"
    WAITING_INPUT = "waiting_input"
    WAITING_EVENT = "waiting_event"
    WAITING_RETRY = "waiting_retry"
    WAITING_CHILD = "waiting_child"
    OUTCOME_UNKNOWN = "outcome_unknown"
    CANCEL_REQUESTED = "cancel_requested"
    COMPENSATING = "compensating"
    RESUME_VALIDATION = "resume_validation"
    NEEDS_REVIEW = "needs_review"
    QUARANTINED = "quarantined"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    EXPIRED = "expired"


TERMINAL: Final = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELED, Status.EXPIRED})
WAITING: Final = frozenset(
    {
        Status.WAITING_APPROVAL,
        Status.WAITING_INPUT,
        Status.WAITING_EVENT,
        Status.WAITING_RETRY,
        Status.WAITING_CHILD,
    }
)
# What a live task may be stopped into at any time, whatever it was doing.
_INTERRUPTS: Final = frozenset(
    {Status.CANCEL_REQUESTED, Status.NEEDS_REVIEW, Status.QUARANTINED, Status.RESUME_VALIDATION, Status.EXPIRED}
)

# Where a task may go when what it waited for is answered or will not come: on, to an end, or back over what it did.
# It ends as canceled from here only when an undo was waited for.
_AFTER_A_WAIT: Final = (
    WAITING | _INTERRUPTS | {Status.READY, Status.COMPENSATING, Status.COMPLETED, Status.FAILED, Status.CANCELED}
)

NEXT: Final[Mapping[Status, frozenset[Status]]] = {
    Status.READY: WAITING
    | _INTERRUPTS
    | {Status.READY, Status.OUTCOME_UNKNOWN, Status.COMPENSATING, Status.COMPLETED, Status.FAILED},
    Status.WAITING_APPROVAL: _AFTER_A_WAIT,
    Status.WAITING_INPUT: _AFTER_A_WAIT,
    Status.WAITING_EVENT: _AFTER_A_WAIT,
    Status.WAITING_RETRY: _AFTER_A_WAIT | {Status.OUTCOME_UNKNOWN},
    Status.WAITING_CHILD: _AFTER_A_WAIT,
    # Nothing leaves this status but an answer from the system of record, or a person.
    Status.OUTCOME_UNKNOWN: WAITING
    | {
        Status.OUTCOME_UNKNOWN,
        Status.READY,
        Status.CANCEL_REQUESTED,
        Status.COMPENSATING,
        Status.NEEDS_REVIEW,
        Status.QUARANTINED,
        Status.RESUME_VALIDATION,
        Status.COMPLETED,
        Status.FAILED,
        Status.EXPIRED,
    },
    # A cancellation that found effects in flight ends in what is true, never in plain "completed" (B17). An undo may
    # have to be approved first; and a compensation that it met on its way ends as it would have without it.
    Status.CANCEL_REQUESTED: frozenset(
        {
            Status.CANCEL_REQUESTED,
            Status.CANCELED,
            Status.COMPENSATING,
            Status.WAITING_APPROVAL,
            Status.FAILED,
            Status.EXPIRED,
            Status.NEEDS_REVIEW,
            Status.QUARANTINED,
            Status.RESUME_VALIDATION,
        }
    ),
    Status.COMPENSATING: WAITING
    | {
        Status.COMPENSATING,
        Status.CANCEL_REQUESTED,
        Status.FAILED,
        Status.CANCELED,
        Status.EXPIRED,
        Status.NEEDS_REVIEW,
        Status.QUARANTINED,
        Status.RESUME_VALIDATION,
    },
    # A released task may have been anywhere before: in doubt, or on its way to an end.
    Status.RESUME_VALIDATION: WAITING
    | _INTERRUPTS
    | {
        Status.READY,
        Status.OUTCOME_UNKNOWN,
        Status.COMPENSATING,
        Status.COMPLETED,
        Status.FAILED,
        Status.CANCELED,
    },
    Status.NEEDS_REVIEW: WAITING
    | _INTERRUPTS
    | {Status.READY, Status.OUTCOME_UNKNOWN, Status.COMPENSATING, Status.COMPLETED, Status.FAILED, Status.CANCELED},
    Status.QUARANTINED: frozenset(
        {Status.QUARANTINED, Status.RESUME_VALIDATION, Status.CANCEL_REQUESTED, Status.CANCELED, Status.FAILED}
    ),
    Status.COMPLETED: frozenset(),
    Status.FAILED: frozenset(),
    Status.CANCELED: frozenset(),
    Status.EXPIRED: frozenset(),
}


def permit_status(before: Status, after: Status) -> Status:
    """Return `after` if the lifecycle has that edge.

    Raises:
        IllegalTransition: no such edge; the caller has changed nothing yet.
    """
    if after not in NEXT[before]:
        msg = f"{before} cannot become {after}"
        raise IllegalTransition(msg)
    return after
