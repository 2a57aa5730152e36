"""Answers questions about health: a warning, general information, or whom to ask."""

import re
from collections.abc import Sequence
from typing import Final

from agents.local.reading.clauses import PERSON, plain, relative_in
from agents.local.replying import memory
from agents.local.replying.information import general_information
from agents.local.replying.medicines import Medicines
from agents.local.replying.texts import Wording
from agents.local.replying.turn import PLAIN_VALUES, Turn
from agents.roster import Specialist
from agents.values import (
    OUT_OF_SCOPE,
    ActKind,
    Fact,
    values_of,
)

_FOREIGN: Final = 0.9  # from this confidence on, a question is outside although health was spoken of


class HealthAnswers:
    """Answers with the table of medicines and what the interviews know."""

    def __init__(self, wording: Wording, medicines: Medicines, specialists: Sequence[Specialist]) -> None:
        self._pick, self._medicines, self._specialists = wording.pick, medicines, specialists

    def answer(self, turn: Turn) -> str:
        """A warning from the table, general information, or that this needs a doctor or pharmacist."""
        words = " ".join(turn.words(ActKind.HEALTH_QUESTION))
        low = plain(words)
        whom = (
            relative_in(low)
            or (turn.talk.other if re.search(r"\b(?:he|she|him|her)\b", low) else "")
            or PERSON
        )
        facts = values_of(
            Fact(kind=fact.kind, value=fact.value, turn=fact.turn or 1)
            for fact in turn.facts
            if fact.subject == whom
        )
        if turn.intent.intent == OUT_OF_SCOPE and (turn.intent.confidence >= _FOREIGN or not turn.facts):
            return self._pick("outside", turn)
        if (
            re.search(
                r"\b(?:see|go to|call|ring|visit) (?:a |the |my |to )*(?:doctor|gp|hospital|a&e"
                r"|someone|nurse|dentist)\b|\bserious\b|\bdangerous\b|\bworr(?:y|ied)\b",
                low,
            )
            and turn.concern
        ):
            advice = [
                each.text
                for specialist in self._specialists
                for each in specialist.interview.see_someone
                if any(word in f"{turn.concern.value} {low}" for word in each.about)
            ]
            if advice:
                return f"{self._pick('worried', turn)} {advice[0]}"
        if warning := self._medicines.warning(self._with_medicine(turn, low), facts):
            return warning
        if text := general_information(
            low, turn.concern.value if turn.concern else "", self._specialists, turn.facts
        ):
            return text
        named = self._medicines.medicine_in(words) or self._medicines.medicine_in(turn.message)
        about_medicine = bool(named) or re.search(
            r"\b(?:take|taking|dose|mg|tablets?|pills?|medic\w+|antibiotics?|painkillers?"
            r"|side effects?|mix|together with)\b",
            low,
        )
        if about_medicine and re.search(r"\b(?:difference|better|which|what's)\b", low):
            text = self._pick("medicine_general", turn)
        elif about_medicine:
            text = self._pick("medicine_question", turn, subject=named or "that")
        elif re.search(
            r"\bwhat (?:could|is|might|do you think) (?:it|this|that|is|causing|cause)\b"
            r"|\bdo i have\b|\bcould (?:it|this) be\b|\bis it\b.*\b(?:cancer|infection"
            r"|condition)\b|\bdiagnos|\bwhat's (?:wrong|causing)|\bsound like\b",
            low,
        ):
            text = self._pick("what_it_is", turn)
        elif re.search(r"\bworr|\bserious\b|\bdangerous\b|\bsee (?:a doctor|someone|somebody)\b", low):
            text = self._pick("worried", turn)
        else:
            text = self._pick("health_question", turn)
        kinds = ("medications", "allergies", "conditions", "pregnancy")
        useful = [
            fact
            for fact in turn.facts
            if fact.value not in PLAIN_VALUES
            and (
                (fact.kind in kinds and fact.subject == PERSON)
                if about_medicine
                else turn.concern is not None
                and (fact.id == turn.concern.id or fact.about == turn.concern.value[:120])
            )
        ]
        if ActKind.FACT in turn.kinds:
            return text
        if not useful:
            return f"{text} {self._pick('question_noted', turn)}"
        listed = memory.listed(useful[-3:], turn.now)
        return f"{text} {self._pick('noted_for_them', turn, list='; '.join(listed))}"

    def _with_medicine(self, turn: Turn, low: str) -> str:
        """The message; if it only says "it", with the medicine that was named last."""
        if self._medicines.medicine_in(turn.message) or not re.search(
            r"\b(?:it|that|this|them|these|one|ones|both|together|either)\b", low
        ):
            return turn.message
        naming = (
            said.message
            for said in reversed(turn.talk.said[-3:])
            if self._medicines.medicine_in(said.message)
        )
        return f"{turn.message} {next(naming, '')}"
