"""Rebuilds a person's memories and their search index from the ledgers. What was deleted stays deleted."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, TypeAlias

from agents.ports import Embedder
from orchestrator.remember import indexing
from orchestrator.remember.importing import IMPORTED
from orchestrator.remember.indexing import MOST_CONTEXT, Item
from orchestrator.remember.ledger.lines import Discussion
from orchestrator.remember.utterances import UTTERANCE, context_of, missing_utterances
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.repositories.memory.memories import CREATOR
from orchestrator.store.rows import IndexedMemory, Memory

_AT_ONCE: Final = 64

Settle: TypeAlias = Callable[[Discussion], Awaitable[None]]
"""Lets the ledger of a conversation follow every change, and stores its memories that are missing."""

Findable: TypeAlias = Callable[[Discussion], Awaitable[Sequence[Item]]]
"""The living summaries of a conversation that searches find: none, unless `findInSearches` is set."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild did: how many conversations it read, and memories it stored again and indexed."""

    conversations: int
    stored: int
    indexed: int


async def rebuild(
    store: Store, embedder: Embedder, user_id: str, settle: Settle, findable: Findable
) -> Rebuilt:
    """Rebuild `alicia_memory` from the ledgers and the messages, and the index from `alicia_memory`."""
    stored = await store.write(lambda tx: sum(map(tx.memories.put, tx.memories.recorded(user_id))))
    conversations = await store.read(lambda tx: tx.conversations.of_person(user_id, limit=1_000_000))
    before = await store.read(lambda tx: len(tx.memories.of_person_ever(user_id)))
    summaries: dict[str, Item] = {}
    for each in conversations:
        await settle(Discussion(user_id, each.id))
        summaries |= {item.memory_id: item for item in await findable(Discussion(user_id, each.id))}
        items = await store.read(lambda tx, id=each.id: missing_utterances(tx, user_id, id))  # type: ignore[misc]
        await asyncio.to_thread(_write, store, embedder, user_id, items)
    after = await store.read(lambda tx: len(tx.memories.of_person_ever(user_id)))
    indexed = await asyncio.to_thread(rebuild_index, store, embedder, user_id, summaries)
    return Rebuilt(len(conversations), stored + after - before, indexed)


def rebuild_index(store: Store, embedder: Embedder, user_id: str, summaries: Mapping[str, Item]) -> int:
    """Compute the words and vectors of all memories of a person that searches may find; returns how many.

    The place of each memory and what was said before it stay. A memory without a place gets the next one.
    `summaries` are those that searches find, by their ids. Another summary without a place gets none.
    """
    items = store.read_now(lambda tx: _items(tx, user_id, summaries))
    _write(store, embedder, user_id, items)
    return len(items)


def _items(tx: Transaction, user_id: str, summaries: Mapping[str, Item]) -> list[Item]:
    rows = {row.memory_id: row for row in tx.unit.find(IndexedMemory, "ordinal", user_id=user_id)}
    living = {each.id: each for each in tx.memories.of_person_ever(user_id) if each.deleted_at is None}
    found = [_indexed(row, living[id]) for id, row in rows.items() if id in living]
    before: dict[str, str] = {}
    made = dict.fromkeys(each.memory_id for each in tx.memories.ledger.of_person(user_id))
    for memory in (living[id] for id in (*made, *(living.keys() - made.keys())) if id in living):
        if memory.id in rows:
            continue
        if memory.id in summaries:
            found.append(replace(summaries[memory.id], text=memory.content, tags=memory.tags))
        elif memory.created_by != CREATOR:
            item = _not_indexed(tx, memory, before)
            before[item.episode] = item.line[-MOST_CONTEXT:]
            found.append(item)
    return found


def _indexed(row: IndexedMemory, memory: Memory) -> Item:
    return Item(
        memory_id=row.memory_id,
        text=memory.content,
        episode=row.episode,
        said_at=row.said_at,
        speaker=row.speaker,
        context=row.context,
        external_id=row.external_id,
        tags=memory.tags,
    )


def _not_indexed(tx: Transaction, memory: Memory, before: dict[str, str]) -> Item:
    """A memory whose row in the index is lost: as a message, as a line of an import, or alone."""
    source: dict[str, Any] = memory.source_info or {}
    if memory.source_type == UTTERANCE and (message := tx.messages.get(str(source.get("message")))):
        messages = tx.messages.in_order(message.conversation_id)
        context = context_of([each for each in messages if each.sequence_number < message.sequence_number])
        return Item(memory.id, memory.content, message.conversation_id, message.created_at, context=context)
    if memory.source_type == IMPORTED and isinstance(episode := source.get("episode"), str):
        said_at = source.get("said_at")
        return Item(
            memory.id,
            memory.content,
            episode,
            datetime.fromisoformat(said_at) if isinstance(said_at, str) else None,
            speaker=source.get("speaker"),
            context=before.get(episode, ""),
            external_id=source.get("id"),
            tags=memory.tags,
        )
    return Item(memory.id, memory.content, f"memory:{memory.id}", memory.created_at, tags=memory.tags)


def _write(store: Store, embedder: Embedder, user_id: str, items: Sequence[Item]) -> None:
    for start in range(0, len(items), _AT_ONCE):
        some = items[start : start + _AT_ONCE]
        embeddings = indexing.embed(some, embedder)
        store.write_now(lambda tx, some=some, new=embeddings: indexing.write(tx, user_id, some, new))  # type: ignore[misc]
