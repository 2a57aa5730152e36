"""The tables as frozen dataclasses, whose fields are the columns in order, with the rules of each table.

The tables `alicia_…` hold what the messages of the protocol say; the others are for turns, replay, blocks,
safety and Letta. The prefix comes from the specification of the protocol, which calls it the Alicia protocol
and names its tables so; the names are kept because queries and tools written for that specification rely on
them.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import MetaData, literal_column

from orchestrator.store.engine.types import Json, JsonObject
from orchestrator.store.expressions import ActorRole, TraceLabel
from orchestrator.store.tables import (
    Row,
    index,
    key,
    of,
    of_conversation,
    of_message,
    one_of,
    same,
    stored_in,
    unique,
    unique_index,
)

metadata: Final[MetaData] = Row.metadata

STATUSES: Final = ("active", "archived", "deleted")
COMPLETION_STATUSES: Final = ("pending", "streaming", "completed", "failed")
AUDIO_TYPES: Final = ("input", "output")
LABELS: Final = ("conversation_history", "active_session", "context_summary", "memory_metadata")

OPS: Final = ("add", "replace", "retract", "unsure", "forget", "withdraw")
DECIDERS: Final = ("local", "model", "operator", "person")

LARGEST_STANZA: Final = 2**31 - 1
DURATION: Final = ("duration_ms", "duration_ms >= 0")

STAFF_READ: Final = (
    "(CASE WHEN message_id IS NULL AND action = 'retrieved' AND (substr(actor, 1, 9) = 'operator:'"
    " OR substr(actor, 1, 8) IN ('privacy:', 'analyst:')) THEN 1 END)"
)
"""1 for traces of staff that read the memory of others. An index and its queries have these words."""

# --- tables of the protocol --------------------------------------------------------------------------------


@stored_in(
    "alicia_conversations",
    unique("room", "livekit_room_name"),
    ("user_id", "user_id <> ''"),
    one_of("status", *STATUSES),
    ("deleted", same("status = 'deleted'", "deleted_at IS NOT NULL")),
    ("last_client_stanza_id", f"last_client_stanza_id BETWEEN 0 AND {LARGEST_STANZA}"),
    ("last_server_stanza_id", f"last_server_stanza_id BETWEEN -{LARGEST_STANZA} AND 0"),
    index("user", "user_id", "updated_at"),
    index("status", "status", "updated_at"),
    index("updated", "updated_at", "id"),
    defaults={
        "status": "'active'",
        "preferences": "'{}'",
        "last_client_stanza_id": "0",
        "last_server_stanza_id": "0",
    },
)
@dataclass(frozen=True, slots=True)
class Conversation(Row):
    """A conversation of one person; it also has a LiveKit room."""

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


@stored_in(
    "alicia_messages",
    unique("sequence_number", "conversation_id", "sequence_number"),
    unique("in_conversation", "conversation_id", "id"),
    unique("local_id", "conversation_id", "local_id"),
    of_conversation,
    of_message("previous_id", "previous"),
    ("sequence_number", "sequence_number >= 1"),
    ("previous_id", "previous_id <> id"),
    one_of("message_role", "user", "assistant", "system"),
    one_of("sync_status", "pending", "synced", "conflict"),
    one_of("completion_status", *COMPLETION_STATUSES),
    index("previous", "conversation_id", "previous_id"),
    defaults={"contents": "''", "sync_status": "'synced'", "completion_status": "'pending'"},
)
@dataclass(frozen=True, slots=True)
class Message(Row):
    """A message of the person or an answer, with its position in the conversation."""

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


@stored_in(
    "alicia_sentences",
    unique("sequence_number", "message_id", "sentence_sequence_number"),
    of("message_id", to="alicia_messages", what="message"),
    ("sentence_sequence_number", "sentence_sequence_number >= 1"),
    one_of("audio_type", *AUDIO_TYPES),
    DURATION,
    ("audio_bytesize", "coalesce(audio_bytesize, -1) = coalesce(length(audio_data), -1)"),
    one_of("completion_status", *COMPLETION_STATUSES),
    defaults={"completion_status": "'pending'"},
)
@dataclass(frozen=True, slots=True)
class Sentence(Row):
    """One sentence of a streamed answer, whose contents are the texts of its sentences, joined."""

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


@stored_in(
    "alicia_memory",
    ("importance", "importance BETWEEN 0 AND 1"),
    ("confidence", "confidence BETWEEN 0 AND 1"),
    ("user_rating", "user_rating BETWEEN 1 AND 5"),
    index("user", "user_id", "updated_at"),
    index("type", "user_id", "source_type"),
    unique_index("owner", "id", "user_id"),
    defaults={"importance": "0.5", "confidence": "1.0", "pinned": "FALSE", "archived": "FALSE"},
)
@dataclass(frozen=True, slots=True)
class Memory(Row):
    """A long-term memory. A memory block also has a row here, without its text."""

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


@stored_in(
    "alicia_memory_used",
    of_conversation,
    of_message(),
    of("memory_id", to="alicia_memory", what="memory"),
    one_of("action", "retrieved", "stored", "updated"),
    ("confidence", "confidence BETWEEN 0 AND 1"),
    ("similarity_score", "similarity_score BETWEEN -1 AND 1"),
    ("one_score", "confidence = similarity_score"),
    ("position_in_results", "position_in_results >= 1"),
    (
        "only_what_was_found_has_a_score",
        "action = 'retrieved' OR coalesce(confidence, similarity_score, position_in_results) IS NULL",
    ),
    ("somebody", "coalesce(message_id, actor) IS NOT NULL"),
    index("message", "conversation_id", "message_id"),
    index("of_message", "message_id", "created_at"),
    index("of_memory", "memory_id", "created_at"),
    index("time", "created_at", "id"),
    index("in_conversation", "conversation_id", "created_at", "id"),
    index("actor", "actor", "created_at"),
    index("action", "action", "created_at", "id"),
    index("type", "memory_type", "created_at", "id"),
    index("label", TraceLabel(literal_column("meta")), "created_at", "id"),
    index("role", ActorRole(literal_column("actor")), "created_at", "id"),
    index("staff", literal_column(STAFF_READ), "created_at", "id", where=f"{STAFF_READ} = 1"),
    copies={"meta": "metadata"},
)
@dataclass(frozen=True, slots=True)
class Trace(Row):
    """The trace of one memory read or written. The table has `meta` also under the name `metadata`."""

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


@stored_in(
    "alicia_user_conversation_commentaries",
    of_conversation,
    of_message(),
    ("created_by", "created_by <> ''"),
    index("message", "conversation_id", "message_id"),
)
@dataclass(frozen=True, slots=True)
class Note(Row):
    """A note on a message or on the whole conversation."""

    id: str
    content: str
    conversation_id: str
    message_id: str | None
    created_by: str
    meta: JsonObject | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


@stored_in(
    "alicia_tool_uses",
    unique("sequence_number", "message_id", "sequence_number"),
    of_conversation,
    of_message(),
    ("tool_name", "tool_name <> ''"),
    one_of("status", "pending", "running", "success", "error", "cancelled"),
    ("completed", same("status IN ('success', 'error', 'cancelled')", "completed_at IS NOT NULL")),
    ("result", "tool_result IS NULL OR completed_at IS NOT NULL"),
    ("error", "error_message IS NULL OR status IN ('error', 'cancelled')"),
    ("sequence_number", "sequence_number >= 1"),
    index("message", "conversation_id", "message_id"),
    index("in_conversation", "conversation_id", "created_at", "id"),
    defaults={"tool_arguments": "'{}'", "status": "'pending'"},
)
@dataclass(frozen=True, slots=True)
class ToolUse(Row):
    """One call of a tool for a message, with its result."""

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


@stored_in(
    "alicia_audio",
    of_conversation,
    of_message(),
    one_of("audio_type", *AUDIO_TYPES),
    DURATION,
    index("message", "conversation_id", "message_id"),
)
@dataclass(frozen=True, slots=True)
class Audio(Row):
    """A whole recording of the person or of an answer, with its transcription."""

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


@stored_in(
    "alicia_meta",
    ("ref", "ref <> ''"),
    ("key", "key <> ''"),
    index("ref", "ref", "key"),
    index("key", "key", "value"),
)
@dataclass(frozen=True, slots=True)
class Meta(Row):
    """One key and value about any other row, such as a trace id of OpenTelemetry."""

    id: str
    ref: str
    key: str
    value: str
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


# --- tables for turns, replay and blocks -------------------------------------------------------------------


@stored_in(
    "turns",
    key("conversation_id", "number"),
    unique("user_message", "user_message_id"),
    unique("answer", "answer_id"),
    of_conversation,
    of_message("user_message_id", "user_message"),
    of_message("answer_id", "answer"),
    of_message("target_id", "target"),
    ("number", "number >= 1"),
    one_of("variation", "regenerate", "edit", "continue"),
    ("target", same("variation IS NULL", "target_id IS NULL")),
    one_of("state", "pending", "in_progress", "completed", "failed"),
    ("attempts", "attempts >= 0 AND (attempts >= 1 OR state IN ('pending', 'failed'))"),
    ("error", same("state = 'failed'", "error IS NOT NULL")),
    ("started", "state <> 'in_progress' OR started_at IS NOT NULL"),
    ("ended", same("state IN ('completed', 'failed')", "ended_at IS NOT NULL")),
    ("answered", "state <> 'completed' OR answer_id IS NOT NULL"),
    index("state", "state", "conversation_id", "number"),
    index("time", "created_at"),
    unique("one_at_a_time", "conversation_id", where="state = 'in_progress'"),
    defaults={"state": "'pending'", "attempts": "0", "stop_requested": "FALSE"},
)
@dataclass(frozen=True, slots=True)
class Turn(Row):
    """One message of the person and the state of its answer."""

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


@stored_in(
    "frames",
    key("conversation_id", "direction", "stanza_id"),
    unique("position", "conversation_id", "position"),
    of_conversation,
    of("conversation_id", "turn", to="turns", their=("conversation_id", "number"), what="turn"),
    one_of("direction", "client", "server"),
    (
        "stanza_id",
        f"CASE direction WHEN 'client' THEN stanza_id BETWEEN 1 AND {LARGEST_STANZA}"
        f" ELSE stanza_id BETWEEN -{LARGEST_STANZA} AND -1 END",
    ),
    ("position", "position >= 1"),
    ("type", "type BETWEEN 0 AND 65535"),
    ("payload", "length(payload) > 0"),
    ("sender", same("direction = 'client'", "sender IS NOT NULL")),
    ("epoch", "epoch >= 1"),
    index("turn", "conversation_id", "turn"),
)
@dataclass(frozen=True, slots=True)
class Frame(Row):
    """A frame as it was sent, byte for byte. A client counts stanzas up from 1, the server down from -1."""

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


@stored_in("connections", key("conversation_id"), of_conversation, ("connection_id", "connection_id <> ''"))
@dataclass(frozen=True, slots=True)
class OpenConnection(Row):
    """The current connection of a conversation, in any process: the newest one."""

    conversation_id: str
    connection_id: str
    opened_at: datetime


@stored_in(
    "leases", key("conversation_id"), of_conversation, ("holder", "holder <> ''"), ("epoch", "epoch >= 1")
)
@dataclass(frozen=True, slots=True)
class Lease(Row):
    """The process that may write a conversation's turns, and until when. Each new holder has a new epoch."""

    conversation_id: str
    holder: str
    epoch: int
    expires_at: datetime


