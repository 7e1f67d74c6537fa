"""Errors say what to do next; the state machine and the API know the five dispositions and nothing else.

EngineError(code, disposition)
├ Reject    the caller must change it      InvalidRequest NotAuthenticated NotAuthorised TaskNotFound IllegalTransition
│                                          KeyReused StaleApproval DecisionClosed TaskClosed RequestTooLarge
│                                          ActionInFlight NothingToCancel NoChildTasks StaleCommand ReleaseRefused
├ Redecide  facts moved; back to the gates StaleVersion ApprovalVoid EvidenceStale WaitSettled LeaseLost
├ Retry     same input, same key, later    LeaseHeld Throttled DependencyTimeout ModelUnavailable SealUnavailable
│                                          SecretsUnavailable
├ Park      a person or a clock moves it   GateFailed CheckpointQuarantined OutcomeUnknown AuthorityUnreadable
└ Crash     our bug, page someone          InvariantBroken
"""

from enum import StrEnum
from typing import ClassVar


class Disposition(StrEnum):
    """What the caller of a failed operation has to do. The state machine has one rule for each."""

    REJECT = "reject"
    REDECIDE = "redecide"
    RETRY = "retry"
    PARK = "park"
    CRASH = "crash"


class EngineError(Exception):
    """Base of every error that Holdfast raises on purpose."""

    code: ClassVar[str]
    disposition: ClassVar[Disposition]

    def __init__(self, message: str) -> None:
        """Keep the sentence a person reads; the class carries the code a machine reads."""
        super().__init__(message)
        self.message = message


class Reject(EngineError):
    """The caller must change the request; repeating it changes nothing."""

    code = "rejected"
    disposition = Disposition.REJECT


class InvalidRequest(Reject):
    """The request does not have the form that was promised."""

    code = "invalid_request"


class RequestTooLarge(Reject):
    """The request is larger than a task may be; nothing was stored."""

    code = "request_too_large"


class NotAuthenticated(Reject):
    """Nobody we know is speaking."""

    code = "not_authenticated"


class NotAuthorised(Reject):
    """The principal is known and may not do this."""

    code = "not_authorised"


class TaskNotFound(Reject):
    """No such task for this tenant; another tenant's task answers the same."""

    code = "task_not_found"


class IllegalTransition(Reject):
    """The lifecycle has no such edge; nothing was written."""

    code = "illegal_transition"


class KeyReused(Reject):
    """An idempotency key came back with another request."""

    code = "idempotency_key_reused"


class StaleApproval(Reject):
    """The decision speaks of a version of the request that is no longer the current one."""

    code = "stale_approval"


class DecisionClosed(Reject):
    """The approval or question was settled, voided or has run out; the answer came too late."""

    code = "decision_closed"


class TaskClosed(Reject):
    """The task has ended and takes no more changes."""

    code = "task_closed"


class ActionInFlight(Reject):
    """An effect of the current request is under way; it has to be settled before the request may change."""

    code = "action_in_flight"


class NothingToCancel(Reject):
    """What was to be stopped is not under way; the task is as it was."""

    code = "nothing_to_cancel"


class NoChildTasks(NothingToCancel):
    """The task has no child task under way, so there is none to stop."""

    code = "no_child_tasks"


class StaleCommand(Reject):
    """The command speaks of a version of the task that is not the current one; nothing was done."""

    code = "stale_command"


class ReleaseRefused(Reject):
    """The task cannot be released from what is intact of its record; the reason names what is open."""

    code = "release_refused"


class Redecide(EngineError):
    """Facts moved under the caller. Reload and decide again; never replay the old decision."""

    code = "redecide"
    disposition = Disposition.REDECIDE


class StaleVersion(Redecide):
    """Somebody committed first; nothing of this commit was written."""

    code = "stale_version"


class ApprovalVoid(Redecide):
    """The approval no longer covers the action at the moment of use; nothing was dispatched."""

    code = "approval_void"


class EvidenceStale(Redecide):
    """Evidence that the decision rests on has changed or is gone."""

    code = "evidence_stale"


class WaitSettled(Redecide):
    """The wait was settled by somebody else; nothing of this commit was written."""

    code = "wait_settled"


class LeaseLost(Redecide):
    """The lease moved on to another attempt; this attempt's work is discarded."""

    code = "lease_lost"


class DuplicateEvent(Redecide):
    """The inbox knows this event; nothing was written, answer with the current state."""

    code = "duplicate_event"


class Retry(EngineError):
    """Nothing happened; the same input may succeed later."""

    code = "retry"
    disposition = Disposition.RETRY


class LeaseHeld(Retry):
    """Another attempt is at work on this; nothing was dispatched."""

    code = "lease_held"


class Throttled(Retry):
    """A store asked us to slow down and kept asking through our bounded backoff."""

    code = "throttled"


class DependencyTimeout(Retry):
    """A dependency without side effects did not answer in time."""

    code = "dependency_timeout"


class ModelUnavailable(Retry):
    """The model could not be reached or is throttled."""

    code = "model_unavailable"


class SealUnavailable(Retry):
    """The key service could not be asked; that is no verdict about the seal."""

    code = "seal_unavailable"


class SecretsUnavailable(Retry):
    """The secret store could not be asked, or holds something unreadable; that is no verdict about a signature."""

    code = "secrets_unavailable"


class Park(EngineError):
    """Only a person or a clock can move this on."""

    code = "parked"
    disposition = Disposition.PARK


class GateFailed(Park):
    """A gate could not be passed and no other status describes it better."""

    code = "gate_failed"


class CheckpointQuarantined(Park):
    """The stored state cannot be trusted; no step may run on it."""

    code = "checkpoint_quarantined"


class OutcomeUnknown(Park):
    """An effect was dispatched and its outcome is not known."""

    code = "outcome_unknown"


class AuthorityUnreadable(Park):
    """The authority store could not be read, so nothing is allowed."""

    code = "authority_unreadable"


class Crash(EngineError):
    """Our bug. Page someone."""

    code = "crash"
    disposition = Disposition.CRASH


class InvariantBroken(Crash):
    """Something that cannot be is; nothing more may run on this task."""

    code = "invariant_broken"
