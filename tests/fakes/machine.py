"""The state machine and the outbox stream, played in one process over a world.

The graph that is played is the one that is deployed. Each function runs as a new process would: fresh fakes over the
stored world. What the services guarantee is kept: errors are retried and caught by name as the graph says, an
execution's name starts once, a token is answered once, stream records come again until they are delivered.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Final

from functions.open_wait.handler import OpenWaitInput, OpenWaitOutput
from functions.perform.handler import PerformInput, PerformOutput
from functions.propose.handler import ProposeInput, ProposeOutput
from functions.wake.handler import WakeInput
from shared.domain.errors import EngineError
from shared.domain.identity import TaskKey
from shared.domain.instants import parse_instant
from shared.domain.outbox import OutboxRow
from shared.domain.workflow import Workflow
from shared.ports.authoriser import Authoriser
from shared.ports.executions import ExecutionState
from shared.runtime.step import run_step
from shared.usecases.deliver import deliver
from shared.usecases.engine import ApiDeps, DeliverDeps, OpenWaitDeps, PerformDeps, Records, Rights, WakeDeps
from shared.usecases.open_wait import OpenWait, open_wait
from shared.usecases.perform import PerformAction, perform
from shared.usecases.propose import Propose, propose
from shared.usecases.wake import wake
from shared.workflows.registry import discover
from stacks.task_graph import FAILURES, HUB, task_graph
from tests.fakes.calls import Calls, Killed
from tests.fakes.process import Process
from tests.fakes.states_language import Document, StatesRuntime, at, fill, put
from tests.fakes.store import StartedExecution, World

# More passes than any legal story of a test needs.
PASSES_MAX: Final = 1_000
# How the service reports that a function's process died or that its own connection to it broke.
DIED: Final = "Lambda.Unknown"
# A waiting task's answer carries no decision.
_ANSWER: Final[Document] = {"answered": True}
_FAILED_WORDS: Final = {name: word for word, (name, _, _) in FAILURES.items()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trigger:
    """One delivery to one function. Doing its work again is delivering it again."""

    function: str
    subject: str
    work: Callable[[], object]


@dataclass(slots=True, kw_only=True)
class Run:
    """One execution: where it stands, with which document, and the token it waits with."""

    name: str
    key: TaskKey
    run: int
    workflow: str
    document: Document
    state: str = HUB
    entered_at: datetime
    # The instant before which it does nothing: a retry's backoff.
    pauses_until: datetime | None = None
    tries: dict[int, int] = field(default_factory=dict)
    token: str | None = None
    # The word of the ending, or the name of the failed state or error.
    ended: str | None = None
    states: list[str] = field(default_factory=list)


class _StepFailed(Exception):
    """A state's task failed with a name that Retry and Catch match."""

    def __init__(self, name: str, cause: str) -> None:
        super().__init__(name)
        self.name: Final = name
        self.cause: Final = cause


