"""Operators in stories: who they are, and their commands on the story's task."""

from typing import Any, Final

from shared.domain.authority import Operation, Question, Ruling
from shared.domain.checkpoint import Checkpoint
from shared.domain.identity import PrincipalRef
from shared.usecases.escalate_wait import EscalateWait, escalate_wait
from shared.usecases.operator_command import OperatorCommand
from shared.usecases.quarantine_by_hand import quarantine_by_hand
from shared.usecases.release_task import ReleaseTask, close_task, release_task
from shared.usecases.retry_task import retry_task
from shared.usecases.settle_action import SettleAction, settle_action
from shared.usecases.summary import TaskSummary
from tests.fakes.story import ISSUER, Story, by_role

OPERATOR: Final = PrincipalRef(issuer=ISSUER, subject="operator-1")
SECOND_OPERATOR: Final = PrincipalRef(issuer=ISSUER, subject="operator-2")
COMMANDS: Final = frozenset(
    {
        Operation.RETRY,
        Operation.SETTLE,
        Operation.RELEASE,
        Operation.CLOSE,
        Operation.QUARANTINE,
        Operation.ESCALATE,
    }
)


def operators_too(question: Question) -> Ruling:
    """Judge as the core policies do about operators' commands, and everything else by role."""
    if question.operation not in COMMANDS:
        return by_role(question)
    principal, resource = question.principal, question.resource
    allowed = "operator" in principal.roles and principal.ref.key != resource.owner
    allowed = allowed and principal.tenant == resource.tenant
    return Ruling(allowed=allowed, reason="operators look after tasks", policies=("operators_too",))


def with_operators(story: Story) -> Story:
    """Give a story two operators."""
    story.world.policies.rule = operators_too
    for ref in (OPERATOR, SECOND_OPERATOR):
        story.world.authority.grant(ref, tenant="acme", roles={"operator"})
    return story


def head_version(story: Story) -> int:
    """The version that the queue shows."""
    return story.world.heads[story.key.key].version


def _common(story: Story, by: PrincipalRef, version: int | None) -> dict[str, Any]:
    return {
        "principal": story.person(by),
        "task_id": story.key.task_id,
        "version": head_version(story) if version is None else version,
        "reason": "I looked at it",
    }


def retry(story: Story, *, by: PrincipalRef = OPERATOR, version: int | None = None) -> TaskSummary:
    """Retry, and leave the machine where it is."""
    return retry_task(OperatorCommand(**_common(story, by, version)), story.machine.api())


def settle(
    story: Story,
    outcome: Any,
    *,
    reference: str | None = None,
    operation: str | None = None,
    by: PrincipalRef = OPERATOR,
    version: int | None = None,
) -> TaskSummary:
    """Settle the newest operation, or the one named, and leave the machine where it is."""
    command = SettleAction(
        **_common(story, by, version),
        operation=operation or story.rows[-1].operation,
        outcome=outcome,
        reference=reference,
        evidence="case 4711",
    )
    return settle_action(command, story.machine.api())


def escalate(
    story: Story, *, wait_id: str | None = None, by: PrincipalRef = OPERATOR, version: int | None = None
) -> TaskSummary:
    """Escalate the open wait, or the one named."""
    command = EscalateWait(**_common(story, by, version), wait_id=wait_id or story.task.execution.waits[0].wait_id)
    return escalate_wait(command, story.machine.api())


def quarantine(story: Story, *, by: PrincipalRef = OPERATOR, version: int | None = None) -> None:
    """Quarantine by hand."""
    quarantine_by_hand(OperatorCommand(**_common(story, by, version)), story.machine.api())


def release(story: Story, *, from_version: int, by: PrincipalRef = OPERATOR, version: int | None = None) -> TaskSummary:
    """Release, and leave the machine where it is."""
    command = ReleaseTask(**_common(story, by, version), from_version=from_version)
    return release_task(command, story.machine.api())


def close(story: Story, *, by: PrincipalRef = OPERATOR, version: int | None = None) -> TaskSummary:
    """Close, and leave the machine where it is."""
    return close_task(OperatorCommand(**_common(story, by, version)), story.machine.api())


def forge(story: Story, version: int | None = None, *, old: str = "S-1", new: str = "S-2") -> Checkpoint:
    """Edit a stored checkpoint by hand, as somebody with the table's keys could; return what it was."""
    version = version or head_version(story)
    where = (story.key.key, version)
    before = story.task
    sealed = story.world.checkpoints[where]
    assert old in sealed.body
    story.world.checkpoints[where] = sealed.model_copy(update={"body": sealed.body.replace(old, new)})
    return before
