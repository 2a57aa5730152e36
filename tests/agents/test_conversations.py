"""Whole conversations with each specialist, compared with kept texts.

`make conversations` writes them again; read the diff as the person in the conversation would.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agents.sentences import sentences
from tests.kept_conversations import ASIDE, PERSON, held, kept, lines_of
from tests.orchestrators import agents

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
    counted = Counter(name.rsplit("_", 1)[0].upper() for name in TALKS)

    assert counted == dict.fromkeys(agents().agent_types - {"EMERGENCY"}, 3)
    for path in TALKS.values():
        assert 12 <= len(answers_in(path)) <= 20


@pytest.mark.parametrize("name", TALKS)
async def test_a_conversation_goes_exactly_as_it_was_reviewed(name: str) -> None:
    text = TALKS[name].read_text(encoding="utf-8")

    assert await held(text) == text


def asked_twice(said: list[tuple[str, str]]) -> list[str]:
    """The questions that were repeated after an answer, or repeated more than once.

    If the person asked a question back or changed the subject, the assistant may repeat its question once and
    must say that it repeats it. A question after "why" is not counted.
    """
    again = agents().manner.again
    answered, put_again, wrong = dict[str, bool](), set[str](), list[str]()
    for at, (who, text) in enumerate(said):
        if who in (PERSON, ASIDE):
            continue
        before = said[at - 1][1]
        for question in (sentence for sentence in cut(text) if sentence.endswith("?")):
            if question in answered and not before.startswith("why"):
                called_so = any(each in text for each in again)
                if answered[question] or question in put_again or not called_so:
                    wrong.append(question)
                put_again.add(question)
            speaker, reply = said[at + 1] if at + 1 < len(said) else (ASIDE, "")
            answered[question] = speaker == PERSON and not reply.endswith("?")
    return wrong


@pytest.mark.parametrize("name", TALKS)
def test_no_question_is_asked_twice_unless_the_person_asks_why_or_did_not_answer_it(name: str) -> None:
    assert asked_twice(said_in(TALKS[name])) == []


def test_a_repeated_question_that_was_answered_is_detected() -> None:
    again = agents().manner.again[0]
    first = [("GENERAL_HEALTH", "Noted. Do you have any allergies?")]
    once_more = [("GENERAL_HEALTH", f"I see. {again} Do you have any allergies?"), (PERSON, "none")]

    assert asked_twice([*first, (PERSON, "no, none"), *once_more]) == ["Do you have any allergies?"]
    assert asked_twice([*first, (ASIDE, "he drinks more now"), *once_more]) == []
    assert asked_twice([*first, (PERSON, "is that enough to drink?"), *once_more]) == []
    assert asked_twice([*first, (ASIDE, "hm"), *once_more[:1], (ASIDE, "hm"), *once_more]) != []


@pytest.mark.parametrize("name", TALKS)
def test_no_phrase_is_repeated_too_often_and_no_answer_is_too_long(name: str) -> None:
    answers = answers_in(TALKS[name])
    phrases = Counter(
        sentence for answer in answers for sentence in cut(answer) if not sentence.endswith("?")
    )

    assert [phrase for phrase, times in phrases.items() if times > 1] == []
    assert all(1 <= len(cut(answer)) <= 5 for answer in answers)


@pytest.mark.parametrize("name", TALKS)
def test_the_last_answer_summarises_what_was_understood(name: str) -> None:
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
def test_no_answer_diagnoses_or_prescribes(name: str) -> None:
    own = [
        sentence
        for answer in answers_in(TALKS[name])
        for sentence in cut(answer)
        if "understood:" not in sentence and "told me:" not in sentence
    ]

    assert [sentence for sentence in own if RED_LINES.search(sentence)] == []
