"""The bytes of messages equal the snapshots, and any decoder can read them."""

import json
from typing import Any

import msgpack
import pytest

from orchestrator.wire.codec import MAX_PACKET_BYTES, as_json, decode, encode
from orchestrator.wire.messages import MESSAGES, Body, Sender, name_of
from tests.wire.samples import ASKED, BODIES, ENVELOPES, HERE
from tests.wire.snapshots import kept

EXAMPLE = "the example of the first document"
SEED_EXAMPLE = {
    "id": "mem_001",
    "conversationId": "conv_7H93k",
    "previousId": "msg_u1A2B",
    "memoryId": "user_location_pref",
    "memoryType": "profile",
    "action": "retrieved",
    "content": "User is located in New York and prefers local restaurant recommendations",
    "confidence": 0.92,
    "metadata": {"tags": ["location", "user_profile"], "source": "user_profile"},
}


def a_sender(body: Body) -> Sender:
    return "client" if "client" in body.SENDERS else "server"


def test_every_message_type_has_a_sample() -> None:
    assert {type(envelope.body) for envelope in ENVELOPES.values()} == set(MESSAGES)


def test_every_sample_has_a_snapshot_and_no_snapshot_is_left_over() -> None:
    assert list(kept()) == list(ENVELOPES)


@pytest.mark.parametrize("name", ENVELOPES)
def test_a_message_has_the_bytes_of_its_snapshot(name: str) -> None:
    assert encode(ENVELOPES[name]) == kept()[name]


@pytest.mark.parametrize("name", ENVELOPES)
def test_the_bytes_of_a_message_give_the_message(name: str) -> None:
    envelope = ENVELOPES[name]

    assert decode(kept()[name], sender=a_sender(envelope.body), max_bytes=MAX_PACKET_BYTES) == envelope


@pytest.mark.requirement("000-004")
@pytest.mark.parametrize("name", ENVELOPES)
def test_any_decoder_finds_one_map_with_names_in_camel_case(name: str) -> None:
    envelope = ENVELOPES[name]

    found = msgpack.unpackb(kept()[name])

    assert found["stanzaId"] == envelope.stanza_id
    assert found["conversationId"] == envelope.conversation_id
    assert found["type"] == envelope.body.TYPE
    assert found.get("meta") == envelope.meta
    assert found["body"].keys() <= {*envelope.body.WIRE_NAMES.values(), *envelope.body.OTHER_NAMES}
    assert None not in found["body"].values()


@pytest.mark.requirement("000-001")
def test_a_memory_trace_is_written_as_type_14() -> None:
    found = msgpack.unpackb(encode(ENVELOPES["MemoryTrace of a block"]))

    assert (found["type"], name_of(14)) == (14, "MemoryTrace")


@pytest.mark.requirement("000-007")
def test_a_memory_trace_repeats_the_envelopes_conversation() -> None:
    found = msgpack.unpackb(encode(ENVELOPES["MemoryTrace of a block"]))

    assert found["body"]["conversationId"] == found["conversationId"] == HERE


def test_a_memory_trace_carries_both_of_its_name_pairs_with_equal_values() -> None:
    body = msgpack.unpackb(encode(ENVELOPES["MemoryTrace of a long-term memory"]))["body"]

    assert body["previousId"] == body["messageId"] == ASKED
    assert body["confidence"] == body["relevance"] == 0.92


@pytest.mark.requirement("000-025")
def test_the_example_of_the_first_document_comes_back_as_it_was() -> None:
    frame = encode(ENVELOPES[EXAMPLE])

    body: dict[str, Any] = msgpack.unpackb(frame)["body"]

    assert {name: body[name] for name in SEED_EXAMPLE} == SEED_EXAMPLE
    assert body.keys() - SEED_EXAMPLE.keys() == {"messageId", "relevance"}
    assert frame == kept()[EXAMPLE]


@pytest.mark.requirement("000-025")
def test_the_example_of_the_first_document_is_understood_as_it_is_written_there() -> None:
    frame = msgpack.packb({"stanzaId": -1, "conversationId": HERE, "type": 14, "body": SEED_EXAMPLE})

    assert decode(frame, sender="server", max_bytes=MAX_PACKET_BYTES) == ENVELOPES[EXAMPLE]


def test_an_envelope_as_json_is_one_line_with_the_names_of_the_wire() -> None:
    line = as_json(ENVELOPES["StartAnswer"])

    assert "\n" not in line
    assert json.loads(line) == {
        "stanzaId": -18,
        "type": 13,
        "name": "StartAnswer",
        "conversationId": "conv_7H93k",
        "body": {
            "id": "msg_a3C4D",
            "conversationId": "conv_7H93k",
            "previousId": "msg_u1A2B",
            "answerType": "text+voice",
            "plannedSentenceCount": 2,
            "safety": {"kind": "emergency", "tier": 1, "certainty": "possible"},
        },
    }


def test_binary_data_as_json_is_base64_and_a_time_is_text() -> None:
    sound = json.loads(as_json(ENVELOPES["AudioChunk"]))
    said = json.loads(as_json(ENVELOPES["UserMessage"]))

    assert sound["body"]["data"] == "AAH+/w=="
    assert said["body"]["timestamp"] == "2026-01-15T12:00:00.250Z"


def test_a_message_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        BODIES["UserMessage"].conversation_id = HERE  # type: ignore[misc]
