"""Pages of lists for the HTTP API: facts about rows without their texts, newest first.

A page is read from an index, starting after the last entry of the page before. The time it takes does not
depend on how many rows there are.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache
from heapq import merge
from itertools import islice
from typing import Any, Final, Literal, TypeVar, cast

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    Table,
    Text,
    bindparam,
    exists,
    false,
    func,
    literal_column,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy import cast as cast_type

from memory_blocks.models import Label
from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.engine.types import JsonObject
from orchestrator.store.engine.unit import Unit
from orchestrator.store.expressions import ActorRole, TraceLabel
from orchestrator.store.repositories.conversation.conversations import looks_id
from orchestrator.store.repositories.memory.memories import MEMORY_BLOCK
from orchestrator.store.rows import (
    STAFF_READ,
    ArchivedTurn,
    Block,
    BlockRevision,
    Conversation,
    IndexedMemory,
    LedgerEntry,
    Memory,
    Message,
    Note,
    Retrieval,
    SafetyEvent,
    StationTime,
    ToolUse,
    Trace,
    Turn,
    TurnRun,
)

T = TypeVar("T")

_conversations, _messages, _traces = Conversation.table, Message.table, Trace.table
_tools, _events, _turns, _blocks = ToolUse.table, SafetyEvent.table, Turn.table, Block.table
_revisions, _archive = BlockRevision.table, ArchivedTurn.table
_runs, _retrievals, _stations = TurnRun.table, Retrieval.table, StationTime.table
_notes, _ledger = Note.table, LedgerEntry.table
_memories, _index = Memory.table, IndexedMemory.table


@dataclass(frozen=True, slots=True)
class Position:
    """The place of an entry in a list: the list goes on with the entries that are older."""

    at: datetime
    id: str


@dataclass(frozen=True, slots=True)
class ConversationEntry:
    """A conversation in a list."""

    id: str
    user_id: str
    title: str | None
    status: str
    created_at: datetime
    updated_at: datetime
    turns: int

    @property
    def position(self) -> Position:
        """Its place in the list."""
        return Position(self.updated_at, self.id)


@dataclass(frozen=True, slots=True)
class MessageEntry:
    """A message in a list, without its text."""

    id: str
    sequence_number: int
    previous_id: str | None
    role: str
    status: str
    characters: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """A trace in a list, without its content. `meta` may quote the person; only some of its keys are safe."""

    id: str
    conversation_id: str
    message_id: str | None
    memory_id: str
    memory_type: str | None
    action: str
    actor: str | None
    confidence: float | None
    meta: JsonObject | None
    created_at: datetime

    @property
    def position(self) -> Position:
        """Its place in the list."""
        return Position(self.created_at, self.id)


@dataclass(frozen=True, slots=True)
class ToolUseEntry:
    """A tool call in a list, without arguments and result."""

    id: str
    conversation_id: str
    message_id: str
    tool_name: str
    status: str
    created_at: datetime
    completed_at: datetime | None

    @property
    def position(self) -> Position:
        """Its place in the list."""
        return Position(self.created_at, self.id)


@dataclass(frozen=True, slots=True)
class SafetyEntry:
    """A safety event in a list."""

    id: str
    conversation_id: str
    message_id: str
    turn: int | None
    stage: str
    kind: str
    tier: int
    certainty: str | None
    rules: tuple[str, ...]
    created_at: datetime

    @property
    def position(self) -> Position:
        """Its place in the list."""
        return Position(self.created_at, self.id)


@dataclass(frozen=True, slots=True)
class RunEntry:
    """An attempt at a turn in a list: how it was routed, how long it took, and the error that ended it."""

    id: str
    conversation_id: str
    turn: int
    message_id: str
    intent: str | None
    confidence: float | None
    specialist: str | None
    prompt_revision: str | None
    error: str | None
    milliseconds: float
    created_at: datetime

    @property
    def position(self) -> Position:
        """Its place in the list."""
        return Position(self.created_at, self.id)


@dataclass(frozen=True, slots=True)
class RetrievalEntry:
    """A search of memories in a list, without its query and what it found."""

    id: str
    user_id: str
    conversation_id: str | None
    message_id: str | None
    actor: str
    recipe: str
    mode: str
    milliseconds: float
    created_at: datetime

    @property
    def position(self) -> Position:
        """Its place in the list."""
        return Position(self.created_at, self.id)


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """A long-term memory in a list. `said_at` and `speaker` are known if it was said in a message or file."""

    id: str
    user_id: str
    kind: str | None
    title: str | None
    content: str
    source_info: JsonObject | None
    tags: tuple[str, ...]
    importance: float
    confidence: float
    rating: int | None
    pinned: bool
    archived: bool
    created_at: datetime
    updated_at: datetime
    said_at: datetime | None
    speaker: str | None

    @property
    def position(self) -> Position:
        """Its place in the list."""
        return Position(self.updated_at, self.id)


@dataclass(frozen=True, slots=True)
class ConflictEntry:
    """A memory that contradicts another one, without its content."""

    id: str
    source_info: JsonObject | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class RevisionEntry:
    """A revision of a block in a list, without its text."""

    revision: int
    size: int
    digest: str
    actor: str
    turn: int | None
    schema_version: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ArchivedEntry:
    """An archived turn in a list, without its text."""

    turn_id: int
    size: int
    digest: str
    archived_at: datetime


@dataclass(frozen=True, slots=True)
class NoteEntry:
    """A note with its text."""

    id: str
    message_id: str | None
    content: str
    created_at: datetime

    @property
    def position(self) -> Position:
        """Its place in the list."""
        return Position(self.created_at, self.id)


@dataclass(frozen=True, slots=True)
class RotationEntry:
    """Turns that left the history block together. `turn` wrote the block then; None if it was by hand."""

    conversation_id: str
    first: int
    last: int
    count: int
    created_at: datetime
    turn: int | None

    @property
    def position(self) -> Position:
        """Its place in the list."""
        return Position(self.created_at, self.conversation_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationFilter:
    """Which rotations are listed."""

    conversation_id: str | None = None
    user_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationFilter:
    """Which conversations are listed. `search` looks for a text in titles and messages.

    With `begun`, only those that have a turn.
    """

    user_id: str | None = None
    status: str | None = None
    search: str | None = None
    begun: Literal[True] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFilter:
    """Which traces are listed. An `actor` without a colon also matches all actors that begin with it."""

    conversation_id: str | None = None
    message_id: str | None = None
    action: str | None = None
    memory_type: str | None = None
    label: str | None = None
    actor: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    by_staff: bool | None = None
    user_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetyFilter:
    """Which safety events are listed."""

    conversation_id: str | None = None
    kind: str | None = None
    certainty: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which attempts at turns are listed. With `failed`, only those that an error ended.

    `station` is one that the turn passed; it took at least `station_slower_than` milliseconds there.
    """

    conversation_id: str | None = None
    specialist: str | None = None
    error: str | None = None
    failed: Literal[True] | None = None
    slower_than: float | None = None
    station: str | None = None
    station_slower_than: float | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalFilter:
    """Which searches are listed."""

    user_id: str | None = None
    conversation_id: str | None = None
    message_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFilter:
    """Which memories of a person are listed. `search` looks for a text in them."""

    user_id: str
    kind: str | None = None
    archived: bool | None = None
    pinned: Literal[True] | None = None
    search: str | None = None


