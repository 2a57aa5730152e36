"""The station at which a specialist answers: its interview, and its answer as sentences."""

from collections.abc import AsyncGenerator, Iterable

from agents.ports import Brain, Brief
from agents.roster import Question, Specialist
from agents.sentences import sentences


def answer(brain: Brain, brief: Brief) -> AsyncGenerator[str, None]:
    """The answer, sentence by sentence, each as soon as it is whole. Closing it closes the brain's stream."""
    return sentences(brain.speak(brief))


def open_questions(specialist: Specialist, known: Iterable[str]) -> tuple[Question, ...]:
    """The questions of the interview that no known kind of fact answers yet, in their order."""
    kinds = frozenset(known)
    return tuple(question for question in specialist.interview if kinds.isdisjoint(question.asks))


def next_topics(specialist: Specialist, known: Iterable[str]) -> tuple[str, ...]:
    """What the conversation will likely turn to: the topics of the open questions."""
    return tuple(question.topic for question in open_questions(specialist, known))