@stored_in(
    "blocks",
    key("conversation_id", "label"),
    unique("memory", "memory_id"),
    of_conversation,
    of("memory_id", to="alicia_memory", what="memory"),
    of(
        "conversation_id",
        "label",
        "revision",
        to="block_revisions",
        their=("conversation_id", "label", "revision"),
        what="revision",
    ),
    one_of("label", *LABELS),
    ("digest", "length(digest) = 64"),
    (
        "whole_or_empty",
        "CASE WHEN revision IS NULL THEN coalesce(digest, value, schema_version) IS NULL"
        " ELSE digest IS NOT NULL AND value IS NOT NULL AND schema_version IS NOT NULL END",
    ),
)
@dataclass(frozen=True, slots=True)
class Block(Row):
    """The current revision of a memory block. Before the first turn writes it, only `memory_id` is set."""

    conversation_id: str
    label: str
    memory_id: str
    revision: int | None
    digest: str | None
    value: str | None
    schema_version: str | None
    updated_at: datetime


@stored_in(
    "block_revisions",
    key("conversation_id", "label", "revision"),
    of_conversation,
    one_of("label", *LABELS),
    ("revision", "revision >= 1"),
    ("base", "base = revision - 1"),
    ("size", "size >= 0"),
    ("digest", "length(digest) = 64"),
    ("previous_digest", same("revision = 1", "previous_digest IS NULL")),
    ("turn", "turn >= 1"),
    index("turn", "conversation_id", "label", "turn"),
)
@dataclass(frozen=True, slots=True)
class BlockRevision(Row):
    """One revision of a memory block, with the digest of the one before.

    `packed` is its text, or its difference from revision `base`; `size` is in characters.
    """

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


