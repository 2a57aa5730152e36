"""The brain without a model: does it route, note, ask, answer and take leave as a person would expect?"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agents.ports import Brief, Recalled
from agents.roster import load, pick
from memory_blocks.edits import empty
from tests.support.brains.kept_conversations import PROMPT, Talk, TurnResult
from tests.support.brains.model_brains import Using, a_brief
from tests.support.builders import a_conversation, a_situation
from tests.support.orchestrators import agents, local_brain

ROSTER = load(Path(__file__).parents[2] / "config" / "agents.toml")
SEEDS_QUESTION = (
    "I understand you're experiencing headaches. Can you tell me when they first started and how severe they "
    "are on a scale of 1 to 10?"
)


async def conversation(*messages: str, answers: Sequence[str] = ()) -> list[TurnResult]:
    """A conversation with the local brain; `answers` replace its own, beginning with the first."""
    talk = Talk()
    for number, message in enumerate(messages):
        await talk.say(message, answer=answers[number] if number < len(answers) else None)
    return talk.results


async def last_answer(*messages: str) -> str:
    return (await conversation(*messages))[-1].answer


# --- understanding and routing ------------------------------------------------------------------------------


@pytest.mark.requirement("001-015", "001-027")
async def test_a_first_message_has_no_context() -> None:
    (result,) = await conversation("I am having a headache")

    assert result.enrichment.previous_context == "No previous context - first message"
    assert result.enrichment.enriched_message == "User reports having a headache - initial health query"
    assert result.enrichment.relevant_history == ()
    assert result.intent.intent == "GENERAL_HEALTH"
    assert result.intent.confidence >= 0.9
    assert "on a scale of 1 to 10?" in result.answer


@pytest.mark.requirement("001-028", "001-004")
@pytest.mark.parametrize("answers", [(), (SEEDS_QUESTION,)], ids=["own question", "the sample's question"])
async def test_a_bare_number_answers_the_question_before_it(answers: tuple[str, ...]) -> None:
    _, result = await conversation("I am having a headache", "8", answers=answers)

    assert result.enrichment.enriched_message == "User rates headache severity as 8 out of 10 (severe)"
    assert result.enrichment.previous_context.startswith("User reported headache, agent asked for ")
    assert "severity rating 1-10" in result.enrichment.previous_context
    assert result.enrichment.relevant_history == ("turn_1",)
    assert (result.intent.intent, result.intent.confidence) == ("GENERAL_HEALTH", 0.95)
    assert result.intent.reasoning == "Follow-up response to severity question about headache"
    assert (result.enrichment.topic, result.enrichment.trigger) == (
        "headache_severity_assessment",
        "severity_inquiry",
    )
    assert '"8 out of 10"' in result.answer
    assert "scale" not in result.answer


@pytest.mark.parametrize(
    ("message", "agent"),
    [
        ("My knee hurts when I walk", "GENERAL_HEALTH"),
        ("I feel anxious all the time", "MENTAL_HEALTH"),
        ("I missed a dose of my antibiotic", "MEDICATION"),
        ("How many calories should I eat?", "NUTRITION"),
        ("How do I start running?", "FITNESS"),
        ("I can't fall asleep", "SLEEP"),
        ("Which contraception is right for me?", "SEXUAL_HEALTH"),
        ("My blood sugar was high, I have diabetes", "CHRONIC_CARE"),
        ("I want to book an appointment", "ADMINISTRATIVE"),
        ("I want to kill myself", "EMERGENCY"),
        ("I have chest pain and can't breathe", "EMERGENCY"),
        ("Blue is a nice colour", "COORDINATOR"),
    ],
)
async def test_a_message_is_answered_by_the_right_agent(message: str, agent: str) -> None:
    (result,) = await conversation(message)

    assert result.agent == agent


async def test_a_topic_is_left_for_another_agent_and_taken_up_again() -> None:
    *_, left, back = await conversation(
        "my knee hurts since sunday", "by the way, I can't fall asleep", "back to my knee"
    )

    assert (left.agent, back.agent) == ("SLEEP", "GENERAL_HEALTH")
    assert "my knee hurts since sunday" in back.answer


async def test_after_an_emergency_the_interrupted_topic_continues() -> None:
    talk = Talk()
    await talk.say("I am having a headache")
    await talk.say("my chest feels crushed", label="EMERGENCY", answer="Call 112 now. When did it start?")

    result = await talk.say("yesterday")

    assert result.intent.intent == "GENERAL_HEALTH"


# --- replies ------------------------------------------------------------------------------------------------


async def test_the_first_answer_says_that_there_is_no_language_model() -> None:
    first, second = await conversation("hello", "my knee hurts")

    assert "no language model" in first.answer
    assert "language model" not in second.answer


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        (("I have a headache", "about 3 weeks"), '"about 3 weeks"'),
        (("hi", "my sugar was 180 this morning"), '"my sugar was 180 this morning"'),
        (("hi", "remember that I am vegetarian"), '"I am vegetarian"'),
        (("I take metformin", "what medication did I say I take?"), '"I take metformin"'),
        (("I'm on aspirin", "Cross out the aspirin, the doctor stopped it last week"), '"aspirin"?'),
        (("my mum is 83", "how old is my mum?"), '"my mum is 83"'),
        (("I'm 31 weeks pregnant", "how many weeks did I say I am?"), '"I\'m 31 weeks pregnant"'),
        (("I have a cough", "what am I allergic to?"), "You have not told me that"),
        (("I have a cough", "you already asked me that"), "sorry"),
        (("hi", "my husband died in october"), "sorry"),
        (("I have a cough", "could you remind me tomorrow?"), "cannot send reminders"),
        (("I have a cough", "what can you do?"), "without a language model"),
    ],
)
async def test_a_reply_fits_what_the_message_does(messages: tuple[str, ...], says: str) -> None:
    assert says in await last_answer(*messages)


@pytest.mark.parametrize(
    "last", ["Merci and goodbye", "thanks", "ok bye", "that's all, thank you", "good night", "cheers"]
)
async def test_thanks_and_goodbyes_are_not_answered_with_a_question(last: str) -> None:
    assert "?" not in await last_answer("I have a headache", "8", last)


@pytest.mark.parametrize("then", ["I don't sleep and I don't eat", "he was 71", "I keep waking up at 4"])
async def test_grief_is_not_answered_with_a_question(then: str) -> None:
    first, second = await conversation("my dad passed away last week", then)

    assert "?" not in first.answer + second.answer


@pytest.mark.parametrize(
    ("told", "question", "names"),
    [
        ("I'm allergic to penicillin", "can I take amoxicillin?", "penicillins"),
        ("I'm on warfarin", "is naproxen ok for my back?", "serious bleeding"),
        ("I take sertraline", "can I take st johns wort?", "dangerous"),
        ("I'm 31 weeks pregnant", "can I take ibuprofen?", "not advised in pregnancy"),
    ],
)
async def test_a_medicine_is_compared_with_what_the_person_told(told: str, question: str, names: str) -> None:
    answer = await last_answer(told, question)

    assert names in answer
    assert "(source: NHS" in answer


@pytest.mark.parametrize("question", ["can I take gaviscon?", "is that too much?", "could it be gout?"])
async def test_what_cannot_be_answered_is_declined_honestly(question: str) -> None:
    answer = await last_answer("my big toe hurts", question)

    assert any(
        each in answer for each in ("cannot", "must not", "do not know", "question for somebody", "needs")
    )
    assert "fine" not in answer


@pytest.mark.parametrize(
    ("message", "source"),
    [
        ("what are the signs of a stroke?", "NHS, Stroke"),
        ("how do I do CPR?", "NHS, First aid"),
        ("what helps against heartburn?", "NHS, Heartburn and acid reflux"),
    ],
)
async def test_a_general_question_is_answered_with_information(message: str, source: str) -> None:
    (result,) = await conversation(message)

    assert f"(source: {source})" in result.answer
    assert "?" not in result.answer


def test_all_information_names_its_source() -> None:
    named = [each.source for agent in ROSTER.specialists for each in agent.interview.information]

    assert all(agent.interview.information for agent in ROSTER.specialists)
    assert {source.partition(", ")[0] for source in named} == set(ROSTER.manner.sources)
    assert all(source.partition(", ")[2] for source in named)


async def test_a_changed_mole_gets_the_advice_to_see_somebody_at_once() -> None:
    (result,) = await conversation("a mole on my arm has changed colour")

    assert "should be looked at by a doctor soon" in result.answer


async def test_no_question_is_asked_twice_and_the_interview_ends() -> None:
    replies = ("8", "since Tuesday", "throbbing", "some nausea", "not really", "about the same", "no", "no")
    result = await conversation("I am having a headache", *replies, "no", "none", "thanks")

    questions = [each.answer.rsplit(". ", 1)[-1] for each in result if each.answer.endswith("?")]
    assert len(questions) == len(set(questions)) >= 5
    assert ROSTER.agents["GENERAL_HEALTH"].interview.closing in " ".join(each.answer for each in result)


async def test_what_was_told_is_not_asked_for() -> None:
    talk = await conversation("I've had a headache for three weeks, I'd say 7 out of 10", "it throbs", "no")

    asked = " ".join(each.answer for each in talk)
    assert "How severe" not in asked
    assert "When did it first start" not in asked


async def test_a_person_who_wants_no_questions_is_asked_none() -> None:
    talk = await conversation("I have a headache", "please just listen, no questions", "my knee hurts too")

    assert "?" not in talk[1].answer + talk[2].answer


async def test_a_stopped_answer_continues_where_it_stopped() -> None:
    brain, message = local_brain(), "I am having a headache"
    situation = a_situation(empty(a_conversation()))
    understood = await brain.understand(message, situation)
    said = 'Noted: "I am having a headache". '
    brief = Brief(
        pick(understood.intent, ROSTER), message, understood, situation, (), Recalled(), PROMPT, said
    )

    rest = "".join([fragment async for fragment in brain.speak(brief)])

    assert "Noted" not in rest


# --- tools --------------------------------------------------------------------------------------------------


async def test_a_specialist_does_not_request_a_tool_that_it_does_not_list() -> None:
    brief = a_brief("what's my BMI? 180 cm and 75 kg", Using())
    calm = replace(brief, specialist=agents().agents["MENTAL_HEALTH"])

    said = [fragment async for fragment in local_brain().speak(brief)]
    without = [fragment async for fragment in local_brain().speak(calm)]

    assert "23.1" in "".join(said)
    assert "23.1" not in "".join(without)


async def test_a_calculation_that_was_done_is_not_declined() -> None:
    brief = a_brief("what's my BMI? 180 cm and 75 kg", Using())

    answer = "".join([fragment async for fragment in local_brain().speak(brief)])

    assert answer.endswith("that is usual for adults.")
