"""Reads the answer to a question from a clause."""

import re
from collections.abc import Iterable
from typing import Final

from agents.fact_kinds import BY_NAME, TABLE
from agents.local.reading import readers
from agents.local.reading.clauses import PERSON, Clause
from agents.local.reading.facts import CONCERN, NOTED, FactReader, Found
from agents.questions import Question
from agents.utterance import word_set
from agents.values import NONE, NOT_SAID, NOT_SURE, UNSPECIFIED

_MAX_VALUE: Final = 200
_FEW: Final = 4


class AnswerReader(FactReader):
    """Reads answers to questions, with the words of the lexicon, besides what its base class reads."""

    def polarity(self, low: str) -> str:
        """`yes`, `no`, `some`, `unsure` or `refused` if a clause is just that; else empty."""
        bare = low.strip(" .,!?'\"")
        if (
            re.match(
                r"(?:yes|yeah|yep|yup|no|nope|nah)\b(?! (?:idea|clue|longer|more|problem|worries"
                r"|one|\w+ing)\b)",
                bare,
            )
            and len(bare.split()) > 1
            and not re.match(r"no [a-z]+$", bare)
        ):
            return "no, with words" if bare[0] == "n" else "yes, with words"
        bare = re.sub(r"^(?:well|oh|um+|er+m?|hm+|so|actually|honestly|i think|sorry)[, ]+", "", bare)
        bare = re.sub(
            r"[, ]+(?:really|i think|thanks|thank you|sorry|actually|either|at all|though"
            r"|mate|lol|haha|tbh|for now)$",
            "",
            bare,
        )
        for group, name in (
            ("yes", "yes"),
            ("no", "no"),
            ("some", "some"),
            ("unsure", "unsure"),
            ("refusals", "refused"),
        ):
            if bare in self._lexicon.group(f"replies.{group}") or low in self._lexicon.group(
                f"replies.{group}"
            ):
                return name
        return ""

    def answers(self, clause: Clause, question: Question, whom: str) -> list[Found]:
        """The values of a clause that answer a question about the person `whom`."""
        if (
            clause.asked
            or clause.may_ask
            or clause.who not in (whom, PERSON)
            or (clause.who == PERSON and whom != PERSON and re.search(r"\b(?:i|i'm|i've|my)\b", clause.low))
        ):
            return []
        if polarity := self.polarity(clause.low):
            return self._polar(polarity, clause, question, whom)
        if choice := self._choice(clause, question):
            return [choice]
        volunteered = {
            each.kind for each in self.volunteered(clause) if BY_NAME[each.kind].reads != "stated"
        } - {CONCERN}
        found = []
        for kind in question.kinds:
            value = self._typed(kind, clause, question)
            if (
                value is None
                and BY_NAME[kind].reads in ("words", "stated")
                and self._own_words_fit(clause, kind, volunteered)
            ):
                value = clause.text
            if value:
                found.append(Found(kind, value[:_MAX_VALUE], clause.text, whom, answers=True))
                break
        if not found and "location" in question.kinds and (value := readers.PLAIN["place"](clause.low)):
            found = [Found("location", value, clause.text, whom, answers=True)]
        if not found and {"onset", "duration"} & set(question.kinds):
            for kind, value in (("onset", readers.when(clause.low)), ("duration", readers.span(clause.low))):
                if value:
                    return [Found(kind, value, clause.text, whom, answers=True)]
        if (
            not found
            and question.numeric
            and not question.kinds
            and readers.number_in(clause.low) is not None
        ):
            return [
                Found(
                    NOTED,
                    f"{question.noun or 'number'}: {clause.text}"[:_MAX_VALUE],
                    clause.text,
                    whom,
                    answers=True,
                )
            ]
        return found

    def _polar(self, polarity: str, clause: Clause, question: Question, whom: str) -> list[Found]:
        if question.form == "open" and polarity in ("yes", "some") and question.kinds:
            return []
        if (
            question.form == "open"
            and polarity == "no"
            and not any(BY_NAME[kind].can_be_none for kind in question.kinds)
        ):
            return []
        if polarity.endswith("words"):
            return [short_reply(clause, question, whom)] if question.form != "open" else []
        value = {
            "yes": UNSPECIFIED,
            "no": NONE,
            "some": clause.text,
            "unsure": NOT_SURE,
            "refused": NOT_SAID,
        }[polarity]
        kind = question.kinds[0] if question.kinds else NOTED
        if kind in (
            "severity",
            "onset",
            "duration",
            "age",
            "temperature",
            "location",
            "dose",
        ) and polarity in ("yes", "no", "some"):
            return []
        if kind == NOTED:
            value = clause.text[:_MAX_VALUE]
        return [Found(kind, value, clause.text, whom, answers=True)]

    def _choice(self, clause: Clause, question: Question) -> Found | None:
        """The option of the question that a clause names."""
        if not question.options or len(clause.low.split()) > 8:
            return None
        if _ORDINAL.search(clause.low) and len(clause.low.split()) > _FEW:
            return None
        named = chosen(question, clause.low)
        if not named or (question.form != "choice" and not _ORDINAL.search(clause.low)):
            return None
        kind = question.kinds[0] if question.kinds else NOTED
        if BY_NAME[kind].reads not in ("words", "place", "progress"):
            return None
        return Found(kind, clause.text[:_MAX_VALUE], clause.text, clause.who, answers=True)

    def _own_words_fit(self, clause: Clause, kind: str, volunteered: Iterable[str]) -> bool:
        """Whether a clause can be an answer in own words: no bare value of another type, no new complaint."""
        low = clause.low
        if re.match(r"my \w+ (?:is|was|has|says|said)\b", low):
            return False  # about something else
        if readers.whole_span(low) and kind not in (
            "previous_episodes",
            "deadline",
            "preferred_time",
            "time_for_it",
            "bedtime",
            "cycle",
            "frequency",
            "triggers",
        ):
            return False
        if readers.temperature(low, asked=False) or readers.reading(low, asked=False):
            return False
        if readers.number_in(low) is not None or readers.rating(low, asked=False) or readers.whole_place(low):
            return False
        if set(volunteered) - {kind, "other_medicines", "onset", "duration"}:
            return (
                kind in ("relief", "tried", "family_history", "habits", "substances", "conditions")
                and not clause.denied
            )
        if self.complaint(clause) and len(low.split()) > 3 and not BY_NAME[kind].names_complaints:
            return False
        if (fits := _SOUNDS_LIKE.get(kind)) is not None:
            return fits.search(low) is not None or (kind in _ARE_COMPLAINTS and self._names_complaint(low))
        return bool(re.search(r"[a-z]", low)) and len(low.split()) <= _MOST_WORDS


