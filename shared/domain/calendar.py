"""Calendars: local times and business days, turned into the one UTC instant that is stored.

A local time is not always one instant. Where clocks are put forward some times do not exist, and where they are put
back some exist twice. The rule here is that of iCalendar (RFC 5545):

==========  ======================================================================================================
local time  instant
==========  ======================================================================================================
in the gap  counted with the offset before the change: a quarter past the missing two o'clock is a quarter past three
twice       the first of the two
==========  ======================================================================================================

Rules of zones come from the operating system or, where it has none, from the `tzdata` package (docs/adr/0018).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import IntEnum
from functools import cache
from typing import Annotated, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator

from shared.domain.instants import as_instant

# Area and place, or UTC. Other names of the database are kept for old programs, mean something else than they say
# (Etc/GMT+5 lies west), or count leap seconds.
_ZONE: Final = re.compile(
    r"(?:(?:Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Europe|Indian|Pacific)"
    r"(?:/[A-Za-z][A-Za-z0-9_+-]*){1,2}|UTC)\Z",
    re.ASCII,
)
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}\Z", re.ASCII)
# No calendar has so many days off in a row: whoever has looked this far looks at a broken one.
_DAYS_OFF_MAX: Final = 60


class Weekday(IntEnum):
    """Days of the week, as `date.weekday` counts them."""

    MONDAY = 0
    TUESDAY = 1
    WEDNESDAY = 2
    THURSDAY = 3
    FRIDAY = 4
    SATURDAY = 5
    SUNDAY = 6


class CalendarEnds(ValueError):
    """The calendar says nothing about this day. Nobody may guess whether it is a business day."""


def parse_day(text: str) -> date:
    """Read a calendar day such as ``2026-10-09``.

    Raises:
        ValueError: the text is no day of the calendar.
    """
    if _DATE.match(text) is None:
        msg = "expected a day such as 2026-10-09"
        raise ValueError(msg)
    return date.fromisoformat(text)


@cache
def zone_of(name: str) -> ZoneInfo:
    """Find a time zone.

    Raises:
        ValueError: no zone of the database has this name. It is never taken to mean UTC.
    """
    msg = "expected a time zone such as Europe/Berlin"
    if _ZONE.match(name) is None:
        raise ValueError(msg)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError) as error:
        raise ValueError(msg) from error


def _known_zone(name: str) -> str:
    return zone_of(name).key


def _real_day(text: str) -> str:
    return parse_day(text).isoformat()


# What a record keeps: text, checked when the record is made.
ZoneName = Annotated[str, AfterValidator(_known_zone)]
Day = Annotated[str, AfterValidator(_real_day)]


def instant_of(day: date, at: time, zone: ZoneInfo) -> datetime:
    """Return the UTC instant of a local time, by the rule at the top of this module."""
    return as_instant(datetime.combine(day, at.replace(fold=0), tzinfo=zone).astimezone(UTC))


def local_day(instant: datetime, zone: ZoneInfo) -> date:
    """Return the day that it is in a zone at an instant."""
    return instant.astimezone(zone).date()


@dataclass(frozen=True, slots=True, kw_only=True)
class BusinessCalendar:
    """Which days count as business days: no weekend, no holiday.

    Args:
        holidays: the public holidays from `first` to `last`, both included; of other days nothing is known.
    """

    name: str
    first: date
    last: date
    holidays: frozenset[date]
    weekend: frozenset[Weekday] = frozenset({Weekday.SATURDAY, Weekday.SUNDAY})

    @classmethod
    def of_years(cls, name: str, years: Iterable[int], holidays: Iterable[date]) -> "BusinessCalendar":
        """Make the calendar of whole years, which follow one another."""
        known = sorted(set(years))
        if not known or known != list(range(known[0], known[-1] + 1)):
            msg = f"{name}: the years of a calendar follow one another"
            raise ValueError(msg)
        first, last = date(known[0], 1, 1), date(known[-1], 12, 31)
        return cls(name=name, first=first, last=last, holidays=frozenset(holidays))

    def is_business_day(self, day: date) -> bool:
        """Say whether people work on that day.

        Raises:
            CalendarEnds: nothing is known of that day.
        """
        if not self.first <= day <= self.last:
            msg = f"the calendar {self.name} goes from {self.first} to {self.last} and says nothing about {day}"
            raise CalendarEnds(msg)
        return Weekday(day.weekday()) not in self.weekend and day not in self.holidays

    def days_after(self, day: date, number: int) -> date:
        """Return the `number`-th business day after a day, which itself counts for nothing.

        Raises:
            CalendarEnds: the calendar ends before that.
        """
        for _ in range(number):
            day = self._step(day, timedelta(days=1))
        return day

    def on_or_before(self, day: date) -> date:
        """Return the day itself if people work on it, or else the last business day before it.

        Raises:
            CalendarEnds: the calendar begins after that.
        """
        return day if self.is_business_day(day) else self._step(day, timedelta(days=-1))

    def _step(self, day: date, by: timedelta) -> date:
        for _ in range(_DAYS_OFF_MAX):
            day += by
            if self.is_business_day(day):
                return day
        msg = f"the calendar {self.name} has {_DAYS_OFF_MAX} days off in a row around {day}"
        raise CalendarEnds(msg)


def business_days_after(instant: datetime, number: int, calendar: BusinessCalendar, zone: ZoneInfo) -> datetime:
    """Return the instant at which it is the same local time, that many business days later.

    Raises:
        CalendarEnds: the calendar ends before that.
    """
    local = instant.astimezone(zone)
    return instant_of(calendar.days_after(local.date(), number), local.time(), zone)


def weekly_after(instant: datetime, weekday: Weekday, at: time, calendar: BusinessCalendar, zone: ZoneInfo) -> datetime:
    """Return the first instant after another at which it is that time on that day of the week.

    Where people do not work on the day, it is the last business day before it; if that has passed, the next week's.

    Raises:
        CalendarEnds: the calendar ends before that.
    """
    today = local_day(instant, zone)
    day = today + timedelta(days=(weekday - today.weekday()) % 7)
    while (found := instant_of(calendar.on_or_before(day), at, zone)) <= instant:
        day += timedelta(days=7)
    return found
