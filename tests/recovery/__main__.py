"""Try a workflow at every call it makes: ``python -m tests.recovery --workflow refund``.

Without a workflow, all of them are tried, and the synthetic stories that cover every effect class. The last line says
how many points were tried and how many promises were broken; the exit code is 0 only if none was and none was skipped.
"""

import argparse
import sys

from shared.runtime.observability import logger
from shared.workflows.registry import discover
from tests.recovery import crash_table
from tests.recovery.suite import Report, find_stories, try_all
from tests.recovery.synthetic import SYNTHETIC

# Enough to see what is wrong; the rest is mostly the same fault seen from elsewhere.
VIOLATIONS_SHOWN = 20


def main(arguments: list[str]) -> int:
    """Run the suite and print what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.recovery", description=__doc__)
    parser.add_argument("--workflow", metavar="NAME", help=f"only this workflow, or {SYNTHETIC.name}")
    parser.add_argument("--story", metavar="NAME", help="only this story of it")
    parser.add_argument("--table", action="store_true", help="print the crash table and try nothing")
    asked = parser.parse_args(arguments)
    if asked.table:
        say(crash_table.as_markdown())
        return 0
    logger.setLevel("CRITICAL")
    names = [asked.workflow] if asked.workflow else [*sorted(discover()), SYNTHETIC.name]
    try:
        reports = [run(name, asked.story) for name in names]
    except LookupError as unknown:
        say(f"error: {unknown.args[0]}")
        return 2
    tried = sum(report.tried for report in reports)
    violations = sum(len(report.violations) for report in reports)
    short = [] if asked.story else [report for report in reports if report.tried < report.points_min]
    for report in short:
        say(f"error: {report.name}: {report.tried} points, {report.points_min} were there before")
    say(f"crash points: {tried} tried, {violations} violations")
    return 1 if violations or short or not tried else 0


def run(name: str, story: str | None) -> Report:
    """Try the stories of one name and print its part of the report."""
    say(name)
    claims = {each.name: each.claim for each, _ in find_stories(name).told}
    report = try_all(name, only=story, tell=lambda which, points: say(f"{points:>7}  {which}: {claims[which]}"))
    for trouble, points in sorted(report.troubles.items()):
        say(f"{points:>7}  where {trouble}")
    say(f"{report.needed_sweep:>7}  of them came to rest by the sweep alone")
    for violation in report.violations[:VIOLATIONS_SHOWN]:
        say(f"violation: {violation}")
    say(f"{name}: {report.tried} points in {report.seconds:.0f} s, {len(report.violations)} violations")
    return report


def say(line: str) -> None:
    """Print a line at once, also into a pipe."""
    print(line, flush=True)  # noqa: T201 - this talks to the person at the terminal


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
