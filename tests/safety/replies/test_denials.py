"""Denials of danger, and denials that are taken back."""

import pytest

from agents.safety.conversation.denials import denies, retracted
from agents.safety.verdict import RETRACTED
from tests.support.brains.models import the_guard

DENIED = (("Are you thinking of harming yourself?", "no"),)
LIES = (
    "ok that wasn't true. I think about it every night",
    "I lied",
    "that was a lie, sorry",
    "what I said before was not true",
    "I wasn't being honest with you",
    "I haven't been honest",
)


@pytest.mark.parametrize("said", [*LIES, "I do think about it", "actually, yes", "well, to be honest I do"])
@pytest.mark.parametrize("before", [DENIED, (("", "I'm not thinking of killing myself"),)])
def test_a_denial_that_is_taken_back_counts_as_a_yes(said: str, before: tuple[tuple[str, str], ...]) -> None:
    verdict = retracted(the_guard(), said, before)

    assert (verdict.kind, verdict.certainty) == ("crisis", "certain")
    assert verdict.tier >= 2
    assert RETRACTED in verdict.rule_ids


def test_a_lie_is_remembered_longer_than_an_admission() -> None:
    since = (("How do you sleep?", "badly"), *DENIED)

    assert retracted(the_guard(), LIES[0], since).flagged
    assert not retracted(the_guard(), "I do think about it", since).flagged


@pytest.mark.parametrize(
    ("said", "before"),
    [
        (LIES[0], (("Do you smoke?", "no"),)),
        (LIES[0], (("Are you thinking of harming yourself?", "what do you mean"),)),
        ("I lied about my age", DENIED),
        ("what vitamins should I take", DENIED),
        ("I never think about it", DENIED),
    ],
)
def test_other_messages_take_back_no_denial(said: str, before: tuple[tuple[str, str], ...]) -> None:
    assert not retracted(the_guard(), said, before).flagged


@pytest.mark.parametrize(
    ("said", "is_denial"),
    [
        ("no, I'm not thinking of hurting myself", True),
        ("I don't have any chest pain", True),
        ("I don't have chest pain but my arm is numb", False),
        ("do I not have a stroke?", False),
        ("I feel low", False),
    ],
)
def test_a_message_that_only_denies_a_danger_is_recognised(said: str, is_denial: bool) -> None:
    assert denies(the_guard(), said) == is_denial
    if is_denial:
        assert not the_guard().check(said).flagged
