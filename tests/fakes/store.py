"""What outlives a worker: everything that the fakes of one world have stored or done.

A new process is a new set of fakes over the same `World`. Tests may look at and tamper with every field.
"""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Self

from shared.domain.action import ActionRow
from shared.domain.authority import Question, Ruling
from shared.domain.identity import PrincipalRef, TaskKey
from shared.domain.outbox import ArmTimer, OutboxRow, PublishEvent
from shared.domain.proposal import Residue
from shared.domain.seal import SealedCheckpoint
from shared.domain.wait import Wait
from shared.domain.window import Window
from shared.ports.executions import ExecutionState
from shared.ports.inbox import InboxRow
from shared.ports.task_records import Head
from tests.fakes.clock import FakeClock, FakeIds
from tests.fakes.downstream import Downstream

ModelAnswer = Residue | Exception | Callable[[Window], Residue]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRow:
    """A task's lease as it is stored."""

    fence: int
    version: int
    holder: str
    ends_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorityRow:
    """A principal as operators wrote it."""

    tenant: str
    roles: frozenset[str]
    active: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedExecution:
    """One execution, under its own name."""

    name: str
    workflow: str
    key: TaskKey
    run: int
    version: int


@dataclass(slots=True, kw_only=True)
class SealKeys:
    """The key service: keys by id, which of them seals now, and whether it can be asked."""

    by_id: dict[str, bytes] = field(default_factory=lambda: {"seal-key-1": b"a key for tests, first generation"})
    current: str = "seal-key-1"
    unavailable: bool = False


@dataclass(slots=True, kw_only=True)
class AuthorityRecords:
    """Principals by their key, freezes by scope, and whether the store can be read."""

    principals: dict[str, AuthorityRow] = field(default_factory=dict)
    freezes: dict[str, str] = field(default_factory=dict)
    unreadable: bool = False

    def grant(self, ref: PrincipalRef, *, tenant: str, roles: set[str]) -> None:
        """Write a principal with exactly these roles."""
        self.principals[ref.key] = AuthorityRow(tenant=tenant, roles=frozenset(roles))

    def disable(self, ref: PrincipalRef) -> None:
        """Take every right away."""
        row = self.principals[ref.key]
        self.principals[ref.key] = AuthorityRow(tenant=row.tenant, roles=row.roles, active=False)


@dataclass(slots=True, kw_only=True)
class Machines:
    """The state machine service: executions by name, tokens that a state waits for, and every answer given.

    `deployed` are the workflows with a machine; None is all of them.
    """

    deployed: frozenset[str] | None = None
    executions: dict[str, StartedExecution] = field(default_factory=dict)
    # How an execution ended, by name; one that is not here is running.
    ended: dict[str, ExecutionState] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    answers: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ModelScript:
    """What the model will say: the next of `answers`, or `always` when there are none left; and what it was shown."""

    answers: deque[ModelAnswer] = field(default_factory=deque)
    always: ModelAnswer | None = None
    windows: list[Window] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class PolicyScript:
    """What the policies say, and every question they were asked. None allows everything."""

    rule: Callable[[Question], Ruling] | None = None
    questions: list[Question] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class World:
    """One world. Enter it (``with world:``) to hold its lock over several looks."""

    clock: FakeClock = field(default_factory=FakeClock)
    ids: FakeIds = field(default_factory=FakeIds)

    heads: dict[str, Head] = field(default_factory=dict)
    checkpoints: dict[tuple[str, int], SealedCheckpoint] = field(default_factory=dict)
    # Which attempt wrote a checkpoint.
    writers: dict[tuple[str, int], str] = field(default_factory=dict)
    waits: dict[tuple[str, str], Wait] = field(default_factory=dict)
    tokens: dict[tuple[str, str], str] = field(default_factory=dict)
    token_entries: dict[tuple[str, str], int] = field(default_factory=dict)
    actions: dict[tuple[str, str], ActionRow] = field(default_factory=dict)
    inbox: dict[tuple[str, str, str], InboxRow] = field(default_factory=dict)
    outbox: dict[tuple[str, int, int], OutboxRow] = field(default_factory=dict)
    # When a row of the outbox was last put before the stream.
    staged_at: dict[tuple[str, int, int], datetime] = field(default_factory=dict)
    leases: dict[str, LeaseRow] = field(default_factory=dict)
    # Object versions by (key, version id), oldest first.
    evidence: dict[tuple[str, str], bytes] = field(default_factory=dict)
    artifacts: dict[tuple[str, str], bytes] = field(default_factory=dict)

    # Armed timers, by wait.
    timers: dict[str, tuple[TaskKey, ArmTimer]] = field(default_factory=dict)

    authority: AuthorityRecords = field(default_factory=AuthorityRecords)
    policies: PolicyScript = field(default_factory=PolicyScript)
    seal_keys: SealKeys = field(default_factory=SealKeys)
    machines: Machines = field(default_factory=Machines)
    model: ModelScript = field(default_factory=ModelScript)
    # One per tool; a tool without a downstream has no function deployed.
    downstreams: dict[str, Downstream] = field(default_factory=dict)
    events: list[tuple[TaskKey, PublishEvent]] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)

    _index: dict[str, Head] | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __enter__(self) -> Self:
        self._lock.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    @property
    def index(self) -> dict[str, Head]:
        """The heads as the queue's index shows them."""
        return self.heads if self._index is None else self._index

    def let_index_lag(self) -> None:
        """From now on the index shows what was stored until now."""
        with self:
            self._index = dict(self.heads)

    def let_index_catch_up(self) -> None:
        """End the lag."""
        with self:
            self._index = None

    def undelivered(self) -> tuple[OutboxRow, ...]:
        """The outbox in the order of its commits."""
        with self:
            return tuple(self.outbox.values())

    def issue_token(self) -> str:
        """Make a task token that a state of the machine waits for, as the machine would."""
        with self:
            token = self.ids.new("token")
            self.machines.waiting.add(token)
            return token
