"""What people get. Views of what the use cases answer; never a task token, a window or a seal."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from shared.domain.action import ActionStatus, Scalar
from shared.domain.approval import ApprovalStatus
from shared.domain.instants import Instant
from shared.domain.wait import WaitKind


def _one_of(words: type[StrEnum]) -> str:
    return f"One of {', '.join(words)}"


class Answer(BaseModel):
    """Base of every answer."""

    model_config = ConfigDict(frozen=True, from_attributes=True, defer_build=True)

    @classmethod
    def of(cls, source: object) -> Self:
        """Make the answer from what a use case returned."""
        return cls.model_validate(source, from_attributes=True)


class ApprovalAnswer(Answer):
    """An approval, in short."""

    approval_id: Annotated[str, Field(description="Identifies the approval")]
    status: Annotated[str, Field(description=_one_of(ApprovalStatus))]
    tool: Annotated[str, Field(description="The tool whose use is to be approved")]
    required_role: Annotated[str, Field(description="Who may decide")]
    quorum: Annotated[int, Field(description="How many different people have to approve")]
    approved_by: Annotated[tuple[str, ...], Field(description="Who has approved, as issuer and subject")]
    expires_at: Annotated[Instant, Field(description="When it can no longer be decided or used")]


class WaitAnswer(Answer):
    """Something that the task waits for."""

    wait_id: Annotated[str, Field(description="Identifies the wait")]
    kind: Annotated[str, Field(description=_one_of(WaitKind))]
    name: Annotated[str, Field(description="What is waited for")]
    correlation_id: Annotated[str, Field(description="What an answer has to name")]
    deadline_at: Annotated[Instant, Field(description="When the wait ends by itself")]


class EffectAnswer(Answer):
    """An effect on the outside world."""

    operation: Annotated[str, Field(description="The idempotency key it was sent under")]
    tool: Annotated[str, Field(description="The tool that acts")]
    status: Annotated[str, Field(description=_one_of(ActionStatus))]


class FactAnswer(Answer):
    """Something that happened, or definitely did not."""

    name: Annotated[str, Field(description="What, in the past tense")]
    happened: Annotated[bool, Field(description="False: it is certain that it did not happen")]
    reference: Annotated[str | None, Field(description="The outside system's own reference")]
    values: Annotated[dict[str, Scalar], Field(description="What the outside system said about it")]


class ChildAnswer(Answer):
    """A task that this one has started."""

    task_id: Annotated[str, Field(description="Identifies the child task")]
    name: Annotated[str, Field(description="What it was started for; also the name of the wait and of the fact")]
    status: Annotated[str | None, Field(description="How it ended; null until that is known here")]


class TaskAnswer(Answer):
    """A task as it is stored now."""

    task_id: Annotated[str, Field(description="Identifies the task")]
    workflow: Annotated[str, Field(description="Which kind of task it is")]
    status: Annotated[str, Field(description="Where it stands in the engine's lifecycle, such as waiting_approval")]
    stage: Annotated[str, Field(description="Where it stands in its workflow")]
    because: Annotated[str, Field(description="Why it stands there")]
    version: Annotated[int, Field(description="Counts every change of the task")]
    request_version: Annotated[int, Field(description="Counts amendments; decisions and amendments name it")]
    request: Annotated[dict[str, Scalar], Field(description="The request of record, without outside words")]
    outcome: Annotated[str | None, Field(description="How it ended, once it has")]
    deadline_at: Annotated[Instant, Field(description="When the task ends by itself")]
    created_at: Annotated[Instant, Field(description="When it was started")]
    updated_at: Annotated[Instant, Field(description="When it last changed")]
    approvals: Annotated[tuple[ApprovalAnswer, ...], Field(description="Approvals that were asked for")]
    waits: Annotated[tuple[WaitAnswer, ...], Field(description="What it waits for now")]
    effects: Annotated[tuple[EffectAnswer, ...], Field(description="What it has done or is doing outside")]
    facts: Annotated[tuple[FactAnswer, ...], Field(description="What is known to have happened")]
    children: Annotated[tuple[ChildAnswer, ...], Field(description="The tasks that it has started")]
    parent: Annotated[str | None, Field(description="The task that has started it, if one has")]
    created: Annotated[bool, Field(description="True only in the answer that created the task")]


class QueueEntryAnswer(Answer):
    """A line of the queue."""

    task_id: Annotated[str, Field(description="Identifies the task")]
    workflow: Annotated[str, Field(description="Which kind of task it is")]
    status: Annotated[str, Field(description="Its status when the index was written")]
    stage: Annotated[str, Field(description="Its stage when the index was written")]
    owner: Annotated[str, Field(description="Whose task it is, as issuer and subject")]
    since: Annotated[str, Field(description="Since when it has this status")]
    age_seconds: Annotated[int, Field(description="How long it has had this status")]
    due_at: Annotated[str | None, Field(description="Its next deadline")]
    reason: Annotated[str | None, Field(description="Why somebody has to look, where somebody has to; it may be cut")]


class QueueAnswer(Answer):
    """A page of the queue, longest in the status first. It may be a moment behind; read a task before acting on it."""

    entries: Annotated[tuple[QueueEntryAnswer, ...], Field(description="May be shorter than asked for")]
    cursor: Annotated[str | None, Field(description="Asks for the next page; null after the last one")]


class RecordAnswer(Answer):
    """How a task's record stands: what an operator has to know before releasing or closing it."""

    task_id: Annotated[str, Field(description="Identifies the task")]
    version: Annotated[int, Field(description="The version that commands have to name")]
    quarantine: Annotated[str | None, Field(description="Why it is quarantined; null if it is not")]
    newest_version: Annotated[int, Field(description="The newest version under which anything is stored")]
    intact_version: Annotated[
        int | None, Field(description="The newest version that can be trusted; null if none can. Release from this one")
    ]
    younger: Annotated[
        tuple[str, ...], Field(description="What has happened after the intact version; with any of it, only close")
    ]
    task: Annotated[TaskAnswer | None, Field(description="The task as it was at the intact version")]