@stored_in(
    "archived_turns",
    key("conversation_id", "turn_id"),
    of_conversation,
    ("turn_id", "turn_id >= 1"),
    ("digest", "length(digest) = 64"),
    index("time", "archived_at"),
    index("rotation", "archived_at", "conversation_id", where="has_left"),
)
@dataclass(frozen=True, slots=True)
class ArchivedTurn(Row):
    """The whole text of a turn that its block has shortened, or that `has_left` the block."""

    conversation_id: str
    turn_id: int
    value: str
    digest: str
    has_left: bool
    archived_at: datetime


@stored_in(
    "block_quarantine", of_conversation, one_of("label", *LABELS), index("block", "conversation_id", "label")
)
@dataclass(frozen=True, slots=True)
class Quarantined(Row):
    """An invalid text of a block, kept for inspection."""

    id: str
    conversation_id: str
    label: str
    value: str
    reason: str
    actor: str
    created_at: datetime


@stored_in(
    "fact_changes",
    unique("position", "conversation_id", "position"),
    unique("in_conversation", "conversation_id", "id"),
    of_conversation,
    of_message(),
    of("target", to="fact_changes", what="target"),
    ("position", "position >= 1"),
    one_of("op", *OPS),
    ("target", "target IS NOT NULL OR op IN ('add', 'unsure')"),
    ("not_of_itself", "target <> id"),
    ("kind", "length(kind) BETWEEN 1 AND 80"),
    ("subject", "length(subject) BETWEEN 1 AND 60"),
    ("about", "length(about) <= 120"),
    ("value", "length(value) BETWEEN 1 AND 240"),
    ("true_when", "length(true_when) <= 120"),
    ("words", "length(words) <= 240"),
    ("turn", "turn >= 1"),
    one_of("decided_by", *DECIDERS),
    ("confidence", "confidence BETWEEN 0 AND 1"),
    index("message", "conversation_id", "message_id"),
)
@dataclass(frozen=True, slots=True)
class FactChange(Row):
    """One change to the facts of a conversation. Rows are only added, never altered or deleted.

    `target` can be a change in another conversation of the same person.
    `turn` is the number of the turn in the memory blocks.
    """

    id: str
    conversation_id: str
    position: int
    op: str
    target: str | None
    kind: str
    subject: str
    about: str
    value: str
    stable: bool
    true_when: str
    said_at: datetime
    turn: int | None
    message_id: str | None
    words: str
    decided_by: str
    confidence: float
    created_at: datetime


