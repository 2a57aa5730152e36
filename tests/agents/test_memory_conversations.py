"""Conversations of people who come back, compared with kept texts.

`make conversations` writes them again; read the diff as the person in the conversation would.
"""

import pytest

from tests.support.brains.kept_conversations import held_over, kept_over

TALKS = {path.stem: path for path in kept_over()}


@pytest.mark.parametrize("name", TALKS)
async def test_memory_goes_on_over_conversations_exactly_as_it_was_reviewed(name: str) -> None:
    text = TALKS[name].read_text(encoding="utf-8")

    assert await held_over(text) == text
