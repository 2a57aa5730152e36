"""The models equal the table in docs/protocol.md: numbers, names, directions and fields."""

import re
from pathlib import Path

import pytest

from orchestrator.wire.messages import (
    BOTH,
    CLIENT,
    MESSAGES,
    SERVER,
    AudioChunk,
    Body,
    ControlStop,
    MemoryTrace,
    kind_of,
    name_of,
)

PROTOCOL = Path(__file__).parents[2] / "docs" / "protocol.md"
DIRECTIONS = {"both": BOTH, "C→S": CLIENT, "S→C": SERVER}
ROW = re.compile(r"^\| (\d[\d /]*) \| ([A-Z]\w+(?: / \w+)*) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def the_table() -> dict[str, tuple[int, str, str]]:
    """The number, the direction and the body of each message in the table."""
    return {
        name: (int(number), direction, fields)
        for numbers, names, directions, cells in ROW.findall(PROTOCOL.read_text())
        for number, name, direction, fields in zip(
            *(cell.split(" / ") for cell in (numbers, names, directions, cells)), strict=True
        )
    }


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def test_the_table_has_every_message_and_no_other() -> None:
    assert the_table().keys() == {kind.__name__ for kind in MESSAGES}


@pytest.mark.requirement("000-001", "000-002")
@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_a_message_has_the_number_and_the_direction_of_the_table(kind: type[Body]) -> None:
    number, direction, _ = the_table()[kind.__name__]

    assert number == kind.TYPE
    assert DIRECTIONS[direction] == kind.SENDERS


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_a_message_has_the_fields_of_the_table(kind: type[Body]) -> None:
    _, _, fields = the_table()[kind.__name__]
    result = words(PROTOCOL.read_text() if kind is MemoryTrace else fields)

    assert set(kind.WIRE_NAMES.values()) - {"conversationId"} <= result


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_a_message_may_lack_its_optional_fields(kind: type[Body]) -> None:
    _, _, fields = the_table()[kind.__name__]
    optional = set(re.findall(r"(\w+)(?:\[\])?\?", fields))

    for name, field in kind.model_fields.items():
        if kind.WIRE_NAMES[name] in optional:
            assert not field.is_required(), name


def test_a_number_has_a_name() -> None:
    for kind in MESSAGES:
        assert kind is ControlStop or name_of(kind.TYPE) == kind.__name__


@pytest.mark.parametrize("number", [4, 10])
@pytest.mark.parametrize("field", ["trackSid", "format", "duration", "durationMs", "data", "sentenceId"])
def test_a_body_with_an_audio_field_is_an_audio_chunk(number: int, field: str) -> None:
    assert kind_of(number, {"conversationId": "conv_1", field: 1}, "client") is AudioChunk


def test_a_body_without_audio_fields_is_a_stop_when_a_client_sends_it() -> None:
    body = {"conversationId": "conv_1", "reason": "enough"}

    assert kind_of(10, body, "client") is ControlStop
    assert kind_of(4, body, "client") is AudioChunk
    assert kind_of(10, body, "server") is AudioChunk
