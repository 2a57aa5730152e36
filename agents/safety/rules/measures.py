"""Finds measured values in a text: a temperature, a blood pressure, an age, hours without water."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agents.safety.rules.phrases import Found
from agents.safety.rules.text import Word

_YEAR: Final = re.compile(r"19[4-9]\d|20[0-2]\d")
_PLAIN: Final = re.compile(r"\d{1,4}(?:[.,]\d{1,2})?")
_PAIR: Final = re.compile(r"(\d{2,3})/(\d{2,3})")
_DATES: Final = frozenset((
    "in", "since", "from", "of", "until", "till", "around", "about", "early", "late", "mid", "back",
    "year", "by", "during",
))  # fmt: skip
_COUNTED: Final = frozenset((
    "years", "year", "months", "month", "weeks", "week", "days", "day", "hours", "hour", "minutes", "minute",
    "times", "am", "pm",
))  # fmt: skip
_NOT_ITS: Final = frozenset((
    ".", ",", "years", "year", "months", "month", "weeks", "week", "days", "day", "hours", "minutes", "times",
))  # fmt: skip
"""Words after a number that separate it from the word that follows: "30 years, sugars 5 to 9"."""
_AFTER_A_DATE: Final = frozenset((".", ",", "and", "but", "-", ")"))
HISTORY: Final = "history"
"""The cue that a year counts as."""
NUMBERS: Final = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40,
    "fifty": 50, "sixty": 60, "hundred": 100,
}  # fmt: skip
"""Numbers written as words."""


@dataclass(frozen=True, slots=True)
class Band:
    """Values from `low` to `high` count as a finding of this concept."""

    concept: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Measure:
    """A number near a word of a concept. `before` and `after` are maximum distances; -1 means never.

    `before` is for a number before the word ("3 weeks"), `after` for one after it ("temp of 39").
    """

    bands: tuple[Band, ...]
    before: int
    after: int


class Gauge:
    """Finds measured values near the findings of a text. A pair such as 220/130 is a blood pressure.

    A 'not' before a value does not retract it.
    """

    def __init__(self, measures: Mapping[str, Measure], pressures: Sequence[tuple[Band, Band]]) -> None:
        self._measures = measures
        self._pressures = pressures

    def find(self, words: Sequence[Word], found: Sequence[Found]) -> list[Found]:
        """The findings that follow from the numbers of a text."""
        figures = [
            (at, text)
            for at, (text, _, _) in enumerate(words)
            if text in NUMBERS or (not "a" <= text < "{" and text[0].isdigit())
        ]
        if not figures:
            return []
        values = {at: value for at, text in figures if (value := _value(text)) is not None}
        said = self._pressure(words, figures, values)
        said += [
            Found(HISTORY, at, at + 1)
            for at, text in figures
            if _YEAR.fullmatch(text) and _is_date(words, at)
        ]
        if values:
            for each in found:
                if (measure := self._measures.get(each.concept)) is not None:
                    said.extend(self._beside(measure, each, values, words))
        return said

    def is_reading(self, concept: str) -> bool:
        """Whether a number after this concept is a measured value: a temperature, not an age."""
        return concept in self._measures and self._measures[concept].after > 0

    def first_figure(self, words: Sequence[Word]) -> str | None:
        """The first number of a text; None if it counts something, as in "2 hours"."""
        said = [word.text for word in words]
        at = next((at for at, text in enumerate(said) if _value(text) is not None), None)
        return None if at is None or _counts(said, at) else said[at]

    def bare_figures(self, words: Sequence[Word]) -> list[tuple[int, str]]:
        """The positions and digits of the numbers that count nothing: "38.6", but not "2 hours"."""
        said = [word.text for word in words]
        return [
            (at, text.replace(",", "."))
            for at, text in enumerate(said)
            if _PLAIN.fullmatch(text) and not _counts(said, at)
        ]

    @staticmethod
    def _beside(
        measure: Measure, found: Found, values: Mapping[int, float], words: Sequence[Word]
    ) -> list[Found]:
        """The findings from the nearest number before a word and the nearest one after it.

        A number before it does not count if a comma or a word such as "years" comes between.
        """
        places = (
            range(found.start - 1, found.start - 2 - measure.before, -1),
            range(found.end, found.end + 1 + measure.after),
        )
        before, after = (next((at for at in side if at in values), None) for side in places)
        if before is not None and any(word.text in _NOT_ITS for word in words[before + 1 : found.start]):
            before = None
        return [
            Found(band.concept, min(at, found.start), max(at + 1, found.end), negative=True)
            for at in (before, after)
            if at is not None
            for band in measure.bands
            if band.low <= values[at] <= band.high
        ]

    def _pressure(
        self, words: Sequence[Word], figures: Sequence[tuple[int, str]], values: Mapping[int, float]
    ) -> list[Found]:
        said: list[Found] = []
        for at, text in figures:
            if pair := _PAIR.fullmatch(text):
                upper, lower, end = int(pair[1]), int(pair[2]), at + 1
            elif at in values and at + 2 in values and words[at + 1].text == "over":
                upper, lower, end = int(values[at]), int(values[at + 2]), at + 3
            else:
                continue
            if 40 <= upper <= 300 and 15 <= lower < upper:
                said.extend(
                    Found(first.concept, end - 1, end, negative=True)
                    for first, second in self._pressures
                    if first.low <= upper <= first.high or second.low <= lower <= second.high
                )
        return said


def _is_date(words: Sequence[Word], at: int) -> bool:
    """Whether a year is the time of something: "in 2010", "a stroke 2010."; not "update 2026: ..."."""
    before = words[at - 1].text if at else ""
    after = words[at + 1].text if at + 1 < len(words) else "."
    return before in _DATES or after in _AFTER_A_DATE


def _value(text: str) -> float | None:
    if text in NUMBERS:
        return float(NUMBERS[text])
    return float(text.replace(",", ".")) if _PLAIN.fullmatch(text) else None


def _counts(said: Sequence[str], at: int) -> bool:
    """Whether a number counts hours, weeks or the like."""
    return at + 1 < len(said) and said[at + 1] in _COUNTED
