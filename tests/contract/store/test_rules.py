"""Every rule of the tables is enforced by the database itself: for each there is a change that it refuses."""

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import Text

from orchestrator.errors import CONSTRAINT, NUL_IN_TEXT, AnamnesisError
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.engine.packing import pack
from orchestrator.store.engine.statements import IsRow
from orchestrator.store.engine.types import JsonValue, Moment, Words
from orchestrator.store.rows import (
    ApiKey,
    ArchivedTurn,
    Audio,
    Block,
    BlockRevision,
    Conversation,
    FactChange,
    Frame,
    HttpReply,
    IndexedMemory,
    Lease,
    LedgerEntry,
    LettaAgent,
    LettaBlock,
    LettaPassage,
    Memory,
    MemoryHead,
    MemoryLine,
    MemorySummary,
    MemoryWork,
    Message,
    Meta,
    ModelCall,
    Note,
    OpenConnection,
    Quarantined,
    Retrieval,
    SafetyAlert,
    SafetyEvent,
    SafetyRefusal,
    Sentence,
    StationTime,
    ToolUse,
    Trace,
    Turn,
    TurnRun,
    metadata,
)

PACKED = pack("{}")
NOW = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
TIMES = (NOW, NOW, None)
DIGEST = "0" * 64
ONE = ("ann", "c1", "file")
LAST = ("m1", 1, DIGEST)

TEA = Memory(
    id="mem1",
    user_id="ann",
    title=None,
    summary=None,
    entities=("tea",),
    key_phrases=(),
    content="likes tea",
    embeddings=(0.5, 0.5),
    embeddings_info={"dimensions": 2},
    importance=0.5,
    confidence=1.0,
    user_rating=5,
    created_by=None,
    source_type=None,
    source_info={},
    tags=("drink",),
    pinned=True,
    archived=False,
    created_at=NOW,
    updated_at=NOW,
    deleted_at=None,
)
SEVERITY = ("severity", "person", "headache", "8/10")
WORLD: tuple[IsRow, ...] = (
    Conversation("c1", "ann", "c1", None, "active", {}, 1, -2, *TIMES),
    Conversation("c2", "bob", "c2", None, "active", {}, 0, 0, *TIMES),
    Message("m1", "c1", 1, None, "user", "Hello", "local_1", "m1", "synced", NOW, "completed", *TIMES),
    Message("m2", "c1", 2, "m1", "assistant", "Hi.", None, "m2", "synced", None, "completed", *TIMES),
    Message("m3", "c1", 3, "m2", "user", "Help", "local_3", "m3", "synced", None, "completed", *TIMES),
    Message("n1", "c2", 1, None, "user", "Hello", None, "n1", "synced", None, "completed", *TIMES),
    Message("n2", "c2", 2, "n1", "assistant", "Hi.", None, "n2", "synced", None, "completed", *TIMES),
    Message("n3", "c2", 3, None, "system", "", None, "n3", "synced", None, "completed", *TIMES),
    Sentence("s1", "m2", 1, "Hi", "output", "opus", 10, 3, b"abc", {}, "completed", *TIMES),
    Sentence("s2", "m2", 2, ".", None, None, None, None, None, None, "completed", *TIMES),
    TEA,
    replace(TEA, id="mem2", embeddings=None, embeddings_info=None),
    Trace("t1", "c1", "m1", "mem1", None, "retrieved", "tea", 0.5, 0.5, "?", {}, 1, "bea", {}, *TIMES),
    Trace(
        "t2", "c1", None, "mem1", None, "updated", "tea", None, None, None, None, None, "bea", None, *TIMES
    ),
    Note("k1", "good", "c1", "m1", "ann", {}, *TIMES),
    Note("k2", "good", "c1", None, "ann", None, *TIMES),
    ToolUse("u1", "c1", "m1", "clock", {}, 12, "success", None, 1, NOW, *TIMES),
    ToolUse("u2", "c1", "m1", "clock", {}, None, "pending", None, 2, None, *TIMES),
    Audio("a1", "c1", "m1", "input", "opus", b"abc", 10, "Hello", None, {}, *TIMES),
    Audio("a2", "c1", None, "input", "opus", None, None, None, None, None, *TIMES),
    Meta("x1", "m1", "source", "microphone", *TIMES),
    Meta("x2", "m1", "source", "microphone", *TIMES),
    Turn("c1", 1, "m1", "m2", "completed", 1, None, "regenerate", "m2", False, NOW, NOW, NOW, NOW, NOW),
    Turn("c1", 2, "m3", None, "in_progress", 1, None, None, None, False, NOW, NOW, NOW, NOW, None),
    Turn("c2", 1, "n1", "n2", "completed", 1, None, None, None, False, NOW, NOW, NOW, NOW, NOW),
    Frame("c1", "client", 1, 1, 2, b"?", "ann", 1, None, NOW),
    Frame("c1", "server", -1, 2, 8, b"!", None, None, None, NOW),
    Frame("c1", "server", -2, 3, 13, b"!", None, 1, 1, NOW),
    Lease("c1", "worker", 1, NOW),
    Lease("c2", "worker", 1, NOW),
    OpenConnection("c1", "here", NOW),
    OpenConnection("c2", "there", NOW),
    BlockRevision("c1", "active_session", 1, None, b"{}", 2, DIGEST, None, "ledger", 1, "1.0", NOW),
    BlockRevision("c1", "active_session", 2, 1, b"{}", 2, DIGEST, DIGEST, "ledger", 1, "1.0", NOW),
    Block("c1", "active_session", "mem1", 1, DIGEST, "{}", "1.0", NOW),
    Block("c1", "context_summary", "mem2", None, None, None, None, NOW),
    ArchivedTurn("c1", 1, "{}", DIGEST, True, NOW),
    ArchivedTurn("c1", 2, "{}", DIGEST, False, NOW),
    ArchivedTurn("c1", 3, "{}", DIGEST, True, NOW),
    Quarantined("q1", "c1", "active_session", "{", "not JSON", "agent", NOW),
    Quarantined("q2", "c1", "active_session", "{", "not JSON", "agent", NOW),
    MemoryHead("ann", 2, 2, DIGEST, NOW),
    MemoryHead("bob", 0, 0, None, NOW),
    LedgerEntry("ann", 1, "mem1", "created", "{}", "salt", DIGEST, None, DIGEST, "ann", NOW),
    LedgerEntry("ann", 2, "mem1", "erased", None, None, DIGEST, DIGEST, DIGEST, "ann", NOW),
    IndexedMemory("mem1", "ann", 1, 1, "c1", "Ann", NOW, "D1:1", "", "tea", "", DIGEST, "m", b"\0", b"\0"),
    IndexedMemory("mem2", "ann", 2, 2, "c1", None, None, None, "", "tea", "", DIGEST, None, None, None),
    Retrieval("r1", "ann", "c1", "m1", "ann", "default", "flat", {}, 1.5, NOW),
    Retrieval("r2", "ann", None, None, "ann", "default", "flat", {}, 0.0, NOW),
    MemoryLine(
        *ONE, 1, "memory", "mem1", 1, *LAST, ("m1",), ("m1",), "local", 0, {}, "s", DIGEST, None, DIGEST, NOW
    ),
    MemoryLine(
        *ONE, 2, "erased", "mem1", 0, *LAST, (), (), "local", 0, None, None, DIGEST, DIGEST, DIGEST, NOW
    ),
    MemorySummary("ann", "c1", 1, "Tea.", "s", DIGEST, DIGEST, 1, "local", None, DIGEST, NOW),
    MemorySummary("ann", "c1", 2, None, None, DIGEST, DIGEST, 2, "local", DIGEST, DIGEST, NOW),
    MemoryWork("c1", "ann", 2, 1, 0, "memory_not_made", "proc_2", NOW, NOW, NOW),
    MemoryWork("c2", "bob", 0, 0, 3, None, "proc_1", NOW, NOW, NOW),
    FactChange("f1", "c1", 1, "add", None, *SEVERITY, False, "", NOW, 1, "m1", "8", "local", 0.9, NOW),
    FactChange("f2", "c1", 2, "replace", "f1", *SEVERITY, False, "", NOW, 2, "m3", "", "model", 1.0, NOW),
    FactChange("f3", "c2", 1, "unsure", None, *SEVERITY, True, "", NOW, None, None, "", "operator", 1.0, NOW),
    SafetyEvent("e1", "c1", "m1", 1, "message", "emergency", 3, ("stroke.face",), NOW, "certain"),
    SafetyEvent("e2", "c1", "m1", 1, "answer", "refused", 0, (), NOW, None),
    SafetyAlert("l1", "e1", "pending", 0, NOW, None, NOW, NOW),
    SafetyAlert("l2", "e2", "sent", 1, NOW, "busy", NOW, NOW),
    SafetyRefusal("e1", "You have gout.", NOW),
    SafetyRefusal("e2", "You have flu.", NOW),
    ModelCall("call1", "c1", "m1", 1, "extractor", "a model", DIGEST, PACKED, 10, 2, "answered", NOW, NOW),
    ModelCall("call2", "c1", "m1", 2, "SLEEP", "a model", DIGEST, PACKED, 0, 0, "pending", NOW, NOW),
    TurnRun("run1", "c1", 1, "m1", "m2", "SLEEP", 0.9, "SLEEP", "sleep", "abc", None, 12.5, NOW),
    TurnRun("run2", "c1", 1, "m1", "m2", None, None, None, None, None, "internal", 3.0, NOW),
    StationTime("run1", 1, "read", 0.0, 1.5, NOW),
    StationTime("run1", 2, "write", 1.5, 2.0, NOW),
    LettaAgent("c2", "extractor", None, None, "worker", NOW, NOW, NOW),
    LettaAgent("c1", "extractor", "agent-1", "r", None, None, NOW, NOW),
    LettaAgent("c1", "classifier", "agent-2", "r", None, None, NOW, NOW),
    LettaBlock("c1", "active_session", "block-1", DIGEST, None, NOW),
    LettaBlock("c1", "context_summary", "block-2", None, DIGEST, NOW),
    LettaPassage("c1", 1, 1, DIGEST, "passage-1", NOW, NOW),
    LettaPassage("c1", 3, 3, DIGEST, None, NOW, NOW),
    ApiKey("key1", "script", "ann", ("person",), ("*",), DIGEST, None, "cli", NOW, NOW, None),
    ApiKey("key2", "study", "bob", ("analyst",), (), DIGEST, "a study", "cli", NOW, NOW, NOW),
    HttpReply("ann", "one", DIGEST, 201, "{}", NOW),
    HttpReply("bob", "two", DIGEST, None, None, NOW),
)

