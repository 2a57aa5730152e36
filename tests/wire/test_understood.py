"""Messages that are accepted in other forms: alternative names, older forms, missing fields."""

from datetime import UTC, datetime
from typing import Any, TypeVar

import msgpack
import pytest

from orchestrator.errors import INVALID_FIELD, TURN_TIMED_OUT, AnamnesisError
from orchestrator.wire.codec import MAX_FRAME_BYTES, decode, encode
from orchestrator.wire.envelope import Envelope, error_envelope
from orchestrator.wire.ids import ConversationId, ErrorId, MemoryId, MessageId, RandomIds, TraceId
from orchestrator.wire.messages import (
    AssistantMessage,
    AssistantSentence,
    AudioChunk,
    Body,
    Configuration,
    ControlStop,
    EarlierMessage,
    MemoryAction,
    MemoryTrace,
    SyncRequest,
    ToolUseResult,
    Transcription,
    UnreadableMessage,
    UserMessage,
)
from tests.wire.samples import HERE

B = TypeVar("B", bound=Body)


def understood(kind: type[B], *, number: int | None = None, **fields: Any) -> B:
    """The body that is decoded from these fields, with an allowed sender."""
    frame = {
        "stanzaId": 1,
        "conversationId": HERE,
        "type": number or kind.TYPE,
        "body": {"conversationId": HERE, "id": "any_1"} | fields,
    }
    sender = "client" if "client" in kind.SENDERS else "server"
    body = decode(msgpack.packb(frame), sender=sender, max_bytes=MAX_FRAME_BYTES).body  # type: ignore[arg-type]
    assert isinstance(body, kind)
    return body


def trace(**fields: Any) -> MemoryTrace:
    return understood(MemoryTrace, **{"memoryId": "mem_1", "content": "a snippet"} | fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"previousId": "msg_1"},
        {"messageId": "msg_1"},
        {"previousId": "msg_1", "messageId": "msg_1"},
        {"previousId": None, "messageId": "msg_1"},
    ],
)
def test_a_trace_may_use_either_name_for_its_message(fields: dict[str, Any]) -> None:
    assert trace(**fields).previous_id == "msg_1"


@pytest.mark.requirement("000-020")
@pytest.mark.parametrize(
    ("fields", "score"),
    [
        ({"confidence": 0.5}, 0.5),
        ({"relevance": 0.5}, 0.5),
        ({"confidence": 0.5, "relevance": 0.5}, 0.5),
        ({"confidence": 1}, 1.0),
        ({"relevance": 0}, 0.0),
        ({"confidence": None}, None),
        ({}, None),
    ],
)
def test_a_trace_may_use_either_name_for_its_score_or_none(
    fields: dict[str, Any], score: float | None
) -> None:
    assert trace(**fields).confidence == score


@pytest.mark.requirement("000-014", "000-015")
@pytest.mark.parametrize("fields", [{}, {"action": None}])
def test_a_trace_without_an_action_is_of_a_retrieval(fields: dict[str, Any]) -> None:
    assert trace(**fields).action == "retrieved"


@pytest.mark.requirement("000-015", "000-016", "000-017")
@pytest.mark.parametrize("action", ["retrieved", "stored", "updated"])
def test_a_trace_has_its_action(action: str) -> None:
    assert trace(action=action).action == action


@pytest.mark.requirement("000-012")
def test_a_trace_may_have_no_memory_type_and_then_sends_none() -> None:
    found = trace()

    assert found.memory_type is None
    assert "memoryType" not in msgpack.unpackb(encode(Envelope(-1, HERE, found)))["body"]


@pytest.mark.requirement("000-013")
@pytest.mark.parametrize(
    "memory_type",
    [
        "long_term_note",
        "profile_attribute",
        "conversation_summary",
        "world_fact",
        "user_preference",
        "profile",
        "memory_block",
        "one that nobody has thought of yet",
    ],
)
def test_any_memory_type_is_accepted_unchanged(memory_type: str) -> None:
    assert trace(memoryType=memory_type).memory_type == memory_type


