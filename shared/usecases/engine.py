"""What the use cases are wired with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from shared.domain.change import Ground
from shared.domain.checkpoint import Stamps
from shared.domain.workflow import Workflow
from shared.ports.action_ledger import ActionLedger
from shared.ports.artifacts import Artifacts
from shared.ports.authoriser import Authoriser
from shared.ports.authority import Authority
from shared.ports.clock import Clock, Ids
from shared.ports.event_bus import EventBus
from shared.ports.evidence_store import EvidenceStore
from shared.ports.executions import Executions
from shared.ports.inbox import Inbox
from shared.ports.leases import Leases
from shared.ports.outbox import Outbox
from shared.ports.sealer import Sealer
from shared.ports.task_records import TaskRecords
from shared.ports.timers import Timers
from shared.ports.token_store import TokenStore
from shared.ports.tool_gateway import ToolGateway
from shared.ports.wait_store import WaitStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Loading and committing sealed tasks: what every use case that reads or moves a task needs."""

    records: TaskRecords
    sealer: Sealer
    clock: Clock
    ids: Ids
    workflows: Mapping[str, Workflow]

    def ground(self, workflow: Workflow, stamps: Stamps) -> Ground:
        """Make what rules stand on at this instant, under the versions of `stamps`."""
        return Ground(
            workflow=workflow, now=self.clock.now(), stamps=stamps, new_id=self.ids.new, workflows=self.workflows
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """Who may do what, live."""

    authority: Authority
    authoriser: Authoriser


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiDeps:
    """What the API's use cases need."""

    tasks: Records
    rights: Rights
    inbox: Inbox
    waits: WaitStore
    ledger: ActionLedger
    evidence: EvidenceStore
    # The model a new task is stamped with; the gates notice when it changes.
    model_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeDeps:
    """What the resume protocol needs."""

    tasks: Records
    rights: Rights
    ledger: ActionLedger
    waits: WaitStore
    inbox: Inbox
    leases: Leases
    evidence: EvidenceStore
    artifacts: Artifacts
    model_id: str
    # Called with a sentence when something needs a person although nothing is lost.
    alarm: Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PerformDeps:
    """What the action ledger's use case needs."""

    tasks: Records
    rights: Rights
    ledger: ActionLedger
    tools: ToolGateway


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenWaitDeps:
    """What attaching a task token needs."""

    tokens: TokenStore
    waits: WaitStore
    tasks: TaskRecords
    executions: Executions
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverDeps:
    """What draining the outbox needs."""

    outbox: Outbox
    tokens: TokenStore
    waits: WaitStore
    executions: Executions
    events: EventBus
    timers: Timers
    # Called with a sentence when something needs a person although nothing is lost.
    alarm: Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverDeps:
    """What finding and mending stranded tasks needs."""

    tasks: Records
    waits: WaitStore
    executions: Executions
    outbox: Outbox


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlineDeps:
    """What acting on a wait's ladder needs."""

    tasks: Records
    waits: WaitStore


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookDeps:
    """What taking in a signed event needs."""

    tasks: Records
    waits: WaitStore
    inbox: Inbox
    # Called with a sentence when something needs a person although nothing is lost.
    alarm: Callable[[str], None]
