"""Which messages need no model to be read."""

import pytest

from agents.models.gate import is_sure_without_model

SCALE = "I'm sorry to hear that. How severe is it on a scale of 1 to 10?"


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ("8", SCALE),
        ("8.", SCALE),
        (" 10 ", SCALE),
        ("0", "How bad is the pain, from 0 to 10?"),
        ("4", "Sorry to hear that. How bad is it from 0 to 10?"),
        ("yes", "Do you have a fever?"),
        ("No.", "Is your knee swollen?"),
        ("yep", "Have you had this before?"),
    ],
)
def test_a_plain_reply_to_a_plain_question_needs_no_model(message: str, answer: str) -> None:
    assert is_sure_without_model(message, answer)


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ("8", ""),
        ("8", "I see."),
        ("8", "How many hours do you sleep?"),
        ("34", SCALE),
        ("0", SCALE),
        ("8 or 9", SCALE),
        ("8 now", SCALE),
        ("about 8", SCALE),
        ("8, it was 6 yesterday", SCALE),
        ("39", "What is your temperature?"),
        ("8", "How severe is it on a scale of 1 to 10, and since when?"),
        ("8", "How old are you? How severe is it on a scale of 1 to 10?"),
        ("yes", "Do you have a fever or a cough?"),
        ("yes", "Do you have a fever and chills?"),
        ("no", "You don't have a fever?"),
        ("no", "Isn't it swollen?"),
        ("yes", "Do you take anything for it?"),
        ("yes", "Is there anything else?"),
        ("yes", "Do you have a fever? Does it hurt?"),
        ("yes", "How severe is it on a scale of 1 to 10?"),
        ("yes, since Tuesday", "Do you have a fever?"),
        ("my husband does, 39", "Do you have a fever?"),
        ("not really", "Do you have a fever?"),
        ("half of that", "Do you still take 1000 mg?"),
        ("", "Do you have a fever?"),
    ],
)
def test_everything_else_is_read_by_the_model(message: str, answer: str) -> None:
    assert not is_sure_without_model(message, answer)