# --- tables for long-term memory ----------------------------------------------------------------------------


@stored_in(
    "memory_heads",
    key("user_id"),
    ("user_id", "user_id <> ''"),
    ("version", "version >= 0"),
    ("entries", "entries >= 0"),
    ("digest", same("entries = 0", "digest IS NULL")),
    defaults={"version": "0", "entries": "0"},
)
@dataclass(frozen=True, slots=True)
class MemoryHead(Row):
    """How often a person's memories have changed, and the end of their ledger.

    Every change locks this row, so that the versions and the ledger of a person grow in one order.
    """

    user_id: str
    version: int
    entries: int
    digest: str | None
    updated_at: datetime


@stored_in(
    "memory_ledger",
    key("user_id", "number"),
    of("user_id", to="memory_heads", their=("user_id",), what="head"),
    of("memory_id", "user_id", to="alicia_memory", their=("id", "user_id"), what="memory"),
    ("number", "number >= 1"),
    one_of("action", "created", "updated", "deleted", "restored", "erased"),
    ("body", same("body IS NULL", "salt IS NULL")),
    ("body_digest", "length(body_digest) = 64"),
    ("digest", "length(digest) = 64"),
    ("previous_digest", same("number = 1", "previous_digest IS NULL")),
    ("actor", "actor <> ''"),
    index("memory", "memory_id", "number"),
)
@dataclass(frozen=True, slots=True)
class LedgerEntry(Row):
    """One change of a memory. The entries of a person form a chain of digests.

    The chain covers `body_digest`, the digest of the salt and the body. When a memory is erased, body and
    salt are removed, and the chain still verifies.
    """

    user_id: str
    number: int
    memory_id: str
    action: str
    body: str | None
    salt: str | None
    body_digest: str
    previous_digest: str | None
    digest: str
    actor: str
    created_at: datetime


