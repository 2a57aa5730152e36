"""Long-term memories as people see them: their source, history, lineage and contradictions. Only reads."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.api.pages import MemoryEntry, Position
from orchestrator.store.rows import LedgerEntry, Memory, Trace

MOST_USES: Final = 50
"""So many uses of a memory are shown, the latest first."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a memory comes from."""

    conversation_id: str | None
    message_id: str | None
    words: str | None


@dataclass(frozen=True, slots=True)
class EarlierValue:
    """A value that a fact had before."""

    value: str
    said_at: str


@dataclass(frozen=True, slots=True)
class MemoryView:
    """A memory with everything that is known about it."""

    id: str
    user_id: str
    kind: str | None
    about: str | None
    content: str
    said_at: datetime | None
    speaker: str | None
    source: Source | None
    tags: tuple[str, ...]
    pinned: bool
    archived: bool
    rating: int | None
    importance: float
    confidence: float
    created_at: datetime
    updated_at: datetime
    title: str | None
    subject: str | None
    value: str | None
    true_when: str | None
    times_said: int | None
    current: bool
    conflict: str | None
    history: tuple[EarlierValue, ...]
    edited_at: str | None

    @property
    def position(self) -> Position:
        """Its place in a list of memories."""
        return Position(self.updated_at, self.id)

    @property
    def conversation_id(self) -> str | None:
        """The conversation it comes from, if any."""
        return self.source.conversation_id if self.source else None


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """A change of a memory; `changed` is None if the values were erased."""

    number: int
    action: str
    actor: str
    changed: Mapping[str, Any] | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Use:
    """A message for which a memory was read or written."""

    trace_id: str
    conversation_id: str
    message_id: str | None
    action: str
    actor: str | None
    role: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where a memory comes from, what was made from it, how it changed, and its latest uses."""

    memory: MemoryView
    rests_on: tuple[MemoryView, ...]
    derived: tuple[MemoryView, ...]
    changes: tuple[LedgerLine, ...]
    uses: tuple[Use, ...]


@dataclass(frozen=True, slots=True)
class LineagePart:
    """Which part of the longer lists of a lineage is read: changes after a number, memories after a place."""

    changes_after: int = 0
    derived_after: Position | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two memories that contradict each other."""

    current: MemoryView
    other: MemoryView
    position: Position


def view(entry: MemoryEntry) -> MemoryView:
    """A memory as people see it."""
    source: Mapping[str, Any] = entry.source_info or {}
    said = _text(source, "said_at")
    words = (_text(source, "conversation"), _text(source, "message"), _text(source, "words"))
    times = source.get("times_said")
    return MemoryView(
        id=entry.id,
        user_id=entry.user_id,
        kind=entry.kind,
        about=_text(source, "kind"),
        content=entry.content,
        said_at=entry.said_at or (datetime.fromisoformat(said) if said else None),
        speaker=entry.speaker,
        source=Source(*words) if any(words) else None,
        tags=entry.tags,
        pinned=entry.pinned,
        archived=entry.archived,
        rating=entry.rating,
        importance=entry.importance,
        confidence=entry.confidence,
        created_at=entry.created_at,
        updated_at=entry.updated_at,
        title=entry.title,
        subject=_text(source, "subject"),
        value=_text(source, "value"),
        true_when=_text(source, "true_when"),
        times_said=times if isinstance(times, int) else None,
        current=bool(source.get("current", True)),
        conflict=_text(source, "conflict"),
        history=tuple(_history(source.get("history"))),
        edited_at=_text(source, "edited_at"),
    )


def views(tx: Transaction, user_id: str, memories: Iterable[Memory]) -> list[MemoryView]:
    """Memories of one person as they see them. Deleted ones and those of others are left out."""
    found = (tx.pages.memory(each.id) for each in memories)
    return [view(each) for each in found if each is not None and each.user_id == user_id]


def lineage_of(tx: Transaction, user_id: str, memory: MemoryView, part: LineagePart) -> Lineage:
    """Where a memory comes from, and what became of it."""
    row = tx.memories.get(memory.id)
    source: Mapping[str, Any] = (row.source_info if row else None) or {}
    names = [*_names(source.get("utterances")), *_names(source.get("members"))]
    rests_on = [found for name in names if (found := tx.memories.get(name)) is not None]
    changes = tx.pages.changes(user_id, memory.id, part.changes_after, part.limit)
    derived = tx.pages.derived(user_id, memory.id, part.derived_after, part.limit)
    uses = tx.traces.of_memory(memory.id)[-MOST_USES:]
    return Lineage(
        memory=memory,
        rests_on=tuple(views(tx, user_id, rests_on)),
        derived=tuple(map(view, derived)),
        changes=tuple(map(_line, changes)),
        uses=tuple(_use(each) for each in reversed(uses)),
    )


def conflicts_of(tx: Transaction, user_id: str, after: Position | None, limit: int) -> list[Conflict]:
    """The memories of a person that contradict each other, in pairs, the latest contradicted one first.

    The latest memory of a contradiction is the current one. Only the memories of the page are read whole.
    """
    groups: dict[str, list[tuple[datetime, str]]] = {}
    for each in tx.pages.in_conflict(user_id):
        source: Mapping[str, Any] = each.source_info or {}
        said = _text(source, "said_at")
        at = datetime.fromisoformat(said) if said else each.created_at
        groups.setdefault(_text(source, "conflict") or each.id, []).append((at, each.id))
    pairs = [(other, current) for *others, current in map(sorted, groups.values()) for other in others]
    pairs = sorted((pair for pair in pairs if after is None or pair[0] < (after.at, after.id)), reverse=True)
    found = []
    for (at, other), (_, current) in pairs[:limit]:
        first, second = tx.pages.memory(current), tx.pages.memory(other)
        if first is not None and second is not None:
            found.append(Conflict(view(first), view(second), Position(at, other)))
    return found


def _line(entry: LedgerEntry) -> LedgerLine:
    changed = json.loads(entry.body) if entry.body is not None else None
    return LedgerLine(entry.number, entry.action, entry.actor, changed, entry.created_at)


def _use(trace: Trace) -> Use:
    role = (trace.meta or {}).get("role")
    return Use(
        trace.id,
        trace.conversation_id,
        trace.message_id,
        trace.action,
        trace.actor,
        role if isinstance(role, str) else None,
        trace.created_at,
    )


def _history(found: Any) -> Iterable[EarlierValue]:
    for each in found if isinstance(found, list) else ():
        if isinstance(each, dict) and {"value", "said_at"} <= each.keys():
            yield EarlierValue(str(each["value"]), str(each["said_at"]))


def _names(found: Any) -> Sequence[str]:
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _text(source: Mapping[str, Any], name: str) -> str | None:
    found = source.get(name)
    return found if isinstance(found, str) and found else None
