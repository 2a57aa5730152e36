"""Encoding and decoding of a MemoryTrace, with validation, compared with bare msgpack on the same map.

All variants run in alternation, many times, so that other load on the machine affects them equally. The
median is shown.
"""

import gc
import importlib
import importlib.util
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Annotated, Any, Literal

import msgpack

from orchestrator.wire.codec import MAX_PACKET_BYTES, decode, encode
from orchestrator.wire.envelope import Envelope
from orchestrator.wire.ids import ID_PATTERN, ConversationId
from orchestrator.wire.messages import MemoryTrace

ROUNDS = 300
CALLS = 100
GOALS = {"encode": 0.3, "decode": 0.2}

HERE = ConversationId("conv_V1StGXR8_Z5jdHi6B-myT")
ASKED = "msg_cqQ4XeZyN9pTn3oIhN2fK"
FIELDS: dict[str, Any] = {
    "conversationId": HERE,
    "id": "trace_aW3bZtq7Hk0mVx_Rr5dLs",
    "previousId": ASKED,
    "memoryId": "mem_yK8vP2nJ-u6sQe1TfGw0B",
    "memoryType": "memory_block",
    "action": "updated",
    "content": "Turn 4: the person said that the headache began three days ago, behind the right eye.",
    "metadata": {
        "label": "conversation_history",
        "agent": "CONTEXT_EXTRACTOR",
        "revision": 12,
        "size": 8123,
        "limit": 32000,
        "utilization": 25.4,
        "level": "normal",
        "digest": "9f86d081884c7d659a2feaa0c55ad015",
        "changed": ["turns.4", "metadata.total_turns"],
        "background": False,
    },
    "messageId": ASKED,
}
ENVELOPE = {"stanzaId": -17, "conversationId": HERE, "type": 14, "body": FIELDS}
FRAME: bytes = msgpack.packb(ENVELOPE)
BY_KEYWORD: dict[str, Any] = {
    name: FIELDS[sent] for name, sent in MemoryTrace.WIRE_NAMES.items() if sent in FIELDS
}


def from_the_map() -> bytes:
    """Validate and encode the map that bare msgpack gets."""
    body = MemoryTrace.model_validate(FIELDS, by_alias=True, by_name=False)
    return encode(Envelope(-17, HERE, body))


def by_keyword() -> bytes:
    """Create a message from keywords, as the server does, and encode it."""
    return encode(Envelope(-17, HERE, MemoryTrace(**BY_KEYWORD)))


def decoded() -> Envelope[Any]:
    """Decode a frame as the server does, with limits and validation."""
    return decode(FRAME, sender="server", max_bytes=MAX_PACKET_BYTES)


def with_msgspec() -> dict[str, Callable[[], Any]]:
    """The same with msgspec, if it is installed. It has no limits and does not notice duplicate keys."""
    if importlib.util.find_spec("msgspec") is None:
        return {}
    msgspec: Any = importlib.import_module("msgspec")
    named = Annotated[str, msgspec.Meta(pattern=ID_PATTERN)]
    types = dict.fromkeys(FIELDS, named) | {
        "memoryType": str,
        "action": Literal["retrieved", "stored", "updated"],
        "content": str,
        "metadata": dict[str, Any],
    }
    trace = msgspec.defstruct("Trace", list(types.items()))
    whole = msgspec.defstruct(
        "Whole", [("stanzaId", int), ("conversationId", named), ("type", int), ("body", trace)]
    )
    decoder, encoder = msgspec.msgpack.Decoder(whole), msgspec.msgpack.Encoder()
    return {
        "encode, msgspec": lambda: encoder.encode(msgspec.convert(ENVELOPE, whole)),
        "decode, msgspec": lambda: decoder.decode(FRAME),
    }


def main() -> None:
    """Print microseconds per message and the share of bare msgpack's throughput."""
    assert from_the_map() == by_keyword() == FRAME
    variants: dict[str, Callable[[], Any]] = {
        "encode, bare": lambda: msgpack.packb(ENVELOPE),
        "encode, validated": from_the_map,
        "encode, made by keyword": by_keyword,
        "decode, bare": lambda: msgpack.unpackb(FRAME),
        "decode, validated": decoded,
        **with_msgspec(),
    }
    took = measure(variants)
    print(f"{len(FRAME)} bytes, median of {ROUNDS} rounds")
    for name, microseconds in sorted(took.items()):
        what, how = name.split(", ")
        share = took[f"{what}, bare"] / microseconds
        goal = f"  goal {GOALS[what]}" if how == "validated" else ""
        print(f"  {name:24} {microseconds:6.2f} µs  {share:5.2f} of bare{goal}")


def measure(variants: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Microseconds per call of each variant."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    gc.disable()
    for _ in range(ROUNDS):
        for name, variant in variants.items():
            started = perf_counter()
            for _ in range(CALLS):
                variant()
            times[name].append((perf_counter() - started) / CALLS * 1e6)
    gc.enable()
    return {name: median(found) for name, found in times.items()}


if __name__ == "__main__":
    main()
