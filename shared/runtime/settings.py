"""What a function is told by its environment: one small class per thing, one class per function made of them.

A field is read from the variable of the same name in capitals. A function that lacks one does not start, and the error
names every variable that is missing or unusable, so that the first log line of a bad deployment says what to set.
"""

import os
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, Json, ValidationError

from shared.domain.errors import InvariantBroken

Text = Annotated[str, Field(min_length=1)]


class Settings(BaseModel):
    """Base of all settings: frozen, and read once."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    holdfast_stage: Text

    @classmethod
    def read(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Read the settings from the environment.

        Raises:
            InvariantBroken: names the variables that are missing or unusable, never their values.
        """
        variables = os.environ if environment is None else environment
        given = {name: variables[name.upper()] for name in cls.model_fields if name.upper() in variables}
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            faults = [f"{str(e['loc'][0]).upper()} ({e['msg']})" for e in error.errors(include_url=False)]
            msg = f"{cls.__name__}: environment variables missing or unusable: {', '.join(faults)}"
            raise InvariantBroken(msg) from error


class HeadsTable(BaseModel):
    """High-water marks and the operator's queue."""

    heads_table: Text


class CheckpointsTable(BaseModel):
    """Sealed checkpoints."""

    checkpoints_table: Text


class WaitsTable(BaseModel):
    """Open and settled waits."""

    waits_table: Text


class TokensTable(BaseModel):
    """Task tokens."""

    tokens_table: Text


class ActionsTable(BaseModel):
    """The action ledger."""

    actions_table: Text


class InboxTable(BaseModel):
    """Accepted events and requests."""

    inbox_table: Text


class OutboxTable(BaseModel):
    """Staged messages."""

    outbox_table: Text


class LeasesTable(BaseModel):
    """Task leases."""

    leases_table: Text


class MemoryTable(BaseModel):
    """Believed facts."""

    memory_table: Text


class AuthorityTable(BaseModel):
    """Principals and freezes."""

    authority_table: Text


class EvidenceBucket(BaseModel):
    """Outside words."""

    evidence_bucket: Text


class ArtifactsBucket(BaseModel):
    """Windows and residue."""

    artifacts_bucket: Text


class SealKey(BaseModel):
    """The key service's HMAC key."""

    seal_key_id: Text


class ModelId(BaseModel):
    """The model that proposes, or that tasks are stamped with."""

    model_id: Text


class EventBus(BaseModel):
    """The bus of business events."""

    event_bus: Text


class StateMachines(BaseModel):
    """The state machines, by workflow."""

    state_machine_arns: Json[dict[str, str]]


class Timers(BaseModel):
    """The group that timers live in, what they call, and as whom."""

    schedule_group: Text
    deadline_function_arn: Text
    schedule_role_arn: Text


class ToolFunctions(BaseModel):
    """The tools' functions, by tool."""

    tool_functions: Json[dict[str, str]]


class WebhookSecrets(BaseModel):
    """How the names of signing secrets begin."""

    webhook_secret_prefix: Text


class Oidc(BaseModel):
    """Whose tokens are accepted, and for which application."""

    oidc_issuer: Text
    oidc_client_id: Text


class CommitTables(HeadsTable, CheckpointsTable, WaitsTable, InboxTable, OutboxTable, ActionsTable, SealKey):
    """What every function that commits has to reach."""


class ApiSettings(Settings, CommitTables, AuthorityTable, EvidenceBucket, ModelId, Oidc):
    """What `api` is told."""


class WakeSettings(
    Settings, CommitTables, AuthorityTable, LeasesTable, MemoryTable, EvidenceBucket, ArtifactsBucket, ModelId
):
    """What `wake` is told."""


class ProposeSettings(Settings, ArtifactsBucket, ModelId):
    """What `propose` is told. No table."""


class OpenWaitSettings(Settings, TokensTable, WaitsTable, HeadsTable):
    """What `open_wait` is told."""


class PerformSettings(Settings, HeadsTable, CheckpointsTable, ActionsTable, AuthorityTable, SealKey, ToolFunctions):
    """What `perform` is told."""


class DeliverSettings(Settings, OutboxTable, TokensTable, WaitsTable, EventBus, StateMachines, Timers):
    """What `deliver` is told."""


class DeadlineSettings(Settings, CommitTables):
    """What `deadline` is told."""


class RecoverSettings(Settings, CommitTables, StateMachines):
    """What `recover` is told."""


class WebhookSettings(Settings, CommitTables, WebhookSecrets):
    """What `webhook` is told."""