class Pages:
    """Reads one page of a list: at most `limit` entries after `after`, the place of the last known entry."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def conversations(
        self, which: ConversationFilter, after: Position | None, limit: int
    ) -> list[ConversationEntry]:
        """Conversations, the most recently active first."""
        given = _given(which)
        if which.search is not None:
            given["search"] = _like(which.search)
        return self._page(_conversations_page, given, after, limit)

    def traces(self, which: TraceFilter, after: Position | None, limit: int) -> list[TraceEntry]:
        """Traces of one conversation or of all."""
        return self._page(_traces_page, _given_of_traces(which), after, limit)

    def traces_of_person(
        self, user_id: str, which: TraceFilter, after: Position | None, limit: int
    ) -> list[TraceEntry]:
        """Traces of all conversations of a person, and of staff that looked when there was none."""
        given = _given_of_traces(which)
        return self._of_person(_traces_page, user_id, given, after, limit)

    def traces_since(self, which: TraceFilter, limit: int) -> list[TraceEntry]:
        """Traces from `which.since` on, oldest first, for a live stream."""
        given = _given_of_traces(which)
        return self._unit.all(_traces_forward(tuple(sorted(given))), **given, limit=limit)

    def messages(self, conversation_id: str, after: int, limit: int) -> list[MessageEntry]:
        """Messages of a conversation after that sequence number, in order."""
        return self._unit.all(_MESSAGES, conversation_id=conversation_id, after=after, limit=limit)

    def tool_uses(self, conversation_id: str, after: Position | None, limit: int) -> list[ToolUseEntry]:
        """Tool calls of a conversation."""
        return self._page(_tools_page, {"conversation_id": conversation_id}, after, limit)

    def safety_events(
        self, which: SafetyFilter, after: Position | None, limit: int, *, user_id: str | None = None
    ) -> list[SafetyEntry]:
        """Safety events, of a person or of all."""
        return self._of_person(_events_page, user_id, _given(which), after, limit)

    def runs(
        self, which: RunFilter, after: Position | None, limit: int, *, user_id: str | None = None
    ) -> list[RunEntry]:
        """Attempts at turns, of a person or of all."""
        return self._of_person(_runs_page, user_id, _given(which), after, limit)

    def retrievals(self, which: RetrievalFilter, after: Position | None, limit: int) -> list[RetrievalEntry]:
        """Searches of memories."""
        return self._page(_retrievals_page, _given(which), after, limit)

    def memories(self, which: MemoryFilter, after: Position | None, limit: int) -> list[MemoryEntry]:
        """Memories of a person, the most recently changed first."""
        given = _given(which)
        if which.search is not None:
            given["search"] = _like(which.search)
        return self._page(_memories_page, given, after, limit)

    def memory(self, id: str) -> MemoryEntry | None:
        """One memory, of anybody, unless it is deleted or represents a block."""
        return self._unit.first(_MEMORY, id=id)

    def in_conflict(self, user_id: str) -> list[ConflictEntry]:
        """The memories of a person that contradict others, without their contents."""
        return self._unit.all(_IN_CONFLICT, user_id=user_id)

    def derived(self, user_id: str, memory_id: str, after: Position | None, limit: int) -> list[MemoryEntry]:
        """The memories of a person whose source names another memory, the most recently changed first."""
        given = {"user_id": user_id, "source": f'%"{memory_id}"%'}
        return self._page(_memories_page, given, after, limit)

    def changes(self, user_id: str, memory_id: str, after: int, limit: int) -> list[LedgerEntry]:
        """The changes of one memory after that number, in order."""
        return self._unit.all(_CHANGES, user_id=user_id, memory_id=memory_id, after=after, limit=limit)

    def revisions(self, conversation_id: str, label: str, before: int, limit: int) -> list[RevisionEntry]:
        """Revisions of a block below that number, newest first."""
        return self._unit.all(
            _REVISIONS, conversation_id=conversation_id, label=label, before=before, limit=limit
        )

    def block_heads(self, conversation_id: str) -> dict[str, int]:
        """The number of the latest revision of each block that was written."""
        return dict(self._unit.all(_HEADS, conversation_id=conversation_id))

    def archived_turns(self, conversation_id: str, after: int, limit: int) -> list[ArchivedEntry]:
        """Turns that have left the block, after that turn, in order."""
        return self._unit.all(_ARCHIVED, conversation_id=conversation_id, after=after, limit=limit)

    def notes(self, conversation_id: str, after: Position | None, limit: int) -> list[NoteEntry]:
        """Notes of a conversation, the newest first."""
        return self._page(_notes_page, {"conversation_id": conversation_id}, after, limit)

    def rotations(self, which: RotationFilter, after: Position | None, limit: int) -> list[RotationEntry]:
        """Rotations, the latest first."""
        return self._page(_rotations_page, _given(which), after, limit)

    def _of_person(
        self,
        build: Any,
        user_id: str | None,
        given: dict[str, Any],
        after: Position | None,
        limit: int,
    ) -> list[Any]:
        """Entries of all conversations of a person, and of looks at them; without a person, of everybody.

        One statement finds the newest entry of each conversation. A page has entries of at most `limit`
        conversations, those whose newest entries are the latest; only their entries are read, each from its
        index, and merged. So neither the entries of others nor the person's older ones are read.
        """
        if user_id is None or "conversation_id" in given:
            owned = {} if user_id is None else {"user_id": user_id}
            return self._page(build, {**given, **owned}, after, limit)
        heads = _heads(build, tuple(sorted(given)), after is not None)
        owned = {"user_id": user_id, "looks": looks_id(user_id)}
        found = self._unit.all(heads, **given, **_continued(after), **owned)
        newest = _latest([(id, at) for id, at in found if at], limit)
        streams = (
            self._newest_first(build, {**given, "conversation_id": id}, after, limit) for id, _ in newest
        )
        merged = merge(*streams, key=lambda entry: (entry.created_at, entry.id), reverse=True)
        return list(islice(merged, limit))

    def _newest_first(
        self, build: Any, given: dict[str, Any], after: Position | None, limit: int
    ) -> Iterator[Any]:
        """The entries of one conversation: first the newest alone, because most streams need no more."""
        size = 1
        while page := self._page(build, given, after, size):
            yield from page
            if len(page) < size:
                return
            after, size = page[-1].position, min(limit, size * 8)

    def _page(self, build: Any, given: dict[str, Any], after: Position | None, limit: int) -> list[Any]:
        statement = build(tuple(sorted(given)), after is not None)
        return self._unit.all(statement, **given, **_continued(after), limit=limit)


def _latest(heads: list[tuple[str, datetime]], count: int) -> list[tuple[str, datetime]]:
    """The latest so many, and those that are equally late as the last of them."""
    if len(heads) <= count:
        return heads
    bound = sorted((at for _, at in heads), reverse=True)[count - 1]
    return [head for head in heads if head[1] >= bound]


def _continued(after: Position | None) -> dict[str, Any]:
    return {} if after is None else {"after_at": after.at, "after_id": after.id}


def _given_of_traces(which: TraceFilter) -> dict[str, Any]:
    given = _given(which)
    if which.actor is not None and ":" not in which.actor:
        given["actor_role"] = given.pop("actor")
    return given


def _given(which: Any) -> dict[str, Any]:
    """The conditions of a filter that are set."""
    found = {each.name: getattr(which, each.name) for each in fields(which)}
    return {name: value for name, value in found.items() if value is not None}


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _like(text: str) -> str:
    return f"%{_escaped(text)}%"


def _keyset(
    page: Select[Any], at: ColumnElement[Any], id: ColumnElement[Any], continued: bool
) -> Select[Any]:
    """Order a query from newest to oldest, and let it go on after the given position."""
    if continued:
        after = tuple_(bindparam("after_at", type_=at.type), bindparam("after_id"))
        page = page.where(tuple_(at, id) < after)
    return page.order_by(at.desc(), id.desc()).limit(bindparam("limit"))


def _alive(table: Table) -> ColumnElement[bool]:
    return cast(ColumnElement[bool], table.c.deleted_at.is_(None))


_TURN_COUNT: Final = (
    select(func.coalesce(func.max(_turns.c.number), 0))
    .where(_turns.c.conversation_id == _conversations.c.id)
    .scalar_subquery()
)


@cache
def _conversations_page(given: tuple[str, ...], continued: bool) -> Statement[ConversationEntry]:
    table = _conversations.c
    said = exists().where(
        _messages.c.conversation_id == table.id,
        _messages.c.contents.ilike(bindparam("search"), escape="\\"),
        _alive(_messages),
    )
    conditions = {
        "user_id": table.user_id == bindparam("user_id"),
        "status": table.status == bindparam("status"),
        "search": or_(table.title.ilike(bindparam("search"), escape="\\"), said),
        "begun": exists().where(_turns.c.conversation_id == table.id),
    }
    columns = (table.id, table.user_id, table.title, table.status, table.created_at, table.updated_at)
    page = select(*columns, _TURN_COUNT).where(_alive(_conversations), *(conditions[name] for name in given))
    return Statement(_keyset(page, table.updated_at, table.id, continued), ConversationEntry)


@cache
def _heads(build: Any, given: tuple[str, ...], continued: bool) -> Statement[tuple[str, datetime | None]]:
    """The conversations of a person, each with the time of its newest entry in a list."""
    page: Select[Any] = build((*given, IN_CONVERSATION), continued).query
    columns, here = page.selected_columns, _conversations.c
    head = page.with_only_columns(columns.created_at).where(columns.conversation_id == here.id).limit(1)
    newest = head.correlate(_conversations).scalar_subquery()
    shown = _alive(_conversations) | (here.id == bindparam("looks"))
    owned = select(here.id, newest).where(here.user_id == bindparam("user_id"), shown)
    return Statement(owned, lambda id, at: (id, at))


IN_CONVERSATION: Final = "in_conversation"
"""Among the names of what is given: the query will be limited to a conversation, and must use its index."""


def _no_index(expression: ColumnElement[Any]) -> ColumnElement[Any]:
    """The same value, in a form that no index has. SQLite would choose any index over the conversation's."""
    return func.coalesce(expression, literal_column("''"))