# The rule that refuses the change, the table, the changed values, and the row.
BREAKS = [
    ("pk_alicia_conversations", "alicia_conversations", "id = 'c1'", "id = 'c2'"),
    ("uq_alicia_conversations_room", "alicia_conversations", "livekit_room_name = 'c1'", "id = 'c2'"),
    ("ck_alicia_conversations_id", "alicia_conversations", "id = ''", "id = 'c1'"),
    ("ck_alicia_conversations_user_id", "alicia_conversations", "user_id = ''", "id = 'c1'"),
    ("ck_alicia_conversations_status", "alicia_conversations", "status = 'gone'", "id = 'c1'"),
    ("ck_alicia_conversations_deleted", "alicia_conversations", "status = 'deleted'", "id = 'c1'"),
    ("ck_alicia_conversations_deleted", "alicia_conversations", "deleted_at = created_at", "id = 'c1'"),
    ("ck_alicia_conversations_preferences", "alicia_conversations", "preferences = '[]'", "id = 'c1'"),
    (
        "ck_alicia_conversations_last_client_stanza_id",
        "alicia_conversations",
        "last_client_stanza_id = -1",
        "id = 'c1'",
    ),
    (
        "ck_alicia_conversations_last_server_stanza_id",
        "alicia_conversations",
        "last_server_stanza_id = 1",
        "id = 'c1'",
    ),
    ("pk_alicia_messages", "alicia_messages", "id = 'm3'", "id = 'n2'"),
    ("uq_alicia_messages_sequence_number", "alicia_messages", "sequence_number = 1", "id = 'm3'"),
    ("uq_alicia_messages_local_id", "alicia_messages", "local_id = 'local_1'", "id = 'm3'"),
    ("fk_alicia_messages_conversation", "alicia_messages", "conversation_id = 'c9'", "id = 'n3'"),
    ("fk_alicia_messages_previous", "alicia_messages", "previous_id = 'n1'", "id = 'm3'"),
    ("ck_alicia_messages_id", "alicia_messages", "id = ''", "id = 'm3'"),
    ("ck_alicia_messages_sequence_number", "alicia_messages", "sequence_number = 0", "id = 'm3'"),
    ("ck_alicia_messages_previous_id", "alicia_messages", "previous_id = id", "id = 'm3'"),
    ("ck_alicia_messages_message_role", "alicia_messages", "message_role = 'robot'", "id = 'm3'"),
    ("ck_alicia_messages_sync_status", "alicia_messages", "sync_status = 'lost'", "id = 'm3'"),
    ("ck_alicia_messages_completion_status", "alicia_messages", "completion_status = 'done'", "id = 'm3'"),
    ("pk_alicia_sentences", "alicia_sentences", "id = 's1'", "id = 's2'"),
    ("uq_alicia_sentences_sequence_number", "alicia_sentences", "sentence_sequence_number = 1", "id = 's2'"),
    ("fk_alicia_sentences_message", "alicia_sentences", "message_id = 'm9'", "id = 's1'"),
    ("ck_alicia_sentences_id", "alicia_sentences", "id = ''", "id = 's1'"),
    (
        "ck_alicia_sentences_sentence_sequence_number",
        "alicia_sentences",
        "sentence_sequence_number = 0",
        "id = 's1'",
    ),
    ("ck_alicia_sentences_audio_type", "alicia_sentences", "audio_type = 'both'", "id = 's1'"),
    ("ck_alicia_sentences_duration_ms", "alicia_sentences", "duration_ms = -1", "id = 's1'"),
    ("ck_alicia_sentences_audio_bytesize", "alicia_sentences", "audio_bytesize = 4", "id = 's1'"),
    ("ck_alicia_sentences_audio_bytesize", "alicia_sentences", "audio_bytesize = 4", "id = 's2'"),
    ("ck_alicia_sentences_audio_bytesize", "alicia_sentences", "audio_data = NULL", "id = 's1'"),
    ("ck_alicia_sentences_meta", "alicia_sentences", "meta = '[]'", "id = 's1'"),
    ("ck_alicia_sentences_completion_status", "alicia_sentences", "completion_status = 'done'", "id = 's1'"),
    ("pk_alicia_memory", "alicia_memory", "id = 'mem1', user_id = 'bob'", "id = 'mem2'"),
    ("ck_alicia_memory_id", "alicia_memory", "id = ''", "id = 'mem1'"),
    ("ck_alicia_memory_importance", "alicia_memory", "importance = 1.1", "id = 'mem1'"),
    ("ck_alicia_memory_importance", "alicia_memory", "importance = -0.1", "id = 'mem1'"),
    ("ck_alicia_memory_confidence", "alicia_memory", "confidence = 1.1", "id = 'mem1'"),
    ("ck_alicia_memory_confidence", "alicia_memory", "confidence = -0.1", "id = 'mem1'"),
    ("ck_alicia_memory_user_rating", "alicia_memory", "user_rating = 0", "id = 'mem1'"),
    ("ck_alicia_memory_user_rating", "alicia_memory", "user_rating = 6", "id = 'mem1'"),
    ("ck_alicia_memory_embeddings", "alicia_memory", "embeddings_info = '{}'", "id = 'mem1'"),
    ("ck_alicia_memory_embeddings", "alicia_memory", "embeddings_info = NULL", "id = 'mem1'"),
    (
        "ck_alicia_memory_embeddings",
        "alicia_memory",
        """embeddings_info = '{"dimensions": 1025}'""",
        "id = 'mem1'",
    ),
    ("ck_alicia_memory_embeddings_info", "alicia_memory", "embeddings_info = '[]'", "id = 'mem2'"),
    ("ck_alicia_memory_source_info", "alicia_memory", "source_info = '[]'", "id = 'mem1'"),
    ("pk_alicia_memory_used", "alicia_memory_used", "id = 't1'", "id = 't2'"),
    ("fk_alicia_memory_used_conversation", "alicia_memory_used", "conversation_id = 'c9'", "id = 't2'"),
    ("fk_alicia_memory_used_message", "alicia_memory_used", "message_id = 'n1'", "id = 't1'"),
    ("fk_alicia_memory_used_memory", "alicia_memory_used", "memory_id = 'mem9'", "id = 't1'"),
    ("ck_alicia_memory_used_id", "alicia_memory_used", "id = ''", "id = 't1'"),
    ("ck_alicia_memory_used_action", "alicia_memory_used", "action = 'forgotten'", "id = 't2'"),
    (
        "ck_alicia_memory_used_confidence",
        "alicia_memory_used",
        "confidence = 1.1, similarity_score = NULL",
        "id = 't1'",
    ),
    (
        "ck_alicia_memory_used_similarity_score",
        "alicia_memory_used",
        "confidence = NULL, similarity_score = 1.1",
        "id = 't1'",
    ),
    ("ck_alicia_memory_used_one_score", "alicia_memory_used", "confidence = 0.6", "id = 't1'"),
    (
        "ck_alicia_memory_used_position_in_results",
        "alicia_memory_used",
        "position_in_results = 0",
        "id = 't1'",
    ),
    *(
        ("ck_alicia_memory_used_only_what_was_found_has_a_score", "alicia_memory_used", scored, "id = 't2'")
        for scored in ("confidence = 0.5", "similarity_score = 0.5", "position_in_results = 1")
    ),
    ("ck_alicia_memory_used_somebody", "alicia_memory_used", "actor = NULL", "id = 't2'"),
    ("ck_alicia_memory_used_meta", "alicia_memory_used", "meta = '[]'", "id = 't1'"),
    (
        "ck_alicia_memory_used_query_prompt_meta",
        "alicia_memory_used",
        "query_prompt_meta = '[]'",
        "id = 't1'",
    ),
    (
        "pk_alicia_user_conversation_commentaries",
        "alicia_user_conversation_commentaries",
        "id = 'k1'",
        "id = 'k2'",
    ),
    (
        "fk_alicia_user_conversation_commentaries_conversation",
        "alicia_user_conversation_commentaries",
        "conversation_id = 'c9'",
        "id = 'k2'",
    ),
    (
        "fk_alicia_user_conversation_commentaries_message",
        "alicia_user_conversation_commentaries",
        "message_id = 'n1'",
        "id = 'k1'",
    ),
    (
        "ck_alicia_user_conversation_commentaries_id",
        "alicia_user_conversation_commentaries",
        "id = ''",
        "id = 'k1'",
    ),
    (
        "ck_alicia_user_conversation_commentaries_created_by",
        "alicia_user_conversation_commentaries",
        "created_by = ''",
        "id = 'k1'",
    ),
    (
        "ck_alicia_user_conversation_commentaries_meta",
        "alicia_user_conversation_commentaries",
        "meta = '[]'",
        "id = 'k1'",
    ),
    ("pk_alicia_tool_uses", "alicia_tool_uses", "id = 'u1'", "id = 'u2'"),
    ("uq_alicia_tool_uses_sequence_number", "alicia_tool_uses", "sequence_number = 1", "id = 'u2'"),
    ("fk_alicia_tool_uses_conversation", "alicia_tool_uses", "conversation_id = 'c9'", "id = 'u1'"),
    ("fk_alicia_tool_uses_message", "alicia_tool_uses", "message_id = 'n1'", "id = 'u1'"),
    ("ck_alicia_tool_uses_id", "alicia_tool_uses", "id = ''", "id = 'u1'"),
    ("ck_alicia_tool_uses_tool_name", "alicia_tool_uses", "tool_name = ''", "id = 'u1'"),
    ("ck_alicia_tool_uses_tool_arguments", "alicia_tool_uses", "tool_arguments = '[]'", "id = 'u1'"),
    ("ck_alicia_tool_uses_status", "alicia_tool_uses", "status = 'done'", "id = 'u2'"),
    (
        "ck_alicia_tool_uses_completed",
        "alicia_tool_uses",
        "completed_at = NULL, tool_result = NULL",
        "id = 'u1'",
    ),
    ("ck_alicia_tool_uses_completed", "alicia_tool_uses", "completed_at = created_at", "id = 'u2'"),
    ("ck_alicia_tool_uses_result", "alicia_tool_uses", "tool_result = '1'", "id = 'u2'"),
    ("ck_alicia_tool_uses_error", "alicia_tool_uses", "error_message = 'broken'", "id = 'u1'"),
    ("ck_alicia_tool_uses_sequence_number", "alicia_tool_uses", "sequence_number = 0", "id = 'u1'"),
    ("pk_alicia_audio", "alicia_audio", "id = 'a1'", "id = 'a2'"),
    ("fk_alicia_audio_conversation", "alicia_audio", "conversation_id = 'c9'", "id = 'a2'"),
    ("fk_alicia_audio_message", "alicia_audio", "message_id = 'n1'", "id = 'a1'"),
    ("ck_alicia_audio_id", "alicia_audio", "id = ''", "id = 'a1'"),
    ("ck_alicia_audio_audio_type", "alicia_audio", "audio_type = 'both'", "id = 'a1'"),
    ("ck_alicia_audio_duration_ms", "alicia_audio", "duration_ms = -1", "id = 'a1'"),
    ("ck_alicia_audio_transcription_meta", "alicia_audio", "transcription_meta = '[]'", "id = 'a1'"),
    ("pk_alicia_meta", "alicia_meta", "id = 'x1'", "id = 'x2'"),
    ("ck_alicia_meta_id", "alicia_meta", "id = ''", "id = 'x1'"),
    ("ck_alicia_meta_ref", "alicia_meta", "ref = ''", "id = 'x1'"),
    ("ck_alicia_meta_key", "alicia_meta", "key = ''", "id = 'x1'"),
    (
        "pk_turns",
        "turns",
        "conversation_id = 'c1', user_message_id = 'm2', answer_id = 'm1'",
        "conversation_id = 'c2'",
    ),
    ("uq_turns_user_message", "turns", "user_message_id = 'm1'", "number = 2"),
    ("uq_turns_answer", "turns", "answer_id = 'm2'", "number = 2"),
    (
        "uq_turns_one_at_a_time",
        "turns",
        "state = 'in_progress', ended_at = NULL",
        "conversation_id = 'c1' AND number = 1",
    ),
    ("fk_turns_conversation", "turns", "conversation_id = 'c9'", "conversation_id = 'c2'"),
    ("fk_turns_user_message", "turns", "user_message_id = 'n2'", "number = 2"),
    ("fk_turns_answer", "turns", "answer_id = 'n1'", "number = 2"),
    ("fk_turns_target", "turns", "variation = 'edit', target_id = 'n1'", "number = 2"),
    ("ck_turns_number", "turns", "number = 0", "number = 2"),
    ("ck_turns_state", "turns", "state = 'lost'", "number = 2"),
    ("ck_turns_attempts", "turns", "attempts = -1, state = 'pending'", "number = 2"),
    ("ck_turns_attempts", "turns", "attempts = 0", "number = 2"),
    ("ck_turns_error", "turns", "error = 'internal'", "number = 2"),
    ("ck_turns_error", "turns", "state = 'failed', ended_at = created_at", "number = 2"),
    ("ck_turns_variation", "turns", "variation = 'shout', target_id = 'm1'", "number = 2"),
    ("ck_turns_target", "turns", "variation = 'edit'", "number = 2"),
    ("ck_turns_started", "turns", "started_at = NULL", "number = 2"),
    ("ck_turns_ended", "turns", "ended_at = created_at", "number = 2"),
    ("ck_turns_answered", "turns", "answer_id = NULL", "conversation_id = 'c2'"),
    ("pk_frames", "frames", "stanza_id = -1", "stanza_id = -2"),
    ("uq_frames_position", "frames", "position = 1", "stanza_id = -2"),
    ("fk_frames_conversation", "frames", "conversation_id = 'c9'", "stanza_id = -1"),
    ("fk_frames_turn", "frames", "turn = 9", "stanza_id = -2"),
    ("ck_frames_direction", "frames", "direction = 'up'", "stanza_id = -1"),
    ("ck_frames_stanza_id", "frames", "stanza_id = 0", "stanza_id = 1"),
    ("ck_frames_stanza_id", "frames", "stanza_id = 0", "stanza_id = -1"),
    ("ck_frames_stanza_id", "frames", "stanza_id = -3", "stanza_id = 1"),
    ("ck_frames_stanza_id", "frames", "stanza_id = 3", "stanza_id = -1"),
    ("ck_frames_position", "frames", "position = 0", "stanza_id = -1"),
    ("ck_frames_type", "frames", "type = 65536", "stanza_id = -1"),
    ("ck_frames_payload", "frames", "payload = substr(payload, 1, 0)", "stanza_id = -1"),
    ("ck_frames_sender", "frames", "sender = NULL", "stanza_id = 1"),
    ("ck_frames_sender", "frames", "sender = 'ann'", "stanza_id = -1"),
    ("ck_frames_epoch", "frames", "epoch = 0", "stanza_id = -2"),
    ("pk_leases", "leases", "conversation_id = 'c1'", "conversation_id = 'c2'"),
    ("fk_leases_conversation", "leases", "conversation_id = 'c9'", "conversation_id = 'c2'"),
    ("ck_leases_holder", "leases", "holder = ''", "conversation_id = 'c1'"),
    ("ck_leases_epoch", "leases", "epoch = 0", "conversation_id = 'c1'"),
    ("pk_connections", "connections", "conversation_id = 'c1'", "conversation_id = 'c2'"),
    ("fk_connections_conversation", "connections", "conversation_id = 'c9'", "conversation_id = 'c2'"),
    ("ck_connections_connection_id", "connections", "connection_id = ''", "conversation_id = 'c1'"),
    (
        "pk_block_revisions",
        "block_revisions",
        "revision = 1, base = NULL, previous_digest = NULL",
        "revision = 2",
    ),
    ("fk_block_revisions_conversation", "block_revisions", "conversation_id = 'c9'", "revision = 2"),
    ("ck_block_revisions_label", "block_revisions", "label = 'diary'", "revision = 2"),
    ("ck_block_revisions_revision", "block_revisions", "revision = 0, base = NULL", "revision = 2"),
    ("ck_block_revisions_base", "block_revisions", "base = 2", "revision = 2"),
    ("ck_block_revisions_size", "block_revisions", "size = -1", "revision = 2"),
    ("ck_block_revisions_digest", "block_revisions", "digest = 'short'", "revision = 2"),
    ("ck_block_revisions_previous_digest", "block_revisions", "previous_digest = NULL", "revision = 2"),
    ("ck_block_revisions_previous_digest", "block_revisions", "previous_digest = digest", "revision = 1"),
    ("ck_block_revisions_turn", "block_revisions", "turn = 0", "revision = 2"),
    ("pk_blocks", "blocks", "label = 'active_session'", "label = 'context_summary'"),
    ("uq_blocks_memory", "blocks", "memory_id = 'mem1'", "label = 'context_summary'"),
    ("fk_blocks_conversation", "blocks", "conversation_id = 'c9'", "label = 'context_summary'"),
    ("fk_blocks_memory", "blocks", "memory_id = 'mem9'", "label = 'context_summary'"),
    ("fk_blocks_revision", "blocks", "revision = 9", "label = 'active_session'"),
    ("ck_blocks_label", "blocks", "label = 'diary'", "label = 'context_summary'"),
    ("ck_blocks_digest", "blocks", "digest = 'short'", "label = 'active_session'"),
    ("ck_blocks_whole_or_empty", "blocks", "value = 'half'", "label = 'context_summary'"),
    ("ck_blocks_whole_or_empty", "blocks", "value = NULL", "label = 'active_session'"),
    ("pk_archived_turns", "archived_turns", "turn_id = 1", "turn_id = 2"),
    ("fk_archived_turns_conversation", "archived_turns", "conversation_id = 'c9'", "turn_id = 2"),
    ("ck_archived_turns_turn_id", "archived_turns", "turn_id = 0", "turn_id = 2"),
    ("ck_archived_turns_digest", "archived_turns", "digest = 'short'", "turn_id = 2"),
    ("pk_block_quarantine", "block_quarantine", "id = 'q1'", "id = 'q2'"),
    ("fk_block_quarantine_conversation", "block_quarantine", "conversation_id = 'c9'", "id = 'q1'"),
    ("ck_block_quarantine_id", "block_quarantine", "id = ''", "id = 'q1'"),
    ("ck_block_quarantine_label", "block_quarantine", "label = 'diary'", "id = 'q1'"),
    ("pk_memory_heads", "memory_heads", "user_id = 'ann'", "user_id = 'bob'"),
    ("ck_memory_heads_user_id", "memory_heads", "user_id = ''", "user_id = 'bob'"),
    ("ck_memory_heads_version", "memory_heads", "version = -1", "user_id = 'bob'"),
    ("ck_memory_heads_entries", "memory_heads", "entries = -1", "user_id = 'ann'"),
    ("ck_memory_heads_digest", "memory_heads", "entries = 1", "user_id = 'bob'"),
    ("ck_memory_heads_digest", "memory_heads", "digest = NULL", "user_id = 'ann'"),
    ("pk_memory_ledger", "memory_ledger", "number = 1, previous_digest = NULL", "number = 2"),
    ("fk_memory_ledger_head", "memory_ledger", "user_id = 'eve'", "number = 2"),
    ("fk_memory_ledger_memory", "memory_ledger", "user_id = 'bob'", "number = 2"),
    ("ck_memory_ledger_number", "memory_ledger", "number = 0", "number = 2"),
    ("ck_memory_ledger_action", "memory_ledger", "action = 'lost'", "number = 2"),
    ("ck_memory_ledger_body", "memory_ledger", "body = NULL", "number = 1"),
    ("ck_memory_ledger_body", "memory_ledger", "salt = 'pepper'", "number = 2"),
    ("ck_memory_ledger_body_digest", "memory_ledger", "body_digest = 'short'", "number = 2"),
    ("ck_memory_ledger_digest", "memory_ledger", "digest = 'short'", "number = 2"),
    ("ck_memory_ledger_previous_digest", "memory_ledger", "previous_digest = NULL", "number = 2"),
    ("ck_memory_ledger_previous_digest", "memory_ledger", "previous_digest = digest", "number = 1"),
    ("ck_memory_ledger_actor", "memory_ledger", "actor = ''", "number = 2"),
    ("pk_memory_index", "memory_index", "memory_id = 'mem1'", "memory_id = 'mem2'"),
    ("fk_memory_index_memory", "memory_index", "user_id = 'bob'", "memory_id = 'mem2'"),
    ("uq_memory_index_place", "memory_index", "ordinal = 1", "memory_id = 'mem2'"),
    ("uq_memory_index_external", "memory_index", "external_id = 'D1:1'", "memory_id = 'mem2'"),
    ("ck_memory_index_version", "memory_index", "version = 0", "memory_id = 'mem2'"),
    ("ck_memory_index_ordinal", "memory_index", "ordinal = 0", "memory_id = 'mem2'"),
    ("ck_memory_index_digest", "memory_index", "digest = 'short'", "memory_id = 'mem2'"),
    ("ck_memory_index_vectors", "memory_index", "model = NULL", "memory_id = 'mem1'"),
    ("ck_memory_index_vectors", "memory_index", "window_vector = NULL", "memory_id = 'mem1'"),
    ("pk_retrievals", "retrievals", "id = 'r1'", "id = 'r2'"),
    ("ck_retrievals_id", "retrievals", "id = ''", "id = 'r1'"),
    ("fk_retrievals_conversation", "retrievals", "conversation_id = 'c9'", "id = 'r2'"),
    ("fk_retrievals_message", "retrievals", "message_id = 'n1'", "id = 'r1'"),
    ("ck_retrievals_user_id", "retrievals", "user_id = ''", "id = 'r1'"),
    ("ck_retrievals_actor", "retrievals", "actor = ''", "id = 'r1'"),
    ("ck_retrievals_milliseconds", "retrievals", "milliseconds = -1", "id = 'r1'"),
    ("ck_retrievals_milliseconds", "retrievals", "milliseconds = 86400001", "id = 'r1'"),
    ("ck_retrievals_observability", "retrievals", "observability = '[]'", "id = 'r1'"),
    ("pk_memory_lines", "memory_lines", "number = 1, previous = NULL", "number = 2"),
    ("fk_memory_lines_conversation", "memory_lines", "conversation_id = 'c9'", "number = 2"),
    ("fk_memory_lines_last_message", "memory_lines", "last_message_id = 'm9'", "number = 2"),
    ("ck_memory_lines_user_id", "memory_lines", "user_id = ''", "number = 2"),
    ("ck_memory_lines_kind", "memory_lines", "kind = 'disc'", "number = 2"),
    ("ck_memory_lines_action", "memory_lines", "action = 'lost'", "number = 2"),
    ("ck_memory_lines_number", "memory_lines", "number = 0", "number = 2"),
    ("ck_memory_lines_chunk", "memory_lines", "chunk = -1", "number = 2"),
    ("ck_memory_lines_last_number", "memory_lines", "last_number = 0", "number = 2"),
    ("ck_memory_lines_hash", "memory_lines", "hash = 'short'", "number = 2"),
    ("ck_memory_lines_maker", "memory_lines", "maker = ''", "number = 2"),
    ("ck_memory_lines_dropped", "memory_lines", "dropped = -1", "number = 2"),
    ("ck_memory_lines_body_and_salt", "memory_lines", "body = NULL", "number = 1"),
    ("ck_memory_lines_body_and_salt", "memory_lines", "salt = 'pepper'", "number = 2"),
    ("ck_memory_lines_body", "memory_lines", "body = '[]'", "number = 1"),
    ("ck_memory_lines_body_digest", "memory_lines", "body_digest = 'short'", "number = 2"),
    ("ck_memory_lines_digest", "memory_lines", "digest = 'short'", "number = 2"),
    ("ck_memory_lines_previous", "memory_lines", "previous = NULL", "number = 2"),
    ("ck_memory_lines_previous", "memory_lines", "previous = digest", "number = 1"),
    ("pk_memory_summaries", "memory_summaries", "number = 1, previous = NULL", "number = 2"),
    ("fk_memory_summaries_conversation", "memory_summaries", "conversation_id = 'c9'", "number = 2"),
    ("ck_memory_summaries_user_id", "memory_summaries", "user_id = ''", "number = 2"),
    ("ck_memory_summaries_number", "memory_summaries", "number = 0", "number = 2"),
    ("ck_memory_summaries_hash", "memory_summaries", "hash = 'short'", "number = 2"),
    ("ck_memory_summaries_seen", "memory_summaries", "seen = 0", "number = 2"),
    ("ck_memory_summaries_text_and_salt", "memory_summaries", "text = NULL", "number = 1"),
    ("ck_memory_summaries_text_and_salt", "memory_summaries", "salt = 'pepper'", "number = 2"),
    ("ck_memory_summaries_text_digest", "memory_summaries", "text_digest = 'short'", "number = 2"),
    ("ck_memory_summaries_maker", "memory_summaries", "maker = ''", "number = 2"),
    ("ck_memory_summaries_digest", "memory_summaries", "digest = 'short'", "number = 2"),
    ("ck_memory_summaries_previous", "memory_summaries", "previous = NULL", "number = 2"),
    ("pk_memory_work", "memory_work", "conversation_id = 'c1'", "conversation_id = 'c2'"),
    ("fk_memory_work_conversation", "memory_work", "conversation_id = 'c9'", "conversation_id = 'c2'"),
    ("ck_memory_work_user_id", "memory_work", "user_id = ''", "conversation_id = 'c2'"),
    ("ck_memory_work_changed", "memory_work", "changed = -1, settled = -2", "conversation_id = 'c2'"),
    ("ck_memory_work_settled", "memory_work", "settled = 3", "conversation_id = 'c1'"),
    ("ck_memory_work_dropped", "memory_work", "dropped = -1", "conversation_id = 'c1'"),
    ("ck_memory_work_error", "memory_work", "error = ''", "conversation_id = 'c1'"),
    ("ck_memory_work_claim", "memory_work", "claimed_by = NULL", "conversation_id = 'c1'"),
    ("pk_fact_changes", "fact_changes", "id = 'f1'", "id = 'f3'"),
    ("uq_fact_changes_position", "fact_changes", "position = 1", "id = 'f2'"),
    (
        "fk_fact_changes_conversation",
        "fact_changes",
        "conversation_id = 'c9'",
        "id = 'f3'",
    ),
    ("fk_fact_changes_message", "fact_changes", "message_id = 'n1'", "id = 'f2'"),
    ("fk_fact_changes_target", "fact_changes", "target = 'nothing'", "id = 'f2'"),
    ("ck_fact_changes_id", "fact_changes", "id = ''", "id = 'f3'"),
    ("ck_fact_changes_position", "fact_changes", "position = 0", "id = 'f2'"),
    ("ck_fact_changes_op", "fact_changes", "op = 'forgive'", "id = 'f2'"),
    ("ck_fact_changes_target", "fact_changes", "target = NULL", "id = 'f2'"),
    ("ck_fact_changes_not_of_itself", "fact_changes", "target = 'f2'", "id = 'f2'"),
    ("ck_fact_changes_kind", "fact_changes", "kind = ''", "id = 'f2'"),
    ("ck_fact_changes_subject", "fact_changes", "subject = ''", "id = 'f2'"),
    ("ck_fact_changes_about", "fact_changes", f"about = '{'x' * 121}'", "id = 'f2'"),
    ("ck_fact_changes_value", "fact_changes", "value = ''", "id = 'f2'"),
    ("ck_fact_changes_true_when", "fact_changes", f"true_when = '{'x' * 121}'", "id = 'f2'"),
    ("ck_fact_changes_words", "fact_changes", f"words = '{'x' * 241}'", "id = 'f2'"),
    ("ck_fact_changes_turn", "fact_changes", "turn = 0", "id = 'f2'"),
    ("ck_fact_changes_decided_by", "fact_changes", "decided_by = 'nobody'", "id = 'f2'"),
    ("ck_fact_changes_confidence", "fact_changes", "confidence = 1.5", "id = 'f2'"),
    ("pk_safety_events", "safety_events", "id = 'e1'", "id = 'e2'"),
    (
        "fk_safety_events_conversation",
        "safety_events",
        "conversation_id = 'c9', message_id = 'm9', turn = 9",
        "id = 'e2'",
    ),
    ("fk_safety_events_message", "safety_events", "message_id = 'n1'", "id = 'e2'"),
    ("fk_safety_events_turn", "safety_events", "turn = 9", "id = 'e2'"),
    ("ck_safety_events_id", "safety_events", "id = ''", "id = 'e2'"),
    ("ck_safety_events_stage", "safety_events", "stage = 'later'", "id = 'e2'"),
    ("ck_safety_events_kind", "safety_events", "kind = 'joke'", "id = 'e2'"),
    ("ck_safety_events_tier", "safety_events", "tier = 0", "id = 'e1'"),
    ("ck_safety_events_tier", "safety_events", "tier = 4", "id = 'e1'"),
    ("ck_safety_events_tier", "safety_events", "tier = 1", "id = 'e2'"),
    ("ck_safety_events_of_a_turn", "safety_events", "turn = NULL", "id = 'e2'"),
    ("ck_safety_events_certainty", "safety_events", "certainty = 'likely'", "id = 'e1'"),
    ("ck_safety_events_certain_or_possible", "safety_events", "certainty = NULL", "id = 'e1'"),
    ("ck_safety_events_certain_or_possible", "safety_events", "certainty = 'certain'", "id = 'e2'"),
    ("pk_safety_alerts", "safety_alerts", "id = 'l1'", "id = 'l2'"),
    ("fk_safety_alerts_event", "safety_alerts", "event_id = 'e9'", "id = 'l2'"),
    ("uq_safety_alerts_event", "safety_alerts", "event_id = 'e1'", "id = 'l2'"),
    ("ck_safety_alerts_id", "safety_alerts", "id = ''", "id = 'l2'"),
    ("ck_safety_alerts_state", "safety_alerts", "state = 'lost'", "id = 'l2'"),
    ("ck_safety_alerts_attempts", "safety_alerts", "attempts = -1", "id = 'l2'"),
    ("pk_safety_refusals", "safety_refusals", "event_id = 'e1'", "event_id = 'e2'"),
    ("fk_safety_refusals_event", "safety_refusals", "event_id = 'e9'", "event_id = 'e2'"),
    ("ck_safety_refusals_said", "safety_refusals", "said = ''", "event_id = 'e2'"),
    ("pk_model_calls", "model_calls", "id = 'call1'", "id = 'call2'"),
    ("fk_model_calls_conversation", "model_calls", "conversation_id = 'c9'", "id = 'call2'"),
    ("fk_model_calls_message", "model_calls", "message_id = 'm9'", "id = 'call2'"),
    ("ck_model_calls_id", "model_calls", "id = ''", "id = 'call2'"),
    ("ck_model_calls_number", "model_calls", "number = 0", "id = 'call2'"),
    ("ck_model_calls_role", "model_calls", "role = ''", "id = 'call2'"),
    ("ck_model_calls_model", "model_calls", "model = ''", "id = 'call2'"),
    ("ck_model_calls_digest", "model_calls", "digest = 'short'", "id = 'call2'"),
    ("ck_model_calls_tokens", "model_calls", "prompt_tokens = -1", "id = 'call2'"),
    ("ck_model_calls_tokens", "model_calls", "completion_tokens = -1", "id = 'call2'"),
    ("ck_model_calls_outcome", "model_calls", "outcome = ''", "id = 'call2'"),
    ("pk_turn_runs", "turn_runs", "id = 'run1'", "id = 'run2'"),
    ("fk_turn_runs_turn", "turn_runs", "turn = 99", "id = 'run2'"),
    ("fk_turn_runs_message", "turn_runs", "message_id = 'm9'", "id = 'run2'"),
    ("ck_turn_runs_id", "turn_runs", "id = ''", "id = 'run2'"),
    ("ck_turn_runs_confidence", "turn_runs", "confidence = 1.5", "id = 'run1'"),
    ("ck_turn_runs_routed", "turn_runs", "specialist = NULL", "id = 'run1'"),
    ("ck_turn_runs_prompt", "turn_runs", "prompt = NULL", "id = 'run1'"),
    ("ck_turn_runs_milliseconds", "turn_runs", "milliseconds = -1", "id = 'run2'"),
    ("pk_station_times", "station_times", "position = 1", "position = 2"),
    ("fk_station_times_run", "station_times", "run_id = 'run9'", "position = 2"),
    ("ck_station_times_position", "station_times", "position = 0", "position = 2"),
    ("ck_station_times_station", "station_times", "station = ''", "position = 2"),
    ("ck_station_times_start_ms", "station_times", "start_ms = -1", "position = 2"),
    ("ck_station_times_milliseconds", "station_times", "milliseconds = -1", "position = 2"),
    ("pk_letta_agents", "letta_agents", "role = 'extractor'", "role = 'classifier'"),
    ("uq_letta_agents_agent", "letta_agents", "agent_id = 'agent-1'", "role = 'classifier'"),
    ("fk_letta_agents_conversation", "letta_agents", "conversation_id = 'c9'", "role = 'classifier'"),
    ("ck_letta_agents_role", "letta_agents", "role = ''", "role = 'classifier'"),
    (
        "ck_letta_agents_made_or_claimed",
        "letta_agents",
        "holder = NULL, expires_at = NULL",
        "agent_id IS NULL",
    ),
    ("ck_letta_agents_recipe", "letta_agents", "recipe = NULL", "role = 'classifier'"),
    ("ck_letta_agents_claim", "letta_agents", "holder = 'worker'", "role = 'classifier'"),
    ("pk_letta_blocks", "letta_blocks", "label = 'active_session'", "block_id = 'block-2'"),
    ("uq_letta_blocks_block", "letta_blocks", "block_id = 'block-1'", "block_id = 'block-2'"),
    ("fk_letta_blocks_conversation", "letta_blocks", "conversation_id = 'c9'", "block_id = 'block-2'"),
    ("ck_letta_blocks_label", "letta_blocks", "label = 'diary'", "block_id = 'block-2'"),
    ("ck_letta_blocks_digest", "letta_blocks", "digest = 'short'", "block_id = 'block-2'"),
    ("ck_letta_blocks_intent", "letta_blocks", "intent = 'short'", "block_id = 'block-2'"),
    ("pk_letta_passages", "letta_passages", "first_turn = 1", "first_turn = 3"),
    ("uq_letta_passages_passage", "letta_passages", "passage_id = 'passage-1'", "first_turn = 3"),
    ("fk_letta_passages_first_turn", "letta_passages", "conversation_id = 'c2'", "first_turn = 3"),
    ("ck_letta_passages_turns", "letta_passages", "last_turn = 2", "first_turn = 3"),
    ("ck_letta_passages_digest", "letta_passages", "digest = 'short'", "first_turn = 3"),
    ("pk_api_keys", "api_keys", "id = 'key1'", "id = 'key2'"),
    ("ck_api_keys_id", "api_keys", "id = ''", "id = 'key2'"),
    ("ck_api_keys_name", "api_keys", "name = ''", "id = 'key2'"),
    ("ck_api_keys_user_id", "api_keys", "user_id = ''", "id = 'key2'"),
    ("ck_api_keys_digest", "api_keys", "digest = 'short'", "id = 'key2'"),
    ("ck_api_keys_reason", "api_keys", "reason = ''", "id = 'key2'"),
    ("ck_api_keys_created_by", "api_keys", "created_by = ''", "id = 'key2'"),
    ("pk_http_replies", "http_replies", "user_id = 'ann', idempotency_key = 'one'", "user_id = 'bob'"),
    ("ck_http_replies_user_id", "http_replies", "user_id = ''", "user_id = 'bob'"),
    ("ck_http_replies_idempotency_key", "http_replies", "idempotency_key = ''", "user_id = 'bob'"),
    ("ck_http_replies_fingerprint", "http_replies", "fingerprint = 'short'", "user_id = 'bob'"),
    ("ck_http_replies_status", "http_replies", "status = 500", "user_id = 'ann'"),
    ("ck_http_replies_answered", "http_replies", "body = NULL", "user_id = 'ann'"),
]

