"""The tool that switches parts of the brain without a model off."""

import json
from pathlib import Path

import pytest

from agents.local.understanding import Listener
from orchestrator.settings import shipped_config
from tools.ablation import PARTS, calibration_error, lower_end, score, without

LISTENER = Listener(shipped_config() / "local")


@pytest.mark.parametrize("part", PARTS)
def test_each_part_can_be_switched_off_and_is_back_afterwards(part: str) -> None:
    owner, attribute, nothing = PARTS[part]
    was = getattr(owner, attribute)

    with without(part):
        assert getattr(owner, attribute) is nothing

    assert getattr(owner, attribute) is was


def test_a_talk_counts_each_question_about_memory(tmp_path: Path) -> None:
    messages = ["I take metformin", "what do I take?", "what is my blood group?"]
    talk = {"messages": messages, "memory_key": {"2": "metformin", "3": "not told"}}
    (tmp_path / "talks.jsonl").write_text(json.dumps(talk))

    assert score(LISTENER, tmp_path / "talks.jsonl") == (2, 2)
    with without("questions for what was told"), without("forms"):
        assert score(LISTENER, tmp_path / "talks.jsonl") == (0, 2)


def test_a_follow_up_may_have_fields_of_its_own(tmp_path: Path) -> None:
    history = [{"role": "user", "text": "I have a headache"}, {"role": "assistant", "text": "How bad is it?"}]
    case = {"id": "a", "history": history, "message": "8 out of 10", "has": ["headache"], "kind": "answer"}
    (tmp_path / "cases.jsonl").write_text(json.dumps(case))

    assert score(LISTENER, tmp_path / "cases.jsonl") == (1, 1)


def test_the_calibration_error_is_the_gap_between_two_counts() -> None:
    learned, seen = {"span": (8, 10), "place": (1, 2)}, {"span": (5, 10), "yes or no": (1, 1)}

    assert calibration_error(learned, seen) == pytest.approx(0.3)


def test_few_cases_have_a_low_lower_end() -> None:
    assert lower_end(5, 5) < 0.6 < lower_end(100, 100)
