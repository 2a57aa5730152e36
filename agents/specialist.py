"""The questions of a specialist's interview that are still open."""

from collections.abc import Iterable, Mapping

from agents.interviews import InterviewQuestion
from agents.questions import kinds_asked
from agents.roster import Specialist
from agents.sexes import is_pregnant, sex_of
from agents.values import has_some


def open_questions(specialist: Specialist, known: Mapping[str, str]) -> tuple[InterviewQuestion, ...]:
    """The questions that fit the person and the concern and are not answered yet, in their order."""
    concern = " ".join(
        known.get(kind, "") for kind in ("concern", "request", "medications", "conditions", "cycle")
    )
    return tuple(
        question
        for question in specialist.interview.questions
        if known.keys().isdisjoint(question.asks)
        and question.fits_concern(concern)
        and question.fits_person(sex_of(known), pregnant=is_pregnant(known))
        and (not question.given or has_some(known.get(question.given, "")))
        and not has_some(known.get(question.not_given, ""))
    )


def next_topics(specialist: Specialist, known: Mapping[str, str]) -> tuple[str, ...]:
    """The topics of the open questions, which the conversation will likely turn to."""
    return tuple(question.topic for question in open_questions(specialist, known))


def asked_before(answers: Iterable[str], known: Mapping[str, str]) -> tuple[str, ...]:
    """The kinds of fact that earlier answers asked for and that are not known yet."""
    asked = (kind for answer in answers for kind in kinds_asked(answer))
    return tuple(dict.fromkeys(kind for kind in asked if kind not in known))
