"""A message in another language is recognised; English messages are not, however short or odd."""

import json
from functools import cache
from pathlib import Path

from agents.safety.language import Languages, load
from agents.safety.replies import wording
from tests.safety.phrases import HELD_OUT, KNOWN, RULES, phrases, read
from tests.support.brains.models import the_guard
from tools.setup.toolchain import CHECKOUT

SAID = read(Path(__file__).parents[1] / "languages.toml")
FOREIGN: dict[str, list[str]] = SAID["foreign"]
ENGLISH: list[str] = SAID["english"]["texts"]


@cache
def languages() -> Languages:
    return load(RULES, the_guard().vocabulary)


def test_another_language_is_detected() -> None:
    found = [(text, name, languages().foreign(text)) for name, texts in FOREIGN.items() for text in texts]

    assert [each for each in found if each[1] != each[2]] == []


def test_english_is_not_taken_for_another_language() -> None:
    assert [text for text in ENGLISH if languages().foreign(text) is not None] == []


def test_our_phrases_and_cases_are_rarely_taken_for_another_language() -> None:
    said = [
        phrase.text
        for folder in (KNOWN, HELD_OUT)
        for name in ("emergencies", "crises", "calm", "ordinary")
        for phrase in phrases(folder, name)
    ]
    for path in (CHECKOUT / "config" / "evals").glob("*.jsonl"):
        cases = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for case in cases:
            said += case["messages"] if "messages" in case else [case.get("text") or case["message"]]

    assert len(said) > 2_000
    assert [text for text in said if languages().foreign(text)] == ["merci :)"]


def test_the_notice_about_a_language_says_whom_to_call_in_english_too() -> None:
    wordings = wording.load(RULES, "GB")
    said = {name: wordings.foreign(name) for name in (*FOREIGN, "xx")}

    assert [name for name, text in said.items() if "I understand English only" not in text] == []
    assert [name for name, text in said.items() if "999" not in text] == []
