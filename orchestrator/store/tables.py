"""The tables, with their rules.

The tables `alicia_…` hold what the messages of the protocol say; the others are for turns, replay, blocks,
safety and Letta. The prefix comes from the specification of the protocol, which calls it the Alicia protocol
and names its tables so; the names are kept because queries and tools written for that specification rely on
them.

The database itself enforces every rule about one row, or about a row and those it refers to, on SQLite and on
PostgreSQL. Each rule has a name, which our errors report.
"""

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from sqlalchemy import (
    CheckConstraint,
    Column,
    Computed,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import SchemaItem
from sqlalchemy.sql.compiler import DDLCompiler
from sqlalchemy.types import TypeEngine

from orchestrator.store.engine.types import VECTOR_WIDTH, Flag, JsonValue, Moment, Real, Vector, Words

metadata: Final = MetaData()

STATUSES: Final = ("active", "archived", "deleted")
ROLES: Final = ("user", "assistant", "system")
SYNC_STATUSES: Final = ("pending", "synced", "conflict")
COMPLETION_STATUSES: Final = ("pending", "streaming", "completed", "failed")
AUDIO_TYPES: Final = ("input", "output")
ACTIONS: Final = ("retrieved", "stored", "updated")
TOOL_STATUSES: Final = ("pending", "running", "success", "error", "cancelled")
DIRECTIONS: Final = ("client", "server")
TURN_STATES: Final = ("pending", "in_progress", "completed", "failed")
VARIATIONS: Final = ("regenerate", "edit", "continue")
SAFETY_STAGES: Final = ("message", "enriched", "answer")
SAFETY_KINDS: Final = ("emergency", "crisis", "guard_failed", "refused")
CERTAINTIES: Final = ("certain", "possible")
ALERT_STATES: Final = ("pending", "sent", "given_up")
LABELS: Final = ("conversation_history", "active_session", "context_summary", "memory_metadata")

_LARGEST_STANZA: Final = 2**31 - 1


@compiles(Computed, "sqlite")
def _virtual(computed: Computed, compiler: DDLCompiler, **options: Any) -> str:
    """Make generated columns virtual on SQLite; PostgreSQL can only store them."""
    expression = compiler.sql_compiler.process(computed.sqltext, include_table=False, literal_binds=True)
    return f"GENERATED ALWAYS AS ({expression}) VIRTUAL"


# --- helpers to define tables ------------------------------------------------------------------------------

Rule: TypeAlias = tuple[str, str]


def _column(
    name: str, kind: TypeEngine[Any], default: str | None = None, *, null: bool = False
) -> Column[Any]:
    return Column(name, kind, nullable=null, server_default=None if default is None else text(default))


def _text(name: str, default: str | None = None, *, null: bool = False) -> Column[Any]:
    return _column(name, Text(), default, null=null)


def _whole(name: str, default: str | None = None, *, null: bool = False) -> Column[Any]:
    return _column(name, Integer(), default, null=null)


def _json(name: str) -> Column[Any]:
    return _column(name, JsonValue(), null=True)


def _moment(name: str, *, null: bool = False) -> Column[Any]:
    return _column(name, Moment(), null=null)


def _times() -> Iterable[Column[Any]]:
    return _moment("created_at"), _moment("updated_at"), _moment("deleted_at", null=True)


def _one_of(column: str, values: Iterable[str]) -> Rule:
    return column, f"{column} IN ({', '.join(repr(value) for value in values)})"


def _same(left: str, right: str) -> str:
    """The rule that both conditions are true or both are false."""
    return f"({left}) = ({right})"


def _table(name: str, *items: SchemaItem | Rule | Iterable[SchemaItem]) -> Table:
    """A table. A pair among its items is a rule with its name. The rules of all tables are added."""
    parts: list[SchemaItem] = []
    for item in items:
        match item:
            case (str() as what, str() as condition):
                parts.append(CheckConstraint(condition, f"ck_{name}_{what}"))
            case SchemaItem():
                parts.append(item)
            case _:
                parts.extend(part for part in item if isinstance(part, SchemaItem))
    columns = [part for part in parts if isinstance(part, Column) and not part.computed]
    for dialect, (what, condition) in (
        *(("sqlite", rule) for rule in _sqlite_rules(columns)),
        *(("postgresql", rule) for rule in _postgres_rules(columns)),
    ):
        parts.append(CheckConstraint(condition, f"ck_{name}_{what}").ddl_if(dialect=dialect))
    return Table(name, metadata, *parts, sqlite_strict=True)


def _sqlite_rules(columns: Iterable[Column[Any]]) -> Iterable[Rule]:
    """Rules for what the types of PostgreSQL ensure by themselves, and for the kind of JSON values."""
    texts, moments = [], []
    for column in columns:
        name = column.name
        match column.type:
            case Flag():
                yield name, f"{name} IN (0, 1)"
            case JsonValue() | Words():
                without_nul = rf"instr(replace({name}, '\\', ''), '\u0000') = 0"
                kind = f" AND json_type({name}) = '{kind}'" if (kind := _json_kind(column)) else ""
                yield name, f"CASE WHEN json_valid({name}) THEN {without_nul}{kind} ELSE {name} IS NULL END"
                texts.append(name)
            case Moment():
                moments.append(name)
            case Text():
                texts.append(name)
            case Vector():
                width = f"json_extract({name}_info, '$.dimensions')"
                fits = f"{width} BETWEEN 1 AND {VECTOR_WIDTH} AND length({name}) = 4 * {width}"
                yield name, f"{name} IS NULL OR coalesce({fits}, FALSE)"
    yield "no_nul", " AND ".join(f"instr({each}, char(0)) = 0" for each in texts)
    yield "moments", " AND ".join(f"{each} GLOB '????-??-??T??:??:??.???Z'" for each in moments)


def _postgres_rules(columns: Iterable[Column[Any]]) -> Iterable[Rule]:
    """Rules for the kind of JSON values, lists without NULL, and the dimensions of vectors."""
    for column in columns:
        name = column.name
        match column.type:
            case Words():
                yield name, f"array_position({name}, NULL) IS NULL"
            case JsonValue() if kind := _json_kind(column):
                yield name, f"jsonb_typeof({name}) = '{kind}'"
            case Vector():
                width = f"({name}_info ->> 'dimensions')::integer"
                yield name, f"{name} IS NULL OR coalesce({width} BETWEEN 1 AND {VECTOR_WIDTH}, FALSE)"


def _json_kind(column: Column[Any]) -> str | None:
    """The kind of JSON value a column must have; the result of a tool may be of any kind."""
    if isinstance(column.type, Words):
        return "array"
    return None if column.name == "tool_result" else "object"


def _key(table: str, *columns: str) -> PrimaryKeyConstraint:
    return PrimaryKeyConstraint(*columns, name=f"pk_{table}")


def _unique(table: str, what: str, *columns: str) -> UniqueConstraint:
    return UniqueConstraint(*columns, name=f"uq_{table}_{what}")


def _of(
    table: str, *columns: str, to: str, their: Iterable[str] = ("id",), what: str
) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(columns, [f"{to}.{column}" for column in their], name=f"fk_{table}_{what}")


def _of_conversation(table: str) -> ForeignKeyConstraint:
    return _of(table, "conversation_id", to="alicia_conversations", what="conversation")


def _of_message(table: str, column: str = "message_id", what: str = "message") -> ForeignKeyConstraint:
    """A reference to a message of the same conversation."""
    their = ("conversation_id", "id")
    return _of(table, "conversation_id", column, to="alicia_messages", their=their, what=what)


_HAS_ID: Final = ("id", "length(id) BETWEEN 1 AND 128")
_DURATION: Final = ("duration_ms", "duration_ms >= 0")

# --- tables of the protocol --------------------------------------------------------------------------------

conversations: Final = _table(
    "alicia_conversations",
    _text("id"),
    _text("user_id"),
    _text("livekit_room_name", null=True),
    _text("title", null=True),
    _text("status", "'active'"),
    _column("preferences", JsonValue(), "'{}'"),
    _whole("last_client_stanza_id", "0"),
    _whole("last_server_stanza_id", "0"),
    _times(),
    _key("alicia_conversations", "id"),
    _unique("alicia_conversations", "room", "livekit_room_name"),
    _HAS_ID,
    ("user_id", "user_id <> ''"),
    _one_of("status", STATUSES),
    ("deleted", _same("status = 'deleted'", "deleted_at IS NOT NULL")),
    ("last_client_stanza_id", f"last_client_stanza_id BETWEEN 0 AND {_LARGEST_STANZA}"),
    ("last_server_stanza_id", f"last_server_stanza_id BETWEEN -{_LARGEST_STANZA} AND 0"),
    Index("ix_alicia_conversations_user", "user_id", "updated_at"),
    Index("ix_alicia_conversations_status", "status", "updated_at"),
)

messages: Final = _table(
    "alicia_messages",
    _text("id"),
    _text("conversation_id"),
    _whole("sequence_number"),
    _text("previous_id", null=True),
    _text("message_role"),
    _text("contents", "''"),
    _text("local_id", null=True),
    _text("server_id", null=True),
    _text("sync_status", "'synced'"),
    _moment("synced_at", null=True),
    _text("completion_status", "'pending'"),
    _times(),
    _key("alicia_messages", "id"),
    _unique("alicia_messages", "sequence_number", "conversation_id", "sequence_number"),
    _unique("alicia_messages", "in_conversation", "conversation_id", "id"),
    _unique("alicia_messages", "local_id", "conversation_id", "local_id"),
    _of_conversation("alicia_messages"),
    _of_message("alicia_messages", "previous_id", "previous"),
    _HAS_ID,
    ("sequence_number", "sequence_number >= 1"),
    ("previous_id", "previous_id <> id"),
    _one_of("message_role", ROLES),
    _one_of("sync_status", SYNC_STATUSES),
    _one_of("completion_status", COMPLETION_STATUSES),
    Index("ix_alicia_messages_previous", "conversation_id", "previous_id"),
)

sentences: Final = _table(
    "alicia_sentences",
    _text("id"),
    _text("message_id"),
    _whole("sentence_sequence_number"),
    _text("text"),
    _text("audio_type", null=True),
    _text("audio_format", null=True),
    _whole("duration_ms", null=True),
    _whole("audio_bytesize", null=True),
    _column("audio_data", LargeBinary(), null=True),
    _json("meta"),
    _text("completion_status", "'pending'"),
    _times(),
    _key("alicia_sentences", "id"),
    _unique("alicia_sentences", "sequence_number", "message_id", "sentence_sequence_number"),
    _of("alicia_sentences", "message_id", to="alicia_messages", what="message"),
    _HAS_ID,
    ("sentence_sequence_number", "sentence_sequence_number >= 1"),
    _one_of("audio_type", AUDIO_TYPES),
    _DURATION,
    ("audio_bytesize", "coalesce(audio_bytesize, -1) = coalesce(length(audio_data), -1)"),
    _one_of("completion_status", COMPLETION_STATUSES),
)

memories: Final = _table(
    "alicia_memory",
    _text("id"),
    _text("user_id", null=True),
    _text("title", null=True),
    _text("summary", null=True),
    _column("entities", Words()),
    _column("key_phrases", Words()),
    _text("content"),
    _column("embeddings", Vector(), null=True),
    _json("embeddings_info"),
    _column("importance", Real, "0.5"),
    _column("confidence", Real, "1.0"),
    _whole("user_rating", null=True),
    _text("created_by", null=True),
    _text("source_type", null=True),
    _json("source_info"),
    _column("tags", Words()),
    _column("pinned", Flag(), "FALSE"),
    _column("archived", Flag(), "FALSE"),
    _times(),
    _key("alicia_memory", "id"),
    _HAS_ID,
    ("importance", "importance BETWEEN 0 AND 1"),
    ("confidence", "confidence BETWEEN 0 AND 1"),
    ("user_rating", "user_rating BETWEEN 1 AND 5"),
    Index("ix_alicia_memory_user", "user_id", "updated_at"),
)

memory_used: Final = _table(
    "alicia_memory_used",
    _text("id"),
    _text("conversation_id"),
    _text("message_id", null=True),
    _text("memory_id"),
    _text("memory_type", null=True),
    _text("action"),
    _text("content"),
    _column("confidence", Real, null=True),
    _column("similarity_score", Real, null=True),
    _text("query_prompt", null=True),
    _json("query_prompt_meta"),
    _whole("position_in_results", null=True),
    _text("actor", null=True),
    _json("meta"),
    Column("metadata", JsonValue(), Computed("meta", persisted=True), nullable=True),
    _times(),
    _key("alicia_memory_used", "id"),
    _of_conversation("alicia_memory_used"),
    _of_message("alicia_memory_used"),
    _of("alicia_memory_used", "memory_id", to="alicia_memory", what="memory"),
    _HAS_ID,
    _one_of("action", ACTIONS),
    ("confidence", "confidence BETWEEN 0 AND 1"),
    ("similarity_score", "similarity_score BETWEEN -1 AND 1"),
    ("one_score", "confidence = similarity_score"),
    ("position_in_results", "position_in_results >= 1"),
    (
        "only_what_was_found_has_a_score",
        "action = 'retrieved' OR coalesce(confidence, similarity_score, position_in_results) IS NULL",
    ),
    ("somebody", "coalesce(message_id, actor) IS NOT NULL"),
    Index("ix_alicia_memory_used_message", "conversation_id", "message_id"),
    Index("ix_alicia_memory_used_of_message", "message_id", "created_at"),
    Index("ix_alicia_memory_used_of_memory", "memory_id", "created_at"),
)

notes: Final = _table(
    "alicia_user_conversation_commentaries",
    _text("id"),
    _text("content"),
    _text("conversation_id"),
    _text("message_id", null=True),
    _text("created_by"),
    _json("meta"),
    _times(),
    _key("alicia_user_conversation_commentaries", "id"),
    _of_conversation("alicia_user_conversation_commentaries"),
    _of_message("alicia_user_conversation_commentaries"),
    _HAS_ID,
    ("created_by", "created_by <> ''"),
    Index("ix_alicia_user_conversation_commentaries_message", "conversation_id", "message_id"),
)

tool_uses: Final = _table(
    "alicia_tool_uses",
    _text("id"),
    _text("conversation_id"),
    _text("message_id"),
    _text("tool_name"),
    _column("tool_arguments", JsonValue(), "'{}'"),
    _json("tool_result"),
    _text("status", "'pending'"),
    _text("error_message", null=True),
    _whole("sequence_number"),
    _moment("completed_at", null=True),
    _times(),
    _key("alicia_tool_uses", "id"),
    _unique("alicia_tool_uses", "sequence_number", "message_id", "sequence_number"),
    _of_conversation("alicia_tool_uses"),
    _of_message("alicia_tool_uses"),
    _HAS_ID,
    ("tool_name", "tool_name <> ''"),
    _one_of("status", TOOL_STATUSES),
    ("completed", _same("status IN ('success', 'error', 'cancelled')", "completed_at IS NOT NULL")),
    ("result", "tool_result IS NULL OR completed_at IS NOT NULL"),
    ("error", "error_message IS NULL OR status IN ('error', 'cancelled')"),
    ("sequence_number", "sequence_number >= 1"),
    Index("ix_alicia_tool_uses_message", "conversation_id", "message_id"),
)

audio: Final = _table(
    "alicia_audio",
    _text("id"),
    _text("conversation_id"),
    _text("message_id", null=True),
    _text("audio_type"),
    _text("audio_format"),
    _column("audio_data", LargeBinary(), null=True),
    _whole("duration_ms", null=True),
    _text("transcription", null=True),
    _text("livekit_track_sid", null=True),
    _json("transcription_meta"),
    _times(),
    _key("alicia_audio", "id"),
    _of_conversation("alicia_audio"),
    _of_message("alicia_audio"),
    _HAS_ID,
    _one_of("audio_type", AUDIO_TYPES),
    _DURATION,
    Index("ix_alicia_audio_message", "conversation_id", "message_id"),
)

meta: Final = _table(
    "alicia_meta",
    _text("id"),
    _text("ref"),
    _text("key"),
    _text("value"),
    _times(),
    _key("alicia_meta", "id"),
    _HAS_ID,
    ("ref", "ref <> ''"),
    ("key", "key <> ''"),
    Index("ix_alicia_meta_ref", "ref", "key"),
    Index("ix_alicia_meta_key", "key", "value"),
)

# --- tables for turns, replay and blocks -------------------------------------------------------------------

turns: Final = _table(
    "turns",
    _text("conversation_id"),
    _whole("number"),
    _text("user_message_id"),
    _text("answer_id", null=True),
    _text("state", "'pending'"),
    _whole("attempts", "0"),
    _text("error", null=True),
    _text("variation", null=True),
    _text("target_id", null=True),
    _column("stop_requested", Flag(), "FALSE"),
    _moment("deadline", null=True),
    _moment("created_at"),
    _moment("updated_at"),
    _moment("started_at", null=True),
    _moment("ended_at", null=True),
    _key("turns", "conversation_id", "number"),
    _unique("turns", "user_message", "user_message_id"),
    _unique("turns", "answer", "answer_id"),
    _of_conversation("turns"),
    _of_message("turns", "user_message_id", "user_message"),
    _of_message("turns", "answer_id", "answer"),
    _of_message("turns", "target_id", "target"),
    ("number", "number >= 1"),
    _one_of("variation", VARIATIONS),
    ("target", _same("variation IS NULL", "target_id IS NULL")),
    _one_of("state", TURN_STATES),
    ("attempts", "attempts >= 0 AND (attempts >= 1 OR state IN ('pending', 'failed'))"),
    ("error", _same("state = 'failed'", "error IS NOT NULL")),
    ("started", "state <> 'in_progress' OR started_at IS NOT NULL"),
    ("ended", _same("state IN ('completed', 'failed')", "ended_at IS NOT NULL")),
    ("answered", "state <> 'completed' OR answer_id IS NOT NULL"),
    Index("ix_turns_state", "state", "conversation_id", "number"),
    Index(
        "uq_turns_one_at_a_time",
        "conversation_id",
        unique=True,
        sqlite_where=text("state = 'in_progress'"),
        postgresql_where=text("state = 'in_progress'"),
    ),
)

frames: Final = _table(
    "frames",
    _text("conversation_id"),
    _text("direction"),
    _whole("stanza_id"),
    _whole("position"),
    _whole("type"),
    _column("payload", LargeBinary()),
    _text("sender", null=True),
    _whole("turn", null=True),
    _whole("epoch", null=True),
    _moment("created_at"),
    _key("frames", "conversation_id", "direction", "stanza_id"),
    _unique("frames", "position", "conversation_id", "position"),
    _of_conversation("frames"),
    _of("frames", "conversation_id", "turn", to="turns", their=("conversation_id", "number"), what="turn"),
    _one_of("direction", DIRECTIONS),
    (
        "stanza_id",
        f"CASE direction WHEN 'client' THEN stanza_id BETWEEN 1 AND {_LARGEST_STANZA}"
        f" ELSE stanza_id BETWEEN -{_LARGEST_STANZA} AND -1 END",
    ),
    ("position", "position >= 1"),
    ("type", "type BETWEEN 0 AND 65535"),
    ("payload", "length(payload) > 0"),
    ("sender", _same("direction = 'client'", "sender IS NOT NULL")),
    ("epoch", "epoch >= 1"),
    Index("ix_frames_turn", "conversation_id", "turn"),
)

connections: Final = _table(
    "connections",
    _text("conversation_id"),
    _text("connection_id"),
    _moment("opened_at"),
    _key("connections", "conversation_id"),
    _of_conversation("connections"),
    ("connection_id", "connection_id <> ''"),
)

leases: Final = _table(
    "leases",
    _text("conversation_id"),
    _text("holder"),
    _whole("epoch"),
    _moment("expires_at"),
    _key("leases", "conversation_id"),
    _of_conversation("leases"),
    ("holder", "holder <> ''"),
    ("epoch", "epoch >= 1"),
)

block_revisions: Final = _table(
    "block_revisions",
    _text("conversation_id"),
    _text("label"),
    _whole("revision"),
    _whole("base", null=True),
    _column("packed", LargeBinary()),
    _whole("size"),
    _text("digest"),
    _text("previous_digest", null=True),
    _text("actor"),
    _whole("turn", null=True),
    _text("schema_version"),
    _moment("created_at"),
    _key("block_revisions", "conversation_id", "label", "revision"),
    _of_conversation("block_revisions"),
    _one_of("label", LABELS),
    ("revision", "revision >= 1"),
    ("base", "base = revision - 1"),
    ("size", "size >= 0"),
    ("digest", "length(digest) = 64"),
    ("previous_digest", _same("revision = 1", "previous_digest IS NULL")),
    ("turn", "turn >= 1"),
    Index("ix_block_revisions_turn", "conversation_id", "label", "turn"),
)

blocks: Final = _table(
    "blocks",
    _text("conversation_id"),
    _text("label"),
    _text("memory_id"),
    _whole("revision", null=True),
    _text("digest", null=True),
    _text("value", null=True),
    _text("schema_version", null=True),
    _moment("updated_at"),
    _key("blocks", "conversation_id", "label"),
    _unique("blocks", "memory", "memory_id"),
    _of_conversation("blocks"),
    _of("blocks", "memory_id", to="alicia_memory", what="memory"),
    _of(
        "blocks",
        "conversation_id",
        "label",
        "revision",
        to="block_revisions",
        their=("conversation_id", "label", "revision"),
        what="revision",
    ),
    _one_of("label", LABELS),
    ("digest", "length(digest) = 64"),
    (
        "whole_or_empty",
        "CASE WHEN revision IS NULL THEN coalesce(digest, value, schema_version) IS NULL"
        " ELSE digest IS NOT NULL AND value IS NOT NULL AND schema_version IS NOT NULL END",
    ),
)

archived_turns: Final = _table(
    "archived_turns",
    _text("conversation_id"),
    _whole("turn_id"),
    _text("value"),
    _text("digest"),
    _column("has_left", Flag()),
    _moment("archived_at"),
    _key("archived_turns", "conversation_id", "turn_id"),
    _of_conversation("archived_turns"),
    ("turn_id", "turn_id >= 1"),
    ("digest", "length(digest) = 64"),
)

block_quarantine: Final = _table(
    "block_quarantine",
    _text("id"),
    _text("conversation_id"),
    _text("label"),
    _text("value"),
    _text("reason"),
    _text("actor"),
    _moment("created_at"),
    _key("block_quarantine", "id"),
    _of_conversation("block_quarantine"),
    _HAS_ID,
    _one_of("label", LABELS),
    Index("ix_block_quarantine_block", "conversation_id", "label"),
)

# --- tables for safety -------------------------------------------------------------------------------------

safety_events: Final = _table(
    "safety_events",
    _text("id"),
    _text("conversation_id"),
    _text("message_id"),
    _whole("turn", null=True),
    _text("stage"),
    _text("kind"),
    _whole("tier"),
    _column("rules", Words()),
    _moment("created_at"),
    _text("certainty", null=True),
    _key("safety_events", "id"),
    _of_conversation("safety_events"),
    _of_message("safety_events"),
    _of(
        "safety_events",
        "conversation_id",
        "turn",
        to="turns",
        their=("conversation_id", "number"),
        what="turn",
    ),
    _HAS_ID,
    _one_of("stage", SAFETY_STAGES),
    _one_of("kind", SAFETY_KINDS),
    ("tier", "CASE WHEN kind IN ('emergency', 'crisis') THEN tier BETWEEN 1 AND 3 ELSE tier = 0 END"),
    ("of_a_turn", "turn IS NOT NULL OR stage = 'message'"),
    _one_of("certainty", CERTAINTIES),
    ("certain_or_possible", _same("kind IN ('emergency', 'crisis')", "certainty IS NOT NULL")),
    Index("ix_safety_events_message", "message_id"),
    Index("ix_safety_events_conversation", "conversation_id", "created_at"),
)

safety_alerts: Final = _table(
    "safety_alerts",
    _text("id"),
    _text("event_id"),
    _text("state", "'pending'"),
    _whole("attempts", "0"),
    _moment("next_at"),
    _text("error", null=True),
    _moment("created_at"),
    _moment("updated_at"),
    _key("safety_alerts", "id"),
    _of("safety_alerts", "event_id", to="safety_events", what="event"),
    _unique("safety_alerts", "event", "event_id"),
    _HAS_ID,
    _one_of("state", ALERT_STATES),
    ("attempts", "attempts >= 0"),
    Index("ix_safety_alerts_due", "state", "next_at"),
)

safety_refusals: Final = _table(
    "safety_refusals",
    _text("event_id"),
    _text("said"),
    _moment("created_at"),
    _key("safety_refusals", "event_id"),
    _of("safety_refusals", "event_id", to="safety_events", what="event"),
    ("said", "said <> ''"),
)

# --- tables for Letta --------------------------------------------------------------------------------------

letta_agents: Final = _table(
    "letta_agents",
    _text("conversation_id"),
    _text("role"),
    _text("agent_id", null=True),
    _text("recipe", null=True),
    _text("holder", null=True),
    _moment("expires_at", null=True),
    _moment("created_at"),
    _moment("updated_at"),
    _key("letta_agents", "conversation_id", "role"),
    _unique("letta_agents", "agent", "agent_id"),
    _of_conversation("letta_agents"),
    ("role", "role <> ''"),
    ("made_or_claimed", "coalesce(agent_id, holder) IS NOT NULL"),
    ("recipe", _same("agent_id IS NULL", "recipe IS NULL")),
    ("claim", _same("holder IS NULL", "expires_at IS NULL")),
    Index("ix_letta_agents_role", "role", "conversation_id"),
)

letta_blocks: Final = _table(
    "letta_blocks",
    _text("conversation_id"),
    _text("label"),
    _text("block_id"),
    _text("digest", null=True),
    _text("intent", null=True),
    _moment("updated_at"),
    _key("letta_blocks", "conversation_id", "label"),
    _unique("letta_blocks", "block", "block_id"),
    _of_conversation("letta_blocks"),
    _one_of("label", LABELS),
    ("digest", "length(digest) = 64"),
    ("intent", "length(intent) = 64"),
)

letta_passages: Final = _table(
    "letta_passages",
    _text("conversation_id"),
    _whole("first_turn"),
    _whole("last_turn"),
    _text("digest"),
    _text("passage_id", null=True),
    _moment("created_at"),
    _moment("updated_at"),
    _key("letta_passages", "conversation_id", "first_turn"),
    _unique("letta_passages", "passage", "passage_id"),
    _of(
        "letta_passages",
        "conversation_id",
        "first_turn",
        to="archived_turns",
        their=("conversation_id", "turn_id"),
        what="first_turn",
    ),
    ("turns", "last_turn >= first_turn"),
    ("digest", "length(digest) = 64"),
)
