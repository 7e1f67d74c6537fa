"""When an onboarding reminds, escalates and ends: business days and local times, as instants (docs/adr/0018)."""

import json
from collections.abc import Mapping
from datetime import date, datetime, time
from pathlib import Path
from typing import Final

from shared.domain.calendar import BusinessCalendar, Weekday, business_days_after, weekly_after, zone_of
from shared.domain.wait import OnDeadline, Rung, WaitRule
from shared.workflows.onboarding.models import OnboardingRequest

# The dates are taken from a library that stays on the developer's machine (tooling/holiday_dates.py).
_HOLIDAYS: Final = Path(__file__).parent / "holidays.json"
# The end of the week in an office.
_CLOSING_TIME: Final = time(17)


def _calendars() -> Mapping[str, BusinessCalendar]:
    data = json.loads(_HOLIDAYS.read_text(encoding="utf-8"))
    first, last = data["years"]
    return {
        name: BusinessCalendar.of_years(name, range(first, last + 1), map(date.fromisoformat, days))
        for name, days in data["calendars"].items()
    }


CALENDARS: Final = _calendars()


def document_wait(request: OnboardingRequest, opened_at: datetime) -> WaitRule:
    """Remind after two and four business days; on the Friday after that HR's lead has two more before the end.

    The last rung lets the task go on without the signature, so that the workflow can end it as expired and say what
    stays: the packet is with the employee and cannot be called back.

    Raises:
        CalendarEnds: nobody knows the holidays of that time.
    """
    calendar, zone = CALENDARS[request.business_calendar], zone_of(request.time_zone)
    second_reminder = business_days_after(opened_at, 4, calendar, zone)
    friday = weekly_after(second_reminder, Weekday.FRIDAY, _CLOSING_TIME, calendar, zone)
    return WaitRule(
        ladder=(
            Rung(at=business_days_after(opened_at, 2, calendar, zone), do=OnDeadline.REMIND, to="employee"),
            Rung(at=second_reminder, do=OnDeadline.REMIND, to="employee"),
            Rung(at=friday, do=OnDeadline.ESCALATE, to="hr_lead"),
            Rung(at=business_days_after(friday, 2, calendar, zone), do=OnDeadline.PROCEED, to="hr_lead"),
        )
    )


def choice_wait(request: OnboardingRequest, opened_at: datetime) -> WaitRule:
    """Remind after one and two business days; after three HR's lead has two more before the end.

    Raises:
        CalendarEnds: nobody knows the holidays of that time.
    """
    calendar, zone = CALENDARS[request.business_calendar], zone_of(request.time_zone)

    def after(days: int) -> datetime:
        return business_days_after(opened_at, days, calendar, zone)

    return WaitRule(
        ladder=(
            Rung(at=after(1), do=OnDeadline.REMIND, to="employee"),
            Rung(at=after(2), do=OnDeadline.REMIND, to="employee"),
            Rung(at=after(3), do=OnDeadline.ESCALATE, to="hr_lead"),
            Rung(at=after(5), do=OnDeadline.PROCEED, to="hr_lead"),
        )
    )
