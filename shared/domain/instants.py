"""Instants: one stored form, UTC to the millisecond, so that text order is time order."""

import re
from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import BeforeValidator, PlainSerializer

# Date, time and offset are all required. A date alone or a time without offset has no one meaning (B50).
_FORM: Final = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?(?:Z|([+-])(\d{2}):(\d{2}))\Z",
    re.ASCII,
)


def parse_instant(text: str) -> datetime:
    """Read an RFC 3339 instant with an offset and return it in UTC, cut to the millisecond.

    Raises:
        ValueError: the text is not such an instant; it is never taken to mean "no limit".
    """
    if _FORM.match(text) is None:
        msg = f"not an instant with an offset: {text!r}"
        raise ValueError(msg)
    return as_instant(datetime.fromisoformat(_normalised(text)))


def as_instant(moment: datetime) -> datetime:
    """Return an aware datetime in UTC, cut to the millisecond.

    Raises:
        ValueError: the datetime carries no offset, or lies outside the calendar in UTC.
    """
    if moment.tzinfo is None:
        msg = "a datetime without offset is not an instant"
        raise ValueError(msg)
    try:
        in_utc = moment.astimezone(UTC)
    except OverflowError as error:
        # An offset can push the first or last day of the calendar out of it.
        msg = "the instant lies outside the calendar"
        raise ValueError(msg) from error
    return in_utc.replace(microsecond=in_utc.microsecond // 1000 * 1000)


def format_instant(moment: datetime) -> str:
    """Return the one stored form, such as ``2026-10-09T09:00:00.000Z``."""
    return as_instant(moment).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def _normalised(text: str) -> str:
    # Python reads "Z" and short fractions the same way only from 3.11 on; the pattern already bounds the rest.
    return text.replace("Z", "+00:00")


def _read(value: object) -> datetime:
    if isinstance(value, str):
        return parse_instant(value)
    if isinstance(value, datetime):
        return as_instant(value)
    msg = "expected an instant such as 2026-10-09T09:00:00Z"
    raise ValueError(msg)


Instant = Annotated[datetime, BeforeValidator(_read), PlainSerializer(format_instant, when_used="json")]
