"""Reads the dates of imported memories."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

_FORMATS: Final = (
    "%I:%M %p on %d %B, %Y",
    "%H:%M on %d %B, %Y",
    "%d %B, %Y",
    "%d %B %Y",
    "%d %b %Y",
    "%B %d, %Y",
    "%b %d, %Y",
    "%B %d %Y",
    "%Y/%m/%d",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d (%a) %H:%M",
)
_EARLIEST, _LATEST = -62_135_596_800, 253_402_300_799
_MILLISECONDS: Final = 1e11


def read_date(value: str | float) -> datetime | None:
    """A moment from ISO 8601, seconds or milliseconds since 1970, or a written date; None if it is none.

    A moment without a time zone is taken as UTC.
    """
    if not isinstance(value, str):
        seconds = value / 1000 if abs(value) >= _MILLISECONDS else value
        return datetime.fromtimestamp(seconds, UTC) if _EARLIEST <= seconds <= _LATEST else None
    text = re.sub(r"\s+", " ", value.strip())
    for read in (datetime.fromisoformat, *(_reader(each) for each in _FORMATS)):
        try:
            moment = read(text)
        except ValueError:
            continue
        try:
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except OverflowError:
            return None
    return None


def _reader(form: str) -> Callable[[str], datetime]:
    return lambda text: datetime.strptime(text, form)  # noqa: DTZ007  the zone is set by the caller
