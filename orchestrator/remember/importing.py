"""Imports memories from JSON Lines, in batches. Each is committed by itself, so an import can be resumed."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.ports import Embedder
from orchestrator.remember import indexing
from orchestrator.remember.dates import read_date
from orchestrator.remember.indexing import MOST_CONTEXT, Item
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.frame_records import derived_id
from orchestrator.store.repositories.memory.memories import NewMemory

BATCH: Final = 64
"""How many memories are stored in one transaction."""

IMPORTED: Final = "import"
"""The `source_type` of an imported memory."""

Short = Annotated[str, Field(max_length=200)]


class ImportLine(BaseModel):
    """One line of the file."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True, strict=True)

    id: Annotated[str, Field(min_length=1, max_length=200)]
    text: Annotated[str, Field(min_length=1, max_length=100_000)]
    speaker: Short | None = None
    date: str | int | float | None = None
    episode: Annotated[str, Field(max_length=200)] | None = None
    tags: list[Short] | None = None


@dataclass(slots=True)
class Progress:
    """What an import has done so far. `unreadable` has the line numbers and reasons."""

    read: int = 0
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    undated: int = 0
    """Lines whose date could not be read. Their memories have no date."""
    unreadable: list[tuple[int, str]] = field(default_factory=list)


def import_lines(
    store: Store, embedder: Embedder, user_id: str, lines: Iterable[str], *, actor: str
) -> Iterator[Progress]:
    """Import lines and yield the progress after each batch. A line that is known already changes nothing."""
    progress = Progress()
    known = store.read_now(lambda tx: tx.memory_index.external(user_id))
    batch: dict[str, Item] = {}
    for item in _items(user_id, lines, progress, actor):
        external = item.external_id or ""
        _, digest, model = known.get(external, ("", "", ""))
        if external not in batch and digest == item.digest and model == embedder.name:
            progress.unchanged += 1
            continue
        if external in known:
            progress.updated += external not in batch
            item = replace(item, new=None)
        else:
            progress.added += external not in batch
        batch[external] = item
        if len(batch) == BATCH:
            known |= _store(store, embedder, user_id, list(batch.values()), actor)
            batch.clear()
            yield progress
    if batch:
        _store(store, embedder, user_id, list(batch.values()), actor)
    yield progress


def _store(
    store: Store, embedder: Embedder, user_id: str, items: list[Item], actor: str
) -> dict[str, tuple[str, str, str | None]]:
    embeddings = indexing.embed(items, embedder)

    def work(tx: Transaction) -> None:
        for item in items:
            if item.new is None:
                _update(tx, item, actor)
        indexing.write(tx, user_id, items, embeddings)

    store.write_now(work)
    return {item.external_id or "": (item.memory_id, item.digest, embedder.name) for item in items}


def _update(tx: Transaction, item: Item, actor: str) -> None:
    """Change a memory that was imported before. One that was deleted meanwhile comes back."""
    memory = tx.memories.get_even_deleted(item.memory_id)
    if memory is not None and memory.deleted_at is not None:
        tx.memories.restore(item.memory_id, by=actor)
    new: dict[str, Any] = {"content": item.text, "tags": item.tags, "source_info": _source(item)}
    if memory is None or any(getattr(memory, name) != value for name, value in new.items()):
        tx.memories.update(item.memory_id, by=actor, **new)


def _items(user_id: str, lines: Iterable[str], progress: Progress, actor: str) -> Iterator[Item]:
    """Read the lines. What was said before in the same episode becomes an item's context."""
    before: dict[str, str] = {}
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        progress.read += 1
        try:
            line = ImportLine.model_validate(json.loads(text))
        except (ValueError, ValidationError, RecursionError) as error:
            progress.unreadable.append((number, _reason(error)))
            continue
        if "\0" in line.id + line.text + (line.speaker or "") + (line.episode or ""):
            progress.unreadable.append((number, "it has a NUL character"))
            continue
        said_at = None if line.date is None else read_date(line.date)
        progress.undated += line.date is not None and said_at is None
        episode = _episode(line, said_at)
        item = _item(user_id, line, said_at, episode, before.get(episode, ""), actor)
        before[episode] = item.line[-MOST_CONTEXT:]
        yield item


def _episode(line: ImportLine, said_at: datetime | None) -> str:
    """The episode of a line: as given, else its date. Without both and a speaker, the line is one alone."""
    if line.episode is not None:
        return line.episode
    if line.date is not None:
        return f"date:{said_at.isoformat() if said_at else line.date}"[:200]
    return "import" if line.speaker else f"alone:{line.id}"


def _item(
    user_id: str, line: ImportLine, said_at: datetime | None, episode: str, context: str, actor: str
) -> Item:
    item = Item(
        memory_id=derived_id("mem_", user_id, "import", line.id),
        text=line.text.encode("utf-8", "replace").decode(),
        episode=episode,
        said_at=said_at,
        speaker=line.speaker,
        context=context,
        external_id=line.id,
        tags=tuple(line.tags or ()),
    )
    new = NewMemory(
        content=item.text,
        user_id=user_id,
        id=item.memory_id,
        created_by=actor,
        source_type=IMPORTED,
        source_info=_source(item),
        tags=item.tags,
    )
    return replace(item, new=new)


def _source(item: Item) -> dict[str, Any]:
    said_at = item.said_at.isoformat() if item.said_at else None
    facts = {"id": item.external_id, "episode": item.episode, "speaker": item.speaker, "said_at": said_at}
    return {name: fact for name, fact in facts.items() if fact is not None}


def _reason(error: Exception) -> str:
    """Why a line cannot be read, without quoting it."""
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"`{'.'.join(map(str, first['loc']))}`: {first['msg'].lower()}"
    return "it is not a JSON object"
