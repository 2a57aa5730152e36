"""Keeps the lasting facts of a person as memories, in the transaction of the turn that changed them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Literal

from agents.fact_kinds import BY_NAME
from memory_blocks.facts.changes import FactChange
from orchestrator.ops.clock import as_text
from orchestrator.remember.fact_folding import Entry, Said, fold
from orchestrator.remember.utterances import utterance_id
from orchestrator.store.engine.database import Transaction
from orchestrator.store.frame_records import derived_id
from orchestrator.store.repositories.memory.memories import PERSON, NewMemory
from orchestrator.store.rows import Memory

FACT: Final = "fact"
"""The `source_type` of a memory that is a fact about the person or about somebody they speak of."""

MOST_CONVERSATIONS: Final = 1000

_IMPORTANCE: Final = 0.6
"""How much a fact weighs whose kind is in no table."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A memory that was stored or updated."""

    memory: Memory
    action: Literal["stored", "updated"]


def remember_facts(
    tx: Transaction,
    user_id: str,
    made: Sequence[FactChange],
    *,
    by: str = PERSON,
    note: Mapping[str, Any] = MappingProxyType({}),
) -> list[Kept]:
    """Bring the person's fact memories up to date; returns those that changed.

    `made` are the changes of this turn, stored already. If none of them is about something lasting, nothing
    is done. A memory that was deleted comes back only if the person states the fact again.
    The ledger of memories names `by` as the actor of an update, and keeps `note` with it.
    """
    if not any(change.stable or (change.target and tx.facts.is_lasting(change.target)) for change in made):
        return []
    said = all_changes(tx, user_id)
    if not _concerns_lasting(made, said):
        return []
    tx.memories.ledger.next_version(user_id)  # locks: other conversations of this person wait
    author = {"by": by, "note": note}
    kept = (_keep(tx, user_id, entry, author) for entry in fold(said) if not entry.is_forgotten)
    return [each for each in kept if each is not None]


def memory_id_of(user_id: str, entry: Entry) -> str:
    """The id of the memory that keeps an entry."""
    return derived_id("mem_", user_id, FACT, entry.first.change.id)


def all_changes(tx: Transaction, user_id: str) -> list[Said]:
    """The changes of all conversations of a person, in the order in which they were said."""
    found = [Said(*each) for each in tx.facts.of_person(user_id, limit=MOST_CONVERSATIONS)]
    return sorted(found, key=lambda each: each.change.said_at)


def _concerns_lasting(made: Sequence[FactChange], said: Sequence[Said]) -> bool:
    lasting = {each.change.id for each in said if each.change.stable}
    return any(change.stable or change.target in lasting for change in made)


def _keep(tx: Transaction, user_id: str, entry: Entry, author: Mapping[str, Any]) -> Kept | None:
    """Store or update the memory of an entry; None if it is as it was."""
    subject, kind, about = entry.key
    memory_id = memory_id_of(user_id, entry)
    known = tx.memories.get_even_deleted(memory_id)
    deleted_at = known.deleted_at if known else None
    if deleted_at is not None:
        if entry.latest.change.said_at <= deleted_at:
            return None
        entry = _since(entry, deleted_at)
    columns: dict[str, Any] = {
        "content": entry.sentence,
        "confidence": entry.confidence,
        "source_info": _source(entry),
    }
    if known is None:
        new = NewMemory(
            **columns,
            id=memory_id,
            user_id=user_id,
            created_by=user_id,
            source_type=FACT,
            importance=BY_NAME[kind].importance if kind in BY_NAME else _IMPORTANCE,
            tags=tuple(filter(None, (kind, subject, about))),
        )
        return Kept(tx.memories.add(new), "stored")
    columns = _as_edited(known, entry, columns)
    changed = {name: value for name, value in columns.items() if getattr(known, name) != value}
    if deleted_at is not None:
        tx.memories.restore(memory_id)
    elif not changed:
        return None
    tx.memories.update(memory_id, **author, **changed)
    updated = tx.memories.get(memory_id)
    return None if updated is None else Kept(updated, "updated")


def _since(entry: Entry, deleted_at: datetime) -> Entry:
    """An entry without what was said before its memory was deleted."""
    said = [each for each in entry.said if each.change.said_at > deleted_at]
    history = [(value, at) for value, at in entry.history if at > deleted_at]
    return replace(entry, said=said, history=history)


def _as_edited(known: Memory, entry: Entry, columns: dict[str, Any]) -> dict[str, Any]:
    """The columns with the content as it was edited by hand, unless the person has stated the fact since."""
    edited_at = (known.source_info or {}).get("edited_at")
    if not isinstance(edited_at, str) or as_text(entry.latest.change.said_at) > edited_at:
        return columns
    source = {**columns["source_info"], "edited_at": edited_at}
    return {**columns, "content": known.content, "source_info": source}


def _source(entry: Entry) -> dict[str, Any]:
    """Where an entry comes from: the latest statement, all earlier ones, and how its value changed."""
    subject, kind, about = entry.key
    latest, change = entry.latest, entry.latest.change
    facts: dict[str, Any] = {
        "conversation": latest.conversation_id,
        "message": change.message_id,
        "turn": change.turn,
        "change": change.id,
        "decided_by": change.decided_by.value,
        "words": change.words,
        "kind": kind,
        "subject": subject,
        "about": about,
        "value": entry.value,
        "true_when": entry.true_when,
        "said_at": as_text(change.said_at),
        "times_said": len(entry.said),
        "utterances": [utterance_id(each.change.message_id) for each in entry.said if each.change.message_id],
        "history": [{"value": value, "said_at": as_text(at)} for value, at in entry.history],
        "corrected_at": as_text(change.said_at) if entry.history else None,
        "conflict": entry.conflict,
        "current": entry.is_current,
        "ended_at": as_text(entry.ended_at) if entry.ended_at else None,
    }
    return {name: fact for name, fact in facts.items() if fact not in (None, "", [])}
