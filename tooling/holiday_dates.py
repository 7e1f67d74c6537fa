"""Take the dates of public holidays into a workflow's data: ``python -m tooling.holiday_dates``.

The library that knows them would make every function a fifth larger, and what a workflow needs of it are a few hundred
dates. It stays on the developer's machine; the dates are deployed (docs/adr/0018).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import holidays

from tooling.steps import ROOT, say

PLACE: Final = ROOT / "shared" / "workflows" / "onboarding" / "holidays.json"
# A task lives for months. Holidays are changed by law now and then: what is further away than this would be a guess.
YEARS: Final = range(2026, 2036)
# By ISO 3166: the country, or the part of it whose holidays count.
CALENDARS: Final[Mapping[str, tuple[str, str | None]]] = {
    "DE-BE": ("DE", "BE"),
    "GB-ENG": ("GB", "ENG"),
    "US": ("US", None),
}


def dates_of(country: str, part: str | None, years: Sequence[int]) -> list[str]:
    """List the public holidays of these years, in order."""
    return [day.isoformat() for day in sorted(holidays.country_holidays(country, subdiv=part, years=years))]


def content() -> str:
    """Return the data file as it has to be."""
    calendars = {name: dates_of(country, part, YEARS) for name, (country, part) in CALENDARS.items()}
    return json.dumps({"years": [YEARS[0], YEARS[-1]], "calendars": calendars}, indent=1) + "\n"


def write(place: Path = PLACE) -> None:
    """Write the data file."""
    say(f"writing {place.relative_to(ROOT)}")
    place.write_text(content(), encoding="utf-8")


if __name__ == "__main__":
    write()
