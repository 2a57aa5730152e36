"""Every way in which a frame can be wrong has its own answer, and none of them quotes the frame."""

import struct
from collections.abc import Callable
from typing import Any

import msgpack
import pytest

from orchestrator import errors
from orchestrator.errors import AnamnesisError, Problem
from orchestrator.wire import codec, rules
from orchestrator.wire.codec import MAX_FRAME_BYTES, MAX_PACKET_BYTES, decode, open_frame, read
from orchestrator.wire.messages import BY_TYPE, CLIENT, SERVER, Body, MemoryTrace, Sender, UserMessage
from tests.wire.samples import ENVELOPES, HERE
from tests.wire.snapshots import kept

SECRET = "CANARY-I-am-having-a-headache"


def a_body(**changes: Any) -> dict[str, Any]:
    body = {"id": "msg_1", "conversationId": HERE, "content": SECRET} | changes
    return {name: value for name, value in body.items() if value is not ...}


def a_frame(body: Any = None, **changes: Any) -> bytes:
    """The frame of a UserMessage; `...` removes a field."""
    fields = {"stanzaId": 1, "conversationId": HERE, "type": 2, "body": body or a_body()} | changes
    return packed({name: value for name, value in fields.items() if value is not ...})


def packed(value: Any) -> bytes:
    return bytes(msgpack.packb(value))


def raw(value: bytes) -> bytes:
    """A frame whose body contains the raw bytes `value` under an unknown name."""
    whole = a_frame(a_body(extra="HERE"))
    return whole.replace(packed("HERE"), value)


def refusal(frame: bytes, *, sender: Sender = "client", max_bytes: int = MAX_FRAME_BYTES) -> AnamnesisError:
    with pytest.raises(AnamnesisError) as caught:
        decode(frame, sender=sender, max_bytes=max_bytes)
    return caught.value


def nested(depth: int, around: Callable[[bytes], bytes] = lambda inner: b"\x91" + inner) -> bytes:
    value = b"\xc0"
    for _ in range(depth):
        value = around(value)
    return value


def in_a_map(inner: bytes) -> bytes:
    return b"\x81\xa1k" + inner


