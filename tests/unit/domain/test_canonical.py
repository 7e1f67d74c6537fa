"""Canonical JSON: the same value has the same bytes, another value has others, and what is ambiguous is refused."""

import math
from decimal import Decimal

import pytest

from shared.domain.canonical import INTEGER_MAX, Json, canonical, digest, short_digest


def test_the_order_of_fields_does_not_matter() -> None:
    """B09: a store may hand a record back in another order."""
    assert canonical({"b": 1, "a": {"d": None, "c": True}}) == canonical({"a": {"c": True, "d": None}, "b": 1})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"amount": 450}, {"amount": 451}),
        ({"ok": True}, {"ok": 1}),
        ({"ok": False}, {"ok": 0}),
        ({"note": None}, {}),
        ({"note": ""}, {"note": None}),
        ({"amount": 450}, {"amount": "450"}),
        ({"name": "zo\u00eb"}, {"name": "zoe\u0308"}),
        ([1, 2], [2, 1]),
        ([[1], 2], [1, [2]]),
    ],
    ids=repr,
)
def test_another_value_has_other_bytes(one: Json, other: Json) -> None:
    """B09: a changed number, type, absence, order or code point changes the digest."""
    assert canonical(one) != canonical(other)
    assert digest("test", one) != digest("test", other)


@pytest.mark.parametrize(
    "value",
    [
        450.0,
        math.nan,
        math.inf,
        Decimal(450),
        {"a": 0.1},
        [1, [2.0]],
        {1: "a"},
        {None: "a"},
        "\ud800",
        {"\udfff": 1},
        INTEGER_MAX + 1,
        -INTEGER_MAX - 1,
        b"bytes",
        (1, 2),
        {1, 2},
        complex(1, 1),
    ],
    ids=ascii,
)
def test_what_has_no_one_form_is_refused(value: Json) -> None:
    """B09: floats, foreign numbers, keys that are not text and broken text are refused, not guessed."""
    with pytest.raises(ValueError, match=r".+"):
        canonical(value)


@pytest.mark.parametrize("value", [INTEGER_MAX, -INTEGER_MAX, 0])
def test_exact_integers_are_written_in_digits(value: int) -> None:
    """The largest integer that keeps all its digits is still allowed."""
    assert canonical(value) == str(value).encode()


def test_a_purpose_keeps_digests_apart() -> None:
    """A digest made for one use does not stand in for another."""
    assert digest("approval", {"a": 1}) != digest("action", {"a": 1})


def test_a_short_digest_is_the_start_of_the_long_one() -> None:
    """A version stamp is 128 bits of the same digest."""
    assert digest("policy", "text").startswith(short_digest("policy", "text"))
    assert len(short_digest("policy", "text")) == 32
