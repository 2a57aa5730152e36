"""Which messages need no model to be read."""

import re

import pytest

from agents.interviews import Interview, InterviewQuestion
from agents.models.gate import is_sure_without_model, plain_questions
from agents.values import Enrichment, FactReading, Intent, Understanding
from memory_blocks.facts.changes import CurrentFact, Decider, Op
from tests.support.builders import a_fact, a_situation, some_blocks
from tests.support.orchestrators import agents

SCALE = "I'm sorry to hear that. How severe is it on a scale of 1 to 10?"
HOW_BAD = "How bad is it, from 0 to 10?"
BEFORE = "Have you had this before?"
BACK = a_fact("concern", "back pain")
OWN = frozenset((BEFORE,))


def a_reading(*changes: FactReading) -> Understanding:
    return Understanding(
        enrichment=Enrichment(previous_context="As told", enriched_message="User answers"),
        intent=Intent(intent="GENERAL_HEALTH", confidence=0.9, reasoning="As told"),
        changes=changes,
    )


def an_answer(kind: str, value: str, **fields: object) -> FactReading:
    """What the local brain reads from a reply."""
    usual = {"op": Op.ADD, "subject": "person", "about": "back pain", "decided_by": Decider.LOCAL}
    return FactReading.model_validate({**usual, "kind": kind, "value": value, **fields})


def read_locally(message: str) -> FactReading:
    number = re.search(r"\d+", message)
    if number:
        return an_answer("severity", f"{number[0]}/10")
    return an_answer("previous_episodes", "yes, not specified")


def is_sure(message: str, answer: str, *facts: CurrentFact, local: FactReading | None = None) -> bool:
    situation = a_situation(some_blocks(1), facts or (BACK,))
    return is_sure_without_model(message, answer, situation, a_reading(local or read_locally(message)), OWN)


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ("8", SCALE),
        ("8.", SCALE),
        (" 10 ", SCALE),
        ("0", "How bad is the pain, from 0 to 10?"),
        ("4", "Sorry to hear that. How bad is it from 0 to 10?"),
        ("4", "Sorry about your back pain. How bad is the back pain right now, from 0 to 10?"),
        ("yes", BEFORE),
        ("No.", f"That sounds hard. {BEFORE}"),
        ("nope, thanks", BEFORE),
    ],
)
def test_a_plain_reply_to_a_plain_question_needs_no_model(message: str, answer: str) -> None:
    assert is_sure(message, answer)


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ("8", ""),
        ("8", "I see."),
        ("8", "How many hours do you sleep?"),
        ("34", SCALE),
        ("0", SCALE),
        ("8 or 9", SCALE),
        ("8 now", SCALE),
        ("about 8", SCALE),
        ("8, it was 6 yesterday", SCALE),
        ("39", "What is your temperature?"),
        ("8", "How severe is it on a scale of 1 to 10, and since when?"),
        ("8", "How old are you? How severe is it on a scale of 1 to 10?"),
        ("8", "How bad is the knee pain, from 0 to 10?"),
        ("8", "How bad was it yesterday, from 0 to 10?"),
        ("8", "How bad is it at its worst, from 0 to 10?"),
        ("8", "How bad is it for him, from 0 to 10?"),
        ("8", "How bad is your daughter's pain, from 0 to 10?"),
        ("8", f"Let us turn to your knee. {HOW_BAD}"),
        ("8", f"Your back pain may come from the knee. {HOW_BAD}"),
        ("yes", "Do you have a fever?"),
        ("yes", "Does your husband have a fever?"),
        ("yes", "Are you allergic to penicillin?"),
        ("no", "Do you still take metformin?"),
        ("no", "Isn't it swollen?"),
        ("yes", f"{BEFORE} Does it hurt?"),
        ("yes", f"Your knee hurts, too. {BEFORE}"),
        ("yes", SCALE),
        ("yes, since Tuesday", BEFORE),
        ("yes?", BEFORE),
        ("not really", BEFORE),
        ("", BEFORE),
    ],
)
def test_everything_else_is_read_by_the_model(message: str, answer: str) -> None:
    assert not is_sure(message, answer)


@pytest.mark.parametrize(
    "facts",
    [
        (a_fact("age", "34"),),
        (BACK, a_fact("concern", "knee pain", 2)),
        (BACK, a_fact("request", "a plan for training", 2)),
        (BACK, a_fact("associated_symptoms", "nausea", 2, about="back pain")),
        (BACK, a_fact("severity", "8/10", about="back pain")),
        (BACK, a_fact("temperature", "39 °C", subject="husband")),
    ],
    ids=["no concern", "two concerns", "a request", "a symptom", "a severity", "somebody else"],
)
def test_a_number_that_could_mean_something_else_is_read_by_the_model(facts: tuple[CurrentFact, ...]) -> None:
    assert not is_sure("6", HOW_BAD, *facts)


@pytest.mark.parametrize(
    "local",
    [
        an_answer("severity", "6/10", about="knee pain"),
        an_answer("severity", "6/10", subject="daughter"),
        an_answer("severity", "6/10", op=Op.REPLACE, target="fact_1"),
        an_answer("severity", "60/100"),
        an_answer("age", "6"),
    ],
    ids=["another concern", "somebody else", "a replacement", "another number", "another kind"],
)
def test_a_local_reading_of_anything_else_is_not_sure(local: FactReading) -> None:
    assert not is_sure("6", HOW_BAD, local=local)


def test_a_yes_about_what_is_known_already_or_about_somebody_else_is_read_by_the_model() -> None:
    known = a_fact("previous_episodes", "none reported", about="back pain")
    daughters = a_fact("concern", "back pain", subject="daughter")

    assert not is_sure("yes", BEFORE, BACK, known)
    assert not is_sure(
        "yes", BEFORE, daughters, local=an_answer("previous_episodes", "yes", subject="daughter")
    )


def test_only_questions_for_one_fact_of_this_episode_are_plain() -> None:
    texts = {
        BEFORE: "previous_episodes",
        "When did it start?": "onset",
        "Do you have any allergies?": "allergies",
        "Are you taking metformin?": "medications",
        "Do you smoke?": "substances",
        "Have you had pain or swelling before?": "previous_episodes",
    }
    interview = Interview(
        questions=tuple(
            InterviewQuestion(asks=(kind,), text=text, topic="It") for text, kind in texts.items()
        )
    )

    shipped = plain_questions(each.interview for each in agents().agents.values())

    assert plain_questions([interview]) == {BEFORE}
    assert BEFORE in shipped
    assert not [text for text in shipped if re.search("allerg|medic|pregnan|condition", text)]
