"""Which question of a specialist's interview is asked next, if any."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from agents.fact_kinds import TABLE
from agents.fact_kinds.row import TIME
from agents.interviews import InterviewQuestion
from agents.local.dialogue import Talk
from agents.local.reading import readers
from agents.local.reading.clauses import PERSON, plain
from agents.local.reading.question_signs import TIMED
from agents.questions import questions, without_options
from agents.roster import Specialist
from agents.specialist import open_questions
from memory_blocks.facts.changes import CurrentFact

_TWICE: Final = 2
_LATELY: Final = 8


_HURTS: Final = re.compile(
    r"\b(?:pain\w*|ach\w+|\w*aches?|hurt\w*|sore\w*|cramp\w*|migraines?|itch\w*|burn\w*|sting\w*|throb\w*"
    r"|tight\w*|anxi\w+|stress\w*"
    r"|low mood|depress\w+|panic\w*|nausea|dizz\w+|stiff\w*|tender\w*|killing me)\b"
)


def _fits_concern(question: InterviewQuestion, concern: str) -> bool:
    """Whether a question makes sense for a complaint: one rates only what hurts, and has no goals with it."""
    asks = question.asks
    if "severe" in question.text or "location" in asks:
        return _HURTS.search(concern) is not None and ("location" not in asks or "when i" not in concern)
    if "readings" in asks:
        return re.search(r"sugar|pressure|diabet|reading|cholesterol|peak flow|monitor", concern) is not None
    return "goal" not in asks or _WISHES.search(concern) is not None


_MAY_TELL: Final = {
    row.kind: TIMED if row.told_with == TIME else re.compile(row.told_with) for row in TABLE if row.told_with
}
"""Words with which somebody may have told what a question asks for."""

_WISHES: Final = re.compile(
    r"\b(?:want|like to|goal|lose|gain|weight|eat|diet|train|fit|fitter|healthier)\w*\b"
)


def _is_told(asks: Sequence[str], texts: Sequence[str]) -> bool:
    """Whether the person may have told it in words that were not taken for a fact."""
    patterns = [_MAY_TELL[kind] for kind in asks if kind in _MAY_TELL]
    return any(pattern.search(text) for pattern in patterns for text in texts)


def next_question(
    specialist: Specialist,
    known: Mapping[str, str],
    talk: Talk,
    concern: CurrentFact | None,
    message: str = "",
) -> str:
    """The next question; empty if there is nothing to ask.

    A question is not asked again within eight turns, and never more than twice in a conversation. About
    somebody else, only those are asked that do not say "you".
    """
    lately = {each.core for said in talk.said[-_LATELY:] for each in questions(said.answer)}
    told = " ".join((*(fact.words for fact in talk.facts), *known.values())).lower()
    for question in open_questions(specialist, known):
        asked = questions(question.text)[-1]
        if asked.core in lately or talk.asked[asked.core] >= _TWICE:
            continue
        if concern and concern.subject != PERSON and re.search(r"\byou", question.text):
            continue
        if concern and not _fits_concern(question, f"{concern.value} {concern.words}".lower()):
            continue
        if _is_told(
            question.asks, [plain(text) for text in (*(said.message for said in talk.said), message)]
        ):
            continue
        if (
            concern
            and "location" in question.asks
            and readers.PLAIN["place"](f"{concern.value} {concern.words}".lower())
        ):
            continue
        if asked.options and any(
            word in told for option in asked.options for word in option.split() if len(word) > 4
        ):
            shorter = without_options(asked)
            return shorter if shorter[:1].isupper() and "…" not in shorter else question.text
        return question.text
    return ""
