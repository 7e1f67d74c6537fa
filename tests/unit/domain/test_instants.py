"""Instants have one stored form; what is not an instant is refused where it comes in."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import TypeAdapter, ValidationError

from shared.domain.instants import Instant, as_instant, format_instant, parse_instant

NINE = "2026-10-09T09:00:00.000Z"


@pytest.mark.parametrize(
    "text",
    [
        "2026-10-09T09:00Z",
        "2026-10-09T09:00:00Z",
        "2026-10-09T14:30+05:30",
        "2026-10-09T09:00:00.000Z",
        "2026-10-09T09:00:00.000999Z",
        "2026-10-09T09:00:00.0Z",
        "2026-10-08T23:00:00-10:00",
    ],
)
def test_every_spelling_of_an_instant_is_stored_alike(text: str) -> None:
    """B50: an instant is compared as an instant, whatever offset or fraction it was written with."""
    assert format_instant(parse_instant(text)) == NINE


@pytest.mark.parametrize(
    "text",
    [
        "2027-01-01",
        "2026-10-09T09:00",
        "2026-10-09 09:00Z",
        "1791536400",
        "soon",
        "",
        "2026-10-09T09:00:00Z\n",
        " 2026-10-09T09:00:00Z",
        "2026-13-09T09:00:00Z",
        "2026-10-09T24:00:00Z",
        "2026-10-09T23:59:60Z",
        "2026-10-09T09:00:00+25:00",
        "2026-10-09T09:00:00,5Z",
        "2026-10-09T09:00:00.1234567Z",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59-01:00",
        "0001-01-01T00:00:00+01:00",
        "\u0662026-10-09T09:00:00Z",
    ],
)
def test_what_is_no_instant_is_refused(text: str) -> None:
    """B50: a date, a number or a word is never read as an instant, and never as "no limit"."""
    with pytest.raises(ValueError, match=r".+"):
        parse_instant(text)


@pytest.mark.parametrize("value", [None, 1791536400, 1.5, True, "soon", datetime(2026, 10, 9, 9, 0)])  # noqa: DTZ001
def test_a_field_refuses_what_is_no_instant(value: object) -> None:
    """B50: an expiry is refused at the write, so that no later comparison can fail."""
    with pytest.raises(ValidationError):
        TypeAdapter(Instant).validate_python(value)


def test_a_time_without_offset_is_no_instant() -> None:
    """B50: what has no offset has no one meaning."""
    with pytest.raises(ValueError, match="offset"):
        as_instant(datetime(2026, 10, 9, 9, 0))  # noqa: DTZ001


def test_the_stored_form_is_read_back_to_the_millisecond() -> None:
    """Storing and reading loses what is below a millisecond, once and for good."""
    moment = datetime(2026, 10, 9, 9, 0, 0, 123_999, tzinfo=timezone(timedelta(hours=2)))

    assert format_instant(moment) == "2026-10-09T07:00:00.123Z"
    assert parse_instant(format_instant(moment)) == as_instant(moment)


@pytest.mark.parametrize("year", [1, 99, 999, 1000, 9999])
def test_years_are_four_digits_in_the_stored_form(year: int) -> None:
    """Text order is time order, in every year that there is."""
    stored = format_instant(datetime(year, 6, 1, tzinfo=UTC))

    assert stored == f"{year:04d}-06-01T00:00:00.000Z"
    assert parse_instant(stored).year == year