@stored_in(
    "memory_index",
    key("memory_id"),
    of("memory_id", "user_id", to="alicia_memory", their=("id", "user_id"), what="memory"),
    unique("place", "user_id", "ordinal"),
    unique("external", "user_id", "external_id"),
    index("version", "user_id", "version"),
    ("version", "version >= 1"),
    ("ordinal", "ordinal >= 1"),
    ("digest", "length(digest) = 64"),
    ("vectors", "(model IS NULL) = (own_vector IS NULL) AND (model IS NULL) = (window_vector IS NULL)"),
    index("model", "model", "user_id", "ordinal", where="model IS NOT NULL"),
)
@dataclass(frozen=True, slots=True)
class IndexedMemory(Row):
    """How a memory is found: its words, its vectors, and its place among the person's memories.

    `ordinal` orders the memories of a person as they were told; neighbours have the same `episode`. `context`
    is what was said just before; it helps to find the memory and is no part of it. The vectors are float16:
    one of the memory alone, one of context and memory together. `digest` is that of the indexed text.
    """

    memory_id: str
    user_id: str
    version: int
    ordinal: int
    episode: str
    speaker: str | None
    said_at: datetime | None
    external_id: str | None
    context: str
    words: str
    context_words: str
    digest: str
    model: str | None
    own_vector: bytes | None
    window_vector: bytes | None


@stored_in(
    "retrievals",
    of_conversation,
    of_message(),
    ("user_id", "user_id <> ''"),
    ("actor", "actor <> ''"),
    ("milliseconds", "milliseconds BETWEEN 0 AND 86400000"),
    index("user", "user_id", "created_at"),
    index("message", "conversation_id", "message_id"),
    index("time", "created_at", "id"),
)
@dataclass(frozen=True, slots=True)
class Retrieval(Row):
    """One search of a person's memories, with its three summaries."""

    id: str
    user_id: str
    conversation_id: str | None
    message_id: str | None
    actor: str
    recipe: str
    mode: str
    observability: JsonObject
    milliseconds: float
    created_at: datetime


