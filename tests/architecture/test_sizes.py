"""Small enough to be read at once: functions, files, and what stands in a package's own file."""

import ast
from pathlib import Path
from typing import Final

import pytest

from tooling.steps import ROOT

# What fits on a screen, decorators and docstring aside.
FUNCTION_LINES_MAX: Final = 70
# A file with more than this has more than one reason to change.
FILE_LINES_MAX: Final = 450
FOLDERS: Final = ("shared", "functions", "stacks", "sandbox")


def sources() -> list[Path]:
    """Every file of the product and its sandbox."""
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many lines a function's body has, without its docstring."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return 0 if not body else (body[-1].end_lineno or 0) - body[0].lineno + 1


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_and_its_functions_are_small(path: Path) -> None:
    """No function is longer than a screen, no file longer than a sitting."""
    text = path.read_text(encoding="utf-8")
    functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]

    assert [f"{node.name}: {lines_of(node)}" for node in functions if lines_of(node) > FUNCTION_LINES_MAX] == []
    assert len(text.splitlines()) <= FILE_LINES_MAX


@pytest.mark.parametrize(
    "path", [path for path in sources() if path.name == "__init__.py"], ids=lambda path: str(path.relative_to(ROOT))
)
def test_a_package_s_own_file_holds_no_code(path: Path) -> None:
    """What a package offers stands in its modules; importing one has no consequences."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    code = [node for node in tree.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]

    assert path.parent == ROOT / "stacks" / "workflows" or code == []


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_what_it_is_for(path: Path) -> None:
    """Every module opens with a sentence."""
    text = path.read_text(encoding="utf-8")

    assert not text.strip() or ast.get_docstring(ast.parse(text))
