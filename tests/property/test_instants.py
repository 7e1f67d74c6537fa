"""Instants: text order is time order, and reading is forgiving of spelling alone."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import assume, given
from hypothesis import strategies as st

from shared.domain.instants import as_instant, format_instant, parse_instant

OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=OFFSETS)  # noqa: DTZ001


@given(MOMENTS)
def test_what_is_stored_is_read_back(moment: datetime) -> None:
    """B50: one form, to the millisecond, whatever the offset was."""
    assert parse_instant(format_instant(moment)) == as_instant(moment)
    assert len(format_instant(moment)) == len("2026-10-09T09:00:00.000Z")


@given(MOMENTS, MOMENTS)
def test_text_order_is_time_order(one: datetime, other: datetime) -> None:
    """B50: stores and indexes may compare the text."""
    assert (format_instant(one) < format_instant(other)) == (as_instant(one) < as_instant(other))


@given(MOMENTS, OFFSETS)
def test_another_offset_is_the_same_instant(moment: datetime, offset: timezone) -> None:
    """B50: 14:30+05:30 is 09:00Z."""
    elsewhere = moment.astimezone(offset)

    assert format_instant(elsewhere) == format_instant(moment)
    assert parse_instant(elsewhere.isoformat()) == as_instant(moment)


@given(st.text(max_size=40))
def test_any_text_is_an_instant_or_refused(text: str) -> None:
    """B50: the reader never fails in another way than by refusing."""
    try:
        read = parse_instant(text)
    except ValueError:
        return
    assert read.tzinfo is UTC


@given(MOMENTS)
def test_a_time_without_offset_is_refused(moment: datetime) -> None:
    """B50: the same digits without an offset are no instant."""
    text = moment.replace(tzinfo=None).isoformat()
    assume("+" not in text)

    try:
        parse_instant(text)
    except ValueError:
        return
    raise AssertionError(text)
