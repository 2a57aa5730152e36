"""The time of day, the same for everyone in this process."""

from datetime import UTC, datetime


def cut_to_milliseconds(moment: datetime) -> datetime:
    """What travels and what is stored has milliseconds, so nothing finer may be compared with it."""
    return moment.astimezone(UTC).replace(microsecond=moment.microsecond // 1000 * 1000)


def as_text(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds, as on the wire: `2026-01-15T10:30:00.000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


class SystemClock:
    """The machine's clock, held back where it would go backwards."""

    def __init__(self) -> None:
        self._latest = datetime.min.replace(tzinfo=UTC)

    def now(self) -> datetime:
        """The present moment; the latest one given before, if the machine's clock was set back."""
        self._latest = max(self._latest, cut_to_milliseconds(datetime.now(UTC)))
        return self._latest
