"""One noun, one name: words that the glossary keeps out do not name anything in the product."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tooling.steps import ROOT

# A word that is not used, and the one that is said instead.
INSTEAD: Final = {
    "job": "task",
    "jobs": "tasks",
    "flow": "workflow",
    "phase": "stage",
    "revision": "version",
    "etag": "version",
    "snapshot": "checkpoint",
    "dump": "checkpoint",
    "mutex": "lease",
    "lock": "lease",
    "dedupe": "inbox",
    "dedup": "inbox",
    "signoff": "approval",
    "org": "tenant",
    "guard": "gate",
    "rollback": "compensation",
    "revert": "compensation",
    "poison": "needs review",
    "util": "a name that says what it is for",
    "utils": "a name that says what it is for",
    "helper": "a name that says what it is for",
    "helpers": "a name that says what it is for",
    "misc": "a name that says what it is for",
}
PHRASES: Final = {
    "workflow_instance": "task",
    "op_key": "idempotency key",
    "request_id": "idempotency key",
    "effect_log": "action ledger",
    "error_queue": "needs review",
    "approval_flag": "approval",
}
# Names that use a word for something else than the glossary's meaning.
MEANT_OTHERWISE: Final = {
    "AuthoritySnapshot": "what one consistent read of the authority store said; it is stored nowhere",
    "request_id": "the gateway's number of one HTTP exchange, for its log; it recognises no repeat",
}


def sources() -> list[Path]:
    """Every file of the product."""
    return sorted(path for folder in ("shared", "functions", "stacks") for path in (ROOT / folder).rglob("*.py"))


def names_in(tree: ast.AST) -> Iterator[str]:
    """Everything that a module gives a name to."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.arg():
                yield node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr


def words_of(name: str) -> list[str]:
    """The words that a name is put together from, in any of Python's ways."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)]


def misnamed(name: str) -> list[str]:
    """Say what to call something whose name holds a word that is kept out."""
    if name in MEANT_OTHERWISE:
        return []
    words = words_of(name)
    plain = "_".join(words)
    said = [f"{name}: say {INSTEAD[word]}" for word in words if word in INSTEAD]
    return said + [f"{name}: say {word}" for phrase, word in PHRASES.items() if f"_{phrase}_" in f"_{plain}_"]


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_names_are_the_glossary_s(path: Path) -> None:
    """Modules, classes, functions, arguments and variables are called what the glossary calls them."""
    names = {path.stem, *names_in(ast.parse(path.read_text(encoding="utf-8")))}

    assert [fault for name in sorted(names) for fault in misnamed(name)] == []


@pytest.mark.parametrize(
    "source",
    [
        "class RefundJob: ...",
        "def dedupe_event(): ...",
        "def load(*, phase): ...",
        "op_key = 1",
        "self.task_lock = None",
        "for revert in (): ...",
        "def f(workflowInstance): ...",
    ],
)
def test_a_word_that_is_kept_out_is_found(source: str) -> None:
    """The check sees every way of giving a name."""
    assert [fault for name in names_in(ast.parse(source)) for fault in misnamed(name)]


@pytest.mark.parametrize(
    "name", ["workflow", "blocked", "clock", "organised", "AuthoritySnapshot", "task_version", "Overflow"]
)
def test_a_word_inside_a_word_is_another_word(name: str) -> None:
    """Only whole words count."""
    assert misnamed(name) == []


def test_every_exception_is_still_there() -> None:
    """A name that is allowed although it holds such a word exists."""
    names = {name for path in sources() for name in names_in(ast.parse(path.read_text(encoding="utf-8")))}

    assert set(MEANT_OTHERWISE) <= names
