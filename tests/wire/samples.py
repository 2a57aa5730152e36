"""One or more envelopes of each kind. The snapshots contain their bytes."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from orchestrator.errors import NOT_CONFIGURED, AnamnesisError
from orchestrator.wire.envelope import Envelope, error_envelope
from orchestrator.wire.ids import (
    ConversationId,
    ErrorId,
    MemoryId,
    MessageId,
    NoteId,
    SentenceId,
    ToolUseId,
    TraceId,
)
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

HERE: Final = ConversationId("conv_7H93k")
ASKED: Final = MessageId("msg_u1A2B")
ANSWER: Final = MessageId("msg_a3C4D")
NOON: Final = datetime(2026, 1, 15, 12, 0, 0, 250_000, tzinfo=UTC)

BODIES: Final[Mapping[str, Body]] = {
    "ErrorMessage": ErrorMessage(
        id=ErrorId("err_1"),
        conversation_id=HERE,
        code=501,
        message="Something failed on our side.",
        severity=2,
        recoverable=True,
        originating_id=ASKED,
    ),
    "UserMessage": UserMessage(
        id=ASKED, conversation_id=HERE, previous_id=ANSWER, content="I am having a headache", timestamp=NOON
    ),
    "UserMessage, shortest": UserMessage(id=ASKED, conversation_id=HERE, content="8 🙂"),
    "AssistantMessage": AssistantMessage(
        id=ANSWER, conversation_id=HERE, previous_id=ASKED, content="Where does it hurt?", timestamp=NOON
    ),
    "ReasoningStep": ReasoningStep(
        id="step_1", conversation_id=HERE, message_id=ANSWER, sequence=1, content="A new symptom."
    ),
    "ToolUseRequest": ToolUseRequest(
        id=ToolUseId("tool_1"),
        conversation_id=HERE,
        message_id=ANSWER,
        tool_name="set_reminder",
        parameters={"at": "08:00", "days": [1, 2, 3], "note": None},
        execution="client",
    ),
    "ToolUseResult": ToolUseResult(
        id="res_1",
        conversation_id=HERE,
        request_id=ToolUseId("tool_1"),
        success=True,
        result={"set": True, "ids": [7, 8]},
    ),
    "ToolUseResult, failed": ToolUseResult(
        id="res_2",
        conversation_id=HERE,
        request_id=ToolUseId("tool_1"),
        success=False,
        error_code=305,
        error_message="no permission",
    ),
    "Acknowledgement": Acknowledgement(conversation_id=HERE, acknowledged_stanza_id=3, success=True),
    "Transcription": Transcription(
        id=ASKED,
        conversation_id=HERE,
        previous_id=ANSWER,
        text="I am having a headache",
        final=True,
        confidence=0.97,
        language="en",
    ),
    "AudioChunk": AudioChunk(
        conversation_id=HERE,
        track_sid="TR_AMq9",
        format="pcm_s16le_24000",
        duration_ms=20,
        sequence=0,
        data=b"\x00\x01\xfe\xff",
        is_last=False,
        sentence_id=SentenceId("sent_1"),
    ),
    "ControlStop": ControlStop(
        conversation_id=HERE, target_id=ANSWER, reason="heard enough", stop_type="all"
    ),
    "ControlStop, shortest": ControlStop(conversation_id=HERE),
    "ControlVariation": ControlVariation(
        conversation_id=HERE, target_id=ASKED, mode="edit", new_content="I have a migraine"
    ),
    "Configuration, first": Configuration(client_version="anamnesis-chat 0.1.0", features=("streaming",)),
    "Configuration, again": Configuration(
        conversation_id=HERE,
        last_sequence_seen=17,
        preferred_language="de",
        device="laptop",
        features=("streaming", "reasoning", "tools", "audio"),
    ),
    "Configuration, from the server": Configuration(
        conversation_id=HERE, features=(), last_client_stanza=3, last_server_stanza=-17
    ),
    "StartAnswer": StartAnswer(
        id=ANSWER,
        conversation_id=HERE,
        previous_id=ASKED,
        answer_type="text+voice",
        planned_sentence_count=2,
        safety=Safety(kind="emergency", tier=1, certainty="possible"),
    ),
    "MemoryTrace of a block": MemoryTrace(
        id=TraceId("trace_1"),
        conversation_id=HERE,
        previous_id=ASKED,
        memory_id=MemoryId("mem_history"),
        memory_type="memory_block",
        action="updated",
        content="turn 4 added: User says the headache began three days ago",
        metadata={
            "label": "conversation_history",
            "agent": "CONTEXT_EXTRACTOR",
            "revision": 12,
            "size": 8123,
            "limit": 32000,
            "utilization": 25.4,
            "level": "normal",
            "digest": "9f86d081884c7d65",
            "changed": ["turns.turn_4", "total_turns", "last_updated"],
        },
    ),
    "MemoryTrace of a long-term memory": MemoryTrace(
        id=TraceId("trace_2"),
        conversation_id=HERE,
        previous_id=ASKED,
        memory_id=MemoryId("mem_pref"),
        memory_type="user_preference",
        action="retrieved",
        content="Prefers technical explanations with code examples.",
        confidence=0.92,
        metadata={
            "retrievalScore": 0.92,
            "tags": ["style"],
            "source": "user_profile",
            "queryPrompt": "how to explain",
            "position": 1,
            "role": "primary",
        },
    ),
    "Commentary": Commentary(
        id=NoteId("note_1"),
        conversation_id=HERE,
        message_id=ANSWER,
        content="helped",
        commentary_type="feedback",
    ),
    "AssistantSentence": AssistantSentence(
        id=SentenceId("sent_1"),
        conversation_id=HERE,
        previous_id=ANSWER,
        sequence=1,
        text="Where does it hurt?",
        is_final=True,
    ),
    "SyncRequest": SyncRequest(
        conversation_id=HERE,
        messages=(
            EarlierMessage(local_id="local-1", role="user", contents="offline", created_at=NOON),
            UnreadableMessage(local_id="local-2", role="user", contents="a\0b", created_at="yesterday"),
        ),
    ),
    "SyncResponse": SyncResponse(
        conversation_id=HERE,
        synced_messages=(
            SyncedMessage(local_id="local-1", server_id=MessageId("msg_s5"), status="synced"),
            SyncedMessage(local_id="local-2", status="conflict", conflict="A text has a NUL character."),
        ),
        synced_at=NOON,
    ),
    "UserNote": UserNote(
        id=NoteId("note_2"),
        conversation_id=HERE,
        message_id=ANSWER,
        content="ask the doctor",
        category="question",
        action="create",
    ),
    "NoteConfirmation": NoteConfirmation(
        conversation_id=HERE,
        request_id="note_2",
        note_id=NoteId("note_2"),
        message_id=ANSWER,
        success=True,
    ),
    "MemoryAction": MemoryAction(
        id="act_1",
        conversation_id=HERE,
        action="update",
        memory_id=MemoryId("mem_pref"),
        memory=MemoryDraft(content="Prefers short answers.", category="style", pinned=True, rating=5),
    ),
    "MemoryConfirmation": MemoryConfirmation(
        conversation_id=HERE,
        request_id="act_1",
        memory_id=MemoryId("mem_pref"),
        action="update",
        success=True,
    ),
    "ServerInfo": ServerInfo(
        conversation_id=HERE,
        model=ModelInfo(name="local", provider="anamnesis"),
        backend="embedded",
        agents=("GENERAL_HEALTH", "MENTAL_HEALTH"),
    ),
}


def _numbered(body: Body) -> Envelope[Body]:
    number = 5 if "client" in body.SENDERS else -18
    return Envelope(number, body.conversation_id, body)


ENVELOPES: Final[Mapping[str, Envelope[Body]]] = {
    **{name: _numbered(body) for name, body in BODIES.items()},
    "a refusal before there is a conversation": error_envelope(
        AnamnesisError(NOT_CONFIGURED), error_id=ErrorId("err_2"), conversation_id=ConversationId("")
    ),
    "the example of the first document": Envelope(
        -1,
        HERE,
        MemoryTrace(
            id=TraceId("mem_001"),
            conversation_id=HERE,
            previous_id=ASKED,
            memory_id=MemoryId("user_location_pref"),
            memory_type="profile",
            action="retrieved",
            content="User is located in New York and prefers local restaurant recommendations",
            confidence=0.92,
            metadata={"tags": ["location", "user_profile"], "source": "user_profile"},
        ),
    ),
    "an envelope with meta": Envelope(
        6,
        HERE,
        BODIES["UserMessage, shortest"],
        {"source": "microphone", "messaging.trace_id": "4bf92f35", "attempt": 2, "muted": False, "gain": 0.5},
    ),
}
