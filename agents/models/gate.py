"""Decides whether a message needs a model to be read. Pure.

A model is left out only where the local reading cannot be wrong: the conversation has one concern, the
answer before the message asked one plain question about it and spoke of nothing else, nothing of that kind is
known, and the message is a bare number on the scale that was asked for, or a bare yes or no to a question of
an interview; or if it is a bare yes to an offer to change the notes. Whatever is not listed here is read
by the model.
"""

import re
from collections.abc import Iterable
from typing import Final

from agents.fact_kinds import BY_NAME
from agents.interviews import Interview
from agents.ports import Situation
from agents.questions import Question, questions
from agents.utterance import word_set
from agents.values import FactReading, Understanding
from memory_blocks.facts.changes import PERSON, CurrentFact, Op
from memory_blocks.facts.view import CONCERNS

_NUMBER: Final = re.compile(r"\W*(\d{1,3})(?:\.0)?\W*")
_SCALE: Final = re.compile(
    r"\b(?:from|scale of|scale from|between)?\s*(0|1|zero|one)\s*(?:to|-|\u2013|and|through)"
    r"\s*(10|ten|5|five|100)\b",
    re.I,
)
_SCALE_WORDS: Final = word_set(
    "how bad severe strong intense painful much does do is are would you rate it this that the your on a now "
    "right today at moment currently hurt hurting pain"
)
"""The words of a question for a severity. One with any other word may ask about something else."""
_THANKS: Final = r"(?:[, ]+(?:please|thanks|thank you))?[^\w?]*"
_YES: Final = re.compile(rf"\W*(?:yes|yeah|yep|yup){_THANKS}", re.I)
_NO: Final = re.compile(rf"\W*(?:no|nope|nah){_THANKS}", re.I)
_POLAR: Final = re.compile(r"(?:do|does|did|is|are|was|were|has|have|had)\b", re.I)
_SEVERAL: Final = re.compile(r"\bor\b|\band\b|[,;:/(]|\bany|\belse\b|n't\b|\bnot\b", re.I)
_NAMES_A_THING: Final = re.compile(r"\b(?:an?|the|your|his|her|their|our|my|its|he|she|they)\b", re.I)
_WORD: Final = re.compile(r"[a-z]+")
_MORE_COMPLAINTS: Final = "associated_symptoms"
_WORDS: Final = {"zero": 0, "one": 1, "five": 5, "ten": 10}


def plain_questions(interviews: Iterable[Interview]) -> frozenset[str]:
    """The questions of interviews that a bare yes or no answers: they ask for one fact of this episode."""
    return frozenset(
        question.text
        for interview in interviews
        for question in interview.questions
        if len(question.asks) == 1
        and not BY_NAME[question.asks[0]].stable
        and _POLAR.match(question.text)
        and not _SEVERAL.search(question.text)
    )


def is_bare_yes(message: str) -> bool:
    """Whether a message is a yes, without a question mark, and nothing but thanks besides."""
    return _YES.fullmatch(message) is not None


def is_sure_without_model(
    message: str, answer: str, situation: Situation, local: Understanding, own: frozenset[str]
) -> bool:
    """Whether the local reading of `message`, said in reply to `answer`, cannot be wrong.

    `own` are the `plain_questions` of our interviews.
    """
    concerns = [fact for fact in situation.facts if fact.kind in CONCERNS]
    asked = questions(answer)
    if len(concerns) != 1 or len(asked) != 1 or len(asked[0].kinds) != 1 or len(local.changes) != 1:
        return False
    concern, question, change = concerns[0], asked[0], local.changes[0]
    known = [fact for fact in situation.facts if fact.kind in (change.kind, _MORE_COMPLAINTS)]
    others = {fact.subject for fact in situation.facts} - {concern.subject}
    if known or others or not _speaks_only_of(concern, answer.replace(question.asked, "")):
        return False
    return _adds(change, question.kinds[0], concern) and (
        _is_on_scale(message, question, change, concern)
        or (concern.subject == PERSON and question.asked in own and _is_bare(message))
    )


def _is_bare(message: str) -> bool:
    return is_bare_yes(message) or _NO.fullmatch(message) is not None


def _adds(change: FactReading, kind: str, concern: CurrentFact) -> bool:
    """Whether a change only adds a fact of this kind to this concern."""
    added = (change.op, change.target, change.kind, change.subject, change.about)
    return added == (Op.ADD, None, kind, concern.subject, concern.value[:120])


def _is_on_scale(message: str, question: Question, change: FactReading, concern: CurrentFact) -> bool:
    """Whether the message is only a number, and the question asked for one on a scale that has it."""
    number, scale = _NUMBER.fullmatch(message), _SCALE.search(question.asked)
    if number is None or scale is None or question.kinds != ("severity",):
        return False
    names = set(_WORD.findall(_SCALE.sub(" ", question.asked).lower()))
    least, most = (_WORDS.get(end.lower()) if end.isalpha() else int(end) for end in scale.groups())
    return (
        names <= _SCALE_WORDS | set(_WORD.findall(concern.value.lower()))
        and least is not None
        and least <= int(number[1]) <= (most or 0)
        and change.value == f"{int(number[1])}/{most}"
    )


def _speaks_only_of(concern: CurrentFact, text: str) -> bool:
    """Whether a text names nothing and nobody but the concern."""
    words = "|".join(map(re.escape, _WORD.findall(concern.value.lower()))) or "$"
    without = re.sub(rf"\b(?:(?:an?|the|your|this|that)\s+)?(?:(?:{words})s?\b\s*)+", " ", text.lower())
    return _NAMES_A_THING.search(without) is None
