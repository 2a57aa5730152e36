"""Whole conversations with each specialist, kept as texts: read them as the person would.

`make conversations` writes them anew; the diff then shows what became of them.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agents.sentences import sentences
from tests.houses import agents
from tests.talks import PERSON, held, kept, lines_of

TALKS = {path.stem: path for path in kept()}


def said_in(path: Path) -> list[tuple[str, str]]:
    return list(lines_of(path.read_text(encoding="utf-8")))


def answers_in(path: Path) -> list[str]:
    return [said for who, said in said_in(path) if who != PERSON]


async def _whole(text: str) -> AsyncIterator[str]:
    yield text


def cut(text: str) -> list[str]:
    async def collect() -> list[str]:
        return [sentence.strip() async for sentence in sentences(_whole(text))]

    return asyncio.run(collect())


def test_every_specialist_has_three_conversations_of_twelve_to_twenty_turns() -> None:
    counted = Counter(name.rsplit("_", 1)[0].upper() for name in TALKS)

    assert counted == dict.fromkeys(agents().agent_types - {"EMERGENCY"}, 3)
    for path in TALKS.values():
        assert 12 <= len(answers_in(path)) <= 20


@pytest.mark.parametrize("name", TALKS)
async def test_a_conversation_goes_as_it_was_read_and_found_good(name: str) -> None:
    text = TALKS[name].read_text(encoding="utf-8")

    assert await held(text) == text


@pytest.mark.parametrize("name", TALKS)
def test_no_question_is_asked_twice_unless_the_person_asks_why_or_passed_it_over(name: str) -> None:
    said = said_in(TALKS[name])
    again = agents().manner.again
    asked = Counter(
        sentence
        for at, (who, text) in enumerate(said)
        if who != PERSON and not said[at - 1][1].startswith("why") and not any(each in text for each in again)
        for sentence in cut(text)
        if sentence.endswith("?")
    )
    put_again = Counter(cut(text)[-1] for _, text in said if any(each in text for each in again))

    assert [question for question, times in asked.items() if times > 1] == []
    assert [question for question, times in put_again.items() if times > 1 or question not in asked] == []


@pytest.mark.parametrize("name", TALKS)
def test_no_phrase_is_worn_out_and_no_answer_is_long(name: str) -> None:
    answers = answers_in(TALKS[name])
    phrases = Counter(
        sentence for answer in answers for sentence in cut(answer) if not sentence.endswith("?")
    )

    assert [phrase for phrase, times in phrases.items() if times > 1] == []
    assert all(1 <= len(cut(answer)) <= 5 for answer in answers)


@pytest.mark.parametrize("name", TALKS)
def test_the_end_says_what_was_understood(name: str) -> None:
    last = " ".join(answers_in(TALKS[name])[-5:])

    assert re.search(r"what I have understood|To sum up what you told me", last)


def test_a_handoff_says_so_and_keeps_the_facts() -> None:
    answers = answers_in(TALKS["coordinator_2"])

    handed = [answer for answer in answers if "passed on" in answer or "taken over" in answer]
    assert len(handed) == 2
    assert "your headache" in handed[0]
    assert "headache" in answers[-1]


RED_LINES = re.compile(
    r"\byou (?:have|suffer from|probably have) (?:an? )?(?:migraine|depression|infection|diabetes|cancer)"
    r"|\btake \d|\bstop taking|\bincrease (?:the|your) dose|\bit is (?:only|just|nothing)\b"
    r"|\byou do not need a doctor",
    re.IGNORECASE,
)


@pytest.mark.parametrize("name", TALKS)
def test_nothing_is_diagnosed_or_prescribed(name: str) -> None:
    own = [
        sentence
        for answer in answers_in(TALKS[name])
        for sentence in cut(answer)
        if "understood:" not in sentence and "told me:" not in sentence
    ]

    assert [sentence for sentence in own if RED_LINES.search(sentence)] == []
