"""The documentation is current, its links lead somewhere, and what it tells a reader to type exists."""

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from tooling import claims
from tooling.documentation import DRAWN, PARTS, drawn, pages
from tooling.steps import ROOT

PAGES = [str(page.relative_to(ROOT)) for page in pages()]
# Its rows grow with every test; they are held by tests of their own.
CLAIMS_PAGE = "docs/claims.md"

LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
# A word in backticks that begins with one of the repository's folders is a path.
FOLDERS = (
    "benchmarks",
    "docs",
    "functions",
    "local",
    "requirements",
    "sandbox",
    "shared",
    "stacks",
    "tests",
    "tooling",
)
PLACE = re.compile(rf"^(?:{'|'.join(FOLDERS)})/[\w./-]*$")
# What a reader needs to have on the machine beside what set-up installs.
PROGRAMS = {"aws", "cdk", "curl", "export", "git", "grep", "make", "ollama", "printf"}
# Context values whose names are made from a provider's.
PROVIDERS = {"payments_url", "office_url"}
# What a shell itself understands: a loop, and a function or variable that is set.
OF_THE_SHELL = re.compile(r"(?:for \w+ in |done\b|\w+\(\) \{|[A-Z_]+=)")


def text_of(page: str) -> str:
    """A page as it stands."""
    return (ROOT / page).read_text(encoding="utf-8")


def prose_of(page: str) -> str:
    """A page without its fenced blocks."""
    return FENCE.sub("", text_of(page))


def rows_of_claims() -> dict[str, list[str]]:
    """The tests that the page of claims names, by id."""
    rows = re.findall(r"^\| ([A-Z][\w-]+) \|.*\| ([^|]*) \|$", text_of(CLAIMS_PAGE), re.MULTILINE)
    return {claim_id: re.findall(r"`(tests/[^`]+)`", named) for claim_id, named in rows}


def commands() -> Iterator[tuple[str, str]]:
    """Every command line of every shell block, with its page; lines that go on are joined."""
    for page in PAGES:
        for language, block in FENCE.findall(text_of(page)):
            if language == "sh":
                for line in block.replace("\\\n", " ").splitlines():
                    if line.strip() and not line.startswith(("#", " ", "}", "EOF")):
                        yield page, line


@cache
def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings make."""
    headings = HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    plain = (re.sub(r"[^\w\- ]", "", heading.replace("`", "")).strip().lower() for heading in headings)
    return {words.replace(" ", "-") for words in plain}


@pytest.mark.parametrize("page", [page for page in PAGES if page != CLAIMS_PAGE])
def test_drawn_parts_are_as_the_code_says_now(page: str) -> None:
    """What is drawn from code is current; `python -m tooling.documentation` draws it again."""
    assert text_of(page) == drawn(text_of(page)), f"{page}: run `.venv/bin/python -m tooling.documentation`"


def test_every_drawing_is_shown_somewhere() -> None:
    """No drawing is made for nobody, and no mark is misspelt."""
    shown = {found["name"] for page in PAGES for found in DRAWN.finditer(text_of(page))}
    marked = {name for page in PAGES for name in re.findall(r"<!-- drawn: (.+?) -->", text_of(page))}

    assert shown == set(PARTS)
    assert marked == shown


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_pages_and_headings_that_exist(page: str) -> None:
    """A link inside the repository has a target, down to the heading."""
    missing = []
    for link in LINK.findall(prose_of(page)):
        if link.startswith(("https://", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            missing.append(link)

    assert not missing


@pytest.mark.parametrize("page", PAGES)
def test_named_places_exist(page: str) -> None:
    """A path in backticks is a file or folder of the repository."""
    named = [word for word in INLINE.findall(prose_of(page)) if PLACE.match(word)]

    assert [word for word in named if not (ROOT / word).exists()] == []


def test_every_id_that_a_test_carries_has_a_row() -> None:
    """An id in a test's docstring is explained in docs/claims.toml and shown in docs/claims.md."""
    known = claims.claims()

    assert {claim_id: tests for claim_id, tests in claims.carried().items() if claim_id not in known} == {}
    assert set(claims.proofs()) - set(rows_of_claims()) == set(), "run `.venv/bin/python -m tooling.documentation`"


def test_every_row_names_tests_that_exist_and_carry_its_id() -> None:
    """A claim is shown only with tests that prove it."""
    proofs, rows = claims.proofs(), rows_of_claims()
    gone = {
        claim_id: sorted(set(named) - set(proofs.get(claim_id, ())))
        for claim_id, named in rows.items()
        if not named or set(named) - set(proofs.get(claim_id, ()))
    }

    assert rows
    assert gone == {}, "run `.venv/bin/python -m tooling.documentation`"


def test_rows_say_what_the_claims_say() -> None:
    """A row has the words and the source of its claim."""
    page = text_of(CLAIMS_PAGE)

    for claim_id in rows_of_claims():
        claim = claims.claims()[claim_id]
        assert f"| {claim_id} | {claim.claim}" in page
        assert f" | {claim.source} | " in page


def test_claims_come_from_public_sources() -> None:
    """A source is one of the two public texts or names a public repository."""
    odd = [
        name
        for name, claim in claims.claims().items()
        if not re.match(r"(?:post|article): \w|[\w.-]+/[\w.-]+(?:#\d+| \()", claim.source)
    ]

    assert odd == []


def test_every_make_target_that_is_told_exists() -> None:
    """`make <target>` in a page is a target of the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    # Every suite that the Makefile puts in order has a target of its own.
    [suites] = re.findall(r"^SUITES_IN_ORDER := (.*)$", makefile, re.MULTILINE)
    targets |= {f"test-{suite}" for suite in suites.split()}
    told = {word for page in PAGES for word in re.findall(r"\bmake ([a-z][a-z-]*)", _code_of(page))}

    assert told - targets == set()


def test_every_module_that_is_told_exists() -> None:
    """`python -m <module>` in a page is a module that can be run."""
    told = {word for page in PAGES for word in re.findall(r"python -m ([\w.]+)", _code_of(page))}

    assert {word for word in told if find_spec(word) is None} == set()


def test_shell_blocks_start_programs_that_a_reader_has() -> None:
    """A command starts something that set-up installs, or that the page names as a prerequisite."""
    strange = []
    for page, line in commands():
        started = re.sub(r"^(?:[A-Z_]+=[^\s\"$]+ )+", "", line)
        program = started.split()[0]
        if not (OF_THE_SHELL.match(started) or program in PROGRAMS or (ROOT / program).exists()):
            strange.append(f"{page}: {line}")

    assert strange == []


def test_contexts_that_are_told_are_read_somewhere() -> None:
    """A CDK context value that a page names is one that the stacks read."""
    read = set(json.loads((ROOT / "cdk.json").read_text())["context"])
    for path in (ROOT / "stacks").rglob("*.py"):
        read |= set(re.findall(r"(?:try_)?get_context\(\"(\w+)\"\)", path.read_text(encoding="utf-8")))
    told = {word for page in PAGES for word in re.findall(r"(?:-c|--context) (\w+)=", text_of(page))}

    assert told - read - PROVIDERS == set()


def _code_of(page: str) -> str:
    """Everything of a page that is set as code: only there a word is a command."""
    blocks = "\n".join(block for _, block in FENCE.findall(text_of(page)))
    return blocks + "\n" + "\n".join(INLINE.findall(prose_of(page)))
