"""The crash suite: every story at every point, and what came of it."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from shared.domain.workflow import Workflow
from tests.recovery.points import points_of
from tests.recovery.story import Stories, Story
from tests.recovery.telling import Telling, Told


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A promise that was broken, and how to see it again."""

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
    points: Counter[str] = field(default_factory=Counter)
    troubles: Counter[str] = field(default_factory=Counter)
    needed_sweep: int = 0
    violations: list[Violation] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def tried(self) -> int:
        """How many points were tried."""
        return self.points.total()


def try_all(stories: Stories, *, only: str | None = None, tell: Callable[[str], None] = lambda _: None) -> Report:
    """Tell every story, or only the one of that name, at every point."""
    report = Report(name=stories.name, points_min=stories.points_min)
    started = time.perf_counter()
    for story, workflow in stories.told:
        if only in {None, story.name}:
            try_story(story, workflow, report)
            tell(f"  {stories.name}: {story.name}: {report.points[story.name]} points")
    report.seconds = time.perf_counter() - started
    return report


def try_story(story: Story, workflow: Workflow, report: Report) -> None:
    """Tell a story as it should go, and then at every point that this showed."""
    told = Telling(story, workflow).tell()
    _note(report, story, "as it should go", told)
    for point in points_of(told.calls, told.deliveries, story.meanwhile):
        report.points[story.name] += 1
        report.troubles[point.trouble] += 1
        try:
            told = Telling(story, workflow, point).tell()
        except AssertionError as failed:
            report.violations.append(Violation(story=story.name, point=str(point), lines=(str(failed),)))
            continue
        _note(report, story, str(point), told)


def _note(report: Report, story: Story, point: str, told: Told) -> None:
    report.needed_sweep += told.needed_sweep
    if told.violations:
        report.violations.append(Violation(story=story.name, point=point, lines=tuple(told.violations)))
