"""The holidays that are deployed are those that the library knows."""

import json

from tooling.holiday_dates import PLACE, YEARS, content


def test_the_deployed_dates_are_the_library_s() -> None:
    """Whoever updates the library writes the dates again: ``python -m tooling.holiday_dates``."""
    assert PLACE.read_text(encoding="utf-8") == content()


def test_days_that_everybody_knows_are_among_them() -> None:
    """The file is not compared with itself alone: movable feasts, substitute days, and a part of a country."""
    calendars = json.loads(PLACE.read_text(encoding="utf-8"))["calendars"]

    assert {"2027-03-26", "2027-03-08", "2026-10-03"} <= set(calendars["DE-BE"])
    assert {"2027-03-26", "2026-12-28"} <= set(calendars["GB-ENG"])
    assert {"2026-11-26", "2026-07-03"} <= set(calendars["US"])
    assert all(any(day.startswith(str(year)) for day in days) for days in calendars.values() for year in YEARS)