@pytest.mark.requirement("000-021")
@pytest.mark.parametrize(
    "metadata", [None, {}, {"tags": ["location"], "source": "user_profile", "deep": {"er": [None, 1.5]}}]
)
def test_a_traces_metadata_may_be_absent_empty_or_full(metadata: dict[str, Any] | None) -> None:
    assert trace(metadata=metadata).metadata == metadata


@pytest.mark.requirement("000-005")
def test_traces_have_ids_of_their_own() -> None:
    ids = RandomIds()

    sent = {
        msgpack.unpackb(
            encode(
                Envelope(
                    -1,
                    HERE,
                    MemoryTrace(
                        id=TraceId(ids.new("trace_")),
                        conversation_id=HERE,
                        memory_id=MemoryId("mem_1"),
                        content="the same",
                    ),
                )
            )
        )["body"]["id"]
        for _ in range(10_000)
    }

    assert len(sent) == 10_000


@pytest.mark.parametrize("number", [4, 10])
@pytest.mark.parametrize("name", ["duration", "durationMs"])
def test_audio_is_accepted_under_both_type_numbers_and_both_names_of_its_duration(
    number: int, name: str
) -> None:
    chunk = understood(AudioChunk, number=number, format="opus_48000", **{name: 20})

    assert (chunk.duration_ms, chunk.data) == (20, None)


def test_audio_is_sent_as_type_10() -> None:
    chunk = understood(AudioChunk, number=4, format="opus_48000", duration=20, data=b"\0\1")

    assert msgpack.unpackb(encode(Envelope(1, HERE, chunk)))["type"] == 10


def test_a_stop_is_distinguished_from_audio_even_with_null_fields() -> None:
    stop = understood(ControlStop, targetId="msg_1", format=None, data=None)

    assert stop == ControlStop(conversation_id=HERE, target_id="msg_1")


@pytest.mark.parametrize("name", ["final", "isFinal"])
@pytest.mark.parametrize("final", [True, False])
def test_both_names_of_the_final_flag_are_accepted(name: str, final: bool) -> None:
    heard = understood(Transcription, text="so far", **{name: final})
    said = understood(AssistantSentence, previousId="msg_1", sequence=1, text="", **{name: final})

    assert heard.final is said.is_final is final


@pytest.mark.parametrize("fields", [{}, {"requestId": None}])
def test_a_tools_result_without_a_request_has_the_requests_id(fields: dict[str, Any]) -> None:
    assert understood(ToolUseResult, id="tool_7", success=True, **fields).request_id == "tool_7"


@pytest.mark.parametrize("result", [None, 7, "text", 1.5, True, [1, [2]], {"a": {"b": []}}])
def test_the_result_of_a_tool_may_be_any_json_value(result: object) -> None:
    assert understood(ToolUseResult, success=True, result=result).result == result


NOON = datetime(2026, 1, 15, 12, 0, 0, 250_000, tzinfo=UTC)


@pytest.mark.parametrize(
    "said",
    [
        "2026-01-15T12:00:00.250Z",
        "2026-01-15t12:00:00.250z",
        "2026-01-15T12:00:00.25Z",
        "2026-01-15T12:00:00.2509999999Z",
        "2026-01-15T12:00:00.250+00:00",
        "2026-01-15T17:30:00.250+05:30",
        1_768_478_400_250,
        1_768_478_400_250.0,
        1_768_478_400_250.9,
    ],
)
def test_a_time_is_text_or_milliseconds_and_is_kept_in_milliseconds_of_utc(said: object) -> None:
    message = understood(UserMessage, content="now", timestamp=said)

    assert message.timestamp == NOON
    assert message.timestamp.tzinfo is UTC


