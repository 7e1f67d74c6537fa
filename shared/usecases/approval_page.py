"""What an approver is shown: exactly what the approval's digest covers, complete, with nothing able to hide (B62)."""

import html
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from shared.domain.action import Scalar

# Invisible although Unicode files them under letters and marks: fillers, joiners and selectors of other glyphs.
_BLANK_LETTERS: Final = frozenset({0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0})
_SELECTORS: Final = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
# Control, format (direction, zero width), surrogate, private, unassigned, and separators beside the space.
_HIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownField:
    """A consequential value. `value` is what is digested and sent; `shown` is what to put on a screen.

    `unusual` names every character outside ASCII, so that two names that look alike can be told apart.
    """

    name: str
    value: Scalar
    shown: str
    unusual: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownEvidence:
    """Outside words that the approval's digest covers by reference.

    `untrusted_text` is complete, escaped for HTML, and can give nobody orders; it is None when the stored words are
    gone or are not the ones that were referenced.
    """

    evidence_id: str
    source_kind: str
    object_version: str
    sha256: str
    untrusted_text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalPage:
    """Everything an approver needs to decide. `allowed_decisions` is empty, with the reason, for who may only look."""

    task_id: str
    approval_id: str
    workflow: str
    status: str
    because: str
    tool: str
    arguments: tuple[ShownField, ...]
    facts: tuple[ShownField, ...]
    request_version: int
    current_request_version: int
    evidence: tuple[ShownEvidence, ...]
    evidence_digest: str
    policy: str
    catalogue: str
    digest: str
    requested_by: str
    required_role: str
    quorum: int
    approved_by: tuple[str, ...]
    requested_at: datetime
    expires_at: datetime
    allowed_decisions: tuple[str, ...]
    not_allowed_because: str | None


def show_field(name: str, value: Scalar) -> ShownField:
    """Show one typed value, complete."""
    if not isinstance(value, str):
        return ShownField(name=name, value=value, shown=_plain(value))
    unusual = sorted({c for c in value if not c.isascii()})
    return ShownField(name=name, value=value, shown=make_visible(value), unusual=tuple(_describe(c) for c in unusual))


def make_visible(text: str, *, keep: str = "") -> str:
    """Replace every character that a screen would not show, or would obey, by its code point such as ``⟨U+202E⟩``."""
    return "".join(c if c in keep or not _is_hidden(c) else f"⟨U+{ord(c):04X}⟩" for c in text)


def show_untrusted(text: str) -> str:
    """Show outside words: lines stay lines, hidden characters become visible, nothing is markup."""
    return html.escape(make_visible(text, keep="\n"), quote=True)


def _is_hidden(character: str) -> bool:
    if character == " ":
        return False
    point = ord(character)
    return (
        unicodedata.category(character) in _HIDDEN_CATEGORIES
        or point in _BLANK_LETTERS
        or any(point in selectors for selectors in _SELECTORS)
    )


def _describe(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character, 'without a name')}"


def _plain(value: bool | int | None) -> str:  # noqa: FBT001 - a value to show, not a switch
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
