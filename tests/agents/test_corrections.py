"""Corrections: which known facts a message retracts, and which stay."""

import pytest

from agents.values import Exchange
from tests.agents.test_context_resolution import enricher


@pytest.mark.parametrize("reply", ["sorry, 2 tablets", "actually 2 pills", "wait, 2"])
def test_correcting_the_number_of_tablets_does_not_remove_the_medicine(reply: str) -> None:
    history = (Exchange(1, "I take bisoprolol 2.5 mg", "How many times a day do you take it?"),)

    found = enricher().enrich(reply, history)

    assert "bisoprolol 2.5 mg" in found.known["medications"]
    assert found.known["dose"] == "2.5 mg"


@pytest.mark.parametrize(
    "message",
    [
        "no actually the codeine is my sister",
        "sorry, i'm not allergic to codeine, that's my sister",
        "forget the codeine, that's my sister's",
        "it's my sister who is allergic to codeine, not me",
    ],
)
def test_a_relatives_allergy_is_neither_dropped_nor_taken_for_a_medicine(message: str) -> None:
    history = (Exchange(1, "I'm allergic to codeine and I have a cough", "Do you take anything for it?"),)

    found = enricher().enrich(message, history)

    assert found.known["allergies"] == "codeine"
    assert found.known["unsettled"] == "allergies"
    assert found.known["family_history"] == "sister: allergic to codeine"
    assert not {"medications", "about_whom"} & found.known.keys()
    assert found.corrected


def test_an_allergy_that_is_denied_a_second_time_is_removed() -> None:
    history = (
        Exchange(1, "I'm allergic to codeine and I have a cough", "Do you take anything for it?"),
        Exchange(2, "sorry, the codeine is my sister", "Do you still have that allergy?"),
    )

    found = enricher().enrich("no", history)

    assert "codeine" not in found.known["allergies"]
    assert "unsettled" not in found.known
