"""Makes memories searchable: computes their words and vectors, and writes their rows in the index."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import numpy as np

from agents.errors import AgentError
from agents.ports import Embedder, Vectors
from orchestrator.errors import as_ours
from orchestrator.recall.query.words import terms
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.memory.memories import NewMemory
from orchestrator.store.rows import IndexedMemory

MOST_CONTEXT: Final = 1000
"""So many characters of what was said before help to find a memory: the last ones."""

MOST_DIMENSIONS: Final = 1024
"""`alicia_memory.embeddings` holds at most so many. Longer vectors are only in the index."""


@dataclass(frozen=True, slots=True)
class Item:
    """A memory to be stored and indexed. Without `new`, the memory is stored already."""

    memory_id: str
    text: str
    episode: str
    said_at: datetime | None
    speaker: str | None = None
    context: str = ""
    external_id: str | None = None
    tags: tuple[str, ...] = ()
    new: NewMemory | None = None

    @property
    def line(self) -> str:
        """The text with its speaker, as it is indexed."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text

    @property
    def digest(self) -> str:
        """Identifies everything that can be changed by another import."""
        said_at = self.said_at.isoformat() if self.said_at else ""
        parts = (self.line, self.context, said_at, self.episode, *self.tags)
        return hashlib.sha256("\x1f".join(parts).encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True, slots=True)
class Embeddings:
    """The vectors of some items: each alone, and each with its context."""

    model: str
    own: Vectors
    window: Vectors


def embed(items: Sequence[Item], embedder: Embedder) -> Embeddings:
    """Compute the vectors. Takes some milliseconds per item; call it outside of a transaction."""
    texts = [item.line for item in items]
    windows = [f"{item.context}\n{item.line}" if item.context else item.line for item in items]
    try:
        return Embeddings(embedder.name, embedder.embed(texts), embedder.embed(windows))
    except AgentError as error:
        failed = as_ours(error)
    raise failed


def write(tx: Transaction, user_id: str, items: Sequence[Item], embeddings: Embeddings) -> None:
    """Store the new memories among the items, and the index rows of all."""
    created = [
        _with_vector(item.new, vector, embeddings.model)
        for item, vector in zip(items, embeddings.own, strict=True)
        if item.new is not None
    ]
    tx.memories.add_all(created)
    version = tx.memory_index.next_version(user_id)
    place = tx.memory_index.last_place(user_id)
    rows = []
    for item, own, window in zip(items, embeddings.own, embeddings.window, strict=True):
        known = None if item.new else tx.memory_index.get(user_id, item.memory_id)
        if known is None:
            place += 1
        rows.append(
            IndexedMemory(
                memory_id=item.memory_id,
                user_id=user_id,
                version=version,
                ordinal=known.ordinal if known else place,
                episode=item.episode,
                speaker=item.speaker,
                said_at=item.said_at,
                external_id=item.external_id,
                context=item.context,
                words=" ".join(terms(item.line)),
                context_words=" ".join(terms(item.context)),
                digest=item.digest,
                model=embeddings.model,
                own_vector=own.astype(np.float16).tobytes(),
                window_vector=window.astype(np.float16).tobytes(),
            )
        )
    tx.memory_index.put(rows)


def _with_vector(new: NewMemory, vector: Vectors, model: str) -> NewMemory:
    if len(vector) > MOST_DIMENSIONS:
        return new
    return replace(new, embeddings=tuple(map(float, vector)), embeddings_info={"model": model})
