"""The product's claims and the tests that prove them: ids stand in test docstrings, words and sources in a file.

`docs/claims.toml` says what every id claims and where the public reason for it is. A claim is shown in `docs/claims.md`
only when a test carries its id, so the page can promise nothing that is not tested.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tooling.drawings import table
from tooling.steps import ROOT

CLAIMS: Final = ROOT / "docs" / "claims.toml"
TESTS: Final = ROOT / "tests"

# A letter for where the claim comes from and a number: B01, L5, C-A.
_ID: Final = re.compile(r"\b(?:B\d{2}|[LRIMAO]\d|C-[A-D])\b")
# These try the equipment: the local AWS, the pretend provider, the scripted model. They prove nothing of the product.
_EQUIPMENT: Final = ("tests/local/", "tests/unit/sandbox/")
# The whole system first, then smaller parts of it.
_MOST_TELLING_FIRST: Final = ("scenario", "recovery", "property", "integration", "unit", "contract", "infrastructure")
# Enough to show at which layers a claim is held; the rest is a search away.
_TESTS_SHOWN_MAX: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim, in the product's own words, and the public text or report that asks for it."""

    claim: str
    source: str
    # What the claim does not cover yet.
    open: str = ""


def claims() -> Mapping[str, Claim]:
    """Read all claims by id, in the order of the file."""
    stored = tomllib.loads(CLAIMS.read_text(encoding="utf-8"))
    return {name: Claim(**fields) for name, fields in stored.items()}


def carried() -> Mapping[str, tuple[str, ...]]:
    """Find the tests that carry an id, as ``path::name``, by id. An id in a module's docstring stands for the file."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py"), key=_place):
        for claim_id, test in _carried_in(path):
            found.setdefault(claim_id, []).append(test)
    return {claim_id: tuple(dict.fromkeys(tests)) for claim_id, tests in found.items()}


def proofs() -> Mapping[str, tuple[str, ...]]:
    """The tests that prove something of the product, by id."""
    tests = {name: tuple(t for t in found if not t.startswith(_EQUIPMENT)) for name, found in carried().items()}
    return {claim_id: found for claim_id, found in tests.items() if found}


def proven() -> str:
    """Write the table of the claims that a test proves."""
    proved = proofs()
    rows = [(name, each.claim, each.source, _shown(proved[name])) for name, each in claims().items() if name in proved]
    return table(("id", "claim", "asked for by", "proved by"), rows)


def _place(path: Path) -> tuple[int, Path]:
    suite = path.relative_to(TESTS).parts[0]
    telling = _MOST_TELLING_FIRST
    return (telling.index(suite) if suite in telling else len(telling), path)


def _carried_in(path: Path) -> Iterator[tuple[str, str]]:
    where = str(path.relative_to(ROOT))
    module = ast.parse(path.read_text(encoding="utf-8"))
    for claim_id in _ids(ast.get_docstring(module)):
        yield claim_id, where
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            for claim_id in _ids(ast.get_docstring(node)):
                yield claim_id, f"{where}::{node.name}"


def _ids(docstring: str | None) -> list[str]:
    return sorted(set(_ID.findall(docstring or "")))


def _shown(tests: tuple[str, ...]) -> str:
    # A single test says more than the whole file that it stands in.
    single = [test for test in tests if "::" in test] or list(tests)
    shown = [f"`{test}`" for test in single[:_TESTS_SHOWN_MAX]]
    return "<br>".join([*shown, *(["and others"] if len(single) > len(shown) else [])])
