"""What the provider accepts in a body: each kind of field knows one rule and the sentence that states it."""

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, NoReturn, Protocol

from sandbox.problems import Problem

# The largest body of the table has five short fields; 16 KB is far more than any honest one and cheap to parse.
BODY_BYTES_MAX: Final = 16_384
# A hundred million in the major unit: what lies above is a slip of the keyboard.
AMOUNT_MINOR_MAX: Final = 10_000_000_000


class Field(Protocol):
    """One field of a body."""

    @property
    def rule(self) -> str:
        """The sentence that a refusal quotes."""
        ...

    def accepts(self, value: object) -> bool:
        """Say whether the value obeys the rule."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text that matches a whole pattern."""

    pattern: str
    rule: str

    def accepts(self, value: object) -> bool:
        """Compare the whole text, so that no line break can hide at its end."""
        return isinstance(value, str) and re.fullmatch(self.pattern, value) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A whole number within bounds; a boolean or a fraction is none, whatever its value."""

    least: int
    most: int

    @property
    def rule(self) -> str:
        """The sentence that a refusal quotes."""
        return f"a whole number from {self.least} to {self.most}"

    def accepts(self, value: object) -> bool:
        """Be strict about the type: ``True`` and ``450.0`` are no amounts."""
        return type(value) is int and self.least <= value <= self.most


NAME: Final = Text(
    pattern=r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}",
    rule="1 to 64 letters, digits, dots, underscores or hyphens, starting with a letter or digit",
)
# Keys and references travel in paths; without '/', '%' and '?' they arrive the same however often they are decoded.
KEY: Final = Text(
    pattern=r"[A-Za-z0-9][A-Za-z0-9._:~-]{0,199}",
    rule="1 to 200 letters, digits or any of . _ : ~ - starting with a letter or digit",
)
DAY: Final = Text(
    pattern=r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])",
    rule="a day such as 2026-10-09",
)
CURRENCY: Final = Text(pattern=r"[A-Z]{3}", rule="three capital letters")
AMOUNT: Final = Whole(least=1, most=AMOUNT_MINOR_MAX)


def parsed(raw: bytes) -> Mapping[str, object]:
    """Read a body as a JSON object without ambiguity: no duplicate names, no NaN.

    Raises:
        Problem: the bytes are no such object.
    """
    try:
        value = json.loads(raw, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Problem(HTTPStatus.BAD_REQUEST, "invalid_json", "the body is no unambiguous JSON") from error
    if not isinstance(value, dict):
        raise Problem(HTTPStatus.BAD_REQUEST, "invalid_json", "the body is no JSON object")
    return value


def checked(body: Mapping[str, object], fields: Mapping[str, Field]) -> Mapping[str, object]:
    """Hold a body against its fields: all of them, no others, each obeying its rule.

    Raises:
        Problem: the first field in alphabetical order that does not.
    """
    for name in sorted(body.keys() | fields.keys()):
        field = fields.get(name)
        if field is None:
            raise Problem(HTTPStatus.BAD_REQUEST, "invalid_body", "the body has a field that is not known here")
        if name not in body or not field.accepts(body[name]):
            raise Problem(HTTPStatus.BAD_REQUEST, "invalid_body", f"{name} must be {field.rule}")
    return body


def digest(raw: bytes) -> str:
    """Fingerprint what a body means, so that spacing and order do not make another body of it.

    Bytes that mean nothing are fingerprinted as they are.
    """
    with suppress(Problem):
        raw = json.dumps(parsed(raw), sort_keys=True, separators=(",", ":")).encode()
    return hashlib.sha256(raw).hexdigest()


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name occurs twice")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
