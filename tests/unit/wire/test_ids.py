"""New ids are long, random and safe in a URL."""

import re
from collections import Counter

import pytest

from memory_blocks.ports import Ids
from orchestrator.wire.ids import (
    AUDIO,
    CONVERSATION,
    ERROR,
    ID_PATTERN,
    MEMORY,
    MESSAGE,
    NOTE,
    SENTENCE,
    TOOL_USE,
    TRACE,
    RandomIds,
)

PREFIXES = [CONVERSATION, MESSAGE, SENTENCE, MEMORY, TRACE, TOOL_USE, NOTE, ERROR, AUDIO]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_an_id_is_21_url_safe_characters_behind_its_prefix(prefix: str) -> None:
    ids: Ids = RandomIds()

    made = ids.new(prefix)

    assert re.fullmatch(prefix + r"[A-Za-z0-9_-]{21}", made)
    assert re.fullmatch(ID_PATTERN, made)


@pytest.mark.requirement("000-005")
def test_no_two_ids_are_the_same() -> None:
    ids = RandomIds()

    assert len({ids.new(TRACE) for _ in range(10_000)}) == 10_000


def test_all_characters_are_equally_likely() -> None:
    ids = RandomIds()

    seen = Counter("".join(ids.new("") for _ in range(10_000)))

    expected = 21 * 10_000 / 64
    assert len(seen) == 64
    assert all(0.85 * expected < count < 1.15 * expected for count in seen.values())