class Machine:
    """Plays every execution of a world until nothing can move without a person, an event or the clock."""

    def __init__(
        self,
        world: World,
        calls: Calls | None = None,
        *,
        workflows: Mapping[str, Workflow] | None = None,
        model_id: str = "model-1",
        authoriser: Authoriser | None = None,
        process: Callable[[World, Calls], Process] = Process,
        died: str = DIED,
    ) -> None:
        self.world = world
        self.calls = calls or Calls()
        self.workflows = dict(workflows if workflows is not None else discover())
        self.model_id = model_id
        self.runs: dict[str, Run] = {}
        self.triggers: list[Trigger] = []
        # The delivery that is being worked on, if any.
        self.current: Trigger | None = None
        # How a delivery is worked on, and what follows it; a test may replace both.
        self.work_on: Callable[[Trigger], object] = lambda trigger: trigger.work()
        self.after: Callable[[Trigger], None] = lambda _trigger: None
        self.before_time_passes: Callable[[datetime], None] = lambda _to: None
        # Every error that a function ended with, as (function, name, cause).
        self.errors: list[tuple[str, str, str]] = []
        self._authoriser = authoriser
        self._process = process
        self._died = died
        self._chance = random.Random(0)  # noqa: S311 - the service's jitter, repeatable on purpose
        self._functions: Mapping[str, Callable[[object], object]] = {
            "${WakeArn}": self._wake,
            "${ProposeArn}": self._propose,
            "${OpenWaitArn}": self._open_wait,
            "${PerformArn}": self._perform,
        }

    def process(self) -> Process:
        """Start a fresh process over the world."""
        return self._process(self.world, self.calls)

    def deploy(self, workflow: Workflow, authoriser: Authoriser) -> None:
        """Put another release of a workflow in force, with its policies: the next call of any function runs on it."""
        self.workflows[workflow.name] = workflow
        self._authoriser = authoriser

    def api(self) -> ApiDeps:
        """Wire the API's use cases in a fresh process."""
        p = self.process()
        return ApiDeps(
            tasks=self.records(p),
            rights=self.rights(p),
            inbox=p.inbox,
            waits=p.waits,
            ledger=p.ledger,
            evidence=p.evidence,
            model_id=self.model_id,
        )

    def records(self, p: Process) -> Records:
        """Wire the sealed tasks of one process."""
        return Records(records=p.records, sealer=p.sealer, clock=p.clock, ids=p.ids, workflows=self.workflows)

    def rights(self, p: Process) -> Rights:
        """Wire the rights of one process."""
        return Rights(authority=p.authority, authoriser=self._authoriser or p.authoriser)

    def settle(self, *, patience: bool = True) -> None:
        """Deliver and run until all is quiet. With patience, the clock moves over retry windows."""
        for _ in range(PASSES_MAX):
            if not self.step(patience=patience):
                return
        msg = f"no rest after {PASSES_MAX} passes: {[(r.name, r.states[-6:]) for r in self.runs.values()]}"
        raise AssertionError(msg)

    def step(self, *, patience: bool = True) -> bool:
        """Deliver and run one pass, or let the clock move to the next instant; say whether anything moved."""
        if self.drain() or self._start() or self._step_all() or self.beside():
            return True
        due = self._next_instant(patience=patience)
        if due is None:
            return False
        self.pass_time(due)
        return True

    def beside(self) -> bool:
        """Play what runs beside the machine, if anything; say whether something moved."""
        return False

    def states(self, key: TaskKey) -> list[str]:
        """The states that the task's executions have entered, in order: `Wake`, and the words that it answered."""
        return [state for run in self.runs.values() if run.key == key for state in run.states]

    def fire(self, trigger: Trigger) -> object:
        """Deliver to a function and return what it answers; its errors are raised."""
        self.triggers.append(trigger)
        outer, self.current = self.current, trigger
        try:
            return self.work_on(trigger)
        finally:
            self.current = outer
            self.after(trigger)

    def repeat(self, trigger: Trigger) -> None:
        """Deliver once more. Nobody waits for what this copy answers, so its errors end with it."""
        outer, self.current = self.current, None
        try:
            trigger.work()
        except Killed:
            pass
        except Exception as error:  # noqa: BLE001 - remembered, and judged by whoever plays
            self.remember(trigger.function, error)
        finally:
            self.current = outer

    def pass_time(self, to: datetime) -> None:
        """Move the clock forward."""
        if to > self.world.clock.now():
            self.before_time_passes(to)
            self.world.clock.set(to)

    def drain(self) -> bool:
        """Deliver what is staged, as the stream does; what fails comes again. Say whether there was anything."""
        rows = [row for _, row in sorted(self.world.outbox.items())]
        for row in rows:
            self.deliver_row(row)
        return bool(rows)

    def deliver_row(self, row: OutboxRow) -> None:
        """Deliver one row, in its turn or out of it."""
        trigger = Trigger(
            function="deliver",
            subject=f"outbox row {row.version}.{row.part}",
            work=lambda: deliver(row, self._deliver_deps()),
        )
        try:
            self.fire(trigger)
        except Killed:
            return
        except Exception as error:  # noqa: BLE001 - the record is reported as failed and comes again
            self.remember("deliver", error)

    def _deliver_deps(self) -> DeliverDeps:
        p = self.process()
        return DeliverDeps(
            outbox=p.outbox,
            tokens=p.tokens,
            waits=p.waits,
            executions=p.executions,
            events=p.event_bus,
            timers=p.timers,
            alarm=self.world.alarms.append,
        )

    def _start(self) -> bool:
        fresh = [e for name, e in self.world.machines.executions.items() if name not in self.runs]
        for execution in fresh:
            self.runs[execution.name] = self._run_of(execution)
        return bool(fresh)

    def _run_of(self, execution: StartedExecution) -> Run:
        run = Run(
            name=execution.name,
            key=execution.key,
            run=execution.run,
            workflow=execution.workflow,
            document={
                "tenant": execution.key.tenant,
                "task_id": execution.key.task_id,
                "run": execution.run,
                "version": execution.version,
            },
            entered_at=self.world.clock.now(),
        )
        self._enter(run, HUB)
        return run

    def _step_all(self) -> bool:
        moved = [self._step(run) for run in list(self.runs.values()) if run.ended is None]
        return any(moved)

    def _step(self, run: Run) -> bool:
        """Take one state of one execution as far as it goes now; say whether anything moved."""
        if run.pauses_until is not None:
            if self.world.clock.now() < run.pauses_until:
                return False
            run.pauses_until = None
        try:
            return self._take(run, _states_of(run.workflow)[run.state])
        except StatesRuntime as error:
            self._end(run, "States.Runtime", because=str(error))
            return True

    def _take(self, run: Run, state: Document) -> bool:
        match state["Type"]:
            case "Choice":
                word = at("$.next", run.document, {})
                run.states.append(word)
                self._enter(
                    run, next((c["Next"] for c in state["Choices"] if c["StringEquals"] == word), state["Default"])
                )
            case "Wait":
                if self.world.clock.now() < parse_instant(at(state["TimestampPath"], run.document, {})):
                    return False
                self._enter(run, state["Next"])
            case "Succeed":
                self._end(run, run.document["next"])
            case "Fail":
                self._end(run, _FAILED_WORDS.get(run.state, run.state))
            case _:
                return self._task(run, state)
        return True

    def _task(self, run: Run, state: Document) -> bool:
        try:
            if run.token is None:
                answer = self._invoke(run, state)
            elif self._is_awaited(run, state):
                return False
            else:
                answer = _ANSWER
        except _StepFailed as failure:
            self._failed(run, state, failure)
            return True
        if run.token is not None:
            if run.token in self.world.machines.waiting:
                return True
            answer = _ANSWER
        selected = fill(state["ResultSelector"], answer, {}) if "ResultSelector" in state else answer
        document = put(state.get("ResultPath", "$"), run.document, selected)
        run.document = at(state.get("OutputPath", "$"), document, {})
        self._enter(run, state["Next"])
        return True

    def _invoke(self, run: Run, state: Document) -> Document:
        if state["Resource"].endswith(".waitForTaskToken"):
            run.token = self._issue_token(run)
        if run.state == HUB:
            run.states.append(HUB)
        context = {"Execution": {"Name": run.name}, "Task": {"Token": run.token}}
        parameters = fill(state["Parameters"], run.document, context)
        function = self._functions[parameters["FunctionName"]]
        name = function.__name__.removeprefix("_")
        trigger = Trigger(function=name, subject=run.name, work=lambda: function(parameters["Payload"]))
        try:
            return {"Payload": self.fire(trigger)}
        except Killed as death:
            raise _StepFailed(self._died, str(death)) from death
        except Exception as error:
            self.remember(name, error)
            raise _StepFailed(type(error).__name__, str(error)) from error

    def _issue_token(self, run: Run) -> str:
        token = f"token-{run.name}-{len(run.states)}-{self.world.ids.new('tok')}"
        self.world.machines.waiting.add(token)
        return token

    def _is_awaited(self, run: Run, state: Document) -> bool:
        """Whether the state goes on waiting for its token; its own timeout ends that as a failure."""
        if run.token not in self.world.machines.waiting:
            return False
        patience = timedelta(seconds=at(state["TimeoutSecondsPath"], run.document, {}))
        if self.world.clock.now() < run.entered_at + patience:
            return True
        raise _StepFailed("States.Timeout", "nobody answered the token")

    def _failed(self, run: Run, state: Document, failure: _StepFailed) -> None:
        answered = run.token is not None and run.token not in self.world.machines.waiting
        if answered:
            # The service took the answer; how the function that asked for it ended no longer matters.
            return
        if run.token is not None:
            self.world.machines.waiting.discard(run.token)
            run.token = None
        for number, rule in enumerate(state.get("Retry", [])):
            if not _matches(rule, failure.name):
                continue
            tried = run.tries.get(number, 0)
            if tried < rule["MaxAttempts"]:
                run.tries[number] = tried + 1
                seconds = min(rule["IntervalSeconds"] * rule["BackoffRate"] ** tried, rule["MaxDelaySeconds"])
                pause = timedelta(milliseconds=int(1_000 * seconds * self._chance.random()))
                run.pauses_until = self.world.clock.now() + pause
                return
            break
        for rule in state.get("Catch", []):
            if _matches(rule, failure.name):
                run.document = put(rule["ResultPath"], run.document, {"Error": failure.name, "Cause": failure.cause})
                self._enter(run, rule["Next"])
                return
        self._end(run, failure.name, because=failure.cause)

    def _enter(self, run: Run, state: str) -> None:
        run.state, run.token, run.pauses_until = state, None, None
        run.tries = {}
        run.entered_at = self.world.clock.now()

    def _end(self, run: Run, word: str, *, because: str = "") -> None:
        run.ended = word
        succeeded = _states_of(run.workflow)[run.state]["Type"] == "Succeed"
        self.world.machines.ended[run.name] = ExecutionState.SUCCEEDED if succeeded else ExecutionState.FAILED
        if because:
            self.errors.append(("execution", word, because))

    def _next_instant(self, *, patience: bool) -> datetime | None:
        """When the next execution can go on that waits for nothing but time."""
        alive = [run for run in self.runs.values() if run.ended is None]
        due = [run.pauses_until for run in alive if run.pauses_until is not None]
        if patience:
            due += [
                parse_instant(at(state["TimestampPath"], run.document, {}))
                for run in alive
                if (state := _states_of(run.workflow)[run.state])["Type"] == "Wait"
            ]
        return min(due, default=None)

    def _wake(self, payload: object) -> object:
        p = self.process()
        deps = WakeDeps(
            tasks=self.records(p),
            rights=self.rights(p),
            ledger=p.ledger,
            waits=p.waits,
            inbox=p.inbox,
            leases=p.leases,
            evidence=p.evidence,
            artifacts=p.artifacts,
            model_id=self.model_id,
            alarm=self.world.alarms.append,
        )
        return run_step(payload, WakeInput, lambda request: wake(request.trigger(), deps))

    def _propose(self, payload: object) -> object:
        p = self.process()

        def work(request: ProposeInput) -> ProposeOutput:
            command = Propose(key=TaskKey(tenant=request.tenant, task_id=request.task_id), window=request.window)
            proposed = propose(command, p.artifacts, p.model)
            return ProposeOutput(residue=proposed.residue, stop_reason=proposed.stop_reason)

        return run_step(payload, ProposeInput, work)

    def _open_wait(self, payload: object) -> object:
        p = self.process()
        deps = OpenWaitDeps(tokens=p.tokens, waits=p.waits, tasks=p.records, executions=p.executions, clock=p.clock)

        def work(request: OpenWaitInput) -> OpenWaitOutput:
            command = OpenWait(
                key=TaskKey(tenant=request.tenant, task_id=request.task_id),
                wait_id=request.wait_id,
                correlation_id=request.correlation_id,
                token=request.token,
                run=request.run,
                hops=request.hops,
            )
            return OpenWaitOutput(answered=open_wait(command, deps))

        return run_step(payload, OpenWaitInput, work)

    def _perform(self, payload: object) -> object:
        p = self.process()
        deps = PerformDeps(tasks=self.records(p), rights=self.rights(p), ledger=p.ledger, tools=p.tools)

        def work(request: PerformInput) -> PerformOutput:
            command = PerformAction(
                key=TaskKey(tenant=request.tenant, task_id=request.task_id),
                operation=request.operation,
                version_hint=request.version,
            )
            done = perform(command, deps)
            return PerformOutput(operation=done.operation, status=done.status, reason=done.reason)

        return run_step(payload, PerformInput, work)

    def remember(self, function: str, error: Exception) -> None:
        """Keep the error that a function ended with; a failed expectation of a test is none."""
        if isinstance(error, AssertionError):
            raise error
        # A function that the machine does not call has no frame that renames its errors.
        name = error.disposition.name.title() if isinstance(error, EngineError) else type(error).__name__
        self.errors.append((function, name, str(error)))


@cache
def _states_of(workflow: str) -> Document:
    states: Document = task_graph(workflow)["States"]
    return states


def _matches(rule: Document, name: str) -> bool:
    return "States.ALL" in rule["ErrorEquals"] or name in rule["ErrorEquals"]