@stored_in(
    "memory_lines",
    key("user_id", "conversation_id", "kind", "number"),
    of_conversation,
    of_message("last_message_id", "last_message"),
    ("user_id", "user_id <> ''"),
    one_of("kind", "file", "vector"),
    one_of("action", "memory", "empty", "edited", "deleted", "restored", "erased"),
    ("number", "number >= 1"),
    ("chunk", "chunk >= 0"),
    ("last_number", "last_number >= 1"),
    ("hash", "length(hash) = 64"),
    ("maker", "maker <> ''"),
    ("dropped", "dropped >= 0"),
    ("body_and_salt", same("body IS NULL", "salt IS NULL")),
    ("body_digest", "length(body_digest) = 64"),
    ("digest", "length(digest) = 64"),
    ("previous", same("number = 1", "previous IS NULL")),
    index("memory", "memory_id"),
    index("conversation", "conversation_id"),
)
@dataclass(frozen=True, slots=True)
class MemoryLine(Row):
    """A line of the ledger of memories made from a conversation, if the ledger is kept in tables.

    `messages` are those of the chunk that it was made of, `rests_on` those whose words it has. `hash` is the
    SHA-256 of the last message. `digest` covers `body_digest` instead of the body, so that erasing the body
    does not break the chain.
    """

    user_id: str
    conversation_id: str
    kind: str
    number: int
    action: str
    memory_id: str
    chunk: int
    last_message_id: str
    last_number: int
    hash: str
    messages: tuple[str, ...]
    rests_on: tuple[str, ...]
    maker: str
    dropped: int
    body: JsonObject | None
    salt: str | None
    body_digest: str
    previous: str | None
    digest: str
    created_at: datetime


@stored_in(
    "memory_summaries",
    key("user_id", "conversation_id", "number"),
    of_conversation,
    ("user_id", "user_id <> ''"),
    ("number", "number >= 1"),
    ("hash", "length(hash) = 64"),
    ("seen", "seen >= 1"),
    ("maker", "maker <> ''"),
    ("text_and_salt", same("text IS NULL", "salt IS NULL")),
    ("text_digest", "length(text_digest) = 64"),
    ("digest", "length(digest) = 64"),
    ("previous", same("number = 1", "previous IS NULL")),
    index("conversation", "conversation_id"),
)
@dataclass(frozen=True, slots=True)
class MemorySummary(Row):
    """A version of the rolling summary of a conversation. `hash` names the last memory line that it holds.

    It was made when the ledger had `seen` lines. `digest` covers `text_digest` instead of the text; versions
    from before there was one have none.
    """

    user_id: str
    conversation_id: str
    number: int
    text: str | None
    salt: str | None
    text_digest: str | None
    hash: str
    seen: int
    maker: str
    previous: str | None
    digest: str
    created_at: datetime


@stored_in(
    "memory_work",
    key("conversation_id"),
    of_conversation,
    ("user_id", "user_id <> ''"),
    ("changed", "changed >= 0"),
    ("settled", "settled BETWEEN 0 AND changed"),
    ("dropped", "dropped >= 0"),
    ("error", "error <> ''"),
    ("claim", same("claimed_by IS NULL", "claimed_until IS NULL")),
    index("unsettled", "conversation_id", where="changed > settled"),
)
@dataclass(frozen=True, slots=True)
class MemoryWork(Row):
    """What is to be done for the memories made of a conversation.

    `changed` counts the changes that its ledger must follow; `settled` is how many of them it has followed.
    `dropped` counts the sentences of rolling summaries that the memories did not support. `error` is why the
    last run that makes memories failed. `claimed_by` makes them now, but not after `claimed_until`.
    """

    conversation_id: str
    user_id: str
    changed: int
    settled: int
    dropped: int
    error: str | None
    claimed_by: str | None
    claimed_until: datetime | None
    created_at: datetime
    updated_at: datetime


# --- tables for safety -------------------------------------------------------------------------------------


