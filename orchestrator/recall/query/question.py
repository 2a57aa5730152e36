"""What a query asks for: its words, the months and years it names, and whether it wants several things."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from orchestrator.recall.query.words import terms

MOST_TERMS: Final = 60
"""A query with more different words is searched by its first ones."""

MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH: Final = re.compile(rf"\b({'|'.join(MONTHS)})\b", re.IGNORECASE)
_YEAR: Final = re.compile(r"\b(19\d\d|20\d\d)\b")

_PERFECT: Final = re.compile(
    r"^(?:(?:in|on|at|to|from|with) )?(?:what|which|who|where|how)\b"
    r"(?!.*\b(?:do|does|did)\b.*\bhave\b).*\b(?:has|have)\b",
    re.IGNORECASE,
)
_COUNTED: Final = re.compile(
    r"\bhow many\b|\b(?:both|names|types|kinds|ways)\b|^what (?:are|do)\b", re.IGNORECASE
)
_PLURAL: Final = re.compile(
    r"^(?:what|which) (?:\w+ ){0,3}?(?!does\b|is\b|was\b|has\b|this\b|\w*ss\b|\w*us\b|\w*is\b)\w{3,}s"
    r" (?:do|does|did|has|have|is|are|was|were)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ReadQuery:
    """What a query says: its words, and the months and years that it names."""

    text: str
    terms: tuple[str, ...]
    months: frozenset[int]
    years: frozenset[int]
    asks_for_several: bool


def read(text: str) -> ReadQuery:
    """Find the words, months and years of a query, and whether it asks for several things."""
    found = tuple(dict.fromkeys(terms(text)))[:MOST_TERMS]
    head = text[:500]
    months = {MONTHS.index(each.lower()) + 1 for each in _MONTH.findall(head) if _is_month(each)}
    years = {int(each) for each in _YEAR.findall(head)}
    several = any(rule.search(head.strip()) for rule in (_PERFECT, _COUNTED, _PLURAL))
    return ReadQuery(text, found, frozenset(months), frozenset(years), several)


def named(text: str, names: Iterable[str]) -> list[str]:
    """Which of these names, or of their first words, a text mentions."""
    plain = text[:2000].lower()
    return [name for name in names if re.search(_mention(name), plain)]


def without_names(text: str, names: Iterable[str]) -> str:
    """The text with pronouns in place of names, so that its meaning is compared without them."""
    for name in names:
        text = re.sub(rf"{_mention(name)}(?:['\u2019]s\b)?", "they", text, flags=re.IGNORECASE)
    return text


def _mention(name: str) -> str:
    first = name.lower().split()[0] if name.split() else name.lower()
    return rf"\b(?:{re.escape(name.lower())}|{re.escape(first)})\b"


def _is_month(word: str) -> bool:
    """Whether a word names a month. "may" and "march" do so only with a capital."""
    return word[0].isupper() or word.lower() not in ("may", "march")