@pytest.mark.parametrize(
    "said",
    [
        "2026-01-15",
        "2026-01-15T12:00:00",
        "2026-01-15 12:00:00Z",
        "2026-13-15T12:00:00Z",
        "2026-01-15T12:00:60Z",
        "2026-01-15T12:00:00+99:00",
        "1969-12-31T23:59:59Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "٢٠٢٦-01-15T12:00:00Z",
        "now",
        "",
        "1768478400250",
        -1,
        2**63,
        1e300,
        True,
        b"2026-01-15T12:00:00Z",
        [2026, 1, 15],
    ],
)
def test_an_invalid_time_is_refused(said: object) -> None:
    with pytest.raises(AnamnesisError, match=r"body\.timestamp"):
        understood(UserMessage, content="now", timestamp=said)


def test_our_times_have_a_time_zone() -> None:
    with pytest.raises(ValueError, match="offset"):
        UserMessage(
            id=MessageId("msg_1"),
            conversation_id=HERE,
            content="now",
            timestamp=NOON.replace(tzinfo=None),
        )


@pytest.mark.parametrize("named", ["a", "A-Za-z0-9_.~", "V1StGXR8_Z5jdHi6B-myT", "x" * 128, "."])
def test_a_client_may_use_its_own_ids(named: str) -> None:
    assert understood(UserMessage, id=named, content="hello").id == named


def test_everything_but_nul_is_kept_as_it_was_written() -> None:
    text = "".join(map(chr, [*range(1, 0xD800), *range(0xE000, 0x10FFFF, 97)]))

    assert understood(UserMessage, content=text).content == text


@pytest.mark.parametrize(
    ("on_the_envelope", "in_the_body"), [(..., ...), ("", ...), ("", ""), (None, None), (..., ""), ("", None)]
)
def test_a_first_configuration_has_no_conversation_yet(on_the_envelope: Any, in_the_body: Any) -> None:
    fields = {"stanzaId": 0, "type": 12, "conversationId": on_the_envelope}
    frame = {name: value for name, value in fields.items() if value is not ...}
    body = {} if in_the_body is ... else {"conversationId": in_the_body}

    envelope = decode(msgpack.packb(frame | {"body": body}), sender="client", max_bytes=MAX_FRAME_BYTES)

    assert (envelope.conversation_id, envelope.body) == ("", Configuration())


def test_a_configuration_may_name_its_conversation_on_the_envelope_alone() -> None:
    frame = msgpack.packb({"stanzaId": 1, "type": 12, "conversationId": HERE, "body": {}})

    assert decode(frame, sender="client", max_bytes=MAX_FRAME_BYTES).conversation_id == HERE


def test_a_configuration_may_name_its_conversation_in_the_body_alone() -> None:
    frame = msgpack.packb({"stanzaId": 1, "type": 12, "body": {"conversationId": HERE}})

    assert decode(frame, sender="client", max_bytes=MAX_FRAME_BYTES).conversation_id == HERE


def test_meta_holds_scalars_of_every_kind() -> None:
    meta = {"text": "microphone", "whole": 2**64 - 1, "part": -0.5, "yes": True, "nothing": None}
    meta |= {"ä" * 128: "ä" * 1024}  # the maximum length
    frame = {"stanzaId": 1, "type": 12, "conversationId": HERE, "meta": meta, "body": {}}

    assert decode(msgpack.packb(frame), sender="client", max_bytes=MAX_FRAME_BYTES).meta == meta


@pytest.mark.parametrize("meta", [..., None, {}])
def test_no_meta_and_empty_meta_are_the_same(meta: Any) -> None:
    frame = {"stanzaId": 1, "type": 12, "conversationId": HERE, "body": {}}

    envelope = decode(
        msgpack.packb(frame if meta is ... else frame | {"meta": meta}),
        sender="client",
        max_bytes=MAX_FRAME_BYTES,
    )

    assert envelope.meta is None
    assert "meta" not in msgpack.unpackb(encode(envelope))


def test_a_memory_can_be_rated_without_changing_it() -> None:
    action = understood(MemoryAction, action="update", memoryId="mem_1", memory={"rating": 5})

    assert action.memory is not None
    assert (action.memory.rating, action.memory.content) == (5, None)