FORMAT: dict[str, tuple[bytes, Problem]] = {
    "nothing": (b"", errors.MALFORMED_FRAME),
    "no map": (packed([1, 2]), errors.MALFORMED_FRAME),
    "null": (b"\xc0", errors.MALFORMED_FRAME),
    "a map cut short": (a_frame()[:-1], errors.MALFORMED_FRAME),
    "a map that promises more": (b"\x85" + a_frame()[1:], errors.MALFORMED_FRAME),
    "the one byte that means nothing": (raw(b"\xc1"), errors.MALFORMED_FRAME),
    "a text that claims four gigabytes": (raw(b"\xdb\xff\xff\xff\xff"), errors.MALFORMED_FRAME),
    "bytes after the map": (a_frame() + b"\xc0", errors.TRAILING_BYTES),
    "two maps": (a_frame() * 2, errors.TRAILING_BYTES),
    "a key twice": (b"\x85" + a_frame()[1:] + packed("type") + b"\x02", errors.DUPLICATE_KEY),
    "a key twice, deep inside": (raw(b"\x91\x82\xa1a\x01\xa1a\x01"), errors.DUPLICATE_KEY),
    "a number as a key": (raw(b"\x81\x01\x01"), errors.BAD_KEY),
    "binary data as a key": (raw(b"\x81\xc4\x01a\x01"), errors.BAD_KEY),
    "empty binary data as a key": (raw(b"\x81\xc4\x00\x01"), errors.BAD_KEY),
    "an array as a key": (raw(b"\x81\x90\x01"), errors.BAD_KEY),
    "null as a key": (raw(b"\x81\xc0\x01"), errors.BAD_KEY),
    "an extension": (raw(b"\xc7\x02\x05ab"), errors.EXT_NOT_ALLOWED),
    "an extension of fixed size": (raw(b"\xd4\x05a"), errors.EXT_NOT_ALLOWED),
    "an empty extension": (raw(b"\xc7\x00\x05"), errors.EXT_NOT_ALLOWED),
    "an extension that claims four gigabytes": (raw(b"\xc9\xff\xff\xff\xff\x05"), errors.EXT_NOT_ALLOWED),
    "a timestamp": (raw(b"\xd6\xff\x00\x00\x00\x00"), errors.EXT_NOT_ALLOWED),
    "a timestamp of another size": (raw(b"\xc7\x00\xff"), errors.EXT_NOT_ALLOWED),
    "not a number": (raw(b"\xcb" + struct.pack(">d", float("nan"))), errors.BAD_NUMBER),
    "infinity": (raw(b"\xcb" + struct.pack(">d", float("inf"))), errors.BAD_NUMBER),
    "minus infinity, small": (raw(b"\xca" + struct.pack(">f", float("-inf"))), errors.BAD_NUMBER),
    "not a number, in an array": (raw(b"\x91\xcb" + struct.pack(">d", float("nan"))), errors.BAD_NUMBER),
    "not UTF-8": (raw(b"\xa2\xc3\x28"), errors.BAD_UTF8),
    "a lone surrogate": (raw(b"\xa3\xed\xa0\x80"), errors.BAD_UTF8),
    "UTF-8 that is longer than it must be": (raw(b"\xa2\xc0\xaf"), errors.BAD_UTF8),
    "a key that is not UTF-8": (raw(b"\x81\xa1\xff\x01"), errors.BAD_UTF8),
    "arrays in arrays": (raw(nested(15)), errors.TOO_DEEP),
    "maps in maps": (raw(nested(15, in_a_map)), errors.TOO_DEEP),
    "a thousand arrays in arrays": (raw(nested(1000)), errors.TOO_DEEP),
    "more arrays in arrays than any decoder takes": (raw(nested(100_000)), errors.TOO_DEEP),
    "an array too long": (raw(packed([0] * 10_001)), errors.TOO_MANY_ITEMS),
    "an array that claims four billion items": (raw(b"\xdd\xff\xff\xff\xff"), errors.MALFORMED_FRAME),
    "arrays in arrays that claim more than there is": (raw(b"\xdc\x27\x10" * 1000), errors.MALFORMED_FRAME),
    "a map too large": (raw(packed({str(n): 0 for n in range(1_001)})), errors.TOO_MANY_ITEMS),
    "a map that claims four billion keys": (raw(b"\xdf\xff\xff\xff\xff"), errors.TOO_MANY_ITEMS),
    "a text too long": (raw(packed("a" * (256 * 1024 + 1))), errors.FIELD_TOO_LONG),
    "a text too long in bytes": (raw(packed("ä" * (128 * 1024 + 1))), errors.FIELD_TOO_LONG),
    "binary data too long": (raw(packed(b"a" * (256 * 1024 + 1))), errors.FIELD_TOO_LONG),
}


@pytest.mark.parametrize(("frame", "row"), FORMAT.values(), ids=FORMAT)
def test_a_frame_that_is_not_well_formed_or_too_much_is_refused_by_name(frame: bytes, row: Problem) -> None:
    error = refusal(frame)

    assert error.problem == row
    assert error.problem.number in (101, 103)
    assert SECRET not in str(error)


WITHIN_LIMITS = {
    "nested as deep as allowed": raw(nested(14)),
    "maps nested as deep as allowed": raw(nested(14, in_a_map)),
    "the longest array": raw(packed([0] * 10_000)),
    "the largest map": raw(packed({str(n): 0 for n in range(1_000)})),
    "the longest text": raw(packed("a" * 256 * 1024)),
    "the longest binary data": raw(packed(b"a" * 256 * 1024)),
    "numbers in their longest forms": raw(b"\xcf" + bytes(7) + b"\x05"),
    "a small float": raw(b"\xca" + struct.pack(">f", 0.5)),
    "texts in their longest forms": raw(b"\xdb\x00\x00\x00\x01a"),
    "a map in its longest form": raw(b"\xdf\x00\x00\x00\x01\xa1a\x01"),
}