def _trace_query(given: tuple[str, ...]) -> Select[Any]:
    table = _traces.c
    indexed = _no_index if {"conversation_id", IN_CONVERSATION} & set(given) else lambda found: found
    conditions = {
        **_time_and_owner(_traces),
        "message_id": table.message_id == bindparam("message_id"),
        "action": indexed(table.action) == bindparam("action"),
        "memory_type": indexed(table.memory_type) == bindparam("memory_type"),
        "label": indexed(TraceLabel(table.meta)) == bindparam("label"),
        "actor": indexed(table.actor) == bindparam("actor"),
        "actor_role": indexed(ActorRole(table.actor)) == bindparam("actor_role"),
        "by_staff": literal_column(STAFF_READ, Integer) == literal_column("1"),
    }
    columns = (
        table.id,
        table.conversation_id,
        table.message_id,
        table.memory_id,
        table.memory_type,
        table.action,
        table.actor,
        table.confidence,
        table.meta,
        table.created_at,
    )
    wanted = (conditions[name] for name in given if name in conditions)
    return select(*columns).where(_alive(_traces), *wanted)


@cache
def _traces_page(given: tuple[str, ...], continued: bool) -> Statement[TraceEntry]:
    table = _traces.c
    return Statement(_keyset(_trace_query(given), table.created_at, table.id, continued), TraceEntry)


