"""Corrections: what a message takes back of what is known, and what it leaves as it was."""

import pytest

from agents.known import Exchange
from tests.agents.test_context_resolution import enricher


@pytest.mark.parametrize("reply", ["sorry, 2 tablets", "actually 2 pills", "wait, 2"])
def test_how_many_are_taken_does_not_take_back_what_is_taken(reply: str) -> None:
    history = (Exchange(1, "I take bisoprolol 2.5 mg", "How many times a day do you take it?"),)

    found = enricher().enrich(reply, history)

    assert "bisoprolol 2.5 mg" in found.known["medications"]
    assert found.known["dose"] == "2.5 mg"
