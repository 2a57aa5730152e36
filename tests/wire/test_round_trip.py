"""A decoded message equals the encoded one; any other bytes are decoded or refused."""

import json
import struct
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import AnamnesisError
from orchestrator.wire.codec import MAX_FRAME_BYTES, as_json, decode, encode
from orchestrator.wire.messages import BY_TYPE, MESSAGES, Body, ControlStop, Sender
from tests.wire.strategies import BODIES, envelopes, ids, patient, values

SENDERS: st.SearchStrategy[Sender] = st.sampled_from(["client", "server"])


def a_sender(kind: type[Body]) -> Sender:
    return "client" if "client" in kind.SENDERS else "server"


def test_there_is_a_strategy_for_every_message() -> None:
    assert BODIES.keys() == set(MESSAGES)


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
@patient
@given(data=st.data())
def test_an_encoded_message_is_decoded_unchanged(kind: type[Body], data: st.DataObject) -> None:
    envelope = data.draw(envelopes(kind))

    frame = encode(envelope)

    assert decode(frame, sender=a_sender(kind), max_bytes=MAX_FRAME_BYTES) == envelope
    longer = longest(msgpack.unpackb(frame))
    assert decode(longer, sender=a_sender(kind), max_bytes=MAX_FRAME_BYTES) == envelope
    assert json.loads(as_json(envelope))["name"] == kind.__name__


def longest(value: Any) -> bytes:
    """The same value as another library may encode it: in the longest forms, with every map reversed."""
    match value:
        case bool() | None:
            return bytes(msgpack.packb(value))
        case int():
            return b"\xcf" + struct.pack(">Q", value) if value >= 0 else b"\xd3" + struct.pack(">q", value)
        case float():
            return b"\xcb" + struct.pack(">d", value)
        case str():
            return b"\xdb" + struct.pack(">I", len(value.encode())) + value.encode()
        case bytes():
            return b"\xc6" + struct.pack(">I", len(value)) + value
        case list():
            return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(longest, value))
        case dict():
            pairs = [longest(key) + longest(item) for key, item in reversed(value.items())]
            return b"\xdf" + struct.pack(">I", len(pairs)) + b"".join(pairs)
    raise AssertionError(type(value))


def is_decoded_or_refused(frame: bytes, sender: Sender) -> bool:
    """Decode, or refuse with our error; any other exception is raised."""
    try:
        envelope = decode(frame, sender=sender, max_bytes=MAX_FRAME_BYTES)
    except AnamnesisError as error:
        return error.problem.number in {101, 102, 103, 104, 105, 203} and error.__context__ is None
    return decode(encode(envelope), sender=sender, max_bytes=MAX_FRAME_BYTES) == envelope


@patient
@given(frame=st.binary(max_size=300), sender=SENDERS)
def test_any_bytes_are_decoded_or_refused(frame: bytes, sender: Sender) -> None:
    assert is_decoded_or_refused(frame, sender)


@patient
@given(found=values | st.binary(max_size=20), sender=SENDERS)
def test_any_messagepack_value_is_decoded_or_refused(found: Any, sender: Sender) -> None:
    assert is_decoded_or_refused(msgpack.packb(found), sender)


WORDS = st.sampled_from(sorted({name for kind in MESSAGES for name in kind.WIRE_NAMES.values()}))
NUMBERS = st.sampled_from([*sorted(BY_TYPE), ControlStop.TYPE, 19])


@patient
@given(
    number=NUMBERS,
    body=st.dictionaries(WORDS, values | ids | st.binary(max_size=9), max_size=8),
    meta=values,
    sender=SENDERS,
)
def test_any_fields_under_the_names_of_the_protocol_are_decoded_or_refused(
    number: int, body: dict[str, Any], meta: Any, sender: Sender
) -> None:
    here = {"conversationId": "conv_1"}
    frame = {"stanzaId": 1, "type": number, "meta": meta, "body": here | body} | here

    assert is_decoded_or_refused(msgpack.packb(frame), sender)