@cache
def _traces_forward(given: tuple[str, ...]) -> Statement[TraceEntry]:
    page = _trace_query(given).order_by(_traces.c.created_at, _traces.c.id).limit(bindparam("limit"))
    return Statement(page, TraceEntry)


_MESSAGES: Final = Statement(
    select(
        _messages.c.id,
        _messages.c.sequence_number,
        _messages.c.previous_id,
        _messages.c.message_role,
        _messages.c.completion_status,
        func.length(_messages.c.contents),
        _messages.c.created_at,
    )
    .where(
        _messages.c.conversation_id == bindparam("conversation_id"),
        _messages.c.sequence_number > bindparam("after"),
        _alive(_messages),
    )
    .order_by(_messages.c.sequence_number)
    .limit(bindparam("limit")),
    MessageEntry,
)


@cache
def _tools_page(given: tuple[str, ...], continued: bool) -> Statement[ToolUseEntry]:
    table = _tools.c
    columns = (
        table.id,
        table.conversation_id,
        table.message_id,
        table.tool_name,
        table.status,
        table.created_at,
        table.completed_at,
    )
    page = select(*columns).where(_alive(_tools), *(table[name] == bindparam(name) for name in given))
    return Statement(_keyset(page, table.created_at, table.id, continued), ToolUseEntry)


