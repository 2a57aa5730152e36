"""Reads an event that a query names as a point in time, as in "before the surgery". Pure.

The date of the event is taken from a memory about it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from agents.ports import Period
from orchestrator.recall.query import periods
from orchestrator.recall.query.question import MONTHS
from orchestrator.recall.query.words import STOP_WORDS

LEAST_SCORE: Final = 0.4
"""A memory below this score is not about the event."""

_NAMED: Final = re.compile(
    r"\b(before|after|since|until) (?:the|my|her|his|our|their) ([a-z][a-z'-]*(?: [a-z'-]+){0,2})",
    re.IGNORECASE,
)
_NO_EVENT_TEXT: Final = """
    age beginning day days end evening first future hour last latter minute moment month morning next night
    other past present same start summer time times usual week weekend winter year years
"""
_NO_EVENT: Final = frozenset(_NO_EVENT_TEXT.split())
"""Words that name no event of a person's life."""

_STATES: Final = re.compile(
    r"(?:(?:well|so|yes|no|and|but|ok|okay|hi|hello)\W+)*"
    r"(?:i|i['\u2019]\w+|my|it|it['\u2019]s|he|she|we|they|the|there|since|after|before|until)\b",
    re.IGNORECASE,
)
_MONTH: Final = "|".join(MONTHS)
_ON_DAY: Final = re.compile(
    rf"\b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<month>{_MONTH})"
    rf"|(?P<month_first>{_MONTH}) (?P<day_last>\d{{1,2}})(?:st|nd|rd|th)?)\b(?:,? (?P<year>\d{{4}}))?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Event:
    """An event, and whether the time before or after it is asked for."""

    relation: str
    name: str
    words: str


@dataclass(frozen=True, slots=True)
class DatedText:
    """A memory that may say when an event was."""

    text: str
    true_when: str
    said_at: datetime


def read(text: str) -> Event | None:
    """The event by which a query narrows the time; None in a statement, or if there is none."""
    head = text[:2000].strip()
    found = _NAMED.search(head)
    if found is None or ("?" not in head and _STATES.match(head)):
        return None
    name: list[str] = []
    for word in found[2].split():
        if word.lower() in STOP_WORDS or word.lower() in _NO_EVENT:
            break
        name.append(word)
    if not name:
        return None
    words = head[found.start() : found.start(2)] + " ".join(name)
    return Event(found[1].lower(), " ".join(name), words)


def period(event: Event, told: Sequence[DatedText], zone: tzinfo = UTC) -> Period | None:
    """The time before or after an event, by the best memory about it; None without one.

    A memory that names a date goes before one that only was said on a date.
    """
    statements = [each for each in told if "?" not in each.text]
    if not statements:
        return None
    dated = ((each, _stated_day(each, zone)) for each in statements)
    start, end = next((found for _, found in dated if found), None) or _day(statements[0].said_at, zone)
    bounds = {
        "before": (None, start),
        "until": (None, end),
        "since": (start, None),
        "after": (start, None),
    }
    return Period(*bounds[event.relation], event.words, start)


def _stated_day(told: DatedText, zone: tzinfo) -> tuple[datetime, datetime] | None:
    """The day or days that a memory names."""
    for text in (told.true_when, told.text):
        if stretch := periods.read(text, told.said_at, zone):
            return stretch.start or told.said_at, stretch.end or told.said_at
        if named := _ON_DAY.search(text):
            return _named_day(named, told.said_at, zone)
    return None


def _named_day(found: re.Match[str], said_at: datetime, zone: tzinfo) -> tuple[datetime, datetime] | None:
    """A day of a month. Without a year, it is the one nearest to when it was said."""
    month = MONTHS.index((found["month"] or found["month_first"]).lower()) + 1
    day, near = int(found["day"] or found["day_last"]), said_at.astimezone(zone)
    years = [int(found["year"])] if found["year"] else [near.year - 1, near.year, near.year + 1]
    days = []
    for year in years:
        try:
            days.append(datetime(year, month, day, tzinfo=zone))
        except ValueError:
            continue
    return _day(min(days, key=lambda each: abs(each - near)), zone) if days else None


def _day(moment: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    start = moment.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    return start, start + timedelta(days=1)
