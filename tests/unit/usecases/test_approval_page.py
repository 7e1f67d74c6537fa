"""What an approver is shown."""

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.usecases.approval_page import make_visible, show_field, show_untrusted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Evil\u202e Ltd", "Evil⟨U+202E⟩ Ltd"),
        ("Zero\u200bWidth", "Zero⟨U+200B⟩Width"),
        ("Soft\u00adHyphen", "Soft⟨U+00AD⟩Hyphen"),
        ("Hangul\u3164Filler", "Hangul⟨U+3164⟩Filler"),
        ("Variation\ufe0fSelector", "Variation⟨U+FE0F⟩Selector"),
        ("Tag\U000e0041", "Tag⟨U+E0041⟩"),
        ("No\u00a0break", "No⟨U+00A0⟩break"),
        ("Two\nlines\r\tand\x00", "Two⟨U+000A⟩lines⟨U+000D⟩⟨U+0009⟩and⟨U+0000⟩"),
        ("Zoë Straße 北京", "Zoë Straße 北京"),
        ("plain name", "plain name"),
    ],
)
def test_nothing_hides_in_a_consequential_value(text: str, shown: str) -> None:
    """B62: whatever a screen would swallow or obey becomes visible; ordinary writing stays as it is."""
    field = show_field("payee", text)

    assert (field.value, field.shown) == (text, shown)


def test_look_alikes_are_told_apart() -> None:
    """B62: two names that look the same are shown with the characters that make them different."""
    latin, cyrillic = show_field("payee", "Acme"), show_field("payee", "\u0410cme")

    assert latin.unusual == ()
    assert cyrillic.unusual == ("U+0410 CYRILLIC CAPITAL LETTER A",)


@pytest.mark.parametrize(("value", "shown"), [(45_000, "45000"), (True, "yes"), (False, "no"), (None, "nothing")])
def test_other_types_are_shown_in_full(value: int | bool | None, shown: str) -> None:
    """B62: the typed value goes along as it is digested."""
    field = show_field("amount_minor", value)

    assert (field.value, field.shown) == (value, shown)


def test_long_values_are_never_cut() -> None:
    """B62: what stands at the end of a long value is shown too."""
    assert show_field("reason", "x" * 6_000 + " to DE00").shown.endswith("x to DE00")


@given(st.text())
def test_outside_words_are_complete_and_no_markup(text: str) -> None:
    """B62: nothing is lost, nothing is markup, and only line breaks are left of what cannot be seen."""
    shown = show_untrusted(text)

    assert not set("<>\"'") & set(shown)
    assert html.unescape(shown) == make_visible(text, keep="\n")
    assert shown.count("\n") == text.count("\n")
    assert make_visible(shown, keep="\n") == shown
