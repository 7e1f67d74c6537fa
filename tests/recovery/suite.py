"""The crash suite: every story at every point, and what came of it."""

import os
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Final

from shared.domain.workflow import Workflow
from tests.recovery.points import AT_ONE_CALL, Point, points_of
from tests.recovery.story import Stories, Story, stories_of
from tests.recovery.synthetic import SYNTHETIC
from tests.recovery.telling import Telling, Told

# Enough to keep two processes busy to the end; each shard tells its story once more as it should go.
SHARDS: Final = 4
# A sample takes every so-manieth of the points at which two workers, or a worker and a person, meet.
SAMPLED: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A promise that was broken, and where."""

    story: str
    point: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.story}, {self.point}\n" + "\n".join(f"    {line}" for line in self.lines)


@dataclass(slots=True, kw_only=True)
class Report:
    """What a run of the suite came to."""

    name: str
    points_min: int
    # How many points there are, and how many of them were tried.
    found: int = 0
    points: Counter[str] = field(default_factory=Counter)
    troubles: Counter[str] = field(default_factory=Counter)
    needed_sweep: int = 0
    violations: list[Violation] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def tried(self) -> int:
        """How many points were tried."""
        return self.points.total()

    def add(self, other: "Report") -> None:
        """Take in what a part of the run came to."""
        self.found += other.found
        self.points += other.points
        self.troubles += other.troubles
        self.needed_sweep += other.needed_sweep
        self.violations += other.violations


def find_stories(name: str) -> Stories:
    """Find the stories of a workflow, or the synthetic ones.

    Raises:
        LookupError: there is no such workflow, or it has no stories.
    """
    return SYNTHETIC if name == SYNTHETIC.name else stories_of(name)


def try_all(
    name: str,
    *,
    only: str | None = None,
    sample: bool = False,
    tell: Callable[[str, int], None] = lambda _name, _points: None,
) -> Report:
    """Tell every story of that name, or the only one of interest, at every point, on every processor there is.

    Args:
        sample: whether a part of the points is enough: every one at which one call goes wrong, and some of the others.

    Raises:
        LookupError: there is no such workflow, or it has no stories.
    """
    stories = find_stories(name)
    report = Report(name=name, points_min=stories.points_min)
    started = time.perf_counter()
    with ProcessPoolExecutor(max_workers=os.cpu_count(), mp_context=get_context("fork")) as pool:
        chosen = [n for n, (story, _) in enumerate(stories.told) if only in {None, story.name}]
        parts = {n: [pool.submit(try_shard, name, n, shard, sample=sample) for shard in range(SHARDS)] for n in chosen}
        for number, shards in parts.items():
            for shard in shards:
                report.add(shard.result())
            story = stories.told[number][0].name
            tell(story, report.points[story])
    report.seconds = time.perf_counter() - started
    return report


def try_shard(name: str, number: int, shard: int, *, sample: bool = False) -> Report:
    """Tell one story as it should go, and then at every `SHARDS`-th of the points that this showed."""
    story, workflow = find_stories(name).told[number]
    report = Report(name=name, points_min=0)
    told = _tell(story, workflow, None)
    if shard == 0:
        _note(report, story.name, "as it should go", told)
    points = points_of(told.calls, told.deliveries, story.meanwhile)
    report.found = len(points) if shard == 0 else 0
    chosen = [p for n, p in enumerate(points) if not sample or p.trouble in AT_ONE_CALL or n % SAMPLED == 0]
    for point in chosen[shard::SHARDS]:
        report.points[story.name] += 1
        report.troubles[point.trouble] += 1
        _note(report, story.name, str(point), _tell(story, workflow, point))
    return report


def _tell(story: Story, workflow: Workflow, point: Point | None) -> Told:
    try:
        return Telling(story, workflow, point).tell()
    except AssertionError as failed:
        return Told(calls=[], deliveries=[], violations=[str(failed)], needed_sweep=False)


def _note(report: Report, story: str, point: str, told: Told) -> None:
    report.needed_sweep += told.needed_sweep
    if told.violations:
        report.violations.append(Violation(story=story, point=point, lines=tuple(told.violations)))