READABLE = {"localId": "l-1", "role": "user", "contents": "from before", "createdAt": 1_768_478_400_250}
UNREADABLE: dict[str, tuple[dict[str, Any], str]] = {
    "a NUL": ({"contents": "a\0b"}, "A text has a NUL character."),
    "an unknown role": ({"role": "wizard"}, "`role`: must be one of 'user', 'assistant' or 'system'."),
    "no role": ({"role": ...}, "`role`: is missing."),
    "no text": ({"contents": ...}, "`contents`: is missing."),
    "null for text": ({"contents": None}, "`contents`: is missing."),
    "an empty text": ({"contents": ""}, "`contents`: must not be empty."),
    "a number for text": ({"contents": 5}, "`contents`: must be text."),
    "binary data for text": ({"contents": b"secret"}, "`contents`: must be text."),
    "no time": ({"createdAt": ...}, "`createdAt`: is missing."),
    "a bad id before it": (
        {"previousId": "a b"},
        "`previousId`: must be 1 to 128 letters, digits, or any of - _ . ~.",
    ),
}


@pytest.mark.parametrize(("changes", "conflict"), UNREADABLE.values(), ids=UNREADABLE)
def test_an_invalid_item_of_a_sync_is_reported_and_the_others_are_kept(
    changes: dict[str, Any], conflict: str
) -> None:
    bad = {
        name: value for name, value in (READABLE | {"localId": "l-2"} | changes).items() if value is not ...
    }

    request = understood(SyncRequest, messages=[READABLE, bad, READABLE | {"localId": "l-3"}])

    first, second, third = request.messages
    assert isinstance(first, EarlierMessage)
    assert isinstance(second, UnreadableMessage)
    assert isinstance(third, EarlierMessage)
    assert [first.local_id, second.local_id, third.local_id] == ["l-1", "l-2", "l-3"]
    assert second.conflict == conflict


def test_a_sync_may_be_empty() -> None:
    assert understood(SyncRequest, messages=[]).messages == ()


def test_an_error_becomes_a_message_that_says_what_to_do_next() -> None:
    error = AnamnesisError(TURN_TIMED_OUT, seconds=60)

    envelope = error_envelope(
        error,
        error_id=ErrorId("err_1"),
        conversation_id=HERE,
        stanza_id=-7,
        originating_id="msg_1",
    )

    assert envelope.stanza_id == -7
    assert envelope.meta == {"error": "turn_timed_out"}
    assert envelope.body.code == 505
    assert envelope.body.severity == 2
    assert envelope.body.recoverable is True
    assert envelope.body.originating_id == "msg_1"
    assert envelope.body.message == str(error)
    assert decode(encode(envelope), sender="server", max_bytes=MAX_FRAME_BYTES) == envelope


def test_a_refusal_belongs_to_its_connection_only() -> None:
    envelope = error_envelope(
        AnamnesisError(INVALID_FIELD, field="body.content", rule="must be text"),
        error_id=ErrorId("err_1"),
        conversation_id=ConversationId(""),
    )

    assert envelope.stanza_id == 0


@pytest.mark.parametrize("content", ["ä" * 128 * 1024, "a" * 256 * 1024])
def test_the_longest_text_can_be_sent(content: str) -> None:
    envelope = Envelope(-1, HERE, an_answer(content))

    assert decode(encode(envelope), sender="server", max_bytes=MAX_FRAME_BYTES) == envelope


def test_a_too_long_text_is_refused_when_it_is_encoded() -> None:
    with pytest.raises(AnamnesisError, match="262144"):
        encode(Envelope(-1, HERE, an_answer("a" * (256 * 1024 + 1))))


@pytest.mark.parametrize("value", [2**64, "\ud800"])
def test_values_that_messagepack_cannot_encode_are_refused_with_our_error(value: object) -> None:
    result = ToolUseResult(conversation_id=HERE, id="r", success=True, result=[value])

    with pytest.raises(AnamnesisError) as caught:
        encode(Envelope(1, HERE, result))
    assert caught.value.__context__ is None


def an_answer(content: str) -> AssistantMessage:
    return AssistantMessage(
        id=MessageId("msg_2"), conversation_id=HERE, previous_id=MessageId("msg_1"), content=content
    )
