"""Checks a model's summary against the messages it was made of, sentence by sentence. Pure.

Every name, number, dose, date and medicine of a sentence must occur in what the person said. A sentence that
begins with `Assistant` speaks of the answers, and may also have what occurs in them. Other sentences are
dropped, and counted.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agents import sentences
from orchestrator.recall.query.words import stem
from orchestrator.remember.creators.history import Said

_NUMBER_TEXT: Final = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty
"""
_UNIT_TEXT: Final = "mg mcg g kg ml l % unit iu mmhg puff tablet pill drop cm bpm mmol"
_MONTH_TEXT: Final = """
    january february march april may june july august september october november december
"""
_REPORTING_TEXT: Final = """
    a also an and another as at because both but by conversation discussed during each for from has have he
    her his however if in it its last later main mentioned next no not now on one overall patient person
    reports said says she since so some speaker states summary that the their then there they this to today
    topics two user wants was were when while with
"""
_NUMBERS: Final = {word: str(number) for number, word in enumerate(_NUMBER_TEXT.split())} | {
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
    "sixty": "60",
    "once": "1",
    "twice": "2",
}
_UNITS: Final = {
    "milligram": "mg",
    "milligramme": "mg",
    "microgram": "mcg",
    "ug": "mcg",
    "gram": "g",
    "kilogram": "kg",
    "kilo": "kg",
    "millilitre": "ml",
    "milliliter": "ml",
    "percent": "%",
}
_MEASURED: Final = frozenset(_UNIT_TEXT.split())
_MONTHS: Final = frozenset(_MONTH_TEXT.split())
_REPORTING: Final = frozenset(_REPORTING_TEXT.split())
"""Words that may begin a sentence without being a name."""

_TOKEN: Final = re.compile(r"\d+(?:[.,:/]\d+)*|%|[^\W\d_](?:[\w]|['\u2019-](?=\w))*")
_OF_ASSISTANT: Final = re.compile(r"(?:the )?(?:assistant|companion|answer)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Checked:
    """A text without the sentences that the messages do not support."""

    text: str
    dropped: int


class SummaryCheck:
    """What the messages of one chunk support. `health_terms` are medicines and conditions."""

    def __init__(self, messages: Sequence[Said], health_terms: frozenset[str] = frozenset()) -> None:
        said = [each.words for each in messages if each.is_person]
        self._person = _Source("\n".join(said))
        self._all = _Source("\n".join(each.words for each in messages))
        self._health_terms = health_terms

    def check(self, text: str) -> Checked:
        """The text as it is, or without the sentences that are not supported."""
        found = sentences.cut(text)
        kept = [each for each in found if self.supports(each)]
        if len(kept) == len(found):
            return Checked(text, 0)
        return Checked("".join(kept).strip(), len(found) - len(kept))

    def supports(self, sentence: str, *, is_title: bool = False) -> bool:
        """Whether everything of a sentence that can be checked was said. A title may name what was asked."""
        plain = sentence.strip()
        source = self._all if is_title or _OF_ASSISTANT.match(plain) else self._person
        tokens = _tokens(plain)
        return all(
            self._is_supported(place, tokens, source) for place, token in enumerate(tokens) if token.text
        )

    def has(self, phrase: str) -> bool:
        """Whether all words of a phrase occur in the messages."""
        return all(
            token.text in self._all.words or token.stem in self._all.stems for token in _tokens(phrase)
        )

    def _is_supported(self, place: int, tokens: "Sequence[_Token]", source: "_Source") -> bool:
        token = tokens[place]
        if token.text[0].isdigit():
            return token.text in source.words and all(
                frozenset((token.text, other)) in source.pairs for other in _measures(place, tokens)
            )
        is_name = token.is_capital and not (place == 0 and token.text in _REPORTING)
        if not is_name and token.text not in self._health_terms:
            return True
        if token.text in ("i", "assistant", "person", "user", "patient"):
            return True
        return token.text in source.words or token.stem in source.stems


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    is_capital: bool

    @property
    def stem(self) -> str:
        return stem(self.text)


class _Source:
    """The words of some messages, their stems, and which numbers stand beside which words."""

    def __init__(self, text: str) -> None:
        tokens = _tokens(text)
        self.words = frozenset(token.text for token in tokens)
        self.stems = frozenset(token.stem for token in tokens)
        self.pairs = frozenset(
            frozenset((token.text, other.text))
            for place, token in enumerate(tokens)
            if token.text[0].isdigit()
            for other in (*_before(place, tokens), *_after(place, tokens))
        )


def _measures(place: int, tokens: Sequence[_Token]) -> list[str]:
    """What a number counts: the unit or the month after it, or the month before it."""
    before = [token.text for token in _before(place, tokens) if token.text in _MONTHS]
    after = [token.text for token in _after(place, tokens) if token.text in _MEASURED | _MONTHS]
    return before + after


def _before(place: int, tokens: Sequence[_Token]) -> list[_Token]:
    """The word before a number; `of` does not count."""
    return [token for token in tokens[max(place - 2, 0) : place] if token.text != "of"][-1:]


def _after(place: int, tokens: Sequence[_Token]) -> list[_Token]:
    """The word after a number; `of` does not count."""
    return [token for token in tokens[place + 1 : place + 3] if token.text != "of"][:1]


def _tokens(text: str) -> list[_Token]:
    plain = unicodedata.normalize("NFKC", text)
    return [_token(found) for found in _TOKEN.findall(plain)]


def _token(found: str) -> _Token:
    low = found.lower().replace("\u2019", "'").removesuffix("'s").rstrip(".,:/")
    low = _NUMBERS.get(low, low)
    if low[0].isdigit():
        return _Token(re.sub(r",(?=\d{3}\b)", "", low), is_capital=False)
    singular = low.removesuffix("s") if len(low) > 2 else low
    low = _UNITS.get(singular, singular if singular in _MEASURED else low)
    return _Token(low, is_capital=found[0].isupper())
