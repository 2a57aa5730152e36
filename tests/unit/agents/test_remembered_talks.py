"""The local brain caches what it understood of a conversation, for many conversations at once."""

import pytest

from agents.local.enriching import Enricher
from agents.local.lexicon import load
from agents.local.understanding import Understanding
from agents.values import Exchange
from orchestrator.settings import shipped_config


def test_each_turn_of_two_hundred_conversations_is_understood_once(monkeypatch: pytest.MonkeyPatch) -> None:
    enricher, understood = Enricher(load(shipped_config() / "lexicon.toml")), 0
    understand = Understanding.understand

    def counted(self: Understanding, *given: object) -> object:
        nonlocal understood
        understood += 1
        return understand(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Understanding, "understand", counted)
    talks: list[tuple[Exchange, ...]] = [()] * 200
    for turn in range(1, 5):
        for number, before in enumerate(talks):
            message = f"my knee has hurt for {number + 2} days" if turn == 1 else f"{turn} or so"
            enricher.enrich(message, before)
            talks[number] = (*before, Exchange(turn, message, "How severe is it on a scale of 1 to 10?"))

    assert understood == 200 * 4
