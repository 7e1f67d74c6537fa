"""As much of Amazon States Language as the task graph uses: paths, payload templates and three intrinsic functions.

Paths name plain members (``$.result.residue``, ``$$.Execution.Name``). What a path does not find fails as the service's
uncatchable ``States.Runtime``.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

Document = dict[str, Any]

_TOKEN: Final = re.compile(r"\s*([A-Za-z]+(?:\.[A-Za-z]+)+(?=\()|'(?:\\.|[^'\\])*'|\$[\w.$]*|[(),]|[\w.]+)")
_ESCAPE: Final = re.compile(r"\\(.)")


class StatesRuntime(Exception):
    """The definition and the document do not fit. No Catch sees this; the execution fails."""


def at(path: str, document: object, context: Mapping[str, Any]) -> Any:
    """Return what a path names.

    Raises:
        StatesRuntime: there is nothing.
    """
    root, found = ("$$", context) if path.startswith("$$") else ("$", document)
    for member in path.removeprefix(root).split("."):
        if not member:
            continue
        if not isinstance(found, Mapping) or member not in found:
            msg = f"{path} names nothing"
            raise StatesRuntime(msg)
        found = found[member]
    return found


def fill(template: object, document: object, context: Mapping[str, Any]) -> Any:
    """Fill a payload template: members whose name ends in ``.$`` hold a path or an intrinsic function."""
    if isinstance(template, Mapping):
        return {
            name.removesuffix(".$"): (
                evaluate(value, document, context) if name.endswith(".$") else fill(value, document, context)
            )
            for name, value in template.items()
        }
    if isinstance(template, list):
        return [fill(item, document, context) for item in template]
    return template


def put(path: str | None, document: Document, result: object) -> Document:
    """Return the document with a result at its ResultPath; None discards the result."""
    if path is None:
        return document
    if path == "$":
        if not isinstance(result, dict):
            raise StatesRuntime("a document is an object")
        return result
    return {**document, path.removeprefix("$."): result}


def evaluate(expression: str, document: object, context: Mapping[str, Any]) -> Any:
    """Evaluate a path or an intrinsic function."""
    if expression.startswith("$"):
        return at(expression, document, context)
    return _call(_tokens(expression), document, context)


def _tokens(expression: str) -> Iterator[str]:
    position = 0
    while position < len(expression):
        match = _TOKEN.match(expression, position)
        if match is None:
            msg = f"cannot read {expression[position:]!r}"
            raise StatesRuntime(msg)
        position = match.end()
        yield match.group(1)


def _call(tokens: Iterator[str], document: object, context: Mapping[str, Any]) -> Any:
    return _argument(next(tokens), tokens, document, context)


def _argument(token: str, tokens: Iterator[str], document: object, context: Mapping[str, Any]) -> Any:
    if token.startswith("States."):
        return _intrinsic(token, list(_arguments(tokens, document, context)))
    if token.startswith("'"):
        return token[1:-1]
    if token.startswith("$"):
        return at(token, document, context)
    return json.loads(token)


def _arguments(tokens: Iterator[str], document: object, context: Mapping[str, Any]) -> Iterator[Any]:
    if next(tokens) != "(":
        raise StatesRuntime("a function needs its arguments")
    for token in tokens:
        if token == ")":
            return
        if token != ",":
            yield _argument(token, tokens, document, context)


def _intrinsic(name: str, arguments: list[Any]) -> Any:
    if name == "States.Format":
        return _format(*arguments)
    if name == "States.StringToJson":
        return json.loads(arguments[0])
    if name == "States.JsonMerge":
        left, right, _deep = arguments
        return {**left, **right}
    msg = f"{name} is not played here"
    raise StatesRuntime(msg)


def _format(text: str, *values: Any) -> str:
    # `{}` is a place to fill, `\{` a brace.
    pieces = re.split(r"(?<!\\)\{\}", text)
    if len(pieces) != len(values) + 1:
        raise StatesRuntime("States.Format needs one value for each place")
    filled = pieces[0] + "".join(str(value) + piece for value, piece in zip(values, pieces[1:], strict=True))
    return _ESCAPE.sub(r"\1", filled)
