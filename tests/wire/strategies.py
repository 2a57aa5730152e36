"""Hypothesis strategies for messages of every kind, within the limits of the protocol."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from orchestrator.ops.clock import cut_to_milliseconds
from orchestrator.wire.envelope import Envelope
from orchestrator.wire.messages import (
    Acknowledgement,
    AssistantMessage,
    AssistantSentence,
    AudioChunk,
    Body,
    Commentary,
    Configuration,
    ControlStop,
    ControlVariation,
    EarlierMessage,
    ErrorMessage,
    MemoryAction,
    MemoryConfirmation,
    MemoryDraft,
    MemoryTrace,
    ModelInfo,
    NoteConfirmation,
    ReasoningStep,
    Safety,
    ServerInfo,
    StartAnswer,
    SyncedMessage,
    SyncRequest,
    SyncResponse,
    ToolUseRequest,
    ToolUseResult,
    Transcription,
    UnreadableMessage,
    UserMessage,
    UserNote,
)

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Settings for a busy machine: no deadline."""

ids: st.SearchStrategy[Any] = st.text("ABCxyz019-_.~", min_size=1, max_size=128)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
spoken = texts.filter(lambda text: bool(text) and not text.isspace())
booleans = st.booleans()
moments = st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)).map(  # noqa: DTZ001
    cut_to_milliseconds
)
shares = st.floats(0, 1)
counts = st.integers(0, 2**31 - 1)
positions = st.integers(1, 2**31 - 1)
stanzas = st.integers(-(2**31), 2**31 - 1)
scalars = st.one_of(
    st.none(),
    booleans,
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
maps = st.dictionaries(texts, values, max_size=6)
metas = st.none() | st.dictionaries(texts.filter(bool), scalars, min_size=1, max_size=4)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def several(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=4).map(tuple)


earlier = st.builds(
    EarlierMessage,
    local_id=ids,
    role=st.sampled_from(["user", "assistant", "system"]),
    contents=spoken,
    previous_id=maybe(ids),
    created_at=moments,
)
unreadable = st.builds(
    UnreadableMessage,
    local_id=ids,
    role=st.just("wizard") | st.integers(),
    contents=st.none() | st.just("\0") | st.binary(max_size=9) | values,
    previous_id=values,
    created_at=values,
).filter(lambda item: not isinstance(item.role, int) or -(2**63) <= item.role < 2**64)


BODIES: Mapping[type[Body], st.SearchStrategy[Any]] = {
    ErrorMessage: st.builds(
        ErrorMessage,
        conversation_id=st.just("") | ids,
        id=ids,
        code=counts,
        message=texts,
        severity=st.integers(0, 3),
        recoverable=booleans,
        originating_id=maybe(ids),
    ),
    UserMessage: st.builds(
        UserMessage,
        conversation_id=ids,
        id=ids,
        previous_id=maybe(ids),
        content=spoken,
        timestamp=maybe(moments),
    ),
    AssistantMessage: st.builds(
        AssistantMessage,
        conversation_id=ids,
        id=ids,
        previous_id=ids,
        content=texts,
        timestamp=maybe(moments),
    ),
    ReasoningStep: st.builds(
        ReasoningStep,
        conversation_id=ids,
        id=ids,
        message_id=ids,
        sequence=positions,
        content=texts,
    ),
    ToolUseRequest: st.builds(
        ToolUseRequest,
        conversation_id=ids,
        id=ids,
        message_id=ids,
        tool_name=texts,
        parameters=maps,
        execution=st.sampled_from(["server", "client", "either"]),
        timeout_ms=positions,
    ),
    ToolUseResult: st.builds(
        ToolUseResult,
        conversation_id=ids,
        id=ids,
        request_id=ids,
        success=booleans,
        result=values,
        error_code=maybe(texts | st.integers(-(2**63), 2**64 - 1)),
        error_message=maybe(texts),
    ),
    Acknowledgement: st.builds(
        Acknowledgement, conversation_id=ids, acknowledged_stanza_id=stanzas, success=booleans
    ),
    Transcription: st.builds(
        Transcription,
        conversation_id=ids,
        id=ids,
        previous_id=maybe(ids),
        text=texts,
        final=booleans,
        confidence=maybe(shares),
        language=maybe(texts),
    ),
    AudioChunk: st.builds(
        AudioChunk,
        conversation_id=ids,
        track_sid=maybe(texts),
        format=texts,
        duration_ms=counts,
        sequence=maybe(counts),
        data=maybe(st.binary(max_size=200)),
        is_last=maybe(booleans),
        sentence_id=maybe(ids),
    ),
    ControlStop: st.builds(
        ControlStop,
        conversation_id=ids,
        target_id=maybe(ids),
        reason=maybe(texts),
        stop_type=maybe(st.sampled_from(["generation", "speech", "all"])),
    ),
    ControlVariation: st.builds(
        ControlVariation,
        conversation_id=ids,
        target_id=ids,
        mode=st.sampled_from(["regenerate", "edit", "continue"]),
        new_content=spoken,
    ),
    Configuration: st.builds(
        Configuration,
        conversation_id=st.just("") | ids,
        last_sequence_seen=maybe(counts),
        client_version=maybe(texts),
        preferred_language=maybe(texts),
        time_zone=maybe(texts),
        device=maybe(texts),
        features=maybe(several(texts)),
        last_client_stanza=maybe(stanzas),
        last_server_stanza=maybe(stanzas),
    ),
    StartAnswer: st.builds(
        StartAnswer,
        conversation_id=ids,
        id=ids,
        previous_id=ids,
        answer_type=maybe(st.sampled_from(["text", "voice", "text+voice"])),
        planned_sentence_count=maybe(counts),
        safety=maybe(
            st.builds(
                Safety,
                kind=st.sampled_from(["emergency", "crisis"]),
                tier=counts,
                certainty=maybe(st.sampled_from(["certain", "possible"])),
            )
        ),
    ),
    MemoryTrace: st.builds(
        MemoryTrace,
        conversation_id=ids,
        id=ids,
        previous_id=maybe(ids),
        memory_id=ids,
        memory_type=maybe(texts),
        action=st.sampled_from(["retrieved", "stored", "updated"]),
        content=texts,
        confidence=maybe(shares),
        metadata=maybe(maps),
    ),
    Commentary: st.builds(
        Commentary,
        conversation_id=ids,
        id=ids,
        message_id=maybe(ids),
        content=texts,
        commentary_type=maybe(texts),
    ),
    AssistantSentence: st.builds(
        AssistantSentence,
        conversation_id=ids,
        id=ids,
        previous_id=ids,
        sequence=positions,
        text=texts,
        is_final=booleans,
    ),
    SyncRequest: st.builds(SyncRequest, conversation_id=ids, messages=several(earlier | unreadable)),
    SyncResponse: st.builds(
        SyncResponse,
        conversation_id=ids,
        synced_messages=several(
            st.builds(
                SyncedMessage,
                local_id=ids,
                server_id=maybe(ids),
                status=st.sampled_from(["synced", "conflict"]),
                conflict=maybe(texts),
            )
        ),
        synced_at=moments,
    ),
    UserNote: st.builds(
        UserNote,
        conversation_id=ids,
        id=ids,
        message_id=maybe(ids),
        content=texts,
        category=maybe(texts),
        action=st.sampled_from(["create", "update", "delete"]),
    ),
    NoteConfirmation: st.builds(
        NoteConfirmation,
        conversation_id=ids,
        request_id=ids,
        note_id=ids,
        message_id=maybe(ids),
        success=booleans,
    ),
    MemoryAction: st.builds(
        MemoryAction,
        conversation_id=ids,
        id=ids,
        action=st.sampled_from(["create", "update", "delete", "pin", "archive"]),
        memory_id=ids,
        memory=st.builds(
            MemoryDraft,
            content=spoken,
            category=maybe(texts),
            pinned=maybe(booleans),
            rating=maybe(st.integers(1, 5)),
        ),
    ),
    MemoryConfirmation: st.builds(
        MemoryConfirmation,
        conversation_id=ids,
        request_id=ids,
        memory_id=ids,
        action=st.sampled_from(["create", "update", "delete", "pin", "archive"]),
        success=booleans,
    ),
    ServerInfo: st.builds(
        ServerInfo,
        conversation_id=ids,
        model=st.builds(ModelInfo, name=texts, provider=texts),
        backend=texts,
        agents=several(texts),
    ),
}


@st.composite
def envelopes(draw: st.DrawFn, kind: type[Body]) -> Envelope[Body]:
    """An envelope with a message of that kind in it."""
    body: Body = draw(BODIES[kind])
    return Envelope(draw(stanzas), body.conversation_id, body, draw(metas))
