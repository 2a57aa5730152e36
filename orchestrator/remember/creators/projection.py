"""Brings `alicia_memory`, the index of memories, in line with the ledger, and finds what the ledger lacks."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, Literal, TypeAlias

from orchestrator.ops.clock import as_text
from orchestrator.remember import indexing
from orchestrator.remember.creators.history import is_superseded
from orchestrator.remember.indexing import Item
from orchestrator.remember.ledger.lines import ALIVE, Discussion, Kind, Line, MemoryBody, alive, states
from orchestrator.remember.ledger.marks import MemoryMark
from orchestrator.remember.utterances import utterance_id
from orchestrator.store.engine.database import Transaction
from orchestrator.store.frame_records import derived_id
from orchestrator.store.repositories.memory.memories import CREATOR, SUMMARY, NewMemory
from orchestrator.store.rows import Memory

State: TypeAlias = Literal["alive", "deleted", "erased"]

_SURE: Final = {"local": 1.0}
_BY_MODEL: Final = 0.8


def memory_id(of: Discussion, kind: Kind, chunk: int, last_message: str, place: int) -> str:
    """The id of a memory of a chunk. The same chunk always has the same ids."""
    return derived_id("mem_", SUMMARY, of.id, kind, str(chunk), last_message, str(place))


def missing(tx: Transaction, of: Discussion, kind: Kind, lines: Sequence[Line]) -> list[Item]:
    """The memories of the ledger that are alive and were never in the index, ready to be stored."""
    return [
        _item(tx, of, kind, line)
        for line in alive(lines)
        if tx.memories.get_even_deleted(line.memory_id) is None
        and not tx.memories.ledger.of_memory(of.user_id, line.memory_id)
    ]


def living(tx: Transaction, of: Discussion, kind: Kind, lines: Sequence[Line]) -> list[Item]:
    """The memories of the ledger that are alive, as searches find them. They are stored already."""
    return [replace(_item(tx, of, kind, line), new=None) for line in alive(lines)]


def store_missing(
    tx: Transaction, of: Discussion, items: Sequence[Item], embeddings: indexing.Embeddings | None
) -> list[Memory]:
    """Store the items that no other process has stored meanwhile; returns their memories.

    Without embeddings, searches do not find them.
    """
    tx.memories.ledger.next_version(of.user_id)  # locks: another process that stores the same waits
    new = [n for n, item in enumerate(items) if tx.memories.get_even_deleted(item.memory_id) is None]
    if not new:
        return []
    if embeddings is None:
        return tx.memories.add_all([each for n in new if (each := items[n].new) is not None])
    left = indexing.Embeddings(embeddings.model, embeddings.own[new], embeddings.window[new])
    indexing.write(tx, of.user_id, [items[n] for n in new], left)
    stored = (tx.memories.get(items[n].memory_id) for n in new)
    return [memory for memory in stored if memory is not None]


def changes(tx: Transaction, of: Discussion, lines: Sequence[Line]) -> list[MemoryMark]:
    """What the ledger must follow: edits, deletions, restorations and erasures of its memories.

    A memory is deleted with any message that it rests on, and erased with it. A message that was edited or
    replaced after the memory was made counts as deleted.
    """
    found: list[MemoryMark] = []
    now = states(lines)
    bodies = {line.memory_id: line.body for line in lines if line.body}
    for line in lines:
        if line.action != "memory":
            continue
        id = line.memory_id
        wanted = _state(tx, of, line)
        if wanted == "erased" and now[id] != "erased":
            found.append(MemoryMark(id, "erased"))
        elif wanted == "deleted" and now[id] in ALIVE:
            found.append(MemoryMark(id, "deleted"))
        elif wanted == "alive" and now[id] != "erased":
            if now[id] == "deleted":
                found.append(MemoryMark(id, "restored"))
            body = _body(tx.memories.get(id))
            if body is not None and body != bodies.get(id) and _was_edited(tx, of, id):
                found.append(MemoryMark(id, "edited", body))
    return found


def follow(tx: Transaction, changed: Sequence[MemoryMark]) -> None:
    """Delete, erase or restore in the index what follows from changes of messages."""
    for change in changed:
        memory = tx.memories.get_even_deleted(change.memory_id)
        if memory is None:
            continue
        if change.action == "erased" and (memory.content or memory.deleted_at is None):
            tx.memories.erase(memory.id, by=CREATOR)
        elif change.action == "deleted" and memory.deleted_at is None:
            tx.memories.delete(memory.id, by=CREATOR)
        elif change.action == "restored" and memory.deleted_at is not None:
            tx.memories.restore(memory.id, by=CREATOR)


def _state(tx: Transaction, of: Discussion, line: Line) -> State | None:
    """How a memory should be, by its row or the ledger of rows, and by the messages that it rests on.

    None if it is in no table: then it is as its own ledger says.
    """
    states = {_state_of_message(tx, of, id, line.at) for id in line.rests_on}
    memory = tx.memories.get_even_deleted(line.memory_id)
    if "erased" in states or _is_erased(memory):
        return "erased"
    if "deleted" in states:
        return "deleted"
    if memory is not None and memory.deleted_at is None:
        return "alive"
    entries = tx.memories.ledger.of_memory(of.user_id, line.memory_id)
    if not entries:
        return None
    if entries[-1].action not in ("deleted", "erased"):
        return "alive"
    if entries[-1].action == "deleted" and entries[-1].actor == CREATOR:
        return "alive"  # it was deleted because of a message, and comes back with the message
    return "erased" if entries[-1].action == "erased" else "deleted"


def _state_of_message(tx: Transaction, of: Discussion, message_id: str, since: str) -> State:
    """Whether a memory that was made of a message at a time may still have its words."""
    memory = tx.memories.get_even_deleted(utterance_id(message_id))
    if _is_erased(memory):
        return "erased"
    if (memory is not None and memory.deleted_at is not None) or is_superseded(tx, message_id):
        return "deleted"
    if memory is None or memory.updated_at == memory.created_at:
        return "alive"
    entries = tx.memories.ledger.of_memory(of.user_id, memory.id)[1:]
    later = (each for each in entries if each.action == "updated" and as_text(each.created_at) >= since)
    return "deleted" if any("content" in json.loads(each.body or "{}") for each in later) else "alive"


def _was_edited(tx: Transaction, of: Discussion, memory_id: str) -> bool:
    """Whether somebody edited a memory. A row that differs without an edit is damaged."""
    entries = tx.memories.ledger.of_memory(of.user_id, memory_id)
    words = {"content", "title", "summary"}
    return any(each.action == "updated" and words & json.loads(each.body or "{}").keys() for each in entries)


def _is_erased(memory: Memory | None) -> bool:
    return memory is not None and memory.deleted_at is not None and not memory.content


def _body(memory: Memory | None) -> MemoryBody | None:
    """The words of a memory as they are in the index."""
    if memory is None:
        return None
    lists = (memory.entities, memory.key_phrases)
    return MemoryBody(memory.content, memory.title or "", memory.summary or "", *lists)


def _item(tx: Transaction, of: Discussion, kind: Kind, line: Line) -> Item:
    body = line.body
    assert body is not None  # noqa: S101  the line is alive
    new = NewMemory(
        content=body.text,
        user_id=of.user_id,
        id=line.memory_id,
        title=body.title or None,
        summary=body.summary or None,
        entities=body.entities,
        key_phrases=body.key_phrases,
        confidence=_SURE.get(line.maker, _BY_MODEL),
        importance=0.5,
        created_by=CREATOR,
        source_type=SUMMARY,
        source_info={
            "conversation": of.id,
            "kind": kind,
            "chunk": line.chunk,
            "line": line.digest,
            "messages": list(line.rests_on),
            "members": [utterance_id(id) for id in line.rests_on],
            "maker": line.maker,
        },
    )
    last = tx.messages.get(line.point.message_id)
    said_at = last.created_at if last else datetime.fromisoformat(line.at)
    return Item(line.memory_id, body.text, f"{SUMMARY}:{of.id}", said_at, new=new)