@cache
def _events_page(given: tuple[str, ...], continued: bool) -> Statement[SafetyEntry]:
    table = _events.c
    columns = (
        table.id,
        table.conversation_id,
        table.message_id,
        table.turn,
        table.stage,
        table.kind,
        table.tier,
        table.certainty,
        table.rules,
        table.created_at,
    )
    conditions = {
        **_time_and_owner(_events),
        "kind": table.kind == bindparam("kind"),
        "certainty": table.certainty == bindparam("certainty"),
    }
    wanted = (conditions[name] for name in given if name in conditions)
    page = select(*columns).where(*wanted)
    return Statement(_keyset(page, table.created_at, table.id, continued), SafetyEntry)


@cache
def _runs_page(given: tuple[str, ...], continued: bool) -> Statement[RunEntry]:
    table, slow_there = _runs.c, "station_slower_than" in given
    conditions = {
        **_time_and_owner(_runs),
        "specialist": table.specialist == bindparam("specialist"),
        "error": table.error == bindparam("error"),
        "failed": table.error.is_not(None),
        "slower_than": table.milliseconds >= bindparam("slower_than"),
        "station": exists().where(
            _stations.c.run_id == table.id,
            _stations.c.station == bindparam("station"),
            *([_stations.c.milliseconds >= bindparam("station_slower_than")] if slow_there else []),
        ),
    }
    page = select(*(table[each.name] for each in fields(RunEntry))).where(
        *(conditions[name] for name in given if name in conditions)
    )
    return Statement(_keyset(page, table.created_at, table.id, continued), RunEntry)


