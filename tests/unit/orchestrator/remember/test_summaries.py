"""Chunks, picked sentences, and the check of what a model wrote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import sentences
from agents.models.usage import estimated_tokens
from orchestrator.remember.creators.checking import SummaryCheck
from orchestrator.remember.creators.chunking import chunks
from orchestrator.remember.creators.extractive import roll, summarise
from orchestrator.remember.creators.history import Said
from tests.support.builders import START
from tests.support.creators import TERMS

TEXTS = st.lists(
    st.text(max_size=120) | st.sampled_from(["Yes.", "No", "I took 20 mg.", "Why? Maria!"]), max_size=12
)


def said(*texts: str) -> list[Said]:
    """Messages of the person and the assistant in turn."""
    roles = ("user", "assistant")
    return [
        Said(f"m{number}", number, roles[(number - 1) % 2], text, START)
        for number, text in enumerate(texts, 1)
    ]


# --- chunks -------------------------------------------------------------------------------------------------


@given(TEXTS, st.integers(1, 60), st.integers(0, 4), st.integers(1, 5), st.booleans())
def test_chunks_have_every_message_once_and_in_order(
    texts: list[str], tokens: int, lookback: int, least: int, whole: bool
) -> None:
    messages = said(*texts)

    made = chunks(messages, tokens=tokens, lookback=lookback, least=least, whole=whole)

    flat = [each for chunk in made for each in chunk]
    assert flat == messages[: len(flat)]
    assert not whole or flat == messages
    assert all(len(chunk) == 1 or sum(estimated_tokens(m.text) for m in chunk) <= tokens for chunk in made)
    assert whole or len(flat) <= max(len(messages) - lookback, 0)


# --- picked sentences ---------------------------------------------------------------------------------------


@given(TEXTS, st.integers(1, 300))
def test_a_picked_summary_has_only_sentences_that_were_said_with_their_speaker(
    texts: list[str], characters: int
) -> None:
    messages = said(*texts)

    extract = summarise(messages, characters)

    known = {
        f"{'Person' if each.is_person else 'Assistant'}: {sentence.strip()}"
        for each in messages
        for sentence in sentences.cut(each.text)
    }
    if extract.body is None:
        assert not any(each.text.strip() for each in messages if each.is_person)
    else:
        assert "\n".join(_lines(extract.body.text, known)) == extract.body.text
        assert set(extract.rests_on) <= {each.id for each in messages}


def _lines(text: str, known: set[str]) -> list[str]:
    """The known sentences that a text consists of; a sentence may have line breaks itself."""
    found, rest = [], text
    while rest:
        line = max((each for each in known if rest.startswith(each)), key=len)
        found.append(line)
        rest = rest[len(line) :].removeprefix("\n")
    return found


@given(st.lists(st.text(min_size=1, max_size=60), max_size=8), st.integers(1, 200))
def test_a_rolling_summary_keeps_lines_as_they_are_and_in_order(texts: list[str], characters: int) -> None:
    given_lines = [line for text in texts for line in text.split("\n") if line.strip()]

    kept = [line for line in roll(texts, characters).split("\n") if line]

    places = [given_lines.index(line) for line in kept]
    assert places == sorted(places)
    assert len("\n".join(kept)) <= max(characters, max(map(len, given_lines), default=0))


# --- what a model wrote -------------------------------------------------------------------------------------

TALK = said(
    "Hi, I'm Ann. I take 20mg of lisinopril since 5 May, twice a day.",
    "Do you also take ibuprofen? Dr Smith may know.",
    "No. My blood pressure was 140/90, and I weigh seventy kilos... no, 72.5 kg.",
)


@pytest.mark.parametrize(
    "sentence",
    [
        "Ann takes 20 mg of lisinopril.",
        "The person takes lisinopril (20 milligrams) 2 times a day.",
        "She started it on May 5.",
        "Blood pressure was 140/90.",
        "The person weighs 72.5 kg.",
        "The assistant asked about ibuprofen.",
        "The assistant named Dr Smith.",
        "The person feels fine.",
    ],
)
def test_a_sentence_whose_names_and_numbers_were_said_is_kept(sentence: str) -> None:
    assert SummaryCheck(TALK, TERMS).supports(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "Ann takes 40 mg of lisinopril.",
        "Ann takes 20 mcg of lisinopril.",
        "Ann takes lisinopril three times a day.",
        "Ann takes metformin.",
        "Metformin was mentioned.",
        "Bob takes lisinopril.",
        "She started it on 6 May.",
        "She started it on 20 May.",
        "Ann takes ibuprofen.",
        "Ann knows Dr Smith.",
        "The assistant asked about metformin.",
        "Blood pressure was 150/90.",
    ],
)
def test_a_sentence_with_something_that_nobody_said_is_dropped(sentence: str) -> None:
    checked = SummaryCheck(TALK, TERMS).check(f"The person feels fine. {sentence}")

    assert (checked.text, checked.dropped) == ("The person feels fine.", 1)


def test_what_the_person_deleted_supports_nothing() -> None:
    forgotten = [Said("m1", 1, "user", "I take 20 mg of lisinopril.", START, forgotten=True)]

    assert not SummaryCheck(forgotten, TERMS).supports("The person takes 20 mg.")


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_can_be_checked(text: str, summary: str) -> None:
    checked = SummaryCheck(said(text), TERMS).check(summary)

    if checked.dropped:
        assert len(checked.text) < len(summary)
    else:
        assert checked.text == summary
