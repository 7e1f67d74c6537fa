"""Telling a story: once as it should go, or with one thing going wrong, and then until nothing is left to mend."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from shared.domain.workflow import Workflow
from tests.fakes.calls import Calls, Fault, Killed, When
from tests.fakes.machine import DIED, Trigger
from tests.recovery.acts import Asks, changes_the_ending
from tests.recovery.dispatch import DispatchWatch
from tests.recovery.invariants import broken, broken_at_this_instant
from tests.recovery.points import CallMade, Point, Trouble
from tests.recovery.promises import as_the_story_ends, promises_kept
from tests.recovery.scene import IN_MEMORY, Backing, Scene, scene_of
from tests.recovery.story import Story
from tests.recovery.workers import Worker

# No Retry of the graph lists this name: whoever dies so ends the execution.
UNHEARD: Final = "Process.Gone"
# The sweep looks at a task that has not moved for two check-ups at the latest.
SWEEP_AFTER: Final = timedelta(minutes=35)
# One finds what is stuck, one what only the first one's restart has brought to light.
SWEEPS: Final = 2
# Long after the end: what a dead-letter queue gives back when somebody has looked at it.
LONG_AFTER: Final = timedelta(hours=6)
# How long each function may live; a worker that hangs is ended by then.
LIVES: Final = {
    "api": timedelta(seconds=15),
    "webhook": timedelta(seconds=15),
    "wake": timedelta(seconds=20),
    "propose": timedelta(seconds=60),
    "open_wait": timedelta(seconds=10),
    "perform": timedelta(seconds=20),
    "deliver": timedelta(seconds=30),
    "deadline": timedelta(seconds=15),
    "recover": timedelta(seconds=60),
}
_FAULTS: Final = {
    Trouble.KILL_BEFORE: When.KILL_BEFORE,
    Trouble.KILL_AFTER: When.KILL_AFTER,
    Trouble.DIE_UNHEARD: When.KILL_AFTER,
    Trouble.DROP_REPLY: When.DROP_REPLY,
    Trouble.LOSE_REQUEST: When.LOSE_REQUEST,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """How a telling came out. `needed_sweep` says that nothing but the sweep brought the task to rest."""

    calls: list[CallMade]
    deliveries: list[str]
    violations: list[str]
    needed_sweep: bool


class Telling:
    """One telling of a story with at most one trouble."""

    def __init__(
        self, story: Story, workflow: Workflow, point: Point | None = None, *, backing: Backing = IN_MEMORY
    ) -> None:
        fault = _FAULTS.get(point.trouble) if point else None
        calls = Calls(Fault(when=fault, at=point.at)) if point and fault else Calls()
        died = UNHEARD if point and point.trouble is Trouble.DIE_UNHEARD else DIED
        self.scene: Final[Scene] = scene_of(story, workflow, calls=calls, died=died, backing=backing)
        self._backing = backing
        self._point = point
        self._log: list[CallMade] = []
        self._finished = 0
        self._struck = False
        self._stalled: list[tuple[Worker, Trigger, datetime]] = []
        self._violations: list[str] = []
        machine = self.scene.machine
        # Two workers at once look at different moments; what each of them saw is not told apart here.
        self._watch = DispatchWatch(self.scene) if point is None or point.trouble is Trouble.MEANWHILE else None
        machine.calls.step_in = self._before_call
        machine.after = self._after_delivery
        machine.before_time_passes = self._before_time_passes
        if point and point.trouble in {Trouble.STALL, Trouble.STALL_ON}:
            machine.work_on = self._hang
        if point and point.trouble is Trouble.INTERLEAVED:
            machine.work_on = self._interleave

    def tell(self) -> Told:
        """Tell the story to its end, mend what is left, and look at what has become of it."""
        scene, machine = self.scene, self.scene.machine
        scene.start()
        self._come_to_rest(last=not scene.story.acts)
        for act in scene.story.acts:
            act(scene)
            self._come_to_rest(last=act is scene.story.acts[-1])
        self._deliver_long_after()
        calls, deliveries = list(self._log), [trigger.function for trigger in machine.triggers]
        needed_sweep, left = self._mend()
        exactly = self._point is None or not changes_the_ending(self._point.act)
        return Told(
            calls=calls,
            deliveries=deliveries,
            violations=[
                *self._violations,
                *(self._watch.wrong if self._watch else ()),
                *left,
                *promises_kept(scene),
                *as_the_story_ends(scene, exactly=exactly),
            ],
            needed_sweep=needed_sweep,
        )

    def _come_to_rest(self, *, last: bool) -> None:
        """Whoever hangs is ended by its own limit, long before most people act; some people are quicker."""
        self.scene.machine.settle()
        if self._stalled and (last or (self._point and self._point.trouble is Trouble.STALL)):
            self._let_stalled_go_on(None)
            self.scene.machine.settle()

    def _mend(self) -> tuple[bool, list[str]]:
        """Let the sweep run as it always does; say whether it was needed, and what is broken even so."""
        machine = self.scene.machine
        left = broken(machine)
        needed, before = bool(left), dict(machine.world.heads)
        for _ in range(SWEEPS if needed else 1):
            machine.live_for(SWEEP_AFTER)
            machine.sweep()
            machine.settle()
        if needed or machine.world.heads != before or machine.world.outbox:
            left = broken(machine)
        return needed, left

    def _before_call(self, name: str) -> None:
        machine, point = self.scene.machine, self._point
        current = machine.current
        self._log.append(
            CallMade(
                name=name,
                function=current.function if current else "copy",
                delivery=len(machine.triggers) - 1,
            )
        )
        if self._watch is not None:
            self._watch.at_call(name)
        worker = Worker.current()
        if worker is not None:
            worker.at_call()
        if point is None or self._struck or len(self._log) != point.at:
            return
        if point.trouble is Trouble.OVERTAKEN and current is not None:
            self._struck = True
            self._repeat(current)
        elif point.trouble is Trouble.MEANWHILE and point.act is not None:
            self._struck = True
            point.act(self.scene)
        elif point.trouble in _FAULTS:
            self._struck = True

    def _after_delivery(self, _trigger: Trigger) -> None:
        machine, point = self.scene.machine, self._point
        self._backing.refresh(self.scene.world)
        self._finished += 1
        if point is None:
            return
        if point.trouble is Trouble.TWICE and point.again_after == self._finished:
            self._struck = True
            self._repeat(machine.triggers[point.at - 1])
        if self._struck:
            self._struck_once()

    def _repeat(self, trigger: Trigger) -> None:
        self.scene.machine.repeat(trigger)
        self._backing.refresh(self.scene.world)

    def _struck_once(self) -> None:
        """Whatever was cut off: what has to hold at any instant has to hold at this one."""
        if not self._violations and self._point is not None:
            self._violations += [f"at that instant: {line}" for line in broken_at_this_instant(self.scene.machine)]

    def _hang(self, trigger: Trigger) -> object:
        point = self._point
        assert point is not None
        if not self._is_here(point):
            return trigger.work()
        worker = Worker(trigger.work, stops_before=lambda _: len(self._log) == point.at)
        if worker.go():
            return worker.result()
        self._stalled.append((worker, trigger, self.scene.world.clock.now() + LIVES[trigger.function]))
        raise Killed("it was given up")

    def _interleave(self, trigger: Trigger) -> object:
        """Let the delivery and another worker each come to their stop, then end them in that order."""
        point, scene = self._point, self.scene
        assert point is not None
        if not self._is_here(point):
            return trigger.work()
        request = point.act.request(scene) if isinstance(point.act, Asks) else None
        if point.act is not None and request is None:
            return trigger.work()
        other = request.trigger() if request else trigger
        mine = Worker(trigger.work, stops_before=lambda made: made == point.at)
        theirs = Worker(other.work, stops_before=lambda made: made == point.other_at)
        mine.go()
        theirs.go()
        mine.go()
        theirs.go()
        if request is None:
            if isinstance(theirs.error, Exception):
                scene.machine.remember(other.function, theirs.error)
        elif not scene.told(request, theirs.error):
            scene.ask(request)
        return mine.result()

    def _is_here(self, point: Point) -> bool:
        """Whether this delivery is the one at which it goes wrong; true once."""
        here = not self._struck and len(self.scene.machine.triggers) - 1 == point.delivery
        self._struck = self._struck or here
        return here

    def _before_time_passes(self, to: datetime) -> None:
        self._let_stalled_go_on(to)
        self.scene.lift_freezes(to)

    def _let_stalled_go_on(self, to: datetime | None) -> None:
        """Let a worker that hangs go on at the last instant of its life, or now if nothing else moves any more."""
        machine = self.scene.machine
        due = [entry for entry in self._stalled if to is None or entry[2] <= to]
        for entry in due:
            self._stalled.remove(entry)
            worker, trigger, ends_at = entry
            if to is not None and ends_at > self.scene.world.clock.now():
                self.scene.world.clock.set(ends_at)
            worker.go()
            if isinstance(worker.error, Exception):
                machine.remember(trigger.function, worker.error)
            self._backing.refresh(self.scene.world)

    def _deliver_long_after(self) -> None:
        point, machine = self._point, self.scene.machine
        if point is None or point.trouble is not Trouble.TWICE or point.again_after is not None:
            return
        machine.live_for(LONG_AFTER)
        self._repeat(machine.triggers[point.at - 1])
        machine.settle()
