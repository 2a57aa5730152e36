"""A specialist's interview: what is still to be asked."""

from collections.abc import Mapping

from agents.interviews import Question
from agents.known import has_some
from agents.roster import Specialist
from agents.sexes import is_pregnant, sex_of


def open_questions(specialist: Specialist, known: Mapping[str, str]) -> tuple[Question, ...]:
    """The questions that fit the concern and that no known kind of fact answers yet, in their order."""
    concern = " ".join(
        known.get(kind, "") for kind in ("concern", "request", "medications", "conditions", "cycle")
    )
    return tuple(
        question
        for question in specialist.interview.questions
        if known.keys().isdisjoint(question.asks)
        and question.fits(concern)
        and question.suits(sex_of(known), pregnant=is_pregnant(known))
        and (not question.given or has_some(known.get(question.given, "")))
        and not has_some(known.get(question.not_given, ""))
    )


def next_topics(specialist: Specialist, known: Mapping[str, str]) -> tuple[str, ...]:
    """What the conversation will likely turn to: the topics of the open questions."""
    return tuple(question.topic for question in open_questions(specialist, known))