@stored_in(
    "safety_events",
    of_conversation,
    of_message(),
    of("conversation_id", "turn", to="turns", their=("conversation_id", "number"), what="turn"),
    one_of("stage", "message", "enriched", "answer"),
    one_of("kind", "emergency", "crisis", "guard_failed", "refused"),
    ("tier", "CASE WHEN kind IN ('emergency', 'crisis') THEN tier BETWEEN 1 AND 3 ELSE tier = 0 END"),
    ("of_a_turn", "turn IS NOT NULL OR stage = 'message'"),
    one_of("certainty", "certain", "possible"),
    ("certain_or_possible", same("kind IN ('emergency', 'crisis')", "certainty IS NOT NULL")),
    index("message", "message_id"),
    index("conversation", "conversation_id", "created_at"),
    index("time", "created_at", "id"),
)
@dataclass(frozen=True, slots=True)
class SafetyEvent(Row):
    """What the guard found in a message: at which stage, how severe, how certain, and by which rules.

    A message that came in a SyncRequest has no turn. An event that is no danger has no certainty.
    """

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


@stored_in(
    "safety_alerts",
    of("event_id", to="safety_events", what="event"),
    unique("event", "event_id"),
    one_of("state", "pending", "sent", "given_up"),
    ("attempts", "attempts >= 0"),
    index("due", "state", "next_at"),
    defaults={"state": "'pending'", "attempts": "0"},
)
@dataclass(frozen=True, slots=True)
class SafetyAlert(Row):
    """An alert to staff about a safety event, and whether it was sent."""

    id: str
    event_id: str
    state: str
    attempts: int
    next_at: datetime
    error: str | None
    created_at: datetime
    updated_at: datetime


@stored_in(
    "safety_refusals",
    key("event_id"),
    of("event_id", to="safety_events", what="event"),
    ("said", "said <> ''"),
)
@dataclass(frozen=True, slots=True)
class SafetyRefusal(Row):
    """A sentence of a brain that the guard refused."""

    event_id: str
    said: str
    created_at: datetime


# --- how turns ran -----------------------------------------------------------------------------------------


@stored_in(
    "turn_runs",
    of("conversation_id", "turn", to="turns", their=("conversation_id", "number"), what="turn"),
    of_message(),
    ("confidence", "confidence BETWEEN 0 AND 1"),
    ("routed", same("intent IS NULL", "specialist IS NULL")),
    ("prompt", same("prompt IS NULL", "prompt_revision IS NULL")),
    ("milliseconds", "milliseconds BETWEEN 0 AND 86400000"),
    index("message", "message_id", "created_at"),
    index("conversation", "conversation_id", "created_at"),
    index("time", "created_at", "id"),
)
@dataclass(frozen=True, slots=True)
class TurnRun(Row):
    """One attempt at a turn: how its message was routed, with which prompt, and how long it took.

    It has no texts. `answer_id` is the id that the answer has, or would have had if the attempt had not
    failed.
    """

    id: str
    conversation_id: str
    turn: int
    message_id: str
    answer_id: str
    intent: str | None
    confidence: float | None
    specialist: str | None
    prompt: str | None
    prompt_revision: str | None
    error: str | None
    milliseconds: float
    created_at: datetime


@stored_in(
    "station_times",
    key("run_id", "position"),
    of("run_id", to="turn_runs", what="run"),
    ("position", "position >= 1"),
    ("station", "station <> ''"),
    ("start_ms", "start_ms BETWEEN 0 AND 86400000"),
    ("milliseconds", "milliseconds BETWEEN 0 AND 86400000"),
    index("time", "created_at", "station"),
)
@dataclass(frozen=True, slots=True)
class StationTime(Row):
    """How long one station of a run took. `start_ms` is when it began, after the run did."""

    run_id: str
    position: int
    station: str
    start_ms: float
    milliseconds: float
    created_at: datetime


# --- requests to models ------------------------------------------------------------------------------------


@stored_in(
    "model_calls",
    key("id"),
    of_conversation,
    of_message(),
    ("number", "number >= 1"),
    ("role", "role <> ''"),
    ("model", "model <> ''"),
    ("digest", "length(digest) = 64"),
    ("tokens", "prompt_tokens >= 0 AND completion_tokens >= 0"),
    ("outcome", "outcome <> ''"),
    index("message", "message_id", "conversation_id"),
    index("day", "conversation_id", "created_at"),
    index("digest", "digest"),
    index("role", "role", "created_at"),
)
@dataclass(frozen=True, slots=True)
class ModelCall(Row):
    """One request to a model for a message, exactly as it was sent: `packed` is its text, compressed.

    `number` is its position among the requests of one attempt at the turn. It has what the person wrote, so
    it belongs to their conversation like their messages.
    """

    id: str
    conversation_id: str
    message_id: str
    number: int
    role: str
    model: str
    digest: str
    packed: bytes
    prompt_tokens: int
    completion_tokens: int
    outcome: str
    created_at: datetime
    updated_at: datetime


