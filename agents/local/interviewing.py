"""Which question of a specialist's interview is asked next, if any."""

import re
from collections.abc import Mapping
from typing import Final

from agents.local.clauses import PERSON
from agents.local.dialogue import Talk
from agents.local.facts import NOTED
from agents.questions import questions
from agents.roster import Specialist
from agents.specialist import open_questions
from memory_blocks.facts import CurrentFact

MOST_PER_CONCERN: Final = 5
"""How many questions are asked about one concern."""

_TWICE: Final = 2


def next_question(
    specialist: Specialist, known: Mapping[str, str], talk: Talk, concern: CurrentFact | None
) -> str:
    """The next question, or the closing sentence after the last one; empty if there is nothing to ask.

    A question is not asked again for the same concern, and never more than twice in a conversation. About
    somebody else, only those are asked that do not say "you".
    """
    since = concern.turn if concern and concern.turn else 0
    asked_now = [each.core for said in talk.said if said.turn >= since for each in questions(said.answer)]
    if len(asked_now) >= MOST_PER_CONCERN:
        return ""
    answered = " ".join(fact.value for fact in talk.facts if fact.kind == NOTED)
    for question in open_questions(specialist, known):
        core = questions(question.text)[-1].core
        if core in asked_now or talk.asked[core] >= _TWICE or core in answered:
            continue
        if concern and concern.subject != PERSON and re.search(r"\byou", question.text):
            continue
        return question.text
    return ""
