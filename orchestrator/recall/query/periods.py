"""Time words in a query, such as "last week" or "3 days ago", as a period. Pure.

Only words relative to the present narrow a search. A month or a date that is named may also be what the
memory is about, so it is a signal among others.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from agents.ports import Period

_NUMBERS: Final = {
    word: number
    for number, words in enumerate(
        ("", "a an one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "", "twelve")
    )
    for word in words.split()
} | {"couple of": 2, "a couple of": 2, "few": 3, "a few": 3}
_DAYS_OF: Final = {"day": 1, "week": 7, "month": 30, "year": 365}
_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_NUMBER: Final = rf"(\d{{1,3}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})"
_AGO: Final = re.compile(rf"\b{_NUMBER} (day|week|month|year)s? ago\b", re.IGNORECASE)
_PAST: Final = re.compile(
    rf"\b(?:in|over|during|within|for) the (?:last|past) (?:{_NUMBER} )?(day|week|month|year)s?\b",
    re.IGNORECASE,
)
_CALENDAR: Final = re.compile(r"\b(this|last) (week|month|year)\b", re.IGNORECASE)
_WEEKDAY: Final = re.compile(rf"\b(?:last|on) ({'|'.join(_WEEKDAYS)})\b", re.IGNORECASE)
_DAY: Final = re.compile(r"\b(today|this morning|yesterday|last night)\b", re.IGNORECASE)


def read(text: str, now: datetime, zone: tzinfo = UTC) -> Period | None:
    """The period that a query names, by the calendar of a time zone; None if it names none."""
    today = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    for pattern, make in _RULES:
        if found := pattern.search(text[:2000]):
            start, end = make(found, today)
            return Period(start, end, found.group())
    return None


def _ago(found: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    """Some time ago: the longer ago, the less exact."""
    days = _number(found[1]) * _DAYS_OF[found[2].lower()]
    slack = {"day": 0, "week": 3, "month": 10, "year": 60}[found[2].lower()]
    return today - timedelta(days=days + slack), today - timedelta(days=days - slack - 1)


def _past(found: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    days = _number(found[1] or "one") * _DAYS_OF[found[2].lower()]
    return today - timedelta(days=days), today + timedelta(days=1)


def _calendar(found: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    unit, is_last = found[2].lower(), found[1].lower() == "last"
    if unit == "week":
        start = today - timedelta(days=today.weekday())
        return (start - timedelta(days=7), start) if is_last else (start, today + timedelta(days=1))
    start = today.replace(day=1) if unit == "month" else today.replace(month=1, day=1)
    if not is_last:
        return start, today + timedelta(days=1)
    before = start - timedelta(days=1)
    return before.replace(day=1) if unit == "month" else before.replace(month=1, day=1), start


def _weekday(found: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    back = (today.weekday() - _WEEKDAYS.index(found[1].lower()) - 1) % 7 + 1
    start = today - timedelta(days=back)
    return start, start + timedelta(days=1)


def _day(found: re.Match[str], today: datetime) -> tuple[datetime, datetime]:
    start = today if found[1].lower() in ("today", "this morning") else today - timedelta(days=1)
    return start, start + timedelta(days=1)


def _number(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS[word.lower()]


_RULES: Final[
    tuple[tuple[re.Pattern[str], Callable[[re.Match[str], datetime], tuple[datetime, datetime]]], ...]
] = (
    (_AGO, _ago),
    (_PAST, _past),
    (_CALENDAR, _calendar),
    (_WEEKDAY, _weekday),
    (_DAY, _day),
)
