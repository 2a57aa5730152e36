"""Questions about what was said, asked of the brain without a model in whole conversations."""

import re

import pytest

from tests.support.brains.kept_conversations import Talk
from tests.support.brains.models import minilm
from tests.support.builders import HandClock
from tests.support.orchestrators import an_orchestrator, local_brain
from tests.support.protocol_client import conversing


async def answer(*messages: str) -> str:
    """The answer to the last of these messages."""
    talk = Talk()
    for message in messages:
        result = await talk.say(message)
    return result.answer


@pytest.mark.parametrize(
    ("told", "question", "quoted"),
    [
        (("My right knee has been swollen since the weekend",), "And which knee was it?", "right knee"),
        (("I was on lisinopril but they switched me to losartan",), "what tablet am I on?", "losartan"),
        (("flying to Thailand in 3 weeks",), "where am I travelling to", "Thailand"),
        (("I need to see the dentist", "it's on the 14th at 3pm"), "when is the dentist?", "14th"),
        (("Mum's 84", "she takes madopar"), "how old is mum did I tell you", "84"),
        (("what's the best cream for acne",), "what did i ask you first", "cream"),
    ],
)
async def test_a_question_about_memory_is_answered_with_a_quotation(
    told: tuple[str, ...], question: str, quoted: str
) -> None:
    said = await answer(*told, question)

    assert said.startswith("You told me")
    assert quoted in said


@pytest.mark.parametrize("question", ["how old am I?", "what am I allergic to", "what's my name?"])
async def test_what_was_not_told_is_not_made_up(question: str) -> None:
    assert (await answer("my resting heart rate is 61", question)).startswith("You have not told me that")


@pytest.mark.parametrize(
    ("told", "question", "quoted"),
    [
        (("I have a headache", "8"), "how bad did I say it was?", "8 out of 10"),
        (("I don't smoke", "my neighbour smokes a lot"), "how much do I smoke?", "I don't smoke"),
        (("I was diagnosed with asthma in 2010",), "which conditions do you have for me", "asthma"),
        (("I don't smoke", "I take ibuprofen"), "do I smoke?", "I don't smoke"),
        (("I have had a cough since Monday",), "when did it start?", "Monday"),
        (("can you remind me tomorrow to call the gp?",), "did you note that?", "call the gp"),
        (("my son has a fever", "he had calpol at 7"), "what did I give him?", "calpol"),
        (("I'm vegetarian",), "do I eat meat?", "vegetarian"),
    ],
)
async def test_a_question_in_other_words_is_answered_from_what_was_told(
    told: tuple[str, ...], question: str, quoted: str
) -> None:
    said = await answer(*told, question)

    assert said.startswith("You told me")
    assert quoted in said
    assert "neighbour" not in said


@pytest.mark.parametrize(
    ("told", "question"),
    [
        (("My headache started yesterday", "I'm 12 weeks pregnant"), "When is my birthday?"),
        (("My headache started yesterday",), "Am I vegetarian?"),
        (("I fall asleep around 2 and get up at 6",), "how many children do I have?"),
        (("I don't smoke", "do I have asthma?"), "do I have asthma?"),
    ],
)
async def test_a_note_of_something_else_and_a_question_are_no_evidence(
    told: tuple[str, ...], question: str
) -> None:
    assert (await answer(*told, question)).startswith("You have not told me that")


async def test_what_was_just_quoted_is_what_forget_that_means() -> None:
    said = await answer("I have a sore throat", "I take ibuprofen 400", "what do I take?", "forget that")

    assert said == 'Shall I remove this from my notes: "ibuprofen 400"?'


@pytest.mark.parametrize(
    "messages",
    [
        ("can you remind me tomorrow to call the gp?",),
        ("could you book me an appointment?",),
        ("could you call my mum?",),
        ("please remember that",),
        ("hm hm",),
        ("can you send me a leaflet?",),
        ("I'm on ramipril", "noted, but remember it"),
    ],
)
async def test_a_reply_that_says_noted_has_a_fact(messages: tuple[str, ...]) -> None:
    talk = Talk()
    for message in messages:
        result = await talk.say(message)
        said = result.answer.lower().split("(there is no language")[0]
        assert talk.facts or not re.search(r"\bnoted\b|\bin my notes\b|\bkept\b", said)


async def test_an_allergy_told_with_the_question_is_compared() -> None:
    said = await answer("can I take amoxicillin, I'm allergic to penicillin?")

    assert "belongs to the penicillins" in said


async def test_an_allergy_named_in_the_question_is_compared() -> None:
    assert "penicillins" in await answer("is amoxicillin alright with a penicillin allergy?")


async def test_a_short_question_goes_on_asking() -> None:
    said = await answer("Both kids have nits, Ella 8 and Tom 5", "how old is Tom", "and Ella")

    assert "Ella 8" in said


async def test_a_corrected_day_takes_the_place_of_the_old_one() -> None:
    said = await answer("my appointment is Tuesday at 10", "sorry, Wednesday at 10", "when is my appointment")

    assert "wednesday" in said.lower()
    assert "tuesday" not in said.lower()


async def test_what_is_forgotten_is_not_quoted_any_more() -> None:
    said = await answer(
        "also I don't drink", "forget the bit about not drinking", "yes", "what do you know about me"
    )

    assert "drink" not in said


async def test_two_medicines_asked_about_as_both_are_compared() -> None:
    assert "bleeding" in await answer("Dad takes warfarin and wants aspirin", "can he take both?")


async def test_dates_and_times_are_those_of_the_person(embedded: str) -> None:
    clock = HandClock()  # 10:30 UTC, which is half past midnight of the next day on Kiritimati
    orchestrator = an_orchestrator(embedded, local_brain(), embedder=minilm(), clock=clock, remembers=True)
    async with orchestrator.open():
        async with conversing(orchestrator, timeZone="Pacific/Kiritimati") as peer:
            await peer.ask("My knee hurts on the stairs")
        clock.tick(86_400)
        async with conversing(orchestrator, timeZone="Pacific/Kiritimati") as peer:
            frames = await peer.ask("What did I tell you about my knee yesterday?")

    said = "".join(frame.body.get("text", "") for frame in frames)
    assert '"My knee hurts on the stairs" (16 January, 00:30, in an earlier conversation)' in said
    assert "I looked only at 16 January 2024." in said
