"""Somebody edits the stored record by hand, at every call of a task (R6, B19): nothing runs on it."""

from dataclasses import replace

from shared.domain.errors import CheckpointQuarantined
from shared.domain.identity import TaskKey
from shared.usecases.read_task import read_task
from tests.builders import CLERK, MANAGER
from tests.recovery.acts import Decides, Happens
from tests.recovery.operating import Patiently
from tests.recovery.points import Point, Trouble, points_of
from tests.recovery.scene import Scene
from tests.recovery.story import stories_of
from tests.recovery.telling import Telling

APPROVED, REFUND = next(told for told in stories_of("refund").told if told[0].name == "approved")
# Whoever clicks is told that somebody has to look at the task first, and takes that for an answer.
STORY = replace(APPROVED, acts=(Patiently(act=Decides(by=MANAGER)),))


class Tampering:
    """Makes the amount of the newest stored version ten times as much, once."""

    def __init__(self) -> None:
        self.edited: tuple[TaskKey, int] | None = None

    def __call__(self, scene: Scene) -> None:
        """Edit the record, if there is one."""
        if scene.key is None:
            return
        version = scene.world.heads[scene.key.key].version
        stored = scene.world.checkpoints[scene.key.key, version]
        body = stored.body.replace('"amount_minor":45000', '"amount_minor":450000')
        assert body != stored.body
        scene.world.checkpoints[scene.key.key, version] = stored.model_copy(update={"body": body})
        self.edited = (scene.key, version)


def points() -> list[Point]:
    """Every place at which somebody may come in."""
    told = Telling(STORY, REFUND).tell()
    here = Happens(what="nothing", change=lambda _: None)
    return [p for p in points_of(told.calls, told.deliveries, (here,)) if p.trouble is Trouble.MEANWHILE]


def test_an_edited_record_is_never_acted_on() -> None:
    """R6, B19: it is quarantined as soon as anybody reads it; the bank is told the true amount, or nothing."""
    edits, quarantines = 0, 0
    for point in points():
        tampering = Tampering()
        scene = _tell(point, tampering)
        for effect in scene.world.downstreams["issue_refund"].effects:
            assert effect.arguments["amount_minor"] == 45_000, point
        if tampering.edited is None:
            continue
        edits += 1
        key, version = tampering.edited
        head = scene.world.heads[key.key]
        if head.version == version:
            # Nobody wrote over it: whoever reads it next is told, if nobody was told yet.
            assert head.quarantine is not None or _is_refused(scene, key), point
            quarantines += head.quarantine is not None

    assert edits > 30
    assert quarantines > 15


def _tell(point: Point, tampering: Tampering) -> Scene:
    telling = Telling(STORY, REFUND)
    scene = telling.scene
    calls: list[str] = []

    def step_in(name: str) -> None:
        calls.append(name)
        if len(calls) == point.at:
            tampering(scene)

    scene.machine.calls.step_in = step_in
    telling.tell()
    return scene


def _is_refused(scene: Scene, key: TaskKey) -> bool:
    try:
        read_task(scene.principal(CLERK), key.task_id, scene.machine.api())
    except CheckpointQuarantined:
        return True
    return False
