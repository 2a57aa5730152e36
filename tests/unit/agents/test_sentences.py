"""A stream of text is cut into sentences."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.sentences import MAX_SENTENCE, sentences


async def streamed(fragments: Iterable[str]) -> AsyncIterator[str]:
    for fragment in fragments:
        yield fragment


def cut(*fragments: str) -> list[str]:
    async def collect() -> list[str]:
        return [sentence async for sentence in sentences(streamed(fragments))]

    return asyncio.run(collect())


@pytest.mark.parametrize(
    "expected",
    [
        ["I understand. ", "How severe is it?"],
        ["Really?! ", "Yes. ", "No way!"],
        ["Dr. Smith will see you, e.g. on Monday. ", "Bring your card."],
        ["Your temperature is 37.5 °C. ", "That is normal."],
        ["Take 0.5 mg twice a day. ", "Drink water."],
        ["See https://example.org/a.b?c=d. ", "It helps."],
        ["Write to help@example.org. ", "They answer."],
        ['She said "It hurts." ', "Then she left."],
        ['"Does it hurt?" he asked. ', "She nodded."],
        ["(It may pass.) ", "Wait a day."],
        ["**Important.** ", "Call now."],
        ["Try this:\n", "- Rest a lot\n", "- Drink water.\n", "- Sleep"],
        ["Do this:\n", "1. Rest.\n", "2. Drink. ", "Then sleep.\n", "10) Wake up"],
        ["First line\nsecond line. ", "Third."],
        ["A heading\n\n", "A paragraph."],
        ["Take vitamin C. ", "It may help."],
        ["Ask J. Smith about it. ", "He knows."],
        ["It is for adults, teens, etc. ", "Children need less."],
        ["Rice, beans etc. are fine. ", "Eat well."],
        ["Come at 8 a.m. on Monday. ", "We open then."],
        ["Room No. 5 is yours. ", "Go in."],
        ["Well... maybe. ", "Hm… ", "Let us see."],
        ["It hurts. ", "3 days is long. "],
        ["痛いです。", "いつからですか\uff1f", "はい"],
        ["  Leading space. ", "Trailing space.  \n"],
        ["no end at all"],
        ["   "],
        ["..."],
    ],
)
def test_a_sentence_ends_where_a_reader_would_say(expected: list[str]) -> None:
    text = "".join(expected)

    assert cut(text) == cut(*text) == expected


def test_an_empty_text_has_no_sentence() -> None:
    assert cut() == cut("", "") == []


async def test_a_sentence_is_yielded_as_soon_as_the_next_one_begins() -> None:
    async def endless() -> AsyncIterator[str]:
        for fragment in ("I under", "stand. ", "How"):
            yield fragment
        await asyncio.Event().wait()

    async with aclosing(sentences(endless())) as spoken:
        assert await anext(spoken) == "I understand. "


async def test_closing_the_generator_closes_the_stream() -> None:
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[str]:
        try:
            while True:
                yield "Again. "
        finally:
            closed.set()

    async with aclosing(sentences(endless())) as spoken:
        await anext(spoken)

    assert closed.is_set()


async def test_a_failing_stream_fails_after_its_complete_sentences() -> None:
    async def failing() -> AsyncIterator[str]:
        yield "One. Two. Thr"
        raise ConnectionError

    spoken = sentences(failing())

    assert [await anext(spoken), await anext(spoken)] == ["One. ", "Two. "]
    with pytest.raises(ConnectionError):
        await anext(spoken)


def test_a_text_without_full_stops_is_cut_at_a_space() -> None:
    text = "word " * 1_000

    parts = cut(text)

    assert "".join(parts) == text
    assert all(len(part) <= MAX_SENTENCE and part.endswith(" ") for part in parts)


def test_a_text_without_spaces_is_cut_at_the_maximum_length() -> None:
    assert [len(part) for part in cut("x" * 4_500)] == [2_000, 2_000, 500]


words = (
    "Dr",
    "e.g",
    "37.5",
    "°C",
    "Hello",
    "and",
    "I",
    "C",
    "vitamin",
    "1",
    "no",
    "A",
    "é",
    "x" * 700,
    "y" * 1_999,
)
marks = (".", "..", "!", "?", "…", "。", '"', ")", "”", "-", "*", " ", "  ", "\n", "\n\n", "\t", " " * 1_500)
texts = st.lists(st.sampled_from(words + marks), max_size=25).map("".join) | st.text(max_size=300)


@given(texts, st.lists(st.integers(0, 6_000), max_size=12))
def test_sentences_depend_on_the_text_alone_and_nothing_is_lost(text: str, places: list[int]) -> None:
    ends = [0, *sorted(place for place in places if place <= len(text)), len(text)]
    fragments = [text[start:end] for start, end in pairwise(ends)]

    whole = cut(text)

    assert "".join(whole) == text
    assert all(0 < len(sentence) <= MAX_SENTENCE for sentence in whole)
    assert cut(*fragments) == whole


@given(texts.filter(lambda text: len(text) < 400))
def test_one_character_at_a_time_makes_no_difference(text: str) -> None:
    assert cut(*text) == cut(text)


def test_one_large_fragment_is_cut_like_many_small_ones() -> None:
    text = "".join(f"This is the sentence with the number {number}. " for number in range(50_000))

    whole = cut(text)

    assert whole == cut(*(text[start : start + 1000] for start in range(0, len(text), 1000)))
    assert len(whole) == 50_000
