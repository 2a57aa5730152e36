"""Long-term memories, and the rows that represent memory blocks in traces."""

from dataclasses import dataclass, fields, replace
from typing import Any, cast

from sqlalchemy import bindparam, false, or_

from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.engine.types import JsonObject
from orchestrator.store.repositories.by_id import ById
from orchestrator.store.rows import Memory

MEMORY_BLOCK = "memory_block"
"""The `source_type` of a row that represents a block. Searches do not find it."""

_table = Memory.table
_alive = _table.c.deleted_at.is_(None)


def _without_padding(*columns: Any) -> Memory:
    """Make a row; its vector is cut to its own dimensions, because PostgreSQL pads vectors with zeros."""
    memory = Memory(*columns)
    if memory.embeddings is None or memory.embeddings_info is None:
        return memory
    width = memory.embeddings_info["dimensions"]
    return replace(memory, embeddings=memory.embeddings[: cast(int, width)])


_BY_ID = Statement(all_of(Memory).where(_table.c.id == bindparam("id"), _alive), _without_padding)
_EVER = Statement(all_of(Memory).where(_table.c.id == bindparam("id")), _without_padding)
_OF_PERSON = Statement(
    all_of(Memory)
    .where(
        _table.c.user_id == bindparam("user_id"),
        _alive,
        _table.c.archived.is_(false()),
        or_(_table.c.source_type.is_(None), _table.c.source_type != MEMORY_BLOCK),
    )
    .order_by(_table.c.pinned.desc(), _table.c.updated_at.desc(), _table.c.id)
    .limit(bindparam("limit")),
    _without_padding,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A memory that is not stored yet. Without an id, it gets a new one."""

    content: str
    user_id: str | None
    id: str | None = None
    title: str | None = None
    summary: str | None = None
    entities: tuple[str, ...] = ()
    key_phrases: tuple[str, ...] = ()
    embeddings: tuple[float, ...] | None = None
    embeddings_info: JsonObject | None = None
    importance: float = 0.5
    confidence: float = 1.0
    created_by: str | None = None
    source_type: str | None = None
    source_info: JsonObject | None = None
    tags: tuple[str, ...] = ()
    pinned: bool = False


class Memories(ById[Memory]):
    """The table `alicia_memory`."""

    row_type = Memory

    def add(self, new: NewMemory) -> Memory:
        """Store a memory. For a vector, `embeddings_info["dimensions"]` is set."""
        given = {each.name: getattr(new, each.name) for each in fields(new)}
        given["id"] = new.id or self._unit.ids.new("mem_")
        if new.embeddings is not None:
            given["embeddings_info"] = {**(new.embeddings_info or {}), "dimensions": len(new.embeddings)}
        return self._unit.add(Memory, **given, archived=False)

    def get(self, id: str) -> Memory | None:
        """The row with that id, archived or not, unless it is deleted."""
        return self._unit.first(_BY_ID, id=id)

    def get_even_deleted(self, id: str) -> Memory | None:
        """The row with that id, deleted or not. An id is used only once."""
        return self._unit.first(_EVER, id=id)

    def of_person(self, user_id: str, *, limit: int = 100) -> list[Memory]:
        """The memories of a person, without archived ones, pinned ones first."""
        return self._unit.all(_OF_PERSON, user_id=user_id, limit=limit)
