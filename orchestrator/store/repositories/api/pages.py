"""Pages of lists for the HTTP API: facts about rows without their texts, newest first.

A page is read from an index, starting after the last entry of the page before. The time it takes does not
depend on how many rows there are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache
from heapq import merge
from itertools import islice
from typing import Any, Final, Literal, TypeVar, cast

from sqlalchemy import (
    ColumnElement,
    Select,
    Table,
    Text,
    bindparam,
    exists,
    false,
    func,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy import cast as cast_type

from orchestrator.store.engine.statements import Statement
from orchestrator.store.engine.types import JsonObject
from orchestrator.store.engine.unit import Unit
from orchestrator.store.repositories.conversation.conversations import looks_id
from orchestrator.store.repositories.memory.memories import MEMORY_BLOCK
from orchestrator.store.repositories.turn.traces import STAFF_ROLES
from orchestrator.store.rows import (
    ArchivedTurn,
    Block,
    BlockRevision,
    Conversation,
    IndexedMemory,
    Memory,
    Message,
    Retrieval,
    SafetyEvent,
    ToolUse,
    Trace,
    Turn,
    TurnRun,
)

T = TypeVar("T")

_conversations, _messages, _traces = Conversation.table, Message.table, Trace.table
_tools, _events, _turns, _blocks = ToolUse.table, SafetyEvent.table, Turn.table, Block.table
_revisions, _archive = BlockRevision.table, ArchivedTurn.table
_runs, _retrievals = TurnRun.table, Retrieval.table
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationFilter:
    """Which conversations are listed. `search` looks for a text in titles and messages."""

    user_id: str | None = None
    status: str | None = None
    search: str | None = None


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
    """Which attempts at turns are listed. With `failed`, only those that an error ended."""

    conversation_id: str | None = None
    specialist: str | None = None
    error: str | None = None
    failed: Literal[True] | None = None
    slower_than: float | None = None
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
        return self._of_person(_traces_page, user_id, given, after, limit, also=(looks_id(user_id),))

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

    def in_conflict(self, user_id: str) -> list[MemoryEntry]:
        """The memories of a person that contradict others, oldest first."""
        return self._unit.all(_IN_CONFLICT, user_id=user_id)

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

    def _of_person(
        self,
        build: Any,
        user_id: str | None,
        given: dict[str, Any],
        after: Position | None,
        limit: int,
        *,
        also: Sequence[str] = (),
    ) -> list[Any]:
        """Entries of all conversations of a person, and of `also`; if no person is given, of everybody.

        Each conversation's entries are read from its index and merged, so that neither the entries of others
        nor the person's older ones are read.
        """
        if user_id is None or "conversation_id" in given:
            owned = {} if user_id is None else {"user_id": user_id}
            return self._page(build, {**given, **owned}, after, limit)
        ids = [*self._unit.all(_CONVERSATION_IDS, user_id=user_id), *also]
        streams = (
            self._newest_first(build, {**given, "conversation_id": each}, after, limit) for each in ids
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
        at = {} if after is None else {"after_at": after.at, "after_id": after.id}
        return self._unit.all(statement, **given, **at, limit=limit)


def _given_of_traces(which: TraceFilter) -> dict[str, Any]:
    actors = {} if which.actor is None else {"actors": f"{_escaped(which.actor)}:%"}
    return {**_given(which), **actors}


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
    }
    columns = (table.id, table.user_id, table.title, table.status, table.created_at, table.updated_at)
    page = select(*columns, _TURN_COUNT).where(_alive(_conversations), *(conditions[name] for name in given))
    return Statement(_keyset(page, table.updated_at, table.id, continued), ConversationEntry)


_CONVERSATION_IDS: Final = Statement(
    select(_conversations.c.id).where(
        _conversations.c.user_id == bindparam("user_id"), _alive(_conversations)
    ),
    str,
)


def _trace_query(given: tuple[str, ...]) -> Select[Any]:
    table = _traces.c
    role = [table.actor.like(f"{role}:%") for role in STAFF_ROLES]
    conditions = {
        **_time_and_owner(_traces),
        "message_id": table.message_id == bindparam("message_id"),
        "action": table.action == bindparam("action"),
        "memory_type": table.memory_type == bindparam("memory_type"),
        "label": exists().where(
            _blocks.c.memory_id == table.memory_id, _blocks.c.label == bindparam("label")
        ),
        "actor": or_(table.actor == bindparam("actor"), table.actor.like(bindparam("actors"), escape="\\")),
        "by_staff": (table.message_id.is_(None)) & (table.action == "retrieved") & or_(*role),
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
    page = select(*columns).where(*(conditions[name] for name in given))
    return Statement(_keyset(page, table.created_at, table.id, continued), SafetyEntry)


@cache
def _runs_page(given: tuple[str, ...], continued: bool) -> Statement[RunEntry]:
    table = _runs.c
    conditions = {
        **_time_and_owner(_runs),
        "specialist": table.specialist == bindparam("specialist"),
        "error": table.error == bindparam("error"),
        "failed": table.error.is_not(None),
        "slower_than": table.milliseconds >= bindparam("slower_than"),
    }
    page = select(*(table[each.name] for each in fields(RunEntry))).where(
        *(conditions[name] for name in given)
    )
    return Statement(_keyset(page, table.created_at, table.id, continued), RunEntry)


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
    }
    page = _memory_query().where(*(conditions[name] for name in given))
    return Statement(_keyset(page, table.updated_at, table.id, continued), MemoryEntry)


def _time_and_owner(table: Table) -> dict[str, ColumnElement[bool]]:
    """The conditions that all lists of what belongs to a conversation have."""
    at, here = table.c.created_at, table.c.conversation_id
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
    _memory_query()
    .where(
        _memories.c.user_id == bindparam("user_id"),
        _memories.c.archived.is_(false()),
        cast_type(_memories.c.source_info, Text).like('%"conflict"%'),
    )
    .order_by(_memories.c.created_at, _memories.c.id)
    .limit(1000),
    MemoryEntry,
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
