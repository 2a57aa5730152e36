"""Computes vectors anew that another embedding model has made. It can stop and go on at any time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agents.ports import Embedder
from orchestrator.remember import indexing
from orchestrator.remember.indexing import Item
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.rows import IndexedMemory

_AT_ONCE: Final = 32


@dataclass(frozen=True, slots=True)
class EmbeddingProgress:
    """How many memories have vectors of the chosen model, of all that have vectors."""

    model: str
    done: int
    total: int


def progress(store: Store, model: str) -> EmbeddingProgress:
    """How far the vectors are of this model."""
    counts = store.read_now(lambda tx: tx.memory_index.counts_by_model())
    return EmbeddingProgress(model, counts.get(model, 0), sum(counts.values()))


def reembed_some(store: Store, embedder: Embedder) -> int:
    """Give the next memories vectors of this model, of anybody; returns how many had vectors of another.

    Words, places and what was said before stay. Until then a search finds these memories by their words.
    """
    rows = store.read_now(lambda tx: tx.memory_index.with_other_model(embedder.name, limit=_AT_ONCE))
    by_person: dict[str, list[IndexedMemory]] = {}
    for row in rows:
        by_person.setdefault(row.user_id, []).append(row)
    for user_id, some in by_person.items():
        items = store.read_now(lambda tx, some=some: [_item(tx, row) for row in some])  # type: ignore[misc]
        embeddings = indexing.embed(items, embedder)
        versions = {row.memory_id: row.version for row in some}
        store.write_now(
            lambda tx, user=user_id, items=items, new=embeddings, versions=versions: _write(  # type: ignore[misc]
                tx, user, items, new, versions
            )
        )
    return len(rows)


def _item(tx: Transaction, row: IndexedMemory) -> Item:
    memory = tx.memories.get_even_deleted(row.memory_id)
    return Item(
        memory_id=row.memory_id,
        text=memory.content if memory else "",
        episode=row.episode,
        said_at=row.said_at,
        speaker=row.speaker,
        context=row.context,
        external_id=row.external_id,
        tags=memory.tags if memory else (),
    )


def _write(
    tx: Transaction,
    user_id: str,
    items: Sequence[Item],
    embeddings: indexing.Embeddings,
    versions: dict[str, int],
) -> None:
    """Write the vectors of the memories that nobody has changed meanwhile."""
    rows = {item.memory_id: tx.memory_index.get(user_id, item.memory_id) for item in items}
    same = [
        place
        for place, item in enumerate(items)
        if (row := rows[item.memory_id]) is not None and row.version == versions[item.memory_id]
    ]
    if same:
        left = indexing.Embeddings(embeddings.model, embeddings.own[same], embeddings.window[same])
        indexing.write(tx, user_id, [items[place] for place in same], left)
