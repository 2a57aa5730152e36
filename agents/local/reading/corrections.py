"""Which fact a correction means, and the value that takes its place."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from agents.local.dialogue import Talk, stems
from agents.local.reading.answers import AnswerReader
from agents.local.reading.clauses import Clause, plain
from agents.local.reading.facts import CONCERN, MENTIONED, NOTED, has_words, split_contrast
from agents.values import FactReading
from memory_blocks.facts.changes import CurrentFact

_MAX: Final = 200
_FEW: Final = 6
_LATELY: Final = 2
_MEDICINES: Final = frozenset(("medications", "other_medicines"))
_NUMBERED: Final = _MEDICINES | {"dose", "measures", "pregnancy"}
_LEAD: Final = re.compile(
    r"(?:(?:oh|no|nope|sorry|wait|hang on|hold on|oops|actually|i meant?|i said|make that|correction|typo"
    r"|rather|more like|change (?:that|it) to|on second thoughts?|my (?:mistake|bad)|(?:it|that) should (?:be"
    r"|have been)|should be|i got that wrong|that's wrong)\b[,:.! ]+)+"
)
"""How a correction begins."""

_AMENDS: Final = re.compile(
    r".*\b(?:sorry|wait|oops|actually|mean|meant|rather|mistake|like|correction|typo)\b"
)
"""A beginning that is surely that of a correction. A mere `no` may be an answer."""

_FILLS: Final = re.compile(
    r"(?:(?:it's|its|it was|it is|that's|the dose is|i take|i weigh|i'm|i am|he's|she's|he is|she is)[,: ]+)+"
)
_IS: Final = re.compile(
    r"(?:(?:and|but|so|no|oh|well)[, ]+)*(?:i|i'm|im|he|he's|she|she's|it|it's|we|we're|they|that|that's"
    r"|this|am|is|are|was|were|(?:my \w+) (?:is|was))(?: (?:am|is|are|was|were))?"
)
"""A subject and a verb without anything that is said of it."""

_LASTING: Final = frozenset(("medications", "other_medicines", "conditions", "allergies", "pregnancy"))
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)?")
_ALIKE: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b",
        r"\b\d{1,2}(?::\d\d)? ?(?:am|pm|o'clock)\b",
        r"\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b",
        r"\b(?:left|right)\b",
        r"\b\d+(?:[.,:/]\d+)?\b",
    )
)


class CorrectionReader:
    """Reads corrections."""

    def __init__(self, reader: AnswerReader) -> None:
        self._reader = reader

    def corrects(self, clause: Clause, talk: Talk) -> bool:
        """Whether a clause corrects something told: `this, not that`, `no sorry 6`, or it denies a fact."""
        new, old = contrast(clause.low)
        if old and "?" not in clause.text:
            return any(has_words(f"{fact.value} {fact.words}", old) for fact in talk.facts)
        lead = _LEAD.match(clause.low)
        if lead and len(clause.low[lead.end() :].split()) <= _FEW:
            return self._amended(clause, lead, new, talk)
        return self._denied(clause, talk) is not None

    def _amended(self, clause: Clause, lead: re.Match[str], new: str, talk: Talk) -> bool:
        """Whether the words after the beginning of a correction are a value in the place of one told."""
        if re.search(r"\b(?:too|also|as well|and)\b", clause.low):
            return False
        target = self.target(clause, new, "", talk)
        if target is None:
            return False
        low = clause.low[lead.end() :]
        lately = target.turn is not None and target.turn >= talk.number - _LATELY
        sure = _AMENDS.match(lead[0]) is not None
        if self._reader.named(low, "medicines.names") or not re.search(r"\d|\b(?:left|right)\b", low):
            return sure and lately
        return lately or (sure and len(low.split()) > 1)

    def _denied(self, clause: Clause, talk: Talk) -> CurrentFact | None:
        """The fact that a clause denies: `I'm not allergic to latex` after `I'm allergic to latex`."""
        if not _denies(clause) or clause.asked or clause.supposed or clause.past:
            return None
        said = {
            (each.kind, each.value.lower())
            for each in self._reader.volunteered(replace(clause, denied=False))
        }
        return next(
            (
                fact
                for fact in reversed(talk.facts)
                if fact.kind in _LASTING
                and fact.subject == clause.who
                and (fact.kind, fact.value.lower()) in said
            ),
            None,
        )

    def target(self, clause: Clause, new: str, old: str, talk: Talk) -> CurrentFact | None:
        """The fact that a correction is about: the one with the old value, else the newest of its type."""
        facts = list(talk.facts)
        side = re.search(r"\b(?:left|right)\b", new)
        if side and not old:
            old = "left" if side[0] == "right" else "right"
        if old:
            named = [fact for fact in facts if has_words(fact.value, old) and fact.kind != MENTIONED]
            if named:
                typed = [fact for fact in named if fact.kind != NOTED]
                return (typed or named)[-1]
        facts = [fact for fact in facts if fact.kind != CONCERN]
        if denied := self._denied(clause, talk):
            return denied
        if names := self._reader.named(new, "medicines.names"):
            return self._medicine(names, facts, talk)
        kinds, sure = self._kinds_of(replace(clause, low=new, denied=False))
        same = [fact for fact in facts if fact.kind in kinds and fact.subject in (clause.who, talk.whom)]
        if "measures" in kinds:
            weight = re.search(r"kg|kilo|lb|pound|stone", new) is not None
            same = [
                fact
                for fact in same
                if (re.search(r"kg|kilo|lb|pound|stone", fact.value) is not None) == weight
            ]
        if same:
            return max(same, key=lambda fact: fact.turn or 0)
        if _denies(clause) and (words := stems(clause.low)):
            named = [
                fact for fact in facts if words & stems(fact.value) and fact.kind not in (NOTED, MENTIONED)
            ]
            if named:
                return named[-1]
        before = [fact for fact in facts if fact.turn == talk.number - 1]
        noted = [fact for fact in before if fact.kind == NOTED and substituted(fact.value, new)]
        last = [fact for fact in before if fact.kind not in (NOTED, MENTIONED)]
        if noted and not last:
            return noted[-1]
        return last[0] if len(last) == 1 and len(new.split()) <= _FEW and not sure else None

    def _medicine(self, names: Sequence[str], facts: Sequence[CurrentFact], talk: Talk) -> CurrentFact | None:
        """The fact that names the same medicine; else the only medicine, if it can be no other."""
        told = [fact for fact in facts if fact.kind in _MEDICINES]
        if same := [fact for fact in told if any(has_words(fact.value, name) for name in names)]:
            return same[-1]
        last = [fact for fact in told if fact.turn == talk.number - 1] or told
        return last[0] if len(last) == 1 else None

    def _kinds_of(self, clause: Clause) -> tuple[set[str], bool]:
        """The kinds of which a clause has a value, and whether it has one even if nobody asked."""
        low = _without_lead(clause.low)
        kinds = {found.kind for found in self._reader.volunteered(replace(clause, low=low, text=low))} - {
            CONCERN
        }
        return (kinds, True) if kinds else (self._reader.kinds_fitting(replace(clause, low=low)), False)

    def new_value(self, clause: Clause, new: str, old: str, target: CurrentFact) -> str | None:
        """The value that a correction puts in the place of the old one; None if it only denies it."""
        low = _FILLS.sub("", _without_lead(new), count=1).strip(" ,.")
        clean = replace(clause, low=low, denied=False, text=low)
        side = re.search(r"\b(?:left|right)\b", low)
        if side and (wrong := "left" if side[0] == "right" else "right") in plain(target.value).split():
            return re.sub(rf"\b{wrong}\b", side[0], plain(target.value))
        if target.kind == NOTED:
            return substituted(target.value, low) or clause.text
        if _denies(clause) and not old:
            return None
        numbers = _NUMBER.findall(low)
        names = self._reader.named(low, "medicines.names")
        if (
            target.kind in _NUMBERED
            and len(numbers) == len(_NUMBER.findall(target.value)) == 1
            and len(low.split()) <= _FEW - 2
            and not old
            and all(has_words(target.value, name) for name in names)
        ):
            return _NUMBER.sub(numbers[0], target.value, count=1)
        if (typed := self._reader.value_of(target.kind, clean)) is not None:
            return typed
        if old and low and has_words(target.value, old):
            return (
                re.sub(re.escape(plain(old)), low, target.value.lower(), count=1)
                if len(low.split()) <= _FEW
                else low
            )
        return low or None

    def amended(self, last: FactReading, clause: Clause, new: str) -> FactReading | None:
        """What the same message said just before, with the value that it is changed to."""
        value = self._reader.value_of(last.kind, replace(clause, low=new, text=new))
        number = re.search(r"\b(?:\d+(?:[.,]\d+)?|one|two|three|four|five|six|seven|eight|nine|ten)\b", new)
        if value is None and number:
            value = re.sub(
                r"\b(?:\d+(?:[.,]\d+)?|one|two|three|four|five|six|seven|eight|nine|ten|an?)\b",
                number[0],
                last.value,
                count=1,
            )
        if value is None or value == last.value:
            return None
        return last.model_copy(update={"value": value, "words": clause.text[:_MAX]})


def contrast(low: str) -> tuple[str, str]:
    """The new and the old value of `Tuesday, not Monday`. `I'm not …` has no old value."""
    new, old = split_contrast(low)
    return (low, "") if old and _IS.fullmatch(new) else (new, old)


def _denies(clause: Clause) -> bool:
    """Whether a clause denies something, apart from a `no` with which the correction begins."""
    return (
        clause.denied
        and re.search(r"\b(?:no|not|none|never|without|cannot)\b|n't\b", _without_lead(clause.low))
        is not None
    )


def _without_lead(low: str) -> str:
    return _LEAD.sub("", low, count=1) if _LEAD.match(low) else low


def substituted(words: str, new: str) -> str:
    """What was told with the day, time, side or number of a correction in it; empty if it has no such."""
    for pattern in _ALIKE:
        old, given = pattern.findall(words), pattern.findall(new)
        if len(given) == 1 and len(old) == 1:
            words = pattern.sub(given[0], words)
            hours = _ALIKE[-1].findall(new)
            if pattern is _ALIKE[0] and len(hours) == 1 and len(_ALIKE[-1].findall(words)) == 1:
                words = _ALIKE[-1].sub(hours[0], words)  # "Wednesday at 10"
            return words
    return ""