WORDS = ("tags", "entities", "key_phrases")
POSTGRES_ONLY = [
    *(
        (f"ck_alicia_memory_{column}", "alicia_memory", f"{column} = ARRAY[NULL]::text[]", "id = 'mem1'")
        for column in WORDS
    ),
    ("ck_safety_events_rules", "safety_events", "rules = ARRAY[NULL]::text[]", "id = 'e1'"),
    *(
        (f"ck_api_keys_{column}", "api_keys", f"{column} = ARRAY[NULL]::text[]", "id = 'key1'")
        for column in ("roles", "scopes")
    ),
    *(
        (f"ck_memory_lines_{column}", "memory_lines", f"{column} = ARRAY[NULL]::text[]", "number = 1")
        for column in ("messages", "rests_on")
    ),
]
SQLITE_ONLY = [
    *(
        (f"ck_alicia_memory_{column}", "alicia_memory", f"{column} = '{{}}'", "id = 'mem1'")
        for column in WORDS
    ),
    *(
        (f"ck_alicia_memory_{column}", "alicia_memory", f"{column} = 2", "id = 'mem1'")
        for column in ("pinned", "archived")
    ),
    ("ck_safety_events_rules", "safety_events", "rules = '{}'", "id = 'e1'"),
    *(
        (f"ck_api_keys_{column}", "api_keys", f"{column} = '{{}}'", "id = 'key1'")
        for column in ("roles", "scopes")
    ),
    *(
        (f"ck_memory_lines_{column}", "memory_lines", f"{column} = '{{}}'", "number = 1")
        for column in ("messages", "rests_on")
    ),
    ("ck_archived_turns_has_left", "archived_turns", "has_left = 2", "turn_id = 2"),
    ("ck_fact_changes_stable", "fact_changes", "stable = 2", "id = 'f2'"),
    ("ck_turns_stop_requested", "turns", "stop_requested = 2", "number = 2"),
    ("ck_alicia_tool_uses_tool_result", "alicia_tool_uses", "tool_result = 'not JSON'", "id = 'u1'"),
    ("ck_alicia_memory_used_meta", "alicia_memory_used", "meta = 'not JSON'", "id = 't1'"),
    ("ck_alicia_memory_used_meta", "alicia_memory_used", r"""meta = '{"a":"\u0000"}'""", "id = 't1'"),
    ("ck_alicia_memory_embeddings", "alicia_memory", "embeddings = x'00'", "id = 'mem1'"),
    *(
        (f"ck_{table.name}_moments", table.name, f"{column.name} = 'yesterday'", "1 = 1")
        for table in metadata.sorted_tables
        for column in table.c
        if isinstance(column.type, Moment) and str(column) != "alicia_conversations.deleted_at"
    ),
]
"""Changes that the types of PostgreSQL refuse."""


