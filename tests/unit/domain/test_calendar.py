"""Local times and business days become one instant; where clocks change, by a rule that is written down."""

import subprocess
import sys
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from shared.domain.calendar import (
    BusinessCalendar,
    CalendarEnds,
    Day,
    Weekday,
    ZoneName,
    business_days_after,
    instant_of,
    local_day,
    parse_day,
    weekly_after,
    zone_of,
)

BERLIN = zone_of("Europe/Berlin")
NEW_YORK = zone_of("America/New_York")
FIVE = time(17)
GOOD_FRIDAY = date(2027, 3, 26)
EASTER_MONDAY = date(2027, 3, 29)
CALENDAR = BusinessCalendar.of_years("test", [2026, 2027], [GOOD_FRIDAY, EASTER_MONDAY, date(2026, 12, 25)])


def utc(text: str) -> datetime:
    """Read an instant such as ``2026-10-23 15:00``."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "day", "at", "instant"),
    [
        (BERLIN, "2026-10-23", FIVE, "2026-10-23 15:00"),
        (BERLIN, "2026-10-30", FIVE, "2026-10-30 16:00"),
        (BERLIN, "2027-03-28", time(2, 30), "2027-03-28 01:30"),
        (BERLIN, "2026-10-25", time(2, 30), "2026-10-25 00:30"),
        (NEW_YORK, "2026-10-30", FIVE, "2026-10-30 21:00"),
        (NEW_YORK, "2026-11-06", FIVE, "2026-11-06 22:00"),
        (NEW_YORK, "2027-03-14", time(2, 30), "2027-03-14 07:30"),
        (NEW_YORK, "2026-11-01", time(1, 30), "2026-11-01 05:30"),
        (zone_of("Asia/Kathmandu"), "2026-10-23", FIVE, "2026-10-23 11:15"),
        (zone_of("UTC"), "2026-10-23", FIVE, "2026-10-23 17:00"),
        # This day does not exist in Samoa's calendar at all: the date line was moved over it.
        (zone_of("Pacific/Apia"), "2011-12-30", FIVE, "2011-12-31 03:00"),
    ],
    ids=[
        "Berlin in summer",
        "Berlin in winter",
        "Berlin, in the gap",
        "Berlin, twice",
        "New York in summer",
        "New York in winter",
        "New York, in the gap",
        "New York, twice",
        "a quarter of an hour off",
        "UTC",
        "a whole day missing",
    ],
)
def test_a_local_time_is_one_instant(zone: ZoneInfo, day: str, at: time, instant: str) -> None:
    """I1: in the gap the offset before the change counts; of two the first is meant, whatever fold the time carries."""
    assert instant_of(parse_day(day), at, zone) == utc(instant)
    assert instant_of(parse_day(day), at.replace(fold=1), zone) == utc(instant)


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/Argentina/Buenos_Aires", "America/Port-au-Prince", "UTC"])
def test_a_zone_is_known_by_its_name(name: str) -> None:
    """Area and place, as the database of zones writes them."""
    assert TypeAdapter(ZoneName).validate_python(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Berlin",
        "Europe",
        "Europe/",
        "Europe/Atlantis",
        "europe/berlin",
        "Europe/Berlin\n",
        " Europe/Berlin",
        "Europe/../Europe/Berlin",
        "/etc/localtime",
        "right/Europe/Berlin",
        "posix/Europe/Berlin",
        "localtime",
        "Factory",
        "CET",
        "Etc/GMT+5",
        "+01:00",
        "\u0415urope/Berlin",
    ],
)
def test_an_unknown_zone_is_refused(name: str) -> None:
    """B50: a zone that nobody knows is an error, never UTC; so are names that mean another time than they say."""
    with pytest.raises(ValidationError, match="expected a time zone"):
        TypeAdapter(ZoneName).validate_python(name)


@pytest.mark.parametrize(
    "text",
    ["2026-02-29", "2026-13-01", "20261009", "2026-W41-5", "2026-10-9", "2026-10-09T00:00", "soon", "2026-10-09\n"],
)
def test_a_day_is_a_day_of_the_calendar(text: str) -> None:
    """B50: other ways to write a day, and days that do not exist, are refused."""
    with pytest.raises(ValidationError):
        TypeAdapter(Day).validate_python(text)
    assert TypeAdapter(Day).validate_python("2028-02-29") == "2028-02-29"


def test_zones_are_known_where_the_system_knows_none() -> None:
    """A system without a database of zones, or with a broken one, changes no instant: the locked package has them."""
    program = (
        "import zoneinfo; from datetime import *; from shared.domain.calendar import *;"
        "assert not zoneinfo.TZPATH;"
        "print(instant_of(date(2026, 10, 30), time(17), zone_of('Europe/Berlin')).isoformat())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONTZPATH": ""},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert done.stdout.strip() == "2026-10-30T16:00:00+00:00"


@pytest.mark.parametrize(
    ("day", "works"),
    [
        (date(2026, 10, 9), True),
        (date(2026, 10, 10), False),
        (date(2026, 10, 11), False),
        (GOOD_FRIDAY, False),
        (date(2026, 12, 25), False),
    ],
)
def test_people_work_on_business_days(day: date, works: bool) -> None:
    """No weekend and no holiday."""
    assert CALENDAR.is_business_day(day) is works


@pytest.mark.parametrize("day", [date(2025, 12, 31), date(2028, 1, 1)])
def test_a_calendar_says_nothing_about_other_years(day: date) -> None:
    """A year without data is no year without holidays."""
    with pytest.raises(CalendarEnds, match="says nothing about"):
        CALENDAR.is_business_day(day)


@pytest.mark.parametrize("years", [[], [2026, 2028]])
def test_a_calendar_has_no_holes(years: list[int]) -> None:
    """What lies between two years of a calendar is known too."""
    with pytest.raises(ValueError, match="follow one another"):
        BusinessCalendar.of_years("test", years, [])


@pytest.mark.parametrize(
    ("opened", "number", "expected"),
    [
        # Thursday before Easter, and the Tuesday after it, when clocks have changed.
        ("2027-03-25 09:00", 1, "2027-03-30 08:00"),
        ("2026-10-23 09:30", 2, "2026-10-27 10:30"),
        # Saturday evening counts for nothing: the next business day is Monday.
        ("2026-10-10 18:00", 1, "2026-10-12 18:00"),
        ("2026-10-10 18:00", 2, "2026-10-13 18:00"),
        # It is Friday in UTC and Saturday in Berlin.
        ("2026-10-09 22:30", 1, "2026-10-11 22:30"),
        ("2026-10-09 09:00", 0, "2026-10-09 09:00"),
    ],
)
def test_business_days_later_it_is_the_same_local_time(opened: str, number: int, expected: str) -> None:
    """I1: whatever lies between, the clock on the wall shows the same."""
    assert business_days_after(utc(opened), number, CALENDAR, BERLIN) == utc(expected)


@pytest.mark.parametrize(
    ("zone", "after", "expected"),
    [
        (BERLIN, "2026-10-05 10:00", "2026-10-09 15:00"),
        (BERLIN, "2026-10-09 14:59", "2026-10-09 15:00"),
        (BERLIN, "2026-10-09 15:00", "2026-10-16 15:00"),
        (BERLIN, "2026-10-23 15:00", "2026-10-30 16:00"),
        (NEW_YORK, "2026-10-30 21:00", "2026-11-06 22:00"),
        # Good Friday: Thursday at five. On Thursday after five it is the Friday of the week after.
        (BERLIN, "2027-03-22 10:00", "2027-03-25 16:00"),
        (BERLIN, "2027-03-25 16:00", "2027-04-02 15:00"),
        # It is still Friday afternoon in New York when it is Saturday in Berlin.
        (NEW_YORK, "2026-10-09 20:30", "2026-10-09 21:00"),
        (BERLIN, "2026-10-09 22:30", "2026-10-16 15:00"),
    ],
)
def test_friday_at_five(zone: ZoneInfo, after: str, expected: str) -> None:
    """I1: strictly after, in local time on either side of a clock change, and before a Friday off."""
    assert weekly_after(utc(after), Weekday.FRIDAY, FIVE, CALENDAR, zone) == utc(expected)


def test_a_calendar_that_ends_is_said_so() -> None:
    """Nobody guesses a deadline of which it is not known whether it is a business day."""
    with pytest.raises(CalendarEnds):
        business_days_after(utc("2027-12-30 09:00"), 3, CALENDAR, BERLIN)
    with pytest.raises(CalendarEnds):
        weekly_after(utc("2027-12-31 16:00"), Weekday.FRIDAY, FIVE, CALENDAR, BERLIN)


def test_a_calendar_without_business_days_is_noticed() -> None:
    """A broken calendar ends a search; it does not hang it."""
    never = BusinessCalendar(
        name="never", first=date(2026, 1, 1), last=date(2030, 12, 31), holidays=frozenset(), weekend=frozenset(Weekday)
    )

    with pytest.raises(CalendarEnds, match="60 days off in a row"):
        never.days_after(date(2026, 10, 9), 1)
    with pytest.raises(CalendarEnds, match="60 days off in a row"):
        never.on_or_before(date(2026, 10, 9))


ZONES = st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"])
INSTANTS = st.datetimes(datetime(2026, 1, 10), datetime(2027, 11, 30), timezones=st.just(UTC))  # noqa: DTZ001


@given(instant=INSTANTS, name=ZONES, number=st.integers(1, 10))
def test_later_business_days_are_later_instants(instant: datetime, name: str, number: int) -> None:
    """A ladder of business days climbs, in every zone and over every change of clocks."""
    zone = zone_of(name)
    earlier = business_days_after(instant, number, CALENDAR, zone)
    later = business_days_after(instant, number + 1, CALENDAR, zone)

    assert instant < earlier < later
    assert CALENDAR.is_business_day(local_day(earlier, zone))


@given(instant=INSTANTS, name=ZONES)
def test_friday_at_five_lies_ahead(instant: datetime, name: str) -> None:
    """Strictly ahead, on a business day, at five o'clock on the wall, and at most two weeks away."""
    zone = zone_of(name)
    found = weekly_after(instant, Weekday.FRIDAY, FIVE, CALENDAR, zone)

    assert instant < found <= instant + timedelta(days=14)
    assert CALENDAR.is_business_day(local_day(found, zone))
    assert found.astimezone(zone).time() == FIVE
