"""The machine with what stands around it: timers that fire, executions' ends that are reported, and the sweep.

Timers and reports are delivered at least once and a few times at most, as their services do it; what is lost even so is
left to the sweep, which only runs when it is told to.
"""

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any, Final

from shared.domain.identity import TaskKey
from shared.domain.outbox import ArmTimer
from shared.ports.executions import ExecutionState
from shared.usecases.act_on_deadline import DeadlineFired, act_on_deadline
from shared.usecases.engine import DeadlineDeps, RecoverDeps, WebhookDeps
from shared.usecases.recover import recover_task, sweep
from tests.fakes.calls import Killed
from tests.fakes.machine import Machine, Run, Trigger

# A first delivery and two more: what an asynchronous invocation gets before it is given up.
DELIVERIES_MAX: Final = 3
_DIED: Final = frozenset({ExecutionState.FAILED, ExecutionState.TIMED_OUT, ExecutionState.ABORTED})


class TendedMachine(Machine):
    """A machine whose timers fire and whose dead executions are looked after."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        # Deliveries that are left, by what is delivered.
        self._left: defaultdict[object, int] = defaultdict(lambda: DELIVERIES_MAX)

    def webhook(self) -> WebhookDeps:
        """Wire the taking in of signed events in a fresh process."""
        p = self.process()
        return WebhookDeps(tasks=self.records(p), waits=p.waits, inbox=p.inbox, alarm=self.world.alarms.append)

    def beside(self) -> bool:
        """Fire the timers that are due, and report the executions that have died."""
        died = [run for run in self.runs.values() if self._is_news(run)]
        due = [timer for timer in self.world.timers.values() if self._is_due(timer)]
        for run in died:
            self._report(run)
        for key, timer in due:
            self._fire_timer(key, timer)
        return bool(died or due)

    def live_for(self, by: timedelta) -> None:
        """Let time pass from one timer to the next, and come to rest after each."""
        to = self.world.clock.now() + by
        self.settle()
        while (due := self._next_timer(to)) is not None:
            self.pass_time(due)
            self.settle()
        self.pass_time(to)
        self.settle()

    def sweep(self) -> None:
        """Run the sweep once; if it dies, the next one comes in a few minutes."""
        self._deliver_beside(Trigger(function="recover", subject="sweep", work=lambda: sweep(self._recover_deps())))

    def _is_news(self, run: Run) -> bool:
        return self.world.machines.ended.get(run.name) in _DIED and self._left[run.name] > 0

    def _report(self, run: Run) -> None:
        def work() -> bool:
            return recover_task(run.key, self._recover_deps(), run=run.run)

        took = self._deliver_beside(Trigger(function="recover", subject=f"end of {run.name}", work=work))
        self._left[run.name] = 0 if took else self._left[run.name] - 1

    def _is_due(self, armed: tuple[TaskKey, ArmTimer]) -> bool:
        _, timer = armed
        return timer.at <= self.world.clock.now() and self._left[timer.wait_id, timer.rung] > 0

    def _next_timer(self, until: datetime) -> datetime | None:
        left = [t.at for _, t in self.world.timers.values() if self._left[t.wait_id, t.rung] > 0]
        return min((at for at in left if at <= until), default=None)

    def _fire_timer(self, key: TaskKey, timer: ArmTimer) -> None:
        fired = DeadlineFired(
            tenant=key.tenant, correlation_id=timer.correlation_id, wait_id=timer.wait_id, rung=timer.rung
        )

        def work() -> bool:
            p = self.process()
            return act_on_deadline(fired, DeadlineDeps(tasks=self.records(p), waits=p.waits))

        subject = f"rung {timer.rung} of {timer.wait_id}"
        took = self._deliver_beside(Trigger(function="deadline", subject=subject, work=work))
        self._left[timer.wait_id, timer.rung] = 0 if took else self._left[timer.wait_id, timer.rung] - 1
        spent = self._left[timer.wait_id, timer.rung] == 0
        if spent and self.world.timers.get(timer.wait_id) == (key, timer):
            # The service removes a one-time schedule that has fired.
            del self.world.timers[timer.wait_id]

    def _deliver_beside(self, trigger: Trigger) -> bool:
        try:
            self.fire(trigger)
        except Killed:
            return False
        except Exception as error:  # noqa: BLE001 - the service delivers again, a few times
            self.remember(trigger.function, error)
            return False
        return True

    def _recover_deps(self) -> RecoverDeps:
        p = self.process()
        return RecoverDeps(tasks=self.records(p), waits=p.waits, executions=p.executions, outbox=p.outbox)
