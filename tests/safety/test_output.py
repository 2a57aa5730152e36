"""What a brain may not say, and what it must be able to say, in sentences written before the rules."""

from functools import cache
from pathlib import Path

import pytest

from agents.errors import BadRules
from agents.safety import output
from agents.safety.output import OutputGuard
from tests.safety.phrases import RULES, read
from tools.toolchain import CHECKOUT

ANSWERS = read(Path(__file__).parent / "answers.toml")


@cache
def the_guard() -> OutputGuard:
    return output.load(RULES)


def test_there_is_enough_to_be_held_to() -> None:
    assert len(set(ANSWERS["refused"])) >= 60
    assert len(set(ANSWERS["allowed"])) >= 60


@pytest.mark.parametrize("sentence", ANSWERS["refused"])
def test_a_diagnosis_a_prescription_or_a_dose_is_refused(sentence: str) -> None:
    assert the_guard().refusals(sentence)


@pytest.mark.parametrize("sentence", ANSWERS["allowed"])
def test_what_is_none_of_these_may_be_said(sentence: str) -> None:
    assert the_guard().refusals(sentence) == ()


def test_our_own_conversations_can_be_said() -> None:
    spoken = [
        line.split(": ", 1)[1]
        for file in sorted((CHECKOUT / "tests" / "conversations").glob("*.txt"))
        for line in file.read_text(encoding="utf-8").splitlines()
        if ": " in line and line.split(": ", 1)[0].isupper()
    ]

    assert len(spoken) > 100
    assert [line for line in spoken if the_guard().refusals(line)] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [("spares = [", "spares = [["), ('id = "diagnosis"', 'id = "Diagnosis!"'), ("food = true", "fod = true")],
)
def test_rules_that_cannot_be_read_are_refused(tmp_path: Path, old: str, new: str) -> None:
    text = (RULES / "output.toml").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "output.toml").write_text(text.replace(old, new, 1), encoding="utf-8")

    with pytest.raises(BadRules):
        output.load(tmp_path)
