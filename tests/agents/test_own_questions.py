"""Questions are asked only if they fit the person, and a person's own question is answered or declined."""

import pytest

from agents.local.leaning import asks_what_to_do, misses_an_answer, own_question
from agents.sexes import is_pregnant, sex_of, sex_said
from agents.specialist import open_questions
from tests.kept_conversations import Talk
from tests.orchestrators import agents


def asked_of(agent: str, **known: str) -> set[str]:
    """The kinds of facts that a specialist would still ask for."""
    return {kind for each in open_questions(agents().agents[agent], known) for kind in each.asks}


@pytest.mark.parametrize(
    ("known", "sex"),
    [
        ({"sex": "male"}, "male"),
        ({"about_whom": "wife"}, "female"),
        ({"about_whom": "little brother", "sex": "female"}, "male"),
        ({"about_whom": "neighbour", "pregnancy": "20 weeks pregnant"}, "female"),
        ({"about_whom": "neighbour", "sex": "female"}, ""),
        ({"pregnancy": "pregnant"}, "female"),
        ({"pregnancy": "not pregnant"}, ""),
        ({"concern": "erection problems"}, "male"),
        ({"request": "my period is a week late"}, "female"),
        ({"concern": "cough"}, ""),
    ],
)
def test_the_sex_is_derived_from_known_facts(known: dict[str, str], sex: str) -> None:
    assert sex_of(known) == sex


@pytest.mark.parametrize(
    ("said", "sex"),
    [
        ("i'm a guy lol", "male"),
        ("I am a 54 year old woman", "female"),
        ("as a man I never know", "male"),
        ("I'm not a man", ""),
        ("I'm a girl friend of hers", ""),
        ("my boy is ill", ""),
    ],
)
def test_a_stated_sex_is_recognised(said: str, sex: str) -> None:
    assert sex_said(said) == sex


def test_a_possible_pregnancy_does_not_count_as_a_pregnancy() -> None:
    assert [is_pregnant({"pregnancy": each}) for each in ("30 weeks pregnant", "not pregnant", "maybe")] == [
        True,
        False,
        False,
    ]


def test_no_question_is_asked_that_cannot_apply_to_the_person() -> None:
    asked = asked_of("SEXUAL_HEALTH", concern="sores")

    assert {"cycle", "pregnancy", "protection"} <= asked
    assert asked - asked_of("SEXUAL_HEALTH", concern="sores", sex="male") == {"cycle", "pregnancy"}
    assert asked - asked_of("SEXUAL_HEALTH", concern="sores", about_whom="husband") == {"cycle", "pregnancy"}
    assert not {"cycle", "protection"} & asked_of("SEXUAL_HEALTH", concern="itch", pregnancy="pregnant")


async def test_a_man_is_not_asked_about_periods_and_saying_so_answers_nothing_else() -> None:
    talk = Talk()
    await talk.say("something itches down there")
    result = await talk.say("I'm a bloke", answer="Noted. Which medication do you take?")
    result = await talk.say("im a guy, mate")
    for _ in range(6):
        assert "period" not in result.answer
        assert "pregnant" not in result.answer
        result = await talk.say("no")

    assert result.enrichment.known["sex"] == "male"
    assert "guy" not in result.enrichment.known.get("medications", "")


async def test_a_denied_symptom_gives_no_warning() -> None:
    talk = Talk()
    await talk.say("my wife is 28 weeks pregnant and her stomach burns")
    result = await talk.say("no she doesnt have discharge", answer=None)

    assert "condoms" not in result.answer


@pytest.mark.parametrize(
    ("message", "question"),
    [
        ("me and my partner want a baby, what do we need to know first", "what do we need to know first"),
        ("no. but can I still swim with it?", "but can I still swim with it?"),
        ("nothing so far, what could I try?", "what could I try?"),
        ("so what now", "so what now"),
        ("whats the 5 2 diet", "whats the 5 2 diet"),
        ("when I eat late it is worse", ""),
        ("it hurts, which is annoying", ""),
        ("I can do it", ""),
    ],
)
def test_a_question_in_a_message_is_found(message: str, question: str) -> None:
    assert own_question(message) == question


def test_a_request_for_advice_or_for_a_missing_answer_is_recognised() -> None:
    assert asks_what_to_do("and what should we do")
    assert not asks_what_to_do("what should I eat?")
    assert misses_an_answer("you still haven't answered my question")
    assert not misses_an_answer("the doctor never answered the phone")


async def test_a_question_next_to_an_answer_is_answered_too() -> None:
    talk = Talk()
    await talk.say("I want to lose weight")
    result = await talk.say("ten kilos. is sugar that bad?", answer=None)

    assert "source:" in result.answer
    assert result.answer.endswith("?")


async def test_a_repeated_question_gets_the_information_again() -> None:
    talk = Talk()
    await talk.say("How do I train for a half marathon? my knee hurts on long runs")
    await talk.say("can I go on running with it?")
    again = await talk.say("you never answered, can I run with the knee or not")

    assert talk.results[0].answer.count("pain is the guide") == 1
    assert "pain is the guide" in again.answer
    assert "you never answered" not in " ".join(again.enrichment.known.values())


async def test_a_question_about_what_to_do_gets_advice_and_counts_as_no_answer() -> None:
    talk = Talk()
    await talk.say("what exercises are good for my shoulders?")
    closing = agents().agents["FITNESS"].interview.closing
    await talk.say("no", answer=f"Thank you. {closing}")
    for kind in agents().agents["FITNESS"].interview.questions:
        await talk.say("no", answer=f"{kind.text} {closing}")

    result = await talk.say("so what now")
    assert "source:" in result.answer
    assert not [each for each in result.enrichment.known.values() if "what now" in each]
    await talk.say("no")
    assert closing in (await talk.say("so what do I do now")).answer


async def test_an_event_as_the_onset_is_repeated_as_an_event() -> None:
    talk = Talk()
    await talk.say("I cannot sleep")

    assert "since you moved" in (await talk.say("since we moved")).answer


async def test_the_words_nothing_else_are_no_symptom() -> None:
    talk = Talk()
    await talk.say("I have a cough")
    result = await talk.say(
        "no fever, no chills, nothing else", answer="Have you noticed any other symptoms?"
    )
    result = await talk.say("ok thank you, bye")

    assert "none reported" not in result.answer
    assert result.agent == "GENERAL_HEALTH"


async def test_a_word_that_introduces_a_question_is_no_answer() -> None:
    talk = Talk()
    await talk.say("we want to leave out condoms, what do we need to do first", answer="Do you smoke?")
    result = await talk.say("so what test should we get?")

    assert "substances" not in result.enrichment.known
    assert "chlamydia" in result.answer


async def test_a_question_that_fits_any_topic_is_kept_with_its_topic() -> None:
    result = await Talk().say(
        "my girlfriend and I would like to try for a baby soon, what should we do first"
    )

    assert "baby" in result.enrichment.known["request"]
    assert "folic acid" in result.answer
    assert "condoms" not in result.answer
    assert "first notice" not in result.answer
