"""Builders of valid domain values. Every argument that a test does not care about has a plain default."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from shared.domain.action import ActionRow, ActionStatus, EffectClass
from shared.domain.canonical import short_digest
from shared.domain.change import Ground, stamps_of
from shared.domain.checkpoint import (
    Business,
    Checkpoint,
    Execution,
    References,
    Security,
    Stamps,
    encode_checkpoint,
    head_columns,
)
from shared.domain.identity import PrincipalRef, TaskKey, operation_key
from shared.domain.outbox import Message
from shared.domain.seal import GENESIS, SealedCheckpoint
from shared.domain.status import Status
from shared.domain.wait import OnDeadline, Rung, Wait, WaitKind, WaitRule, WaitSettlement
from shared.domain.workflow import Workflow
from shared.ports.inbox import InboxRow
from shared.ports.task_records import Commit
from shared.workflows.registry import discover
from tests.fakes.clock import NOON, FakeIds

CLERK = PrincipalRef(issuer="https://issuer.test/pool", subject="clerk-1")
MANAGER = PrincipalRef(issuer="https://issuer.test/pool", subject="manager-7")


def a_task_key(number: int = 1, *, tenant: str = "acme") -> TaskKey:
    """Make the key of the `number`-th task of a tenant."""
    return TaskKey(tenant=tenant, task_id=f"tsk_{number:032x}")


def a_checkpoint(
    key: TaskKey | None = None,
    *,
    version: int = 1,
    status: Status = Status.READY,
    stage: str = "received",
    workflow: str = "refund",
    owner: PrincipalRef = CLERK,
    now: datetime = NOON,
    previous_seal: str = GENESIS,
) -> Checkpoint:
    """Make one version of a task."""
    key = key or a_task_key()
    return Checkpoint(
        task_id=key.task_id,
        version=version,
        business=Business(
            workflow=workflow,
            stage=stage,
            status=status,
            because="a test wanted it so",
            owner=owner,
            request={"order_reference": "A-1001", "amount_minor": 45_000, "currency": "EUR"},
            request_version=1,
            deadline_at=now + timedelta(days=30),
        ),
        execution=Execution(run=1),
        references=References(),
        security=Security(tenant=key.tenant),
        stamps=Stamps(workflow=1, policy="p" * 32, catalogue="c" * 32, prompt="i" * 32, model="model-1"),
        trace="1-67891233-abcdef012345678912345678",
        created_at=now,
        updated_at=now,
        status_since=now,
        previous_seal=previous_seal,
    )


def a_ground(workflow: Workflow | None = None, *, now: datetime = NOON) -> Ground:
    """Make what rules stand on."""
    workflow = workflow or discover()["refund"]
    return Ground(
        workflow=workflow,
        now=now,
        stamps=stamps_of(workflow, "model-1"),
        new_id=FakeIds().new,
        workflows={workflow.name: workflow},
    )


def sealed(checkpoint: Checkpoint, *, seal: str = "c2VhbA==", key_id: str = "seal-key-1") -> SealedCheckpoint:
    """Encode a checkpoint under a seal that nobody checks."""
    return SealedCheckpoint(version=checkpoint.version, body=encode_checkpoint(checkpoint), seal=seal, key_id=key_id)


def a_commit(
    checkpoint: Checkpoint | None = None,
    *,
    attempt: int = 1,
    now: datetime = NOON,
    inbox: InboxRow | None = None,
    opened: Sequence[Wait] = (),
    settled: Sequence[WaitSettlement] = (),
    climbed: Sequence[Wait] = (),
    intents: Sequence[ActionRow] = (),
    withdrawn: Sequence[str] = (),
    messages: Sequence[Message] = (),
    lease_fence: int | None = None,
    children: Sequence[Commit] = (),
) -> Commit:
    """Make the commit that writes a checkpoint after its predecessor. `attempt` tells attempts on one task apart."""
    checkpoint = checkpoint or a_checkpoint()
    return Commit(
        attempt_id=f"att_{short_digest('attempt', [checkpoint.key.key, attempt])}",
        key=checkpoint.key,
        previous=checkpoint.version - 1 or None,
        checkpoint=sealed(checkpoint),
        columns=head_columns(checkpoint),
        now=now,
        inbox=inbox,
        opened=tuple(opened),
        settled=tuple(settled),
        climbed=tuple(climbed),
        intents=tuple(intents),
        withdrawn=tuple(withdrawn),
        messages=tuple(messages),
        lease_fence=lease_fence,
        children=tuple(children),
    )


def a_wait_rule(
    *, remind_after: timedelta = timedelta(hours=24), ends_after: timedelta = timedelta(hours=72)
) -> WaitRule:
    """Make a ladder of a reminder and an end."""
    return WaitRule(
        ladder=(
            Rung(after_seconds=int(remind_after.total_seconds()), do=OnDeadline.REMIND, to="refund_approver"),
            Rung(after_seconds=int(ends_after.total_seconds()), do=OnDeadline.EXPIRE, to="operator"),
        )
    )


def a_wait(
    key: TaskKey | None = None,
    number: int = 1,
    *,
    kind: WaitKind = WaitKind.APPROVAL,
    correlation_id: str | None = None,
    version: int = 1,
    now: datetime = NOON,
) -> Wait:
    """Make the `number`-th open wait of a task."""
    key = key or a_task_key()
    rule = a_wait_rule()
    return Wait(
        tenant=key.tenant,
        task_id=key.task_id,
        wait_id=f"wai_{number:032x}",
        kind=kind,
        name="manager_approval",
        correlation_id=correlation_id or f"apr_{number:032x}",
        request_version=1,
        version=version,
        answered_by=("refund_approver",),
        rule=rule,
        opened_at=now,
        deadline_at=rule.deadline_at(now),
    )


def an_action_row(
    key: TaskKey | None = None,
    ordinal: int = 1,
    *,
    tool: str = "issue_refund",
    effect: EffectClass = EffectClass.KEYED_WRITE,
    status: ActionStatus = ActionStatus.INTENT,
    version: int = 1,
    now: datetime = NOON,
) -> ActionRow:
    """Make the ledger row of a task's `ordinal`-th action."""
    key = key or a_task_key()
    return ActionRow(
        tenant=key.tenant,
        task_id=key.task_id,
        operation=operation_key(key, request_version=1, ordinal=ordinal, tool=tool),
        tool=tool,
        effect=effect,
        digest="d" * 64,
        version=version,
        approval_id="apr_1",
        status=status,
        intended_at=now,
    )


def an_inbox_row(
    key: TaskKey | None = None,
    event_id: str = "evt-1",
    *,
    source: str = "api",
    digest: str = "e" * 64,
    now: datetime = NOON,
) -> InboxRow:
    """Make the row of one accepted event."""
    key = key or a_task_key()
    return InboxRow(
        tenant=key.tenant,
        source=source,
        event_id=event_id,
        digest=digest,
        task_id=key.task_id,
        received_at=now,
        purge_at=now + timedelta(days=90),
    )
