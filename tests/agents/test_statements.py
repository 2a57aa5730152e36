"""What a message states by itself: what is taken and what only spoken of."""

from functools import cache
from pathlib import Path

import pytest

from agents import lexicon
from agents.enriching import Enricher
from tests.talks import Talk

CONFIG = Path(__file__).parents[2] / "config"


@cache
def enricher() -> Enricher:
    return Enricher(lexicon.load(CONFIG / "lexicon.toml"))


def stated(message: str) -> dict[str, str]:
    """What is known after a message that nothing came before."""
    return enricher().enrich(message, ()).known


# --- what is taken, and what only spoken of -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("how many paracetamol can i take in a day", "paracetamol"),
        ("how much melatonin is safe for a beginner", "melatonin"),
        ("would omeprazole help against my reflux", "omeprazole"),
        ("they want to put me on metformin and I'm not keen", "metformin"),
        ("my consultant is pushing me to start methotrexate", "methotrexate"),
        ("the GP prescribed amitriptyline but I haven't dared to take it", "amitriptyline"),
        ("I was given naproxen at the hospital and never took it", "naproxen"),
        ("I refused the antibiotics they had for me", "antibiotics"),
        ("I'm scared of taking sertraline", "sertraline"),
        ("I'm about to start methotrexate on Monday", "methotrexate"),
        ("starting metformin tomorrow, a bit nervous", "metformin"),
        ("my neighbour says melatonin works wonders", "melatonin"),
        ("if I take ibuprofen will it upset my stomach", "ibuprofen"),
    ],
)
def test_a_medicine_that_is_asked_about_proposed_or_refused_is_not_taken(message: str, name: str) -> None:
    known = stated(message)

    assert known["asked_about"] == name
    assert not {"medications", "onset"} & known.keys()


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("my GP suggested ibuprofen and now I take it twice a day", "ibuprofen"),
        ("I take ibuprofen but haven't taken any today", "ibuprofen"),
        ("my doctor put me on ramipril", "ramipril"),
        ("I want to stop taking sertraline", "sertraline"),
        ("I want to come off my antidepressants", "antidepressants"),
        ("I have to take warfarin", "warfarin"),
        ("should I stop my sertraline?", "sertraline"),
        ("can I have a beer while on metronidazole?", "metronidazole"),
        ("how often do I need blood tests with my lithium", "lithium"),
        ("I've been off citalopram for a month", "stopped citalopram"),
    ],
)
def test_a_medicine_that_is_taken_is_known_however_one_speaks_of_it(message: str, name: str) -> None:
    assert stated(message)["medications"] == name


def test_a_question_tells_the_medicine_it_is_about_from_the_one_that_is_taken() -> None:
    known = stated("can I take naproxen with my warfarin?")

    assert (known["asked_about"], known["medications"]) == ("naproxen", "warfarin")


@pytest.mark.parametrize(
    "message", ["my doctor gave me statins but I never touched them", "tell me about statins"]
)
async def test_who_takes_nothing_is_not_asked_for_its_dose(message: str) -> None:
    talk = Talk()

    answers = [(await talk.say(each)).answer for each in (message, "no", "no", "no", "no")]

    assert not any(" dose " in each or "taking it" in each or "you take it" in each for each in answers)
