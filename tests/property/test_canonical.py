"""Canonical JSON over all values: it can be read back, does not hang on order, and keeps different values apart."""

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shared.domain.canonical import INTEGER_MAX, Json, canonical, digest

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = st.none() | st.booleans() | st.integers(-INTEGER_MAX, INTEGER_MAX) | TEXT
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=12
)
NOT_CANONICAL: st.SearchStrategy[Any] = (
    st.floats()
    | st.decimals()
    | st.binary(min_size=1)
    | st.tuples(st.integers())
    | st.integers(min_value=INTEGER_MAX + 1)
    | st.integers(max_value=-INTEGER_MAX - 1)
    | st.sampled_from(["\ud800", "a\udfff", "\ud800\ud800"])
    | st.dictionaries(st.integers() | st.none() | st.booleans(), st.integers(), min_size=1)
)


def turned(value: Json) -> Json:
    """The same value with every object's fields in the opposite order."""
    if isinstance(value, dict):
        return {name: turned(field) for name, field in reversed(value.items())}
    return [turned(item) for item in value] if isinstance(value, list) else value


def typed(value: Json) -> Any:
    """The value with its types spelt out, because Python takes `True` and `1` for the same."""
    if isinstance(value, dict):
        return ("object", frozenset((name, typed(field)) for name, field in value.items()))
    if isinstance(value, list):
        return ("list", tuple(typed(item) for item in value))
    return (type(value).__name__, value)


@given(VALUES)
def test_what_is_written_can_be_read(value: Json) -> None:
    """B09: the bytes hold the whole value and nothing else."""
    assert typed(json.loads(canonical(value))) == typed(value)


@given(VALUES)
def test_order_does_not_matter(value: Json) -> None:
    """B09: a store may return fields in any order."""
    assert canonical(turned(value)) == canonical(value)


@given(VALUES, VALUES)
def test_different_values_have_different_bytes(one: Json, other: Json) -> None:
    """B09: two values have the same bytes, and the same digest, exactly if they are the same, types included."""
    same = typed(one) == typed(other)

    assert (canonical(one) == canonical(other)) == same
    assert (digest("test", one) == digest("test", other)) == same


@given(TEXT)
def test_composed_and_decomposed_text_are_different(text: str) -> None:
    """B09: text is compared by code points; nothing is normalised behind anybody's back."""
    composed, decomposed = unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)
    assume(composed != decomposed)

    assert canonical(composed) != canonical(decomposed)


@given(NOT_CANONICAL, st.sampled_from(["alone", "in a list", "in an object"]))
def test_what_has_no_one_form_is_refused_wherever_it_hides(value: Any, where: str) -> None:
    """B09: fractions, foreign numbers, bytes, broken text and keys that are not text are refused at any depth."""
    hidden = {"alone": value, "in a list": [1, [value]], "in an object": {"a": {"b": value}}}[where]

    with pytest.raises(ValueError, match=r".+"):
        canonical(hidden)