# --- tables for Letta --------------------------------------------------------------------------------------


@stored_in(
    "letta_agents",
    key("conversation_id", "role"),
    unique("agent", "agent_id"),
    of_conversation,
    ("role", "role <> ''"),
    ("made_or_claimed", "coalesce(agent_id, holder) IS NOT NULL"),
    ("recipe", same("agent_id IS NULL", "recipe IS NULL")),
    ("claim", same("holder IS NULL", "expires_at IS NULL")),
    index("role", "role", "conversation_id"),
)
@dataclass(frozen=True, slots=True)
class LettaAgent(Row):
    """The agent in Letta for a role in a conversation, or the process that is creating it."""

    conversation_id: str
    role: str
    agent_id: str | None
    recipe: str | None
    holder: str | None
    expires_at: datetime | None
    created_at: datetime
    updated_at: datetime


@stored_in(
    "letta_blocks",
    key("conversation_id", "label"),
    unique("block", "block_id"),
    of_conversation,
    one_of("label", *LABELS),
    ("digest", "length(digest) = 64"),
    ("intent", "length(intent) = 64"),
)
@dataclass(frozen=True, slots=True)
class LettaBlock(Row):
    """A block in Letta: the digest of its last written text, and of the text being written, if any."""

    conversation_id: str
    label: str
    block_id: str
    digest: str | None
    intent: str | None
    updated_at: datetime


@stored_in(
    "letta_passages",
    key("conversation_id", "first_turn"),
    unique("passage", "passage_id"),
    of(
        "conversation_id",
        "first_turn",
        to="archived_turns",
        their=("conversation_id", "turn_id"),
        what="first_turn",
    ),
    ("turns", "last_turn >= first_turn"),
    ("digest", "length(digest) = 64"),
)
@dataclass(frozen=True, slots=True)
class LettaPassage(Row):
    """Archived turns as a passage of Letta's archival memory; without `passage_id`, not stored there yet."""

    conversation_id: str
    first_turn: int
    last_turn: int
    digest: str
    passage_id: str | None
    created_at: datetime
    updated_at: datetime


# --- tables for the HTTP API -------------------------------------------------------------------------------


@stored_in(
    "api_keys",
    ("name", "name <> ''"),
    ("user_id", "user_id <> ''"),
    ("digest", "length(digest) = 64"),
    ("reason", "reason <> ''"),
    ("created_by", "created_by <> ''"),
    index("user", "user_id", "created_at"),
)
@dataclass(frozen=True, slots=True)
class ApiKey(Row):
    """A key of a program: whose it is, what it may do and until when. Only its SHA-256 is stored."""

    id: str
    name: str
    user_id: str
    roles: tuple[str, ...]
    scopes: tuple[str, ...]
    digest: str
    reason: str | None
    created_by: str
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None


@stored_in(
    "http_replies",
    key("user_id", "idempotency_key"),
    ("user_id", "user_id <> ''"),
    ("idempotency_key", "length(idempotency_key) BETWEEN 1 AND 128"),
    ("fingerprint", "length(fingerprint) = 64"),
    ("status", "status BETWEEN 200 AND 499"),
    ("answered", same("status IS NULL", "body IS NULL")),
    index("time", "created_at"),
)
@dataclass(frozen=True, slots=True)
class HttpReply(Row):
    """The answer to a request with an Idempotency-Key; without `status`, the request is being carried out."""

    user_id: str
    idempotency_key: str
    fingerprint: str
    status: int | None
    body: str | None
    created_at: datetime
