"""Which words retract danger, and which only seem to."""

import pytest

from tests.support.brains.models import the_guard


@pytest.mark.parametrize(
    "text",
    [
        "my chest pain hasn't gone away",
        "my chest pain has not gone away",
        "the chest pain never went away",
        "chest pain is not fine now",
        "chest pain went away and came back",
        "my chest pain went away yesterday but back now",
        "heavy bleeding from the wound after they discharged me this morning",
        "my chest hurts badly and goes down my arm, I was checked in A&E last week",
        "haven't had chest pain like this since my heart attack",
        "there's no way I don't have chest pain",
        "doctor didn't believe my chest pain",
        "I've never had a headache this bad in my life",
        "severe chest pain while recovering from covid",
        "crushing chest pain while watching the news",
        "should I worry about crushing chest pain",
        "is it bad that I took 50 paracetamol",
        "is it ok that I took 60 paracetamol",
        "is it normal that I can't breathe",
        "is it dangerous if my baby turned blue",
        "what should I do if my husband has collapsed",
        "he took the whole bottle, the leaflet says max 8",
    ],
)
def test_words_that_only_resemble_an_end_retract_nothing(text: str) -> None:
    assert the_guard().check(text).kind == "emergency"


@pytest.mark.parametrize(
    "text",
    [
        "my chest pain went away and hasn't come back",
        "the chest pain is gone now",
        "I had chest pain last week and was checked",
        "I had chest pain, the scan came back clear",
        "I don't have chest pain",
        "what should I do if my husband has a stroke",
        "severe chest pain is mentioned in the news",
        "the leaflet mentions an overdose",
    ],
)
def test_ended_or_hypothetical_danger_is_retracted(text: str) -> None:
    assert not the_guard().check(text).flagged


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("took 30 paracetamol by accident over the weekend for my toothache", "emergency"),
        ("I can't say I'm not thinking of killing myself", "crisis"),
        ("I can't say which vitamin is best", "none"),
        ("he can't say his name", "emergency"),
        ("I laughed so hard I couldn't breathe", "none"),
        ("I broke my wrist skiing last week", "none"),
        ("my husband broke my wrist", "crisis"),
        ("there's no future for me, I've made my mind up", "crisis"),
        ("cut my finger off with the table saw", "emergency"),
        ("acid splashed on my face", "emergency"),
    ],
)
def test_the_neighbouring_words_decide_the_meaning(text: str, kind: str) -> None:
    assert the_guard().check(text).kind == kind


@pytest.mark.parametrize(
    "text",
    [
        "years ago chest pain",
        "years ago I had chest pain",
        "in the film he wants to kill himself",
        "my essay on suicide",
        "while in the film chest pain",
    ],
)
def test_a_text_with_very_many_cues_in_one_sentence_is_judged_like_one_with_a_few(text: str) -> None:
    few, many = (" ".join([text] * times) for times in (6, 60))

    verdicts = [the_guard().check(said) for said in (few, many)]

    assert verdicts[0] == verdicts[1]
