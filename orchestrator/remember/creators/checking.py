"""Checks what a model wrote against the messages it was made of, sentence by sentence. Pure.

A sentence of a summary is kept only if one sentence of the person supports it: that sentence has every word
which says something, every number beside the same unit and the same medicine, and it is no question, not
negated, not uncertain and about nobody else unless the summary says so, too. A sentence that begins with
`Assistant` speaks of the answers, and may also rest on a sentence of them. Other sentences are dropped, and
counted.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from agents import sentences
from orchestrator.recall.query.words import stem
from orchestrator.remember.creators.history import Said

_FREE_TEXT: Final = """
    a about according again also am an and another any anything are as asked asking asks assistant at be
    because been being both but by can chat companion conversation could describe described describes did
    discuss discussed discusses do does doing each every explained explains for from had has have having
    he her here hers herself him himself his how however i if in into is it its itself may me mention
    mentioned mentions message mine must my myself name named names new no not of on or other our ours
    overall patient person question report reported reports said say saying says shall she so some
    something speaker state stated states summary talk talked talks tell tells that the their theirs them
    then there these they thing this those times to told too topic topics us user was we well were what
    when where whether which while who whom whose will with you your yours
"""
"""Words that say nothing about the person: grammar, and how a summary reports."""

_NUMBER_TEXT: Final = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen
"""
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_UNIT_TEXT: Final = "mg mcg g kg ml l % unit iu mmhg puff tablet pill capsule drop cm bpm mmol"
_MONTH_TEXT: Final = """
    january february march april may june july august september october november december
"""
_OTHER_TEXT: Final = """
    aunt baby boss boyfriend brother child colleague cousin dad daughter ex father flatmate friend girlfriend
    gran grandad granddaughter grandfather grandma grandmother grandpa grandson granny husband kid mom mother
    mum mummy nan neighbor neighbour nephew niece parent partner roommate sister son spouse stepdad stepfather
    stepmother stepmum stepson toddler twin uncle wife
"""
_MAYBE_TEXT: Final = """
    could guess hope if maybe might perhaps possibly probably should suppose think thinking unsure whether
    wish will worried worry would
"""
_IRREGULAR: Final = {
    form: base
    for base, forms in {
        "take": "took taken",
        "eat": "ate eaten",
        "drink": "drank drunk",
        "sleep": "slept",
        "feel": "felt",
        "go": "went gone",
        "get": "got gotten",
        "give": "gave given",
        "begin": "began begun",
        "see": "saw seen",
        "make": "made",
        "come": "came",
        "lose": "lost",
        "break": "broke broken",
        "fall": "fell fallen",
        "run": "ran",
        "think": "thought",
        "keep": "kept",
        "leave": "left",
        "child": "children",
        "foot": "feet",
        "tooth": "teeth",
        "day": "daily",
        "week": "weekly",
        "month": "monthly",
        "night": "nightly",
        "year": "yearly annually",
        "never": "nor neither none nobody nothing without denies denied deny",
    }.items()
    for form in forms.split()
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
_FREE: Final = frozenset(_FREE_TEXT.split())
_MEASURED: Final = frozenset(_UNIT_TEXT.split())
_MONTHS: Final = frozenset(_MONTH_TEXT.split())
_OTHERS: Final = frozenset(map(stem, _OTHER_TEXT.split()))
_PRONOUNS: Final = frozenset(("he", "she", "they", "him", "them", "his", "her", "their"))
_FIRST_PERSON: Final = frozenset(("i", "me", "my", "we", "us", "our"))
_MAYBE: Final = frozenset(map(stem, _MAYBE_TEXT.split()))
_PAST: Final = frozenset(map(stem, ("stop", "quit", "used", "former", "formerly", "previously")))
_ASKING: Final = frozenset(map(stem, ("ask", "asks", "asked", "asking", "wonder", "question", "whether")))
_TAKING: Final = frozenset(map(stem, ("take", "use", "drink", "eat", "need", "get")))
_NOT: Final = frozenset(("no", "not", "never"))
_SMALL: Final = {
    **{word: number for number, word in enumerate(_NUMBER_TEXT.split())},
    **{word: 10 * number for number, word in enumerate(_TENS, 2)},
    "once": 1,
    "twice": 2,
}
_BREAKS: Final = frozenset(("and", "but", "although", "though", "because", "while", "whereas"))

_TOKEN: Final = re.compile(
    r"\d+(?:[.,:/]\d+)*|%|[^\W\d_](?:[\w]|['\u2019-](?=\w))*|[,;:()\u2013\u2014]", re.UNICODE
)
_OF_ASSISTANT: Final = re.compile(r"(?:the )?(?:assistant|companion|answer)\b", re.IGNORECASE)
_SPEAKER: Final = re.compile(r"(Person|Assistant): ")
_INTRODUCED: Final = re.compile(r"\b(?:[Ii]['\u2019]m|[Ii] am|[Mm]y name is|[Cc]all me) ([A-Z]\w+)")
_NEAR: Final = 3
"""So many words on each side of an amount may be what it is an amount of."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A text without the sentences that the messages do not support."""

    text: str
    dropped: int


class SummaryCheck:
    """What some messages support. `health_terms` are medicines and conditions, some of several words."""

    def __init__(self, messages: Sequence[Said], health_terms: frozenset[str] = frozenset()) -> None:
        self._terms = frozenset(map(_stems, health_terms))
        names = {stem(name.lower()) for each in messages for name in _INTRODUCED.findall(each.words)}
        self._names = frozenset(names) if len(names) == 1 else frozenset()
        self._person = self._read(each for each in messages if each.is_person)
        self._answers = self._read(each for each in messages if not each.is_person)

    @classmethod
    def of_memories(cls, texts: Iterable[str], health_terms: frozenset[str]) -> "SummaryCheck":
        """What memories support. A sentence about the assistant supports nothing about the person."""
        messages = []
        for text in texts:
            for sentence in _cut(text):
                speaker = _SPEAKER.match(sentence)
                role = "assistant" if _OF_ASSISTANT.match(sentence) else "user"
                words = sentence[speaker.end() :] if speaker else sentence
                messages.append(Said.of(role, words))
        return cls(messages, health_terms)

    def check(self, text: str) -> Checked:
        """The text as it is, or without the sentences that are not supported."""
        found = sentences.cut(text)
        kept = [each for each in found if self.supports(each)]
        if len(kept) == len(found):
            return Checked(text, 0)
        return Checked("".join(kept).strip(), len(found) - len(kept))

    def supports(self, sentence: str) -> bool:
        """Whether one sentence of the messages says everything that this one says."""
        plain = _SPEAKER.sub("", sentence.strip(), count=1)
        claim = _Sentence(plain, self._terms)
        if not claim.says:
            return True
        sources = self._person
        if _OF_ASSISTANT.match(sentence.strip()):
            sources = (*sources, *self._answers)
        return any(source.supports(claim, self._names) for source in sources)

    def has(self, phrase: str) -> bool:
        """Whether the person said a phrase, word for word."""
        wanted = _stems(phrase)
        return bool(wanted) and any(_is_in(wanted, source.stems) for source in self._person)

    def _read(self, messages: Iterable[Said]) -> "tuple[_Sentence, ...]":
        return tuple(_Sentence(cut, self._terms) for each in messages for cut in _cut(each.words))


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    stem: str
    is_capital: bool
    clause: int

    @property
    def is_number(self) -> bool:
        return self.text[0].isdigit()

    @property
    def says(self) -> bool:
        """Whether it has to be said: it is no number, no unit and not free."""
        if self.is_capital and self.text in _MONTHS:
            return True
        free = self.text in _FREE or self.text in _MEASURED or self.text in _NOT or len(self.text) == 1
        return not self.is_number and not free


class _Sentence:
    """A sentence as words, with their clauses."""

    def __init__(self, text: str, terms: frozenset[tuple[str, ...]]) -> None:
        self.tokens = _tokens(text)
        self.stems = tuple(token.stem for token in self.tokens)
        self._terms = terms
        self._asks = text.rstrip(" \"')\u201d\u2019").endswith("?")

    @cached_property
    def says(self) -> frozenset[str]:
        """The words and numbers that have to be said."""
        return frozenset(token.stem for token in self.tokens if token.says or token.is_number)

    @cached_property
    def phrases(self) -> frozenset[tuple[str, ...]]:
        """The terms of several words in it."""
        return frozenset(term for term in self._terms if len(term) > 1 and _is_in(term, self.stems))

    def supports(self, claim: "_Sentence", own_names: frozenset[str]) -> bool:
        """Whether this sentence says everything that a claim says, and means it in the same way."""
        return (
            claim.says <= {*self.stems, *own_names}
            and claim.phrases <= self.phrases
            and self._whole(_ASKING) <= claim._whole(_ASKING)
            and self._whole(_MAYBE) <= claim._whole(_MAYBE)
            and all(
                self._means(token, claim, own_names) for token in claim.tokens if token.stem in claim.says
            )
            and all(
                self._measures(place, claim) for place, token in enumerate(claim.tokens) if token.is_number
            )
        )

    def _whole(self, kind: frozenset[str]) -> bool:
        """Whether the sentence asks, or is uncertain."""
        return (kind is _ASKING and self._asks) or not kind.isdisjoint(self.stems)

    def _means(self, token: _Token, claim: "_Sentence", own_names: frozenset[str]) -> bool:
        """Whether a word is here in a clause that is negated, past and about others as in the claim."""
        if token.stem in own_names:
            return True
        claimed = claim._clause(token.clause)
        for clause in {each.clause for each in self.tokens if each.stem == token.stem}:
            words = self._clause(clause)
            if _is_negated(words) != _is_negated(claimed):
                continue
            stems = {each.stem for each in words}
            if stems & _PAST <= set(claim.stems) and self._others(words) - own_names <= set(claim.stems):
                return True
        return False

    def _others(self, clause: Sequence[_Token]) -> frozenset[str]:
        """The people other than the speaker whom a clause is about."""
        found = {each.stem for each in clause if each.stem in _OTHERS}
        if _FIRST_PERSON.isdisjoint(each.text for each in clause):
            found |= {
                each.stem
                for each in clause
                if each.text in _PRONOUNS
                or (each.is_capital and each.says and (each.stem,) not in self._terms)
            }
        return frozenset(found)

    def _measures(self, place: int, claim: "_Sentence") -> bool:
        """Whether a number of the claim is here beside the same unit or month, and of the same medicine."""
        number, wanted = claim.tokens[place].stem, claim._beside(place)
        amount_of = claim._amount_of(place, most=1)
        for here, token in enumerate(self.tokens):
            if token.stem != number or not wanted <= self._neighbours(here):
                continue
            term = claim._nearest_term(place)
            if term is not None and self._nearest_term(here) not in (None, term):
                continue
            if not wanted & _MEASURED or amount_of <= self._amount_of(here, most=_NEAR):
                return True
        return False

    def _beside(self, place: int) -> frozenset[str]:
        """What a number counts: the unit or the month beside it, or the word after it."""
        after = self._next(place, 1)
        units = {each.stem for each in (self._next(place, -1), after) if each and each.text in _MONTHS}
        if after is not None and (after.text in _MEASURED or after.says):
            units.add(after.stem)
        return frozenset(units)

    def _neighbours(self, place: int) -> frozenset[str]:
        found = (self._next(place, -1), self._next(place, 1))
        return frozenset(each.stem for each in found if each is not None)

    def _next(self, place: int, step: int) -> _Token | None:
        """The word before or after a number; `of` does not count."""
        for other in (place + step, place + 2 * step):
            if 0 <= other < len(self.tokens) and self.tokens[other].text != "of":
                return self.tokens[other]
        return None

    def _amount_of(self, place: int, *, most: int) -> frozenset[str]:
        """The words around an amount, in its clause; if there are none, those before, else those after it."""
        clause = self.tokens[place].clause
        before = [each for each in self.tokens[:place] if each.says]
        after = [each for each in self.tokens[place:] if each.says]
        near = [each.stem for each in before if each.clause == clause][-most:]
        near += [each.stem for each in after if each.clause == clause][:most]
        return frozenset(near or [each.stem for each in before[-most:] or after[:most]]) - _TAKING

    def _nearest_term(self, place: int) -> str | None:
        """The medicine or condition of one word that is nearest to an amount, in its clause if possible."""
        clause = self.tokens[place].clause
        near = [
            (each.clause != clause, abs(other - place), each.stem)
            for other, each in enumerate(self.tokens)
            if (each.stem,) in self._terms
        ]
        return min(near)[2] if near else None

    def _clause(self, number: int) -> list[_Token]:
        return [token for token in self.tokens if token.clause == number]


def _is_negated(clause: Iterable[_Token]) -> bool:
    return any(token.text in _NOT for token in clause)


def _is_in(phrase: tuple[str, ...], words: Sequence[str]) -> bool:
    width = len(phrase)
    return any(tuple(words[start : start + width]) == phrase for start in range(len(words) - width + 1))


def _stems(text: str) -> tuple[str, ...]:
    return tuple(token.stem for token in _tokens(text))


def _cut(text: str) -> list[str]:
    """The sentences of a text. A line break inside of one is a space."""
    return [each.strip() for each in sentences.cut(" ".join(text.split())) if each.strip()]


def _tokens(text: str) -> tuple[_Token, ...]:
    """The words and numbers of a text. Numbers in words are digits, and a unit has one spelling."""
    plain = unicodedata.normalize("NFKC", text)
    made: list[_Token] = []
    clause = 0
    spelled: list[int] = []

    def add(word: str, *, is_capital: bool = False) -> None:
        made.append(_Token(word, stem(word), is_capital, clause))

    def end_number() -> None:
        if spelled:
            add(str(sum(spelled)))
            spelled.clear()

    for found in _TOKEN.findall(plain):
        for part in _parts(found):
            if _takes(spelled, part):
                continue
            end_number()
            if _takes(spelled, part):
                continue
            if part in _BREAKS or not (part[0].isalnum() or part == "%"):
                clause += 1
            elif part[0].isdigit():
                add(re.sub(r",(?=\d{3}\b)", "", part.rstrip(".,:/")))
            else:
                add(_word(part), is_capital=found[0].isupper())
    end_number()
    return tuple(made)


def _parts(found: str) -> list[str]:
    """A token in lower case. The parts of a number with a hyphen are apart; so is a negation."""
    low = found.lower().replace("\u2019", "'")
    if low.endswith("n't"):
        return [low.removesuffix("n't"), "not"] if len(low) > 3 else ["not"]
    if all(part in _SMALL or part in ("hundred", "thousand") for part in low.split("-")):
        return low.split("-")
    return [low.partition("'")[0] or low]


def _takes(spelled: list[int], word: str) -> bool:
    """Whether a word goes on with a number in words; `spelled` has its thousands and the rest."""
    if word in ("hundred", "thousand"):
        factor = 100 if word == "hundred" else 1000
        rest = spelled.pop() if spelled and spelled[-1] < factor else 1
        spelled.append(max(rest, 1) * factor)
        return True
    if word not in _SMALL:
        return False
    value = _SMALL[word]
    last = spelled[-1] if spelled else 0
    if spelled and (last % 10 or (last % 100 and value >= 10) or not last):
        return False
    spelled.append(value)
    return True


def _word(low: str) -> str:
    word = _IRREGULAR.get(low, low)
    singular = word.removesuffix("s") if len(word) > 2 else word
    return _UNITS.get(singular, singular if singular in _MEASURED else word)
