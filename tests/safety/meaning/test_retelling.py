"""Danger in an enriched message: only what this message brings, not what was known before."""

from pathlib import Path

import pytest

from agents.safety.conversation.retelling import Before, added
from agents.safety.verdict import Verdict
from agents.values import Exchange
from tests.safety.phrases import HELD_OUT, KNOWN, phrases
from tests.support.brains.listeners import the_listener
from tests.support.brains.models import the_guard

ASKED_ON = "I am still here: has somebody called, and what has changed since you wrote?"


def brings(said: str, first: str = "", answer: str = "") -> Verdict:
    """The danger that `said` adds after a first message and its answer."""
    history = (Exchange(1, first, answer),) if first else ()
    retold = (the_listener().enrich(first, ()).enriched_message,) if first else ()
    enrichment = the_listener().enrich(said, history)
    return added(the_guard(), said, enrichment, Before((first,) if first else (), retold, answer))


@pytest.mark.parametrize(
    "said", ["thanks", "ok", "What vitamins are good in winter?", "what is the weather like", "I have a cold"]
)
def test_an_answered_emergency_is_not_found_again_in_later_messages(said: str) -> None:
    assert brings(said, "I have crushing chest pain", ASKED_ON) == Verdict()


@pytest.mark.parametrize(
    ("first", "answer", "said"),
    [
        ("I have chest pain", "How bad is the chest pain?", "8"),
        ("I have chest pain", "How severe is it on a scale of 1 to 10?", "9"),
        ("I have chest pain", "How bad is the chest pain?", "it goes into my left arm"),
        ("I need some advice", "How bad is the chest pain?", "8"),
        ("I have a headache", "Is there anything else?", "and my neck is stiff"),
        ("I have crushing chest pain", ASKED_ON, "it is getting worse and worse"),
    ],
)
def test_an_answer_is_judged_with_its_topic(first: str, answer: str, said: str) -> None:
    assert not the_guard().check(said, answer).flagged
    assert brings(said, first, answer).flagged


@pytest.mark.parametrize("said", ["none", "0", "no", "not at all"])
def test_danger_that_was_asked_about_and_denied_is_not_found(said: str) -> None:
    assert brings(said, "I need some advice", "How bad is the chest pain?") == Verdict()


def test_danger_retracted_in_an_earlier_message_stays_retracted() -> None:
    assert brings("what should I eat?", "I had a stroke in 2010", "How can I help?") == Verdict()
    assert brings("bad", "I had a stroke in 2010", "How severe is it?") == Verdict()


@pytest.mark.parametrize("folder", [KNOWN, HELD_OUT], ids=["known", "set aside"])
@pytest.mark.parametrize(("name", "most"), [("calm", 0.02), ("ordinary", 0.02)])
def test_enriching_a_first_message_rarely_adds_an_alarm(folder: Path, name: str, most: float) -> None:
    texts = [phrase.text for phrase in phrases(folder, name)]

    alarms = [text for text in texts if not the_guard().check(text).flagged and brings(text).flagged]

    assert len(alarms) <= most * len(texts)
