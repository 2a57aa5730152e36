"""Computes the search index of memories anew, without bringing back what was deleted."""

from collections.abc import Sequence
from typing import Final

from agents.ports import Embedder
from orchestrator.remember import indexing
from orchestrator.remember.indexing import Item
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.rows import IndexedMemory

_AT_ONCE: Final = 64


def rebuild_index(store: Store, embedder: Embedder, user_id: str) -> int:
    """Compute the words and vectors of all memories of a person that are indexed; returns how many.

    The place of each memory and what was said before it stay.
    """
    items = store.read_now(lambda tx: _items(tx, user_id))
    for start in range(0, len(items), _AT_ONCE):
        _write(store, embedder, user_id, items[start : start + _AT_ONCE])
    return len(items)


def _items(tx: Transaction, user_id: str) -> list[Item]:
    found = []
    for row in tx.unit.find(IndexedMemory, "ordinal", user_id=user_id):
        memory = tx.memories.get(row.memory_id)
        if memory is not None:
            found.append(
                Item(
                    memory_id=row.memory_id,
                    text=memory.content,
                    episode=row.episode,
                    said_at=row.said_at,
                    speaker=row.speaker,
                    context=row.context,
                    external_id=row.external_id,
                    tags=memory.tags,
                )
            )
    return found


def _write(store: Store, embedder: Embedder, user_id: str, items: Sequence[Item]) -> None:
    embeddings = indexing.embed(items, embedder)
    store.write_now(lambda tx: indexing.write(tx, user_id, items, embeddings))
