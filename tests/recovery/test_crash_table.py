"""C-A to C-D for every effect class and every kind of outside system, against the table that was written by hand."""

from pathlib import Path

import pytest

from shared.domain.action import EffectClass
from tests.fakes.downstream import Kind
from tests.recovery.crash_table import EXPECTED, Lands, as_markdown, play

ROOT = Path(__file__).parents[2]
CELLS = [(effect, kind, lands) for effect, kind in EXPECTED for lands in Lands]


@pytest.mark.parametrize(("effect", "kind", "lands"), CELLS)
def test_the_table_holds(effect: EffectClass, kind: Kind, lands: Lands) -> None:
    """C-A, C-B, C-C, C-D, R1, B01: the effect happens once, or a person is told; a claim is not forgotten."""
    expected = EXPECTED[effect, kind][list(Lands).index(lands)]

    assert play(effect, kind, lands) == (expected, [])


def test_no_legal_declaration_is_missing() -> None:
    """All combinations but those in which a keyed write is claimed of a provider that does not honour keys."""
    illegal = {(EffectClass.KEYED_WRITE, kind) for kind in Kind if kind is not Kind.HONOURS_KEYS}

    assert set(EXPECTED) == {(effect, kind) for effect in EffectClass for kind in Kind} - illegal


def test_the_documentation_shows_the_table() -> None:
    """What people read is what is played."""
    assert as_markdown() in (ROOT / "docs" / "crash-suite.md").read_text(encoding="utf-8")
