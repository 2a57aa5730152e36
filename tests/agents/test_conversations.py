"""Whole conversations with each specialist, compared with kept texts.

`make conversations` writes them again; read the diff as the person in the conversation would.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest

from agents.sentences import sentences
from tests.support.brains.kept_conversations import ASIDE, PERSON, Talk, held, kept, lines_of
from tests.support.orchestrators import agents

TALKS = {path.stem: path for path in kept()}


def said_in(path: Path) -> list[tuple[str, str]]:
    return list(lines_of(path.read_text(encoding="utf-8")))


def answers_in(path: Path) -> list[str]:
    return [said for who, said in said_in(path) if who not in (PERSON, ASIDE)]


async def _whole(text: str) -> AsyncIterator[str]:
    yield text


def cut(text: str) -> list[str]:
    async def collect() -> list[str]:
        return [sentence.strip() async for sentence in sentences(_whole(text))]

    return asyncio.run(collect())


def test_every_specialist_has_three_conversations_of_twelve_to_twenty_turns() -> None:
    counted = Counter(name.rsplit("_", 1)[0].upper() for name in TALKS if not name.startswith("listening"))

    assert counted == dict.fromkeys(agents().agent_types - {"EMERGENCY"}, 3)
    for name, path in TALKS.items():
        assert name.startswith("listening") or 12 <= len(answers_in(path)) <= 20


@pytest.mark.parametrize("name", TALKS)
async def test_a_conversation_goes_exactly_as_it_was_reviewed(name: str) -> None:
    text = TALKS[name].read_text(encoding="utf-8")

    assert await held(text) == text


@pytest.mark.parametrize("name", TALKS)
def test_an_answer_has_at_most_one_question_and_none_is_asked_more_than_twice(name: str) -> None:
    asked = [
        [sentence for sentence in cut(re.sub(r"“[^”]*”", "", answer)) if sentence.endswith("?")]
        for answer in answers_in(TALKS[name])
    ]

    assert all(len(each) <= 1 for each in asked)
    assert max(Counter(question for each in asked for question in each).values(), default=0) <= 2


@pytest.mark.parametrize("name", TALKS)
def test_no_answer_is_too_long(name: str) -> None:
    assert all(1 <= len(cut(answer)) <= 6 for answer in answers_in(TALKS[name]))


@pytest.mark.parametrize("name", TALKS)
def test_the_first_answer_says_that_there_is_no_language_model(name: str) -> None:
    answers = [said for who, said in said_in(TALKS[name]) if who not in (PERSON, ASIDE, "EMERGENCY")]

    assert ["There is no language model" in answer for answer in answers] == [
        number == 0 for number in range(len(answers))
    ]


async def test_after_a_notice_about_danger_the_next_answer_says_that_there_is_no_language_model() -> None:
    talk = Talk()

    await talk.say("I have chest pain", label="EMERGENCY", answer="Please call your local emergency number.")
    answers = [(await talk.say(message)).answer for message in ("my knee hurts", "since Monday")]

    assert ["There is no language model" in answer for answer in answers] == [True, False]


THANKS = re.compile(
    r"\W*(?:ok(?:ay)?,? |great,? )?(?:thanks?|thank you|bye|goodbye|cheers)\b.{0,12}", re.IGNORECASE
)


@pytest.mark.parametrize("name", TALKS)
def test_thanks_and_goodbyes_are_not_answered_with_a_question(name: str) -> None:
    said = said_in(TALKS[name])

    replies = [
        answer
        for (who, message), (_, answer) in pairwise(said)
        if who in (PERSON, ASIDE) and THANKS.fullmatch(message)
    ]
    assert [answer for answer in replies if "?" in answer] == []


RED_LINES = re.compile(
    r"\byou (?:have|suffer from|probably have) (?:an? )?(?:migraine|depression|infection|diabetes|cancer)"
    r"|\btake \d|\bstop taking|\bincrease (?:the|your) dose|\bit is (?:only|just|nothing)\b"
    r"|\byou do not need a doctor",
    re.IGNORECASE,
)


@pytest.mark.parametrize("name", TALKS)
def test_no_answer_diagnoses_or_prescribes(name: str) -> None:
    own = [re.sub(r'"[^"]*"', "", answer) for answer in answers_in(TALKS[name])]

    assert [answer for answer in own if RED_LINES.search(answer)] == []
