"""What ties a message to more than the question before it: one left open, or what was said right before."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from agents.local.known import OF_CONCERN, Known, Told
from agents.local.lexicon import word_set, words_of
from agents.local.patterns import HAS_MOMENT, HAS_SPAN
from agents.local.reading import Said, Text
from agents.local.replies import Reply
from agents.questions import Question

MOST_BEFORE: Final = 120
"""How much is told of what was said right before."""


def told_before(text: Text, plain: str, replies: Sequence[Reply], told: Told) -> str:
    """How a message is told beside the next one: in the person's words, or with the question that it answers.
    What its facts say is told by them.
    """
    if not plain or {fact.kind for fact in told.facts} & _TOLD_WITH_IT:
        return ""
    if told.sentences and any(reply.stance or reply.question.form != "open" for reply in replies):
        return "; ".join(told.sentences)[:MOST_BEFORE]
    return f'"{text.whole[:MOST_BEFORE].rstrip(" .,")}"'


_TOLD_WITH_IT: Final = (OF_CONCERN | {"request"}) - {
    "associated_symptoms",
    "effect",
    "mentioned",
    "noted",
    "previous_episodes",
    "tried",
}
"""Kinds whose facts are told with whatever is said later."""


def quoted_if_unnamed(reply: Reply, known: Known) -> Reply:
    """A reply about one whom nobody has named is quoted: `he` is not the person."""
    named = "about_whom" in known.values
    if named or reply.said.kind not in _OF_ONE or not of_the_unnamed(reply.question):
        return reply
    return replace(reply, said=Said("", "", reply.said.value or reply.said.sentence))


def of_the_unnamed(question: Question) -> bool:
    """Whether a question is about `him` or `her`."""
    return _THEIRS.search(question.core) is not None


_OF_ONE: Final = frozenset(("age", "dose", "measures", "sleep_hours"))
_THEIRS: Final = re.compile(r"\b(?:he|she|his|her|him)\b")


def surely_answers(reply: Reply, text: Text) -> bool:
    """Whether a message replies to a question that was asked some time ago: by its form or by its words."""
    return _by_form(reply) or _takes_up(reply, text)


def asks_to_wait(message: str) -> bool:
    """Whether the answer comes later: `hang on, let me look`."""
    return _ONE_MOMENT.search(message) is not None


_ONE_MOMENT: Final = re.compile(
    r"\b(?:hang on|hold on|one (?:sec|second|moment|minute)|give me a (?:sec|second|moment|minute)"
    r"|let me (?:check|look|see|find|ask))\b",
    re.IGNORECASE,
)


def _by_form(reply: Reply) -> bool:
    """Whether a reply has a form that only an answer to its question has."""
    return bool(reply.items or reply.verdicts or (reply.said.value and reply.said.kind in _FORMED))


def _takes_up(reply: Reply, text: Text) -> bool:
    """Whether a yes or no says nothing else, or takes up a word of its question: `no gloves, no`."""
    if reply.stance not in ("yes", "no", "some") or reply.question.form != "polar":
        return False
    stated = HAS_SPAN.sub(" ", HAS_MOMENT.sub(" ", text.stated))
    words = {word.text for word in words_of(stated)} - _ECHOES
    named = {word.text for word in words_of(reply.question.core) if len(word.text) > 2} - _IN_ANY_QUESTION
    asked = {word.rstrip("s") for word in named}
    return not words or any(word.rstrip("s") in asked for word in words)


_FORMED: Final = frozenset(("severity", "onset", "duration", "location", "frequency", "age", "temperature"))
_IN_ANY_QUESTION: Final = word_set("you your the any are has had did have been does and for with this that")
_ECHOES: Final = word_set(
    ", . ! yes yeah yep no nope nah i it he she they do does did have has had am is are was don't doesn't "
    "didn't haven't hasn't hadn't isn't aren't wasn't i'm i've it's not never then though ok okay well right "
    "ah oh good so sometimes actually really yet a bit little lot think guess believe"
)