@cache
def _notes_page(given: tuple[str, ...], continued: bool) -> Statement[NoteEntry]:
    table = _notes.c
    page = select(table.id, table.message_id, table.content, table.created_at).where(
        _alive(_notes), *(table[name] == bindparam(name) for name in given)
    )
    return Statement(_keyset(page, table.created_at, table.id, continued), NoteEntry)


@cache
def _rotations_page(given: tuple[str, ...], continued: bool) -> Statement[RotationEntry]:
    """Turns that were archived at the same moment left together; the next revision is of the same write."""
    table, at = _archive.c, _archive.c.archived_at
    conditions = _time_and_owner(_archive, at)
    written = (
        select(_revisions.c.turn)
        .where(
            _revisions.c.conversation_id == table.conversation_id,
            _revisions.c.label == Label.CONVERSATION_HISTORY.value,
            _revisions.c.created_at >= at,
        )
        .order_by(_revisions.c.revision)
        .limit(1)
        .scalar_subquery()
    )
    of_turns = (func.min(table.turn_id), func.max(table.turn_id), func.count())
    page = (
        select(table.conversation_id, *of_turns, at, written)
        .where(table.has_left, *(conditions[name] for name in given))
        .group_by(at, table.conversation_id)
    )
    return Statement(_keyset(page, at, table.conversation_id, continued), RotationEntry)


@cache
def _retrievals_page(given: tuple[str, ...], continued: bool) -> Statement[RetrievalEntry]:
    table = _retrievals.c
    conditions = {
        **_time_and_owner(_retrievals),
        "user_id": table.user_id == bindparam("user_id"),
        "message_id": table.message_id == bindparam("message_id"),
    }
    page = select(*(table[each.name] for each in fields(RetrievalEntry))).where(
        *(conditions[name] for name in given)
    )
    return Statement(_keyset(page, table.created_at, table.id, continued), RetrievalEntry)


