"""The rows of the tables as frozen dataclasses, whose fields are the columns in order."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from sqlalchemy import Table

from orchestrator.store import tables
from orchestrator.store.engine.types import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation of one person; it also has a LiveKit room."""

    table: ClassVar[Table] = tables.conversations

    id: str
    user_id: str
    livekit_room_name: str | None
    title: str | None
    status: str
    preferences: JsonObject
    last_client_stanza_id: int
    last_server_stanza_id: int
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the person or an answer, with its position in the conversation."""

    table: ClassVar[Table] = tables.messages

    id: str
    conversation_id: str
    sequence_number: int
    previous_id: str | None
    message_role: str
    contents: str
    local_id: str | None
    server_id: str | None
    sync_status: str
    synced_at: datetime | None
    completion_status: str
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a streamed answer, whose contents are the texts of its sentences, joined."""

    table: ClassVar[Table] = tables.sentences

    id: str
    message_id: str
    sentence_sequence_number: int
    text: str
    audio_type: str | None
    audio_format: str | None
    duration_ms: int | None
    audio_bytesize: int | None
    audio_data: bytes | None
    meta: JsonObject | None
    completion_status: str
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


@dataclass(frozen=True, slots=True)
class Memory:
    """A long-term memory. A memory block also has a row here, without its text."""

    table: ClassVar[Table] = tables.memories

    id: str
    user_id: str | None
    title: str | None
    summary: str | None
    entities: tuple[str, ...]
    key_phrases: tuple[str, ...]
    content: str
    embeddings: tuple[float, ...] | None
    embeddings_info: JsonObject | None
    importance: float
    confidence: float
    user_rating: int | None
    created_by: str | None
    source_type: str | None
    source_info: JsonObject | None
    tags: tuple[str, ...]
    pinned: bool
    archived: bool
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


@dataclass(frozen=True, slots=True)
class Trace:
    """The trace of one memory read or written. The table has `meta` also under the name `metadata`."""

    table: ClassVar[Table] = tables.memory_used

    id: str
    conversation_id: str
    message_id: str | None
    memory_id: str
    memory_type: str | None
    action: str
    content: str
    confidence: float | None
    similarity_score: float | None
    query_prompt: str | None
    query_prompt_meta: JsonObject | None
    position_in_results: int | None
    actor: str | None
    meta: JsonObject | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


@dataclass(frozen=True, slots=True)
class Note:
    """A note on a message or on the whole conversation."""

    table: ClassVar[Table] = tables.notes

    id: str
    content: str
    conversation_id: str
    message_id: str | None
    created_by: str
    meta: JsonObject | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One call of a tool for a message, with its result."""

    table: ClassVar[Table] = tables.tool_uses

    id: str
    conversation_id: str
    message_id: str
    tool_name: str
    tool_arguments: JsonObject
    tool_result: Json
    status: str
    error_message: str | None
    sequence_number: int
    completed_at: datetime | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


@dataclass(frozen=True, slots=True)
class Audio:
    """A whole recording of the person or of an answer, with its transcription."""

    table: ClassVar[Table] = tables.audio

    id: str
    conversation_id: str
    message_id: str | None
    audio_type: str
    audio_format: str
    audio_data: bytes | None
    duration_ms: int | None
    transcription: str | None
    livekit_track_sid: str | None
    transcription_meta: JsonObject | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


@dataclass(frozen=True, slots=True)
class Meta:
    """One key and value about any other row, such as a trace id of OpenTelemetry."""

    table: ClassVar[Table] = tables.meta

    id: str
    ref: str
    key: str
    value: str
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the person and the state of its answer."""

    table: ClassVar[Table] = tables.turns

    conversation_id: str
    number: int
    user_message_id: str
    answer_id: str | None
    state: str
    attempts: int
    error: str | None
    variation: str | None
    target_id: str | None
    stop_requested: bool
    deadline: datetime | None
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame as it was sent, byte for byte. A client counts stanzas up from 1, the server down from -1."""

    table: ClassVar[Table] = tables.frames

    conversation_id: str
    direction: str
    stanza_id: int
    position: int
    type: int
    payload: bytes
    sender: str | None
    turn: int | None
    epoch: int | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class OpenConnection:
    """The current connection of a conversation, in any process: the newest one."""

    table: ClassVar[Table] = tables.connections

    conversation_id: str
    connection_id: str
    opened_at: datetime


@dataclass(frozen=True, slots=True)
class Lease:
    """The process that may write a conversation's turns, and until when. Each new holder has a new epoch."""

    table: ClassVar[Table] = tables.leases

    conversation_id: str
    holder: str
    epoch: int
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Block:
    """The current revision of a memory block. Before the first turn writes it, only `memory_id` is set."""

    table: ClassVar[Table] = tables.blocks

    conversation_id: str
    label: str
    memory_id: str
    revision: int | None
    digest: str | None
    value: str | None
    schema_version: str | None
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class BlockRevision:
    """One revision of a memory block, with the digest of the one before.

    `packed` is its text, or its difference from revision `base`; `size` is in characters.
    """

    table: ClassVar[Table] = tables.block_revisions

    conversation_id: str
    label: str
    revision: int
    base: int | None
    packed: bytes
    size: int
    digest: str
    previous_digest: str | None
    actor: str
    turn: int | None
    schema_version: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ArchivedTurn:
    """The whole text of a turn that its block has shortened, or that `has_left` the block."""

    table: ClassVar[Table] = tables.archived_turns

    conversation_id: str
    turn_id: int
    value: str
    digest: str
    has_left: bool
    archived_at: datetime


@dataclass(frozen=True, slots=True)
class Quarantined:
    """An invalid text of a block, kept for inspection."""

    table: ClassVar[Table] = tables.block_quarantine

    id: str
    conversation_id: str
    label: str
    value: str
    reason: str
    actor: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SafetyEvent:
    """What the guard found in a message: at which stage, how severe, how certain, and by which rules.

    A message that came in a SyncRequest has no turn. An event that is no danger has no certainty.
    """

    table: ClassVar[Table] = tables.safety_events

    id: str
    conversation_id: str
    message_id: str
    turn: int | None
    stage: str
    kind: str
    tier: int
    rules: tuple[str, ...]
    created_at: datetime
    certainty: str | None


@dataclass(frozen=True, slots=True)
class SafetyAlert:
    """An alert to staff about a safety event, and whether it was sent."""

    table: ClassVar[Table] = tables.safety_alerts

    id: str
    event_id: str
    state: str
    attempts: int
    next_at: datetime
    error: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class SafetyRefusal:
    """A sentence of a brain that the guard refused."""

    table: ClassVar[Table] = tables.safety_refusals

    event_id: str
    said: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class LettaAgent:
    """The agent in Letta for a role in a conversation, or the process that is creating it."""

    table: ClassVar[Table] = tables.letta_agents

    conversation_id: str
    role: str
    agent_id: str | None
    recipe: str | None
    holder: str | None
    expires_at: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class LettaBlock:
    """A block in Letta: the digest of its last written text, and of the text being written, if any."""

    table: ClassVar[Table] = tables.letta_blocks

    conversation_id: str
    label: str
    block_id: str
    digest: str | None
    intent: str | None
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class LettaPassage:
    """Archived turns as a passage of Letta's archival memory; without `passage_id`, not stored there yet."""

    table: ClassVar[Table] = tables.letta_passages

    conversation_id: str
    first_turn: int
    last_turn: int
    digest: str
    passage_id: str | None
    created_at: datetime
    updated_at: datetime
