"""A message in another language is noticed, and one in English is left alone, however short or odd."""

import json
from functools import cache
from pathlib import Path

import pytest

from agents.safety import wording
from agents.safety.language import Languages, load
from tests.safety.phrases import HELD_OUT, KNOWN, RULES, phrases, read, the_guard
from tools.toolchain import CHECKOUT

SAID = read(Path(__file__).parent / "languages.toml")
FOREIGN: dict[str, list[str]] = SAID["foreign"]
ENGLISH: list[str] = SAID["english"]["texts"]


@cache
def languages() -> Languages:
    return load(RULES, the_guard().vocabulary)


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in FOREIGN.items() for text in texts]
)
def test_another_language_is_noticed(name: str, text: str) -> None:
    assert languages().foreign(text) == name


@pytest.mark.parametrize("text", ENGLISH)
def test_english_is_not_taken_for_another_language(text: str) -> None:
    assert languages().foreign(text) is None


def test_hardly_any_phrase_or_case_of_ours_is_taken_for_another_language() -> None:
    said = [
        phrase.text
        for folder in (KNOWN, HELD_OUT)
        for name in ("emergencies", "crises", "calm", "ordinary")
        for phrase in phrases(folder, name)
    ]
    for path in (CHECKOUT / "config" / "evals").glob("*.jsonl"):
        cases = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        said += [case.get("text") or case["message"] for case in cases]

    assert len(said) > 2_000
    assert [text for text in said if languages().foreign(text)] == []


@pytest.mark.parametrize("name", [*FOREIGN, "xx"])
def test_whoever_is_not_understood_is_told_whom_to_call_in_english_too(name: str) -> None:
    said = wording.load(RULES, "GB").foreign(name)

    assert "I understand English only" in said
    assert "999" in said
