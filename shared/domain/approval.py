"""Approvals: objects bound to what was shown, for a while, once."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field

from shared.domain.action import ActionSpec, Arguments
from shared.domain.canonical import Json, digest
from shared.domain.errors import DecisionClosed, StaleApproval
from shared.domain.identity import Name, PrincipalRef, Reference, TaskKey
from shared.domain.instants import Instant
from shared.domain.records import Record


class DecisionWord(StrEnum):
    """The exact words that decide. Nothing is guessed from truthiness, case or free text (B55)."""

    APPROVE = "approve"
    REJECT = "reject"


class ApprovalStatus(StrEnum):
    """What became of an approval request."""

    OPEN = "open"
    GRANTED = "granted"
    REJECTED = "rejected"
    # Nobody answered in time. Unlike a void one, which covers nothing any more, it is an answer of a kind.
    EXPIRED = "expired"
    VOID = "void"
    CONSUMED = "consumed"


class ApprovalRule(Record):
    """What a workflow demands of an approval."""

    role: Name
    quorum: Annotated[int, Field(ge=1, le=5)] = 1
    requester_excluded: bool = True
    # The longest time since the approver authenticated; None asks for nothing beyond a valid token.
    authenticated_within_seconds: int | None = None
    valid_for_seconds: Annotated[int, Field(ge=60)]
    because: str


class Decision(Record):
    """One person's word, with when it was said and why."""

    principal: PrincipalRef
    word: DecisionWord
    decided_at: Instant
    reason: str | None = None


class Basis(Record):
    """Everything beside the action that an approval's digest covers."""

    request_version: int
    # The digest of the evidence references with their versions and hashes.
    evidence: str
    policy: str
    catalogue: str
    # What systems of record said when it was asked for, as far as that is material: fact and field by value.
    facts: Arguments = Field(default_factory=dict)


class Approval(Record):
    """A request for approval and what became of it. Lives in the sealed checkpoint."""

    approval_id: Reference
    spec: ActionSpec
    basis: Basis
    digest: str
    rule: ApprovalRule
    requested_at: Instant
    expires_at: Instant
    status: ApprovalStatus = ApprovalStatus.OPEN
    decisions: tuple[Decision, ...] = ()
    # The ordinal of the one action that used it.
    used_by: int | None = None

    @property
    def approvers(self) -> tuple[PrincipalRef, ...]:
        """The distinct principals who approved, by issuer and subject."""
        return tuple(d.principal for d in self.decisions if d.word is DecisionWord.APPROVE)

    def decided(self, decision: Decision, *, request_version: int) -> Self:
        """Add one person's decision.

        The same person's same word again is the same approval. A rejection by anyone ends it.

        Raises:
            StaleApproval: the decision speaks of another version of the request.
            DecisionClosed: the approval is not open, has run out, or this person said something else before.
        """
        if request_version != self.basis.request_version:
            current = self.basis.request_version
            msg = f"the decision is for version {request_version}, the request is now version {current}"
            raise StaleApproval(msg)
        earlier = next((d for d in self.decisions if d.principal == decision.principal), None)
        if earlier is not None and earlier.word is decision.word:
            return self
        if self.status is not ApprovalStatus.OPEN:
            msg = f"the approval is {self.status}"
            raise DecisionClosed(msg)
        if decision.decided_at >= self.expires_at:
            msg = "the approval has run out"
            raise DecisionClosed(msg)
        if earlier is not None:
            msg = f"you have already decided: {earlier.word}"
            raise DecisionClosed(msg)
        decisions = (*self.decisions, decision)
        return self.model_copy(update={"decisions": decisions, "status": _status_of(decisions, self.rule)})

    def consumed(self, ordinal: int) -> Self:
        """Mark the approval as used by one action; in the same commit as that action's intent (B25)."""
        return self.model_copy(update={"status": ApprovalStatus.CONSUMED, "used_by": ordinal})

    def voided(self) -> Self:
        """Return the approval as void, if it was still good for anything."""
        if self.status in {ApprovalStatus.OPEN, ApprovalStatus.GRANTED}:
            return self.model_copy(update={"status": ApprovalStatus.VOID})
        return self

    def expired(self) -> Self:
        """Return the approval as one that nobody decided in time, if it was still open."""
        if self.status is ApprovalStatus.OPEN:
            return self.model_copy(update={"status": ApprovalStatus.EXPIRED})
        return self

    def flaw(self, *, expected_digest: str, now: datetime) -> str | None:
        """Say why the approval does not cover an action now, or None if it does. Authority is judged apart, live."""
        if self.status not in {ApprovalStatus.GRANTED, ApprovalStatus.CONSUMED}:
            return f"the approval is {self.status}"
        if self.digest != expected_digest:
            return f"the approval covers digest {self.digest[:12]}, the action has {expected_digest[:12]}"
        if now >= self.expires_at:
            return "the approval has run out"
        if len(set(self.approvers)) < self.rule.quorum:
            return f"{self.rule.quorum} distinct approvers are needed"
        return None


def approval_digest(key: TaskKey, workflow: str, spec: ActionSpec, basis: Basis, rule: ApprovalRule) -> str:
    """Digest everything consequential that the approver is shown, type-strict."""
    covered: dict[str, Json] = {
        "tenant": key.tenant,
        "task_id": key.task_id,
        "workflow": workflow,
        "action": spec.as_json(),
        "request_version": basis.request_version,
        "evidence": basis.evidence,
        "policy": basis.policy,
        "catalogue": basis.catalogue,
        "facts": dict(basis.facts),
        "rule": rule.model_dump(mode="json"),
    }
    return digest("approval", covered)


def _status_of(decisions: tuple[Decision, ...], rule: ApprovalRule) -> ApprovalStatus:
    if any(d.word is DecisionWord.REJECT for d in decisions):
        return ApprovalStatus.REJECTED
    if len({d.principal for d in decisions}) >= rule.quorum:
        return ApprovalStatus.GRANTED
    return ApprovalStatus.OPEN
