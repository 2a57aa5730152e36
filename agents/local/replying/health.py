"""Answers questions about health: a warning, general information, or honestly who can answer."""

import re
from collections.abc import Sequence
from typing import Final

from agents.local.reading.acts import UNSURE
from agents.local.reading.clauses import PERSON, plain, relative_in
from agents.local.replying.information import general_information
from agents.local.replying.medicines import Medicines
from agents.local.replying.texts import Wording
from agents.local.replying.turn import Turn, quoted
from agents.roster import Specialist
from agents.values import OUT_OF_SCOPE, Act, ActKind, Fact, values_of

_FOREIGN: Final = 0.9  # from this confidence on, a question is outside although health was spoken of
_URGENT: Final = re.compile(r"\b(?:999|911|112|ambulance|overreact\w*|a&e|emergency)\b")
_SERIOUS: Final = re.compile(
    r"\b(?:see|go to|call|ring|visit) (?:a |the |my |to )*(?:doctor|gp|hospital|someone|nurse|dentist)\b"
    r"|\bserious\b|\bdangerous\b|\bworr(?:y|ied)\b"
)
_REFERS: Final = re.compile(r"\b(?:it|that|this|them|these|one|ones|both|together|either|another)\b")


class HealthAnswers:
    """Answers with the table of medicines and what the interviews know."""

    def __init__(self, wording: Wording, medicines: Medicines, specialists: Sequence[Specialist]) -> None:
        self._wording, self._medicines, self._specialists = wording, medicines, specialists

    def answer(self, turn: Turn) -> str:
        """A warning from the table, general information, or who can answer what was asked."""
        pick = self._wording.pick
        asked = [act for act in turn.acts if act.kind is ActKind.HEALTH_QUESTION]
        low = plain(" ".join(act.words for act in asked))
        if warning := self._warning(turn, low):
            return warning
        if turn.intent.intent == OUT_OF_SCOPE and (turn.intent.confidence >= _FOREIGN or not turn.facts):
            return pick("outside", turn)
        if all(act.confidence == UNSURE for act in asked):
            return pick(
                "perhaps_asked", turn, words=quoted([act.words for act in asked]), who=self._who(turn, low)
            )
        if _URGENT.search(low):
            return pick("urgent", turn)
        concern = turn.concern.value if turn.concern else ""
        if _SERIOUS.search(low):
            advice = [
                each.text
                for specialist in self._specialists
                for each in specialist.interview.see_someone
                if concern and any(word in f"{concern} {low}" for word in each.about)
            ]
            return " ".join([pick("worried", turn, who=self._who(turn, low)), *advice[:1]])
        if text := general_information(low, concern, self._specialists, turn.facts):
            return text
        return pick("declined", turn, asked=_named(asked), who=self._who(turn, low))

    def _warning(self, turn: Turn, low: str) -> str:
        """What the table says about the medicines asked about, for whom they are meant."""
        whom = (
            relative_in(low)
            or relative_in(plain(turn.message))
            or (turn.talk.other if re.search(r"\b(?:he|she|him|her)\b", low) else "")
            or PERSON
        )
        facts = values_of(
            Fact(kind=fact.kind, value=fact.value, turn=fact.turn or 1)
            for fact in turn.facts
            if fact.subject == whom
        )
        message = turn.message
        if not self._medicines.medicine_in(low) and _REFERS.search(low):
            naming = (
                said.message
                for said in reversed(turn.talk.said[-3:])
                if self._medicines.medicine_in(said.message)
            )
            if not self._medicines.medicine_in(message):
                message = f"{message} {next(naming, '')}"
        return self._medicines.warning(message, facts)

    def _who(self, turn: Turn, low: str) -> str:
        """Who can answer a question."""
        message, whom = plain(turn.message), self._wording.texts.whom
        if self._medicines.medicine_in(low) or (_REFERS.search(low) and self._medicines.medicine_in(message)):
            return self._wording.texts.pharmacist
        return next(
            who
            for about in (low, message, "")
            for pattern, who in whom.items()
            if re.search(pattern, about) and (pattern or not about)
        )


def _named(asked: Sequence[Act]) -> str:
    """What was surely asked, in the person's words."""
    return quoted([act.words for act in asked if act.confidence > UNSURE])