@pytest.fixture(scope="module")
def world(shared_store: Store) -> Store:
    """A store with at least one row in each table. Each test tries a change that the database must refuse."""

    def fill(tx: Transaction) -> None:
        for row in WORLD:
            tx.unit.insert(row)

    shared_store.write_now(fill)
    return shared_store


def refusal(store: Store, table: str, change: str, where: str = "1 = 1") -> AnamnesisError:
    update = f"UPDATE {table} SET {change} WHERE {where}"  # noqa: S608
    with pytest.raises(AnamnesisError) as refused:
        store.write_now(lambda tx: tx.unit.connection.execute(update))
    return refused.value


def kind_of(store: Store) -> str:
    return store.driver.dialect.name


def breaks_for(kind: str) -> list[tuple[str, str, str, str]]:
    return BREAKS + (SQLITE_ONLY if kind == "sqlite" else POSTGRES_ONLY)


@pytest.mark.requirement(
    "000-039", "000-044", "003-002", "003-006", "003-017", "003-018", "003-020", "003-021"
)
@pytest.mark.requirement(
    "003-025", "003-027", "003-036", "003-037", "003-040", "003-043", "003-046", "003-054"
)
@pytest.mark.requirement(
    "003-058", "003-059", "003-060", "003-072", "003-073", "003-074", "003-075", "003-080"
)
@pytest.mark.requirement(
    "003-086", "003-088", "003-089", "003-096", "003-097", "003-101", "003-112", "003-113"
)
@pytest.mark.requirement("003-114", "003-128")
def test_each_rule_refuses_a_change_that_breaks_it(world: Store, subtests: pytest.Subtests) -> None:
    for rule, table, change, where in breaks_for(kind_of(world)):
        with subtests.test(rule=rule, change=change):
            error = refusal(world, table, change, where)

            nameless = rule.startswith("fk_") and kind_of(world) == "sqlite"
            assert error.problem is CONSTRAINT
            assert error.facts["rule"] == ("foreign key" if nameless else rule)
            assert error.__context__ is None
            assert error.__cause__ is None


