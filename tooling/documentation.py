"""Write the drawn parts of the documentation again: ``python -m tooling.documentation``.

A page holds a drawn part between two marks: ``<!-- drawn: NAME -->`` and ``<!-- end of NAME -->``. What stands
between them is replaced; a test compares it with what the code says now. Run after set-up.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from tooling import claims, drawings, event_schemas, source_facts
from tooling.steps import ROOT, VENV_BIN

DRAWN: Final = re.compile(
    r"(?P<begin><!-- drawn: (?P<name>[a-z_ ]+) -->\n).*?(?P<end>\n<!-- end of (?P=name) -->)", re.DOTALL
)

PARTS: Final[Mapping[str, Callable[[], str]]] = {
    "alarms": source_facts.alarms,
    "authority": source_facts.authority,
    "claims": claims.proven,
    "differences": drawings.differences,
    "errors": drawings.errors,
    "event envelope": event_schemas.envelope,
    "event schemas": event_schemas.drawn,
    "events": drawings.events,
    "gates": drawings.gates,
    "ledger": drawings.ledger,
    "limits": source_facts.limits,
    "people": drawings.people,
    "records": drawings.records,
    "routes": drawings.routes,
    "stages": drawings.stages,
    "statuses": drawings.statuses,
    "task machine": drawings.task_machine,
}


def pages() -> Iterator[Path]:
    """Every page of the documentation."""
    yield from sorted(ROOT.glob("*.md"))
    yield from sorted((ROOT / "docs").rglob("*.md"))


def drawn(text: str) -> str:
    """Return a page's text with every drawn part as the code says it now.

    Raises:
        KeyError: a mark names a part that nobody draws.
    """
    # The CDK starts the first `node` of the path; set-up has put one beside Python.
    os.environ["PATH"] = f"{VENV_BIN}{os.pathsep}{os.environ.get('PATH', '')}"
    return DRAWN.sub(lambda found: f"{found['begin']}\n{PARTS[found['name']]()}\n{found['end']}", text)


def main() -> int:
    """Write every page again that has changed, and name it."""
    for page in pages():
        before = page.read_text(encoding="utf-8")
        after = drawn(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(page.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
