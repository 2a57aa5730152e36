"""Brings `alicia_memory`, the index of memories, in line with the ledger, and deletions into the ledger."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from orchestrator.remember import indexing
from orchestrator.remember.indexing import Item
from orchestrator.remember.ledger.lines import Action, Discussion, Kind, Line, alive, states
from orchestrator.remember.utterances import utterance_id
from orchestrator.store.engine.database import Transaction
from orchestrator.store.frame_records import derived_id
from orchestrator.store.repositories.memories import CREATOR, SUMMARY, NewMemory
from orchestrator.store.rows import Memory

_SURE: Final = {"local": 1.0}
_BY_MODEL: Final = 0.8


def memory_id(of: Discussion, kind: Kind, chunk: int, last_message: str, place: int) -> str:
    """The id of a memory of a chunk. The same chunk always has the same ids."""
    return derived_id("mem_", SUMMARY, of.id, kind, str(chunk), last_message, str(place))


def missing(tx: Transaction, of: Discussion, kind: Kind, lines: Sequence[Line]) -> list[Item]:
    """The memories of the ledger that are alive and not in the index, ready to be stored.

    A memory that was deleted there is in the index, marked as deleted, so it is never among them.
    """
    return [
        _item(tx, of, kind, line)
        for line in alive(lines)
        if tx.memories.get_even_deleted(line.memory_id) is None
    ]


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


def changes(tx: Transaction, lines: Sequence[Line]) -> list[tuple[str, Action]]:
    """What was deleted, restored or erased in the index and not yet in the ledger.

    A memory whose words come from a message that the person deleted counts as deleted, too.
    """
    found: list[tuple[str, Action]] = []
    now = states(lines)
    for line in lines:
        if line.action != "memory":
            continue
        memory = tx.memories.get_even_deleted(line.memory_id)
        if memory is None:
            continue
        is_alive = now[line.memory_id] in ("memory", "restored")
        if memory.deleted_at is not None and not memory.content and now[line.memory_id] != "erased":
            found.append((line.memory_id, "erased"))
        elif is_alive and (memory.deleted_at is not None or _rests_on_deleted(tx, line)):
            found.append((line.memory_id, "deleted"))
        elif not is_alive and memory.deleted_at is None and now[line.memory_id] == "deleted":
            found.append((line.memory_id, "restored"))
    return found


def delete_dependents(tx: Transaction, changed: Sequence[tuple[str, Action]]) -> None:
    """Delete the memories whose sources were deleted, in the index."""
    for id, action in changed:
        if action == "deleted" and tx.memories.get(id) is not None:
            tx.memories.delete(id, by=CREATOR)


def _rests_on_deleted(tx: Transaction, line: Line) -> bool:
    memories = (tx.memories.get_even_deleted(utterance_id(id)) for id in line.rests_on)
    return any(memory is not None and memory.deleted_at is not None for memory in memories)


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
