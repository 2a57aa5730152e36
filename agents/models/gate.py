"""Decides whether a message needs a model to be read. Pure.

A model is left out only where the local reading cannot be wrong: a bare number within the scale that was just
asked for, and a bare yes or no to one plain question about one thing.
"""

import re
from typing import Final

from agents.questions import Question, questions

_NUMBER: Final = re.compile(r"\W*(\d{1,2})(?:\.0)?\W*")
_SCALE: Final = re.compile(
    r"\b(?:from|scale of|between)?\s*(0|1|zero|one)\s*(?:to|-|\u2013|and|through)\s*(10|ten|5|five|100)\b",
    re.I,
)
_YES_OR_NO: Final = re.compile(
    r"\W*(?:yes|yeah|yep|yup|no|nope|nah)(?:[, ]+(?:please|thanks|thank you))?\W*", re.I
)
_PLAIN: Final = re.compile(
    r"(?:(?:and|so|okay|ok)[, ]+)?(?:do|does|did|is|are|was|were|has|have|had|can|could|will|would)\b", re.I
)
_SEVERAL: Final = re.compile(
    r"\bor\b|\band\b|[,;:/(]|\banything\b|\bany other\b|\belse\b|n't\b|\bnot\b|\bno\b", re.I
)
_WORDS: Final = {"zero": 0, "one": 1, "five": 5, "ten": 10}
_LONGEST: Final = 12
"""How many words a plain question has at most."""


def is_sure_without_model(message: str, answer: str) -> bool:
    """Whether the local reading of `message`, said in reply to `answer`, cannot be wrong."""
    asked = questions(answer)
    if len(asked) != 1 or len(asked[0].kinds) > 1:
        return False
    return _is_on_scale(message, asked[0]) or _answers_plainly(message, asked[0].asked)


def _is_on_scale(message: str, question: Question) -> bool:
    """Whether the message is only a number, and the question asked for one on a scale that has it."""
    number, scale = _NUMBER.fullmatch(message), _SCALE.search(question.asked)
    if number is None or scale is None or tuple(question.kinds) != ("severity",):
        return False
    least, most = (_WORDS.get(end.lower()) if end.isalpha() else int(end) for end in scale.groups())
    return least is not None and most is not None and least <= int(number[1]) <= most


def _answers_plainly(message: str, question: str) -> bool:
    """Whether the message is only a yes or a no, to one short question without an "or" and a "not"."""
    plain = _PLAIN.match(question.strip()) is not None and not _SEVERAL.search(question)
    return plain and len(question.split()) <= _LONGEST and _YES_OR_NO.fullmatch(message) is not None
