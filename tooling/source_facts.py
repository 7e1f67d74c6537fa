"""Facts read from the sources without running them: authority notes, alarms, and limits with their reasons."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tooling.drawings import table
from tooling.steps import ROOT

# A comment of one or more lines that ends on the line above a constant.
_COMMENT: Final = re.compile(r"^# ?(.*)$")


def authority() -> str:
    """List what each function may do and may never do, as its construct's docstring says beside the grants."""
    rows = []
    for path in (*sorted((ROOT / "stacks/functions").glob("*.py")), *sorted((ROOT / "stacks/workflows").glob("*.py"))):
        for node in ast.walk(_tree(path)):
            notes = ast.get_docstring(node) if isinstance(node, ast.ClassDef) else None
            may, may_not = _note(notes, "May"), _note(notes, "May not")
            if isinstance(node, ast.ClassDef) and may and may_not:
                rows.append((f"[`{_function_name(node)}`](../{path.relative_to(ROOT)})", may, may_not))
    return table(("function", "may", "may not"), rows)


def alarms() -> str:
    """List every alarm with what its reader should understand."""
    rows = []
    for path in sorted((ROOT / "stacks").rglob("*.py")):
        for node in ast.walk(_tree(path)):
            if not (isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "raise_when"):
                continue
            because = next(keyword.value for keyword in node.keywords if keyword.arg == "because")
            rows.append((f"`{_text(node.args[0])}`", _text(because)))
    return table(("alarm (after `holdfast-<stage>-`)", "what it tells"), sorted(rows))


def limits() -> str:
    """List the limits of the engine: named constants whose reason stands in the comment above them."""
    rows = []
    for folder in ("shared/domain", "shared/usecases"):
        for path in sorted((ROOT / folder).glob("*.py")):
            rows += [
                (f"`{name}`", f"`{value}`", reason, f"[{path.stem}](../{path.relative_to(ROOT)})")
                for name, value, reason in _constants(path)
            ]
    return table(("limit", "value", "reason", "where"), rows)


def _constants(path: Path) -> Iterator[tuple[str, str, str]]:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
            continue
        reason = _comment_above(lines, node.lineno)
        if reason and node.value is not None and _is_quantity(node.value):
            yield node.target.id, ast.get_source_segment(text, node.value) or "", reason


def _is_quantity(value: ast.expr) -> bool:
    """Whether a value is a number or a duration, as a limit is."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, int) and not isinstance(value.value, bool)
    return isinstance(value, ast.Call) and getattr(value.func, "id", "") == "timedelta"


def _comment_above(lines: list[str], lineno: int) -> str:
    words: list[str] = []
    for line in reversed(lines[: lineno - 1]):
        comment = _COMMENT.match(line)
        if comment is None:
            break
        words.insert(0, comment.group(1))
    return " ".join(words)


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _note(docstring: str | None, label: str) -> str:
    found = re.search(rf"^{label}: (.+?)(?=^\S+( not)?: |\n\n|\Z)", docstring or "", re.MULTILINE | re.DOTALL)
    return " ".join(found.group(1).split()).rstrip(".") if found else ""


def _function_name(construct: ast.ClassDef) -> str:
    """The name that the construct gives to its function."""
    for node in ast.walk(construct):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "python_function":
            return _text(node.args[1])
    return construct.name


def _text(node: ast.expr) -> str:
    """A text as it stands in the source; what is filled in later stands in pointed brackets."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return f"<{ast.unparse(node.value)}>"
    return ast.unparse(node)