_MOST_WORDS: Final = 14
_ARE_COMPLAINTS: Final = frozenset(("associated_symptoms", "quality"))
_SOUNDS_LIKE: Final = {row.kind: re.compile(row.sounds_like) for row in TABLE if row.sounds_like}
_LIGHT: Final = word_set("the a an it is of in on at my your more or and one side to")
_ORDINAL: Final = re.compile(r"\b(?:first|second|third|former|latter|last|both|all|neither|none|either)\b")


def chosen(question: Question, low: str) -> list[str]:
    """The options of a question that a reply chooses, by their words or by their place."""
    options = list(question.options)
    if (
        question.form == "choice"
        and re.search(r"\b(?:both|all|either)\b", low)
        and not re.search(r"\blast two\b", low)
    ):
        return options
    if found := re.search(r"\b(first|former|second|latter|third|last two|last)\b", low):
        places = {
            "first": options[:1],
            "former": options[:1],
            "second": options[1:2],
            "third": options[2:3],
            "last two": options[-2:],
        }
        return places.get(found[1], options[-1:])
    said = set(re.findall(r"[a-z]+", low))
    named = [each for each in options if said & (set(each.split()) - _LIGHT)]
    return named if len(named) == 1 else []


def short_reply(clause: Clause, question: Question, whom: str) -> Found:
    """A reply that fits no type, in its own words."""
    kind = next((kind for kind in question.kinds if BY_NAME[kind].reads == "words"), NOTED)
    return Found(kind, clause.text[:_MAX_VALUE], clause.text, whom, answers=True)
