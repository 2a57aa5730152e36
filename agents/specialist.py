"""A specialist's interview: what is still to be asked."""

from collections.abc import Iterable

from agents.roster import Question, Specialist


def open_questions(specialist: Specialist, known: Iterable[str]) -> tuple[Question, ...]:
    """The questions of the interview that no known kind of fact answers yet, in their order."""
    kinds = frozenset(known)
    return tuple(question for question in specialist.interview if kinds.isdisjoint(question.asks))


def next_topics(specialist: Specialist, known: Iterable[str]) -> tuple[str, ...]:
    """What the conversation will likely turn to: the topics of the open questions."""
    return tuple(question.topic for question in open_questions(specialist, known))