@pytest.mark.parametrize("frame", WITHIN_LIMITS.values(), ids=WITHIN_LIMITS)
def test_unknown_fields_within_the_limits_are_ignored(frame: bytes) -> None:
    assert decode(frame, sender="client", max_bytes=MAX_FRAME_BYTES).body == UserMessage.model_validate(
        a_body(), by_alias=True
    )


@pytest.mark.parametrize("most", [MAX_PACKET_BYTES, MAX_FRAME_BYTES])
def test_a_frame_above_the_limit_of_its_transport_is_refused(most: int) -> None:
    shortest = len(raw(packed([])))
    filling = [b"a" * 250_000] * ((most - shortest) // 250_020)
    room = most - len(raw(packed([*filling, b""]))) - 8
    largest = raw(packed([*filling, b"a" * room]))
    largest = raw(packed([*filling, b"a" * (room + most - len(largest))]))

    assert len(largest) == most
    assert decode(largest, sender="client", max_bytes=most)
    assert refusal(largest, max_bytes=most - 1).problem == errors.FRAME_TOO_LARGE
    assert refusal(largest, max_bytes=most - 1).facts == {"size": most, "most": most - 1}


def test_the_limits_are_those_of_the_protocol() -> None:
    assert (MAX_PACKET_BYTES, MAX_FRAME_BYTES) == (15_360, 1_048_576)


ENVELOPE: dict[str, tuple[bytes, Problem, str]] = {
    "no type": (a_frame(type=...), errors.MISSING_FIELD, "type"),
    "no stanza": (a_frame(stanzaId=...), errors.MISSING_FIELD, "stanzaId"),
    "no body": (a_frame(body=...), errors.MISSING_FIELD, "body"),
    "no conversation": (a_frame(conversationId=...), errors.MISSING_FIELD, "conversationId"),
    "an empty conversation": (a_frame(conversationId=""), errors.MISSING_FIELD, "conversationId"),
    "a type in words": (a_frame(type="2"), errors.INVALID_FIELD, "type"),
    "a type that is true": (a_frame(type=True), errors.INVALID_FIELD, "type"),
    "a type that is a float": (a_frame(type=2.0), errors.INVALID_FIELD, "type"),
    "a negative type": (a_frame(type=-1), errors.INVALID_FIELD, "type"),
    "a type beyond 16 bits": (a_frame(type=65_536), errors.INVALID_FIELD, "type"),
    "a stanza in words": (a_frame(stanzaId="1"), errors.INVALID_FIELD, "stanzaId"),
    "a stanza that is true": (a_frame(stanzaId=True), errors.INVALID_FIELD, "stanzaId"),
    "a stanza that is null": (a_frame(stanzaId=None), errors.INVALID_FIELD, "stanzaId"),
    "a stanza beyond 32 bits": (a_frame(stanzaId=2**31), errors.INVALID_FIELD, "stanzaId"),
    "a stanza below 32 bits": (a_frame(stanzaId=-(2**31) - 1), errors.INVALID_FIELD, "stanzaId"),
    "a conversation with a space": (a_frame(conversationId="a b"), errors.INVALID_FIELD, "conversationId"),
    "a conversation that is a number": (a_frame(conversationId=7), errors.INVALID_FIELD, "conversationId"),
    "a body that is text": (a_frame("text"), errors.INVALID_FIELD, "body"),
    "a body that is an array": (a_frame([1]), errors.INVALID_FIELD, "body"),
    "meta that is an array": (a_frame(meta=["a"]), errors.INVALID_FIELD, "meta"),
    "meta with a map in it": (a_frame(meta={SECRET: {}}), errors.INVALID_FIELD, "meta"),
    "meta with an array in it": (a_frame(meta={SECRET: []}), errors.INVALID_FIELD, "meta"),
    "meta with binary data": (a_frame(meta={SECRET: b"x"}), errors.INVALID_FIELD, "meta"),
    "meta with an empty key": (a_frame(meta={"": SECRET}), errors.INVALID_FIELD, "meta"),
    "meta with a key too long": (a_frame(meta={"ä" * 129: SECRET}), errors.INVALID_FIELD, "meta"),
    "meta with a text too long": (a_frame(meta={"k": SECRET + "ä" * 1024}), errors.INVALID_FIELD, "meta"),
}


@pytest.mark.parametrize(("frame", "row", "field"), ENVELOPE.values(), ids=ENVELOPE)
def test_an_envelope_with_a_wrong_field_is_refused_by_the_fields_name(
    frame: bytes, row: Problem, field: str
) -> None:
    error = refusal(frame)

    assert (error.problem, error.facts["field"]) == (row, field)
    assert SECRET not in str(error)


BODY: dict[str, tuple[dict[str, Any], Problem, str]] = {
    "no id": ({"id": ...}, errors.MISSING_FIELD, "body.id"),
    "an id that is null": ({"id": None}, errors.MISSING_FIELD, "body.id"),
    "no content": ({"content": ...}, errors.MISSING_FIELD, "body.content"),
    "no conversation": ({"conversationId": ...}, errors.MISSING_FIELD, "body.conversationId"),
    "another conversation": ({"conversationId": "conv_2"}, errors.INVALID_FIELD, "body.conversationId"),
    "an empty conversation": ({"conversationId": ""}, errors.INVALID_FIELD, "body.conversationId"),
    "an empty id": ({"id": ""}, errors.INVALID_FIELD, "body.id"),
    "an id too long": ({"id": "a" * 129}, errors.INVALID_FIELD, "body.id"),
    "an id with a slash": ({"id": "a/b"}, errors.INVALID_FIELD, "body.id"),
    "an id with a line end": ({"id": "a\n"}, errors.INVALID_FIELD, "body.id"),
    "an id with a letter beyond ASCII": ({"id": "ä"}, errors.INVALID_FIELD, "body.id"),
    "an id with a NUL": ({"id": "a\0"}, errors.INVALID_FIELD, "body.id"),
    "content that is a number": ({"content": 8}, errors.INVALID_FIELD, "body.content"),
    "content that is binary data": ({"content": SECRET.encode()}, errors.INVALID_FIELD, "body.content"),
    "content that is a map": ({"content": {SECRET: SECRET}}, errors.INVALID_FIELD, "body.content"),
    "empty content": ({"content": ""}, errors.INVALID_FIELD, "body.content"),
    "content of spaces": ({"content": " \n\u3000"}, errors.INVALID_FIELD, "body.content"),
    "a time without a day": ({"timestamp": "12:00:00Z"}, errors.INVALID_FIELD, "body.timestamp"),
    "a time in the wrong case of JSON": ({"timestamp": True}, errors.INVALID_FIELD, "body.timestamp"),
}


@pytest.mark.parametrize(("changes", "row", "field"), BODY.values(), ids=BODY)
def test_a_body_with_a_wrong_field_is_refused_by_its_path(
    changes: dict[str, Any], row: Problem, field: str
) -> None:
    error = refusal(a_frame(a_body(**changes)))

    assert (error.problem, error.facts["field"]) == (row, field)
    assert SECRET not in str(error)


NUL_SOMEWHERE = {
    "in the content": a_frame(a_body(content=f"{SECRET}\0")),
    "in meta": a_frame(meta={"source": "\0"}),
    "in a key of meta": a_frame(meta={"\0": "microphone"}),
    "in a tool's result": a_frame(a_body(requestId="tool_1", success=True, result=[{"a": "\0"}]), type=7),
    "in a key of a tool's result": a_frame(a_body(success=True, result=[{"\0": 1}]), type=7),
    "in a feature": a_frame(a_body(features=["streaming\0"]), type=12),
    "in a memory": a_frame(a_body(action="create", memory={"content": "\0"}), type=24),
}


@pytest.mark.parametrize("frame", NUL_SOMEWHERE.values(), ids=NUL_SOMEWHERE)
def test_a_nul_in_any_stored_text_is_refused(frame: bytes) -> None:
    error = refusal(frame)

    assert error.problem == errors.NUL_IN_TEXT
    assert error.problem.number == 105


def test_a_nul_in_an_unknown_field_is_ignored() -> None:
    assert decode(a_frame(a_body(extra="\0")), sender="client", max_bytes=MAX_FRAME_BYTES)


WRONG_VALUES: dict[str, tuple[int, dict[str, Any], str]] = {
    "a severity of 4": (
        1,
        {"code": 1, "message": "", "severity": 4, "recoverable": True},
        "`body.severity`: must be at most 3.",
    ),
    "a success in words": (7, {"success": "yes"}, "`body.success`: must be true or false."),
    "binary data in a tool's result": (
        7,
        {"success": True, "result": {SECRET: b"x"}},
        "`body.result`: must contain only text, numbers, true, false, null, lists and maps.",
    ),
    "an error code that is a list": (
        7,
        {"success": False, "errorCode": [SECRET]},
        "`body.errorCode`: must be text or a whole number.",
    ),
    "sound that is text": (
        10,
        {"format": "opus", "durationMs": 1, "data": SECRET},
        "`body.data`: must be binary data.",
    ),
    "a duration below nothing": (
        10,
        {"format": "opus", "durationMs": -1},
        "`body.durationMs`: must be at least 0.",
    ),
    "a way to stop that does not exist": (
        10,
        {"stopType": SECRET},
        "`body.stopType`: must be one of 'generation', 'speech' or 'all'.",
    ),
    "features that are text": (12, {"features": SECRET}, "`body.features`: must be a list."),
    "a feature that is a number": (
        12,
        {"features": ["tools", 7]},
        "`body.features.1`: must be text.",
    ),
    "seen, but negative": (12, {"lastSequenceSeen": -3}, "`body.lastSequenceSeen`: must be at least 0."),
    "a memory that is text": (
        24,
        {"action": "create", "memory": SECRET},
        "`body.memory`: must be a map.",
    ),
    "six stars": (
        24,
        {"action": "update", "memoryId": "mem_1", "memory": {"rating": 6}},
        "`body.memory.rating`: must be at most 5.",
    ),
    "an item to be synced that is text": (17, {"messages": [SECRET]}, "`body.messages.0`: must be a map."),
    "an item to be synced whose id is wrong": (
        17,
        {"messages": [{"localId": "a b", "role": "user"}]},
        "`body.messages.0.localId`: must be 1 to 128 letters, digits, or any of - _ . ~.",
    ),
}


@pytest.mark.parametrize(("number", "fields", "said"), WRONG_VALUES.values(), ids=WRONG_VALUES)
def test_a_wrong_value_is_answered_with_its_path_and_the_rule(
    number: int, fields: dict[str, Any], said: str
) -> None:
    error = refusal(a_frame(a_body(**fields), type=number))

    assert error.problem == errors.INVALID_FIELD
    assert str(error).startswith(said)


NEEDED_HERE: dict[str, tuple[int, dict[str, Any], str]] = {
    "an edit without content": (11, {"targetId": "msg_1", "mode": "edit"}, "body.newContent"),
    "a new memory without content": (24, {"action": "create", "memory": {}}, "body.memory.content"),
    "a memory to delete without its id": (24, {"action": "delete"}, "body.memoryId"),
    "sound without its format": (10, {"durationMs": 5}, "body.format"),
    "sound without its length": (4, {"format": "opus"}, "body.durationMs"),
    "an item to be synced without its id": (17, {"messages": [{"role": "user"}]}, "body.messages.0.localId"),
    "a note without what to do": (22, {}, "body.action"),
}


@pytest.mark.parametrize(("number", "fields", "path"), NEEDED_HERE.values(), ids=NEEDED_HERE)
def test_what_is_missing_is_named(number: int, fields: dict[str, Any], path: str) -> None:
    error = refusal(a_frame(a_body(**fields), type=number))

    assert (error.problem, error.facts["field"]) == (errors.MISSING_FIELD, path)


SERVER_ONLY = sorted(number for number, kind in BY_TYPE.items() if kind.SENDERS == SERVER)
CLIENT_ONLY = sorted(number for number, kind in BY_TYPE.items() if kind.SENDERS == CLIENT)


@pytest.mark.requirement("000-002")
@pytest.mark.parametrize(
    "changes", [{}, {"body": ...}, {"body": "x"}, {"stanzaId": ...}, {"conversationId": 7}, {"meta": 1}]
)
def test_a_type_that_only_the_server_sends_is_not_allowed_whatever_it_holds(changes: dict[str, Any]) -> None:
    refused = [refusal(a_frame(**{"type": number} | changes)) for number in SERVER_ONLY]

    assert [error.facts["type"] for error in refused] == SERVER_ONLY
    assert {error.problem for error in refused} == {errors.SERVER_ONLY_TYPE}
    assert errors.SERVER_ONLY_TYPE.number == 203


def test_a_type_that_only_clients_send_is_refused_from_the_server() -> None:
    refused = {number: refusal(a_frame(type=number), sender="server").problem for number in CLIENT_ONLY}

    assert refused == dict.fromkeys(CLIENT_ONLY, errors.CLIENT_ONLY_TYPE)


@pytest.mark.parametrize("number", [0, 19, 20, 21, 27, 999, 65_535])
@pytest.mark.parametrize("changes", [{}, {"body": ...}, {"stanzaId": "x"}])
def test_an_unknown_type_is_skipped_and_the_client_may_go_on(number: int, changes: dict[str, Any]) -> None:
    error = refusal(a_frame(**{"type": number} | changes))

    assert error.problem == errors.UNKNOWN_TYPE
    assert (error.problem.number, error.problem.recoverable) == (102, True)


def test_a_malformed_frame_is_refused_before_its_type_is_checked() -> None:
    assert refusal(a_frame(type=14) + b"\xc0").problem == errors.TRAILING_BYTES


CONFLICTS: dict[str, tuple[Sender, int, dict[str, Any]]] = {
    "previousId and messageId": ("server", 14, {"previousId": "msg_1", "messageId": "msg_2"}),
    "confidence and relevance": ("server", 14, {"confidence": 0.5, "relevance": 0.6}),
    "durationMs and duration": ("client", 10, {"format": "opus", "durationMs": 1, "duration": 2}),
    "final and isFinal": ("server", 9, {"final": True, "isFinal": False}),
    "isFinal and final": ("server", 16, {"final": True, "isFinal": False}),
}


@pytest.mark.parametrize(("sender", "number", "fields"), CONFLICTS.values(), ids=CONFLICTS)
def test_two_different_values_under_alternative_names_are_refused(
    sender: Sender, number: int, fields: dict[str, Any]
) -> None:
    error = refusal(a_frame(a_body(memoryId="mem_1", text="", **fields), type=number), sender=sender)

    assert error.problem == errors.CONFLICTING_NAMES
    assert error.problem.number == 101


@pytest.mark.requirement("000-020")
@pytest.mark.parametrize("name", ["confidence", "relevance"])
@pytest.mark.parametrize("value", [-0.01, 1.01, 2, "0.5", True])
def test_a_confidence_outside_its_range_is_refused(name: str, value: object) -> None:
    error = refusal(a_frame(a_body(memoryId="mem_1", **{name: value}), type=14), sender="server")

    assert error.problem == errors.INVALID_FIELD


@pytest.mark.requirement("000-014")
@pytest.mark.parametrize("action", ["forgotten", "", 1])
def test_an_action_that_does_not_exist_is_refused(action: object) -> None:
    error = refusal(a_frame(a_body(memoryId="mem_1", action=action), type=14), sender="server")

    assert error.facts["field"] == "body.action"


@pytest.mark.requirement("000-018")
def test_a_memory_trace_always_has_content() -> None:
    frame = a_frame(a_body(memoryId="mem_1", content=...), type=14)

    assert refusal(frame, sender="server").facts["field"] == "body.content"


@pytest.mark.parametrize("name", ENVELOPES)
def test_a_message_without_one_of_its_fields_is_refused_or_valid(name: str) -> None:
    whole = msgpack.unpackb(kept()[name])
    kind = type(ENVELOPES[name].body)
    sender: Sender = "client" if "client" in kind.SENDERS else "server"
    required = {kind.WIRE_NAMES[field] for field, info in kind.model_fields.items() if info.is_required()}

    for field in required - {"conversationId"}:
        less = {key: value for key, value in whole["body"].items() if key != field}
        for other, meant in kind.OTHER_NAMES.items():
            less = {key: value for key, value in less.items() if (key, meant) != (other, field)}

        error = refusal(packed(whole | {"body": less}), sender=sender)

        assert error.problem == errors.MISSING_FIELD
        assert error.facts["field"] == f"body.{field}"


def test_a_refused_frame_still_has_its_stanza_and_message_id() -> None:
    frame = open_frame(a_frame(a_body(content=8), stanzaId=41), max_bytes=MAX_FRAME_BYTES)

    with pytest.raises(AnamnesisError):
        read(frame, sender="client")
    assert (frame.stanza_id, frame.message_id) == (41, "msg_1")


@pytest.mark.parametrize(
    "frame",
    [
        a_frame(a_body(id=SECRET + " and more"), stanzaId=2**40),
        a_frame("text", stanzaId=True),
        a_frame(a_body(id=7), stanzaId="41"),
    ],
)
def test_invalid_ids_of_a_refused_frame_are_not_repeated(frame: bytes) -> None:
    opened = open_frame(frame, max_bytes=MAX_FRAME_BYTES)

    assert (opened.stanza_id, opened.message_id) == (None, None)


@pytest.mark.parametrize(
    "frame",
    [
        a_frame(a_body(content=SECRET + "\0")),
        a_frame(a_body(id=SECRET + " ")),
        raw(b"\xa2\xc3\x28"),
        a_frame() + b"\xc0",
        a_frame(type=14),
    ],
)
def test_no_error_keeps_what_the_person_wrote(frame: bytes) -> None:
    error = refusal(frame)

    assert error.__cause__ is None
    assert error.__context__ is None
    assert SECRET not in repr(error) + repr(dict(error.facts))


def test_a_key_of_the_wire_in_the_style_of_python_is_not_understood() -> None:
    frame = a_frame({"id": "msg_1", "conversation_id": HERE, "content": SECRET})

    assert refusal(frame).facts["field"] == "body.conversationId"


def test_every_row_that_refuses_a_frame_is_reached_by_a_test_on_this_page() -> None:
    reached = {row.name for _, row in FORMAT.values()} | {
        "client_only_type",
        "conflicting_names",
        "frame_too_large",
        "invalid_field",
        "missing_field",
        "nul_in_text",
        "server_only_type",
        "unknown_type",
    }
    used = {row.name for row in (vars(codec) | vars(rules)).values() if isinstance(row, Problem)}

    assert used == reached


def test_a_message_that_no_frame_can_hold_cannot_be_created() -> None:
    deep: dict[str, Any] = {}
    for _ in range(14):
        deep = {"in": deep}

    for metadata in (
        deep,
        {"a": b"x"},
        {"a": float("nan")},
        {"a": "\0"},
        {7: 1},
        {"a": (1,)},
        {"a": object()},
    ):
        with pytest.raises(ValueError, match="metadata"):
            a_trace(metadata)


def a_trace(metadata: Any) -> Body:
    return MemoryTrace.model_validate(
        {"id": "t", "conversation_id": HERE, "memory_id": "m", "content": "", "metadata": metadata}
    )