def test_every_rule_of_the_database_is_tried(world: Store) -> None:
    if kind_of(world) == "sqlite":
        query = "SELECT sql FROM sqlite_master WHERE name <> 'alembic_version' AND sql IS NOT NULL"
        scripts = world.read_now(lambda tx: tx.unit.connection.execute(query).fetchall())
        found = [re.findall(r"CONSTRAINT (\w+)|CREATE UNIQUE INDEX (\w+)", sql) for (sql,) in scripts]
        rules = {name or index for names in found for name, index in names}
    else:
        query = """SELECT conname FROM pg_constraint JOIN pg_namespace n ON n.oid = connamespace
            WHERE n.nspname = 'public' AND contype IN ('c', 'f', 'p', 'u') AND conname NOT LIKE 'alembic%'
            UNION SELECT indexrelid::regclass::text FROM pg_index WHERE indisunique AND indpred IS NOT NULL"""
        rules = {name for (name,) in world.read_now(lambda tx: tx.unit.connection.execute(query).fetchall())}

    tried = {rule for rule, *_ in breaks_for(kind_of(world))}

    covered_otherwise = {
        "uq_alicia_messages_in_conversation",  # implied by the primary key; other tables refer to it
        "uq_alicia_memory_owner",  # the same
        "uq_fact_changes_in_conversation",  # the same
        *(rule for rule in rules if rule.endswith("_no_nul")),  # tried column by column, below
    }
    assert rules - covered_otherwise == tried


def test_no_required_column_can_be_null(world: Store, subtests: pytest.Subtests) -> None:
    for table in metadata.sorted_tables:
        for column in table.c:
            if not column.nullable:
                with subtests.test(column=str(column)):
                    error = refusal(world, table.name, f"{column.name} = NULL")

                    assert error.problem is CONSTRAINT
                    assert f"{table.name}.{column.name} is required" == error.facts["rule"]


@pytest.mark.parametrize("shared_store", ["sqlite"], indirect=True)
def test_no_text_holds_a_nul(world: Store, subtests: pytest.Subtests) -> None:
    for table in metadata.sorted_tables:
        for column in table.c:
            if isinstance(column.type, Text | JsonValue | Words) and not column.computed:
                with subtests.test(column=str(column)):
                    change = f"{column.name} = coalesce({column.name}, '{{}}') || char(0)"
                    error = refusal(world, table.name, change)

                    assert error.problem in (NUL_IN_TEXT, CONSTRAINT)
