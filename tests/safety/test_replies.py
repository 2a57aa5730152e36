"""A short reply means what the questions before it make of it, however it is introduced or taken back."""

import pytest

from tests.safety.phrases import the_guard

OF_HARM = "Thank you for telling me. Any thoughts of harming yourself? Please be honest."
SAFE = "Do you feel safe at home?"


@pytest.mark.parametrize(
    "reply",
    [
        "yes",
        "y",
        "Honestly yes",
        "honestly? yes.",
        "um yeah",
        "Hmmm, yes",
        "ok fine yes",
        "to be honest I do",
        "more than once",
        "several times",
        "no\u2026 actually yes",
        "no, yes",
        "no not really... ok fine, yeah",
        "I don't know, yes",
    ],
)
def test_a_yes_is_heard_behind_what_says_nothing(reply: str) -> None:
    verdict = the_guard().check(reply, context=OF_HARM)

    assert (verdict.kind, verdict.tier, verdict.rule_ids) == ("crisis", 2, ("self_harm",))


@pytest.mark.parametrize(
    "reply",
    [
        "no",
        "honestly no",
        "no, I am fine",
        "No. I have no such thoughts",
        "I have never",
        "um",
        "no problem",
        "nah, ok",
    ],
)
def test_a_no_stays_one(reply: str) -> None:
    assert not the_guard().check(reply, context=OF_HARM).flagged


@pytest.mark.parametrize(
    ("asked", "reply", "rule_ids"),
    [
        ("Have you thought of suicide? How do you sleep? Tell me more.", "yes", ("suicide.thoughts",)),
        ("Do you smoke? Do you have chest pain? Since when?", "yeah", ("coronary.chest_pain",)),
        ("You told me of suicide. Do you smoke?", "yes", ()),
        (f"{SAFE} Any thoughts of suicide?", "no", ("abuse.violence",)),
        (f"{SAFE} Any thoughts of suicide?", "yes", ("suicide.thoughts",)),
        (SAFE, "yes... actually no", ("abuse.violence",)),
        (SAFE, "yes, no problems", ()),
        ("Tell me whether you think of suicide", "yes", ("suicide.thoughts",)),
    ],
)
def test_every_question_of_an_answer_counts(asked: str, reply: str, rule_ids: tuple[str, ...]) -> None:
    assert the_guard().check(reply, context=asked).rule_ids == rule_ids


def test_one_who_is_unsure_of_a_crisis_is_heard_softly() -> None:
    assert the_guard().check("hm, not sure", context=OF_HARM).tier == 1
    assert not the_guard().check("not sure", context="Do you have chest pain?").flagged
