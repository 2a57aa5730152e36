"""Facts about a relative belong to the relative, not to the person."""

import re
from pathlib import Path

import pytest

from agents.values import Exchange
from tests.agents.test_context_resolution import enricher
from tests.kept_conversations import kept, lines_of


def _exchanges(path: Path) -> list[Exchange]:
    said = list(lines_of(path.read_text(encoding="utf-8")))
    pairs = zip(said[::2], said[1::2], strict=True)
    return [Exchange(turn, ours, answer) for turn, ((_, ours), (_, answer)) in enumerate(pairs, start=1)]


@pytest.mark.parametrize("path", kept(), ids=lambda path: path.stem)
def test_no_kept_conversation_mentions_a_relative_of_a_relative(path: Path) -> None:
    exchanges = _exchanges(path)

    result = [
        enricher().enrich(each.message, tuple(exchanges[:at])).enriched_message
        for at, each in enumerate(exchanges)
    ]

    assert not [each for each in result if re.search(r"\b(\w+)(?:'s|s'|s's) \1\b|s's\b", each)]


@pytest.mark.parametrize("relative", ["brother", "little girl", "partner", "father-in-law", "8 year old"])
def test_a_no_about_a_relative_is_a_fact_about_the_relative(relative: str) -> None:
    history = (Exchange(1, f"My {relative} has a rash", f"Has your {relative} had this before?"),)

    found = enricher().enrich("no", history)

    assert found.enriched_message.startswith(f"User's {relative} has not had this before")


@pytest.mark.parametrize(
    ("said", "about"),
    [
        ("my nephews arm is swollen", "nephew"),
        ("my nephews have a fever", "nephews"),
        ("my dads got a cough", "dad"),
        ("my babys got a cough", "baby"),
        ("my kids have a cough", "kids"),
    ],
)
def test_a_missing_apostrophe_does_not_make_one_relative_two(said: str, about: str) -> None:
    assert enricher().enrich(said, ()).known["about_whom"] == about
