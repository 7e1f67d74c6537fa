"""Which adapter stands behind which port: one function per Lambda, called once per process.

Imports stand inside the functions on purpose: each Lambda pays at its cold start for what it uses and no more.
"""
# ruff: noqa: PLC0415

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol

from shared.usecases.engine import (
    ApiDeps,
    DeadlineDeps,
    DeliverDeps,
    OpenWaitDeps,
    PerformDeps,
    Records,
    RecoverDeps,
    Rights,
    WakeDeps,
    WebhookDeps,
)

if TYPE_CHECKING:
    from shared.adapters.dynamodb.transaction import TaskTables
    from shared.ports.artifacts import Artifacts
    from shared.ports.model import Model
    from shared.ports.signing_secrets import SigningSecrets
    from shared.runtime.settings import CommitTables


class _HasRights(Protocol):
    @property
    def authority_table(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeParts:
    """What asking the model needs."""

    artifacts: "Artifacts"
    model: "Model"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookParts:
    """What taking in a delivery needs."""

    deps: WebhookDeps
    secrets: "SigningSecrets"


@cache
def api() -> ApiDeps:
    """Wire `api`."""
    from shared.adapters.aws import dynamodb, s3
    from shared.adapters.dynamodb.action_ledger import DynamoActionLedger
    from shared.adapters.dynamodb.inbox import DynamoInbox
    from shared.adapters.dynamodb.wait_store import DynamoWaitStore
    from shared.adapters.s3.evidence_store import S3EvidenceStore
    from shared.adapters.system import SystemIds
    from shared.runtime.settings import ApiSettings

    settings = ApiSettings.read()
    return ApiDeps(
        tasks=_records(_commit_tables(settings), settings.seal_key_id),
        rights=_rights(settings),
        inbox=DynamoInbox(dynamodb(), settings.inbox_table),
        waits=DynamoWaitStore(dynamodb(), settings.waits_table),
        ledger=DynamoActionLedger(dynamodb(), settings.actions_table, SystemIds()),
        evidence=S3EvidenceStore(s3(), settings.evidence_bucket),
        model_id=settings.model_id,
    )


@cache
def wake() -> WakeDeps:
    """Wire `wake`."""
    from shared.adapters.aws import dynamodb, s3
    from shared.adapters.dynamodb.action_ledger import DynamoActionLedger
    from shared.adapters.dynamodb.inbox import DynamoInbox
    from shared.adapters.dynamodb.leases import DynamoLeases
    from shared.adapters.dynamodb.wait_store import DynamoWaitStore
    from shared.adapters.s3.artifacts import S3Artifacts
    from shared.adapters.s3.evidence_store import S3EvidenceStore
    from shared.adapters.system import SystemIds
    from shared.runtime.observability import alarm
    from shared.runtime.settings import WakeSettings

    settings = WakeSettings.read()
    tables = _commit_tables(settings, leases=settings.leases_table)
    return WakeDeps(
        tasks=_records(tables, settings.seal_key_id),
        rights=_rights(settings),
        ledger=DynamoActionLedger(dynamodb(), settings.actions_table, SystemIds()),
        waits=DynamoWaitStore(dynamodb(), settings.waits_table),
        inbox=DynamoInbox(dynamodb(), settings.inbox_table),
        leases=DynamoLeases(dynamodb(), settings.leases_table),
        evidence=S3EvidenceStore(s3(), settings.evidence_bucket),
        artifacts=S3Artifacts(s3(), settings.artifacts_bucket),
        model_id=settings.model_id,
        alarm=alarm,
    )


@cache
def propose() -> ProposeParts:
    """Wire `propose`: a bucket and a model, and no table."""
    from shared.adapters.aws import bedrock, s3
    from shared.adapters.bedrock.model import BedrockModel
    from shared.adapters.s3.artifacts import S3Artifacts
    from shared.runtime.settings import ProposeSettings

    settings = ProposeSettings.read()
    return ProposeParts(artifacts=S3Artifacts(s3(), settings.artifacts_bucket), model=BedrockModel(bedrock()))


@cache
def open_wait() -> OpenWaitDeps:
    """Wire `open_wait`."""
    from shared.adapters.aws import dynamodb, stepfunctions
    from shared.adapters.dynamodb.task_records import DynamoTaskRecords
    from shared.adapters.dynamodb.token_store import DynamoTokenStore
    from shared.adapters.dynamodb.transaction import TaskTables
    from shared.adapters.dynamodb.wait_store import DynamoWaitStore
    from shared.adapters.stepfunctions.executions import StepFunctionsExecutions
    from shared.adapters.system import SystemClock
    from shared.runtime.settings import OpenWaitSettings

    settings = OpenWaitSettings.read()
    return OpenWaitDeps(
        tokens=DynamoTokenStore(dynamodb(), settings.tokens_table),
        waits=DynamoWaitStore(dynamodb(), settings.waits_table),
        tasks=DynamoTaskRecords(dynamodb(), TaskTables(heads=settings.heads_table)),
        executions=StepFunctionsExecutions(stepfunctions(), {}),
        clock=SystemClock(),
    )


@cache
def perform() -> PerformDeps:
    """Wire `perform`."""
    from shared.adapters.aws import dynamodb, lambda_
    from shared.adapters.dynamodb.action_ledger import DynamoActionLedger
    from shared.adapters.dynamodb.transaction import TaskTables
    from shared.adapters.lambda_.tool_gateway import LambdaToolGateway
    from shared.adapters.system import SystemIds
    from shared.runtime.settings import PerformSettings

    settings = PerformSettings.read()
    tables = TaskTables(heads=settings.heads_table, checkpoints=settings.checkpoints_table)
    return PerformDeps(
        tasks=_records(tables, settings.seal_key_id),
        rights=_rights(settings),
        ledger=DynamoActionLedger(dynamodb(), settings.actions_table, SystemIds()),
        tools=LambdaToolGateway(lambda_(), settings.tool_functions),
    )


@cache
def deliver() -> DeliverDeps:
    """Wire `deliver`."""
    from shared.adapters.aws import dynamodb, eventbridge, scheduler, stepfunctions
    from shared.adapters.dynamodb.outbox import DynamoOutbox
    from shared.adapters.dynamodb.token_store import DynamoTokenStore
    from shared.adapters.dynamodb.wait_store import DynamoWaitStore
    from shared.adapters.eventbridge.event_bus import EventBridgeBus
    from shared.adapters.scheduler.timers import SchedulerTimers
    from shared.adapters.stepfunctions.executions import StepFunctionsExecutions
    from shared.adapters.system import SystemClock
    from shared.runtime.observability import alarm
    from shared.runtime.settings import DeliverSettings

    settings = DeliverSettings.read()
    return DeliverDeps(
        outbox=DynamoOutbox(dynamodb(), settings.outbox_table),
        tokens=DynamoTokenStore(dynamodb(), settings.tokens_table),
        waits=DynamoWaitStore(dynamodb(), settings.waits_table),
        executions=StepFunctionsExecutions(stepfunctions(), settings.state_machine_arns),
        events=EventBridgeBus(eventbridge(), settings.event_bus),
        timers=SchedulerTimers(
            scheduler(),
            group=settings.schedule_group,
            target_arn=settings.deadline_function_arn,
            role_arn=settings.schedule_role_arn,
            clock=SystemClock(),
        ),
        alarm=alarm,
    )


@cache
def deadline() -> DeadlineDeps:
    """Wire `deadline`."""
    from shared.adapters.aws import dynamodb
    from shared.adapters.dynamodb.wait_store import DynamoWaitStore
    from shared.runtime.settings import DeadlineSettings

    settings = DeadlineSettings.read()
    return DeadlineDeps(
        tasks=_records(_commit_tables(settings), settings.seal_key_id),
        waits=DynamoWaitStore(dynamodb(), settings.waits_table),
    )


@cache
def recover() -> RecoverDeps:
    """Wire `recover`."""
    from shared.adapters.aws import dynamodb, stepfunctions
    from shared.adapters.dynamodb.outbox import DynamoOutbox
    from shared.adapters.dynamodb.wait_store import DynamoWaitStore
    from shared.adapters.stepfunctions.executions import StepFunctionsExecutions
    from shared.runtime.settings import RecoverSettings

    settings = RecoverSettings.read()
    return RecoverDeps(
        tasks=_records(_commit_tables(settings), settings.seal_key_id),
        waits=DynamoWaitStore(dynamodb(), settings.waits_table),
        executions=StepFunctionsExecutions(stepfunctions(), settings.state_machine_arns),
        outbox=DynamoOutbox(dynamodb(), settings.outbox_table),
    )


@cache
def webhook() -> WebhookParts:
    """Wire `webhook`."""
    import time

    from shared.adapters.aws import dynamodb, secretsmanager
    from shared.adapters.dynamodb.inbox import DynamoInbox
    from shared.adapters.dynamodb.wait_store import DynamoWaitStore
    from shared.adapters.secretsmanager.signing_secrets import SecretsManagerSigningSecrets
    from shared.runtime.observability import alarm
    from shared.runtime.settings import WebhookSettings

    settings = WebhookSettings.read()
    return WebhookParts(
        deps=WebhookDeps(
            tasks=_records(_commit_tables(settings), settings.seal_key_id),
            waits=DynamoWaitStore(dynamodb(), settings.waits_table),
            inbox=DynamoInbox(dynamodb(), settings.inbox_table),
            alarm=alarm,
        ),
        secrets=SecretsManagerSigningSecrets(
            secretsmanager(), settings.webhook_secret_prefix, clock=time.monotonic, report=alarm
        ),
    )


def _commit_tables(settings: "CommitTables", *, leases: str | None = None) -> "TaskTables":
    from shared.adapters.dynamodb.transaction import TaskTables

    return TaskTables(
        heads=settings.heads_table,
        checkpoints=settings.checkpoints_table,
        waits=settings.waits_table,
        actions=settings.actions_table,
        inbox=settings.inbox_table,
        outbox=settings.outbox_table,
        leases=leases,
    )


def _records(tables: "TaskTables", seal_key_id: str) -> Records:
    from shared.adapters.aws import dynamodb, kms
    from shared.adapters.dynamodb.task_records import DynamoTaskRecords
    from shared.adapters.kms.sealer import KmsSealer
    from shared.adapters.system import SystemClock, SystemIds
    from shared.workflows.registry import discover

    return Records(
        records=DynamoTaskRecords(dynamodb(), tables),
        sealer=KmsSealer(kms(), seal_key_id),
        clock=SystemClock(),
        ids=SystemIds(),
        workflows=discover(),
    )


def _rights(settings: _HasRights) -> Rights:
    from shared.adapters.aws import dynamodb
    from shared.adapters.cedar.authoriser import CedarAuthoriser
    from shared.adapters.dynamodb.authority import DynamoAuthority
    from shared.runtime.observability import audit_policy_fault
    from shared.workflows.registry import discover

    return Rights(
        authority=DynamoAuthority(dynamodb(), settings.authority_table),
        authoriser=CedarAuthoriser(discover(), audit=audit_policy_fault),
    )
