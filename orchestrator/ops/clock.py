"""The clock of this process, and times as text."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def cut_to_milliseconds(moment: datetime) -> datetime:
    """Drop the microseconds: frames and rows have milliseconds, and times must compare equal to them."""
    return moment.astimezone(UTC).replace(microsecond=moment.microsecond // 1000 * 1000)


def as_text(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds, as on the wire: `2026-01-15T10:30:00.000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def in_time_zone(moment: datetime, name: object) -> datetime:
    """The same moment in a time zone of the IANA database; unchanged if there is none of that name."""
    try:
        return moment.astimezone(ZoneInfo(name)) if isinstance(name, str) and name else moment
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return moment


class SystemClock:
    """The machine's clock, but never going backwards."""

    def __init__(self) -> None:
        self._latest = datetime.min.replace(tzinfo=UTC)

    def now(self) -> datetime:
        """The current time, or the latest one returned before if the machine's clock was set back."""
        self._latest = max(self._latest, cut_to_milliseconds(datetime.now(UTC)))
        return self._latest
