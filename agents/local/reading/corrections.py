"""Which fact a correction means, and the value that takes its place."""

import re
from dataclasses import replace
from typing import Final

from agents.local.dialogue import Talk, stems
from agents.local.reading.answers import AnswerReader
from agents.local.reading.clauses import Clause, plain
from agents.local.reading.facts import CONCERN, MENTIONED, NOTED, has_words
from agents.values import FactReading
from memory_blocks.facts.changes import CurrentFact

_MAX: Final = 200
_NUMBERED: Final = frozenset(("medications", "other_medicines", "dose"))
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
        if clause.denied and (words := stems(clause.low)):
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
        return last[0] if len(last) == 1 and len(new.split()) <= 6 and not sure else None

    def _kinds_of(self, clause: Clause) -> tuple[set[str], bool]:
        """The kinds of which a clause has a value, and whether it has one even if nobody asked."""
        low = re.sub(
            r"^(?:(?:sorry|no|wait|actually|i meant|i mean|make that|it's|its|it was|it is"
            r"|oops|correction|typo|hang on|i said|that should be|more like|change (?:that"
            r"|it) to|on second thought|my mistake|rather)[,: ]+)+",
            "",
            clause.low,
        )
        kinds = {found.kind for found in self._reader.volunteered(replace(clause, low=low, text=low))} - {
            CONCERN
        }
        if self._reader.named(low, "medicines.names"):
            kinds.add("medications")
        return (kinds, True) if kinds else (self._reader.kinds_fitting(replace(clause, low=low)), False)

    def new_value(self, clause: Clause, new: str, old: str, target: CurrentFact) -> str | None:
        """The value that a correction puts in the place of the old one; None if it only denies it."""
        low = re.sub(
            r"^(?:(?:sorry|no|wait|actually|i meant|i mean|make that|it's|its|it was|it is"
            r"|oops|correction|typo|hang on|i said|that should be|more like|i got that wrong"
            r"|my mistake|that's wrong|rather|the dose is|i take|i'm|he's|she's|he is|she is"
            r"|i am)[,: ]+)+",
            "",
            new,
        ).strip(" ,.")
        clean = replace(clause, low=low, denied=False, text=low)
        side = re.search(r"\b(?:left|right)\b", low)
        if side and (wrong := "left" if side[0] == "right" else "right") in plain(target.value).split():
            return re.sub(rf"\b{wrong}\b", side[0], plain(target.value))
        if target.kind == NOTED:
            return substituted(target.value, low) or clause.text
        numbers = re.findall(r"\d+(?:[.,]\d+)?", low)
        if (
            target.kind in _NUMBERED
            and len(numbers) == 1
            and len(low.split()) <= 4
            and re.search(r"\d", target.value)
            and not old
            and not self._reader.named(low, "medicines.names")
        ):
            return re.sub(r"\d+(?:[.,]\d+)?", numbers[0], target.value, count=1)
        if (typed := self._reader.value_of(target.kind, clean)) is not None:
            return typed
        if clause.denied and not old:
            return None
        if old and low and has_words(target.value, old):
            return (
                re.sub(re.escape(plain(old)), low, target.value.lower(), count=1)
                if len(low.split()) <= 6
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
