"""The state machine and the outbox stream, played in one process over a world.

Each function of the machine runs as a new process would: fresh fakes over the stored world. What the service
guarantees is kept: a failed task state is caught and leads back to `Wake`, an execution's name starts once, a token is
answered once, stream records come again until they are delivered.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, TypeVar

from shared.domain.directive import Directive, Next
from shared.domain.errors import EngineError, Redecide, Retry
from shared.domain.identity import TaskKey
from shared.domain.proposal import ObjectRef
from shared.domain.workflow import Workflow
from shared.usecases.deliver import deliver
from shared.usecases.engine import ApiDeps, DeliverDeps, OpenWaitDeps, PerformDeps, Records, Rights, WakeDeps
from shared.usecases.open_wait import OpenWait, open_wait
from shared.usecases.perform import PerformAction, perform
from shared.usecases.propose import Propose, propose
from shared.usecases.wake import WakeUp, wake
from shared.workflows.registry import discover
from tests.fakes.calls import Calls, Killed
from tests.fakes.process import Process
from tests.fakes.store import World

T = TypeVar("T")

# As in the graph: retries of `Wake`, and deliveries of one stream record.
WAKE_TRIES: Final = 7
# The graph's backoff, taken at once.
_BACKOFF: Final = timedelta(seconds=20)
# More passes than any legal story of a test needs.
PASSES_MAX: Final = 400
ENDS: Final = frozenset(
    {Next.COMPLETED, Next.FAILED, Next.CANCELED, Next.EXPIRED, Next.SUPERSEDED, Next.CONTINUE_AS_NEW}
)
WAITS: Final = frozenset({Next.AWAIT_APPROVAL, Next.AWAIT_EVENT, Next.AWAIT_INPUT, Next.AWAIT_CHILD, Next.NEEDS_REVIEW})


@dataclass(slots=True, kw_only=True)
class Run:
    """One execution: where it stands, and the token it waits with."""

    name: str
    key: TaskKey
    run: int
    directive: Directive | None = None
    residue: ObjectRef | None = None
    token: str | None = None
    ended: str | None = None
    states: list[str] = field(default_factory=list)
    version: int = 1


class Machine:
    """Plays every execution of a world until nothing can move without a person, an event or the clock."""

    def __init__(
        self,
        world: World,
        calls: Calls | None = None,
        *,
        workflows: dict[str, Workflow] | None = None,
        model_id: str = "model-1",
    ) -> None:
        self.world = world
        self.calls = calls or Calls()
        self.workflows = workflows or dict(discover())
        self.model_id = model_id
        self.runs: dict[str, Run] = {}

    def api(self) -> ApiDeps:
        """Wire the API's use cases in a fresh process."""
        p = Process(self.world, self.calls)
        return ApiDeps(
            tasks=self._records(p),
            rights=Rights(authority=p.authority, authoriser=p.authoriser),
            inbox=p.inbox,
            ledger=p.ledger,
            evidence=p.evidence,
            model_id=self.model_id,
        )

    def settle(self, *, patience: bool = True) -> None:
        """Deliver and run until all is quiet. With patience, the clock moves over retry windows."""
        for _ in range(PASSES_MAX):
            if not (self._drain() or self._start() or self._step_all(patience=patience)):
                return
        msg = f"no rest after {PASSES_MAX} passes: {[(r.name, r.states[-6:]) for r in self.runs.values()]}"
        raise AssertionError(msg)

    def states(self, key: TaskKey) -> list[str]:
        """The states that the task's executions have entered, in order."""
        return [state for run in self.runs.values() if run.key == key for state in run.states]

    def _drain(self) -> bool:
        rows = sorted(self.world.outbox.items())
        for _, row in rows:
            p = Process(self.world, self.calls)
            deps = DeliverDeps(outbox=p.outbox, tokens=p.tokens, executions=p.executions, events=p.event_bus)
            self._survive(lambda row=row, deps=deps: deliver(row, deps))  # type: ignore[misc]
        return bool(rows)

    def _start(self) -> bool:
        fresh = [e for name, e in self.world.machines.executions.items() if name not in self.runs]
        for execution in fresh:
            self.runs[execution.name] = Run(
                name=execution.name, key=execution.key, run=execution.run, version=execution.version
            )
        return bool(fresh)

    def _step_all(self, *, patience: bool) -> bool:
        moved = False
        for run in [r for r in self.runs.values() if r.ended is None]:
            if run.token is not None:
                if run.token in self.world.machines.waiting:
                    continue
                run.token = None
                run.directive = run.directive and run.directive.model_copy(update={"fence": None, "window": None})
                self._wake(run)
                moved = True
            elif run.directive is None:
                self._wake(run)
                moved = True
            else:
                moved = self._spoke(run, patience=patience) or moved
        return moved

    def _wake(self, run: Run) -> None:
        run.states.append("Wake")
        directive, residue = run.directive, run.residue
        trigger = WakeUp(
            key=run.key,
            run=run.run,
            version_hint=directive.version if directive else run.version,
            hops=directive.hops if directive else 0,
            fence=directive.fence if directive else None,
            residue=residue,
        )
        answered = self._try_wake(trigger)
        if answered is None:
            run.ended = "Wake failed"
            return
        run.directive, run.residue = answered, None
        run.states.append(str(answered.next))
        if answered.next in ENDS:
            run.ended = str(answered.next)

    def _try_wake(self, trigger: WakeUp) -> Directive | None:
        for _ in range(WAKE_TRIES):
            p = Process(self.world, self.calls)
            deps = WakeDeps(
                tasks=self._records(p),
                rights=Rights(authority=p.authority, authoriser=p.authoriser),
                ledger=p.ledger,
                waits=p.waits,
                leases=p.leases,
                evidence=p.evidence,
                artifacts=p.artifacts,
                model_id=self.model_id,
            )
            try:
                return wake(trigger, deps)
            except (Retry, Redecide):
                self.world.clock.advance(_BACKOFF)
            except Killed:
                continue
        return None

    def _spoke(self, run: Run, *, patience: bool) -> bool:
        directive = run.directive
        assert directive is not None
        if directive.next in WAITS:
            return self._open_wait(run, directive)
        if directive.next is Next.AWAIT_RETRY:
            assert directive.until is not None
            if self.world.clock.now() < directive.until:
                if not patience:
                    return False
                self.world.clock.set(directive.until)
        elif directive.next is Next.PROPOSE:
            self._propose(run, directive)
        else:
            self._perform(run, directive)
        self._wake(run)
        return True

    def _open_wait(self, run: Run, directive: Directive) -> bool:
        token = f"token-{run.name}-{len(run.states)}-{self.world.ids.new('tok')}"
        self.world.machines.waiting.add(token)
        run.token = token
        p = Process(self.world, self.calls)
        deps = OpenWaitDeps(tokens=p.tokens, waits=p.waits, executions=p.executions, clock=p.clock)
        assert directive.wait_id is not None
        assert directive.correlation_id is not None
        command = OpenWait(key=run.key, wait_id=directive.wait_id, correlation_id=directive.correlation_id, token=token)
        if self._survive(lambda: open_wait(command, deps)) is None:
            # The state failed: its Catch leads back to Wake.
            self.world.machines.waiting.discard(token)
        return True

    def _propose(self, run: Run, directive: Directive) -> None:
        assert directive.window is not None
        p = Process(self.world, self.calls)
        command = Propose(key=run.key, window=directive.window)
        answer = self._survive(lambda: propose(command, p.artifacts, p.model))
        run.residue = answer.residue if answer else None

    def _perform(self, run: Run, directive: Directive) -> None:
        assert directive.operation is not None
        p = Process(self.world, self.calls)
        deps = PerformDeps(
            tasks=self._records(p),
            rights=Rights(authority=p.authority, authoriser=p.authoriser),
            ledger=p.ledger,
            tools=p.tools,
        )
        command = PerformAction(key=run.key, operation=directive.operation, version_hint=directive.version)
        self._survive(lambda: perform(command, deps))

    def _records(self, p: Process) -> Records:
        return Records(records=p.records, sealer=p.sealer, clock=p.clock, ids=p.ids, workflows=self.workflows)

    @staticmethod
    def _survive(work: Callable[[], T]) -> T | None:
        """Run a function of the machine; its death and its errors end in a Catch."""
        try:
            return work()
        except (EngineError, Killed):
            return None