class ShownFieldAnswer(Answer):
    """A consequential value."""

    name: Annotated[str, Field(description="The argument")]
    value: Annotated[Scalar, Field(description="The value that is digested and sent")]
    shown: Annotated[str, Field(description="The value for a screen: complete, with hidden characters made visible")]
    unusual: Annotated[tuple[str, ...], Field(description="Names every character outside ASCII")]


class ShownEvidenceAnswer(Answer):
    """Outside words."""

    evidence_id: Annotated[str, Field(description="Identifies the evidence")]
    source_kind: Annotated[str, Field(description="Where it came from")]
    object_version: Annotated[str, Field(description="Exactly which stored version")]
    sha256: Annotated[str, Field(description="What its bytes were")]
    untrusted_text: Annotated[
        str | None,
        Field(
            description=(
                "Complete and escaped for HTML. Written by somebody outside: information, never an instruction. "
                "Null if the stored words are gone or changed; then nothing can be approved."
            )
        ),
    ]


class ApprovalPageAnswer(Answer):
    """Everything an approver needs to decide; exactly what the digest covers."""

    task_id: Annotated[str, Field(description="The task")]
    approval_id: Annotated[str, Field(description="The approval")]
    workflow: Annotated[str, Field(description="Which kind of task it is")]
    status: Annotated[str, Field(description=_one_of(ApprovalStatus))]
    because: Annotated[str, Field(description="Why an approval is needed")]
    tool: Annotated[str, Field(description="The tool that will act")]
    arguments: Annotated[tuple[ShownFieldAnswer, ...], Field(description="Everything the tool will be told")]
    facts: Annotated[
        tuple[ShownFieldAnswer, ...],
        Field(description="What systems of record said that the approval rests on; one that changes voids it"),
    ]
    request_version: Annotated[int, Field(description="The version of the request that the approval is for")]
    current_request_version: Annotated[int, Field(description="The version of the request now")]
    evidence: Annotated[tuple[ShownEvidenceAnswer, ...], Field(description="Outside words the request came with")]
    evidence_digest: Annotated[str, Field(description="Covers the evidence, in exactly these versions")]
    policy: Annotated[str, Field(description="Version of the policies")]
    catalogue: Annotated[str, Field(description="Version of the tools")]
    digest: Annotated[str, Field(description="Covers all of the above that has consequences")]
    requested_by: Annotated[str, Field(description="Whose task it is, as issuer and subject")]
    required_role: Annotated[str, Field(description="Who may decide")]
    quorum: Annotated[int, Field(description="How many different people have to approve")]
    approved_by: Annotated[tuple[str, ...], Field(description="Who has approved, as issuer and subject")]
    requested_at: Annotated[Instant, Field(description="When it was asked for")]
    expires_at: Annotated[Instant, Field(description="When it can no longer be decided or used")]
    allowed_decisions: Annotated[tuple[str, ...], Field(description="What you may say now")]
    not_allowed_because: Annotated[str | None, Field(description="Why you may say nothing")]


class FieldFault(Answer):
    """One part of a request that is not as promised."""

    field: Annotated[str, Field(description="Where, such as body.version")]
    problem: Annotated[str, Field(description="What is wrong with it")]


class ProblemAnswer(Answer):
    """What went wrong, as problem details (RFC 9457)."""

    type: Annotated[str, Field(description="The kind of problem, as a URN made of the code")]
    title: Annotated[str, Field(description="The kind of problem, in words")]
    status: Annotated[int, Field(description="The HTTP status")]
    detail: Annotated[str, Field(description="What happened here")]
    code: Annotated[str, Field(description="The kind of problem, for machines; stable")]
    correlation_id: Annotated[str, Field(description="Finds the request in the logs")]
    errors: Annotated[tuple[FieldFault, ...], Field(description="The parts that are wrong, for a 400")] = ()
    current: Annotated[TaskAnswer | None, Field(description="The task as it is now, for a 409")] = None


class GatewayAnswer(Answer):
    """What the gateway says by itself, when a request never reached us: without a valid token, or too many of them."""

    message: Annotated[str, Field(description="What the gateway says about it")]
