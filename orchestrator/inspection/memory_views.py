"""Long-term memories as people see them: their source, history, lineage and contradictions. Only reads."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.api.pages import MemoryEntry
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
class Conflict:
    """Two memories that contradict each other."""

    current: MemoryView
    other: MemoryView


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


def lineage_of(tx: Transaction, user_id: str, memory: MemoryView) -> Lineage:
    """Where a memory comes from, and what became of it."""
    row = tx.memories.get(memory.id)
    source: Mapping[str, Any] = (row.source_info if row else None) or {}
    names = [*_names(source.get("utterances")), *_names(source.get("members"))]
    rests_on = [found for name in names if (found := tx.memories.get(name)) is not None]
    changes = tx.memories.ledger.of_memory(user_id, memory.id)
    uses = tx.traces.of_memory(memory.id)[-MOST_USES:]
    return Lineage(
        memory=memory,
        rests_on=tuple(views(tx, user_id, rests_on)),
        derived=tuple(views(tx, user_id, tx.memories.naming(user_id, memory.id))),
        changes=tuple(map(_line, changes)),
        uses=tuple(_use(each) for each in reversed(uses)),
    )


def conflicts_of(tx: Transaction, user_id: str) -> list[Conflict]:
    """The memories of a person that contradict each other, in pairs; the latest one is the current."""
    groups: dict[str, list[MemoryView]] = {}
    for each in map(view, tx.pages.in_conflict(user_id)):
        groups.setdefault(each.conflict or each.id, []).append(each)
    pairs = []
    for group in groups.values():
        *others, current = sorted(group, key=lambda each: (each.said_at or each.created_at, each.id))
        pairs += [Conflict(current, other) for other in others]
    return pairs


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