def _memory_query() -> Select[Any]:
    """Memories with what the index knows of them; no rows that represent blocks."""
    table, index = _memories.c, _index.c
    columns = (
        table.id,
        table.user_id,
        table.source_type,
        table.title,
        table.content,
        table.source_info,
        table.tags,
        table.importance,
        table.confidence,
        table.user_rating,
        table.pinned,
        table.archived,
        table.created_at,
        table.updated_at,
        index.said_at,
        index.speaker,
    )
    return (
        select(*columns)
        .outerjoin_from(_memories, _index, table.id == index.memory_id)
        .where(
            _alive(_memories),
            table.user_id.is_not(None),
            or_(table.source_type.is_(None), table.source_type != MEMORY_BLOCK),
        )
    )


@cache
def _memories_page(given: tuple[str, ...], continued: bool) -> Statement[MemoryEntry]:
    table = _memories.c
    conditions = {
        "user_id": table.user_id == bindparam("user_id"),
        "kind": table.source_type == bindparam("kind"),
        "archived": table.archived == bindparam("archived", type_=table.archived.type),
        "pinned": table.pinned.is_(true()),
        "search": table.content.ilike(bindparam("search"), escape="\\"),
        "source": cast_type(table.source_info, Text).like(bindparam("source", type_=Text)),
    }
    page = _memory_query().where(*(conditions[name] for name in given))
    return Statement(_keyset(page, table.updated_at, table.id, continued), MemoryEntry)


def _time_and_owner(
    table: Table, created_at: ColumnElement[Any] | None = None
) -> dict[str, ColumnElement[bool]]:
    """The conditions that all lists of what belongs to a conversation have."""
    at = table.c.created_at if created_at is None else created_at
    here = table.c.conversation_id
    return {
        "conversation_id": here == bindparam("conversation_id"),
        "since": at >= bindparam("since", type_=at.type),
        "until": at < bindparam("until", type_=at.type),
        "user_id": exists().where(
            _conversations.c.id == here, _conversations.c.user_id == bindparam("user_id")
        ),
    }


_MEMORY: Final = Statement(_memory_query().where(_memories.c.id == bindparam("id")), MemoryEntry)
_IN_CONFLICT: Final = Statement(
    select(_memories.c.id, _memories.c.source_info, _memories.c.created_at).where(
        _memories.c.user_id == bindparam("user_id"),
        _alive(_memories),
        _memories.c.archived.is_(false()),
        cast_type(_memories.c.source_info, Text).like('%"conflict"%'),
    ),
    ConflictEntry,
)
_CHANGES: Final = Statement(
    all_of(LedgerEntry)
    .where(
        _ledger.c.user_id == bindparam("user_id"),
        _ledger.c.memory_id == bindparam("memory_id"),
        _ledger.c.number > bindparam("after"),
    )
    .order_by(_ledger.c.number)
    .limit(bindparam("limit")),
    LedgerEntry,
)
_REVISIONS: Final = Statement(
    select(
        _revisions.c.revision,
        _revisions.c.size,
        _revisions.c.digest,
        _revisions.c.actor,
        _revisions.c.turn,
        _revisions.c.schema_version,
        _revisions.c.created_at,
    )
    .where(
        _revisions.c.conversation_id == bindparam("conversation_id"),
        _revisions.c.label == bindparam("label"),
        _revisions.c.revision < bindparam("before"),
    )
    .order_by(_revisions.c.revision.desc())
    .limit(bindparam("limit")),
    RevisionEntry,
)
_HEADS: Final = Statement(
    select(_blocks.c.label, _blocks.c.revision).where(
        _blocks.c.conversation_id == bindparam("conversation_id"), _blocks.c.revision.is_not(None)
    ),
    lambda label, revision: (label, revision),
)
_ARCHIVED: Final = Statement(
    select(_archive.c.turn_id, func.length(_archive.c.value), _archive.c.digest, _archive.c.archived_at)
    .where(
        _archive.c.conversation_id == bindparam("conversation_id"),
        _archive.c.has_left,
        _archive.c.turn_id > bindparam("after"),
    )
    .order_by(_archive.c.turn_id)
    .limit(bindparam("limit")),
    ArchivedEntry,
)
