"""Long-term memories, and the rows that represent memory blocks in traces."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, cast

from sqlalchemy import Text, bindparam, false, or_, update
from sqlalchemy import cast as cast_type

from orchestrator.ops.clock import as_text
from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.engine.types import JsonObject
from orchestrator.store.engine.unit import Unit
from orchestrator.store.repositories.by_id import ById
from orchestrator.store.repositories.memory.ledger import LedgerChange, MemoryLedger
from orchestrator.store.repositories.memory.work import MemoryWorks
from orchestrator.store.rows import IndexedMemory, Memory

MEMORY_BLOCK = "memory_block"
"""The `source_type` of a row that represents a block. Searches do not find it."""

SUMMARY: Final = "summary"
"""The `source_type` of a memory that was made of several messages."""

UTTERANCE: Final = "utterance"
"""The `source_type` of a memory that is a message of the person, word for word."""

CREATOR: Final = "quality_memory"
"""The `created_by` of a memory that was made in the background. Its creator decides if it is indexed."""

PERSON: Final = "person"
"""The actor of a change that the person asked for."""

_NOT_IN_LEDGER: Final = ("embeddings", "embeddings_info")
"""Columns that are computed from others."""

_ERASED: Final[dict[str, Any]] = {
    "content": "",
    "title": None,
    "summary": None,
    "entities": (),
    "key_phrases": (),
    "tags": (),
    "embeddings": None,
    "embeddings_info": None,
    "source_info": None,
}

_DERIVED: Final[dict[str, Any]] = {"title": None, "summary": None, "entities": (), "key_phrases": ()}
"""What is made from the content of a summary, and does not hold for another content."""

_WORDS: Final = frozenset(("content", *_DERIVED))
"""The columns that have words of a memory. If they change, the ledger of its conversation must follow."""

_OUTDATED: Final[dict[str, Any]] = {"words": "", "model": None, "own_vector": None, "window_vector": None}
"""The index row of a memory whose content has changed, until it is indexed again."""

_COLUMNS: Final = tuple(
    each.name
    for each in fields(Memory)
    if each.name not in ("id", "user_id", "updated_at", "deleted_at", *_NOT_IN_LEDGER)
)
"""The columns that the ledger keeps."""

_EMPTY: Final[dict[str, Any]] = {
    **_ERASED,
    "importance": 0.5,
    "confidence": 1.0,
    "user_rating": None,
    "created_by": None,
    "source_type": None,
    "pinned": False,
    "archived": False,
}
"""A memory whose ledger has no content any more."""

_table = Memory.table
_alive = _table.c.deleted_at.is_(None)
_is_memory = or_(_table.c.source_type.is_(None), _table.c.source_type != MEMORY_BLOCK)


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
    .where(_table.c.user_id == bindparam("user_id"), _alive, _table.c.archived.is_(false()), _is_memory)
    .order_by(_table.c.pinned.desc(), _table.c.updated_at.desc(), _table.c.id)
    .limit(bindparam("limit")),
    _without_padding,
)
_OF_TYPE = Statement(
    all_of(Memory)
    .where(
        _table.c.user_id == bindparam("user_id"),
        _table.c.source_type == bindparam("source_type"),
        _alive,
        _table.c.archived.is_(false()),
    )
    .order_by(_table.c.pinned.desc(), _table.c.importance.desc(), _table.c.updated_at.desc(), _table.c.id)
    .limit(bindparam("limit")),
    _without_padding,
)
_EVER_OF_PERSON = Statement(
    all_of(Memory)
    .where(_table.c.user_id == bindparam("user_id"), _is_memory)
    .order_by(_table.c.created_at, _table.c.id),
    _without_padding,
)
_NOT_INDEXED = Statement(
    all_of(Memory)
    .outerjoin_from(_table, IndexedMemory.table, _table.c.id == IndexedMemory.table.c.memory_id)
    .where(
        _table.c.user_id == bindparam("user_id"),
        _alive,
        _is_memory,
        IndexedMemory.table.c.model.is_(None),  # never indexed, or changed since
        or_(
            _table.c.created_by.is_(None),
            _table.c.created_by != CREATOR,
            IndexedMemory.table.c.memory_id.is_not(None),
        ),
    )
    .order_by(_table.c.created_at, _table.c.id)
    .limit(bindparam("limit")),
    _without_padding,
)
_NEXT_IN_EPISODE = Statement(
    all_of(IndexedMemory)
    .where(
        IndexedMemory.table.c.user_id == bindparam("user_id"),
        IndexedMemory.table.c.episode == bindparam("episode"),
        IndexedMemory.table.c.ordinal > bindparam("ordinal"),
    )
    .order_by(IndexedMemory.table.c.ordinal)
    .limit(1),
    IndexedMemory,
)
_NAMING = Statement(
    all_of(Memory)
    .where(
        _table.c.user_id == bindparam("user_id"),
        _is_memory,
        cast_type(_table.c.source_info, Text).like(bindparam("pattern", type_=Text)),
    )
    .order_by(_table.c.created_at, _table.c.id),
    _without_padding,
)
_RESTORE = Statement(
    update(_table).where(_table.c.id == bindparam("id")).values(deleted_at=None, updated_at=bindparam("now")),
    lambda: None,
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
    """The table `alicia_memory`. Every change of a person's memory is also an entry in their ledger."""

    row_type = Memory

    def __init__(self, unit: Unit) -> None:
        super().__init__(unit)
        self.ledger = MemoryLedger(unit)
        self.work = MemoryWorks(unit)

    def add(self, new: NewMemory) -> Memory:
        """Store a memory. For a vector, `embeddings_info["dimensions"]` is set."""
        return self.add_all([new])[0]

    def add_all(self, new: Sequence[NewMemory]) -> list[Memory]:
        """Store memories in one go."""
        rows = [self._row(each) for each in new]
        self._unit.insert(*rows)
        for user_id in dict.fromkeys(row.user_id for row in rows if _has_ledger(row)):
            of_person = [row for row in rows if row.user_id == user_id and _has_ledger(row)]
            changes = [LedgerChange(row.id, "created", _ledger_body(row)) for row in of_person]
            self.ledger.append(cast(str, user_id), changes, actor=of_person[0].created_by or PERSON)
        return rows

    def get(self, id: str) -> Memory | None:
        """The row with that id, archived or not, unless it is deleted."""
        return self._unit.first(_BY_ID, id=id)

    def get_even_deleted(self, id: str) -> Memory | None:
        """The row with that id, deleted or not. An id is used only once."""
        return self._unit.first(_EVER, id=id)

    def of_person(self, user_id: str, *, limit: int = 100) -> list[Memory]:
        """The memories of a person, without archived ones, pinned ones first."""
        return self._unit.all(_OF_PERSON, user_id=user_id, limit=limit)

    def of_type(self, user_id: str, source_type: str, *, limit: int) -> list[Memory]:
        """Memories of a person with a `source_type`, without archived ones, the most important first."""
        return self._unit.all(_OF_TYPE, user_id=user_id, source_type=source_type, limit=limit)

    def of_person_ever(self, user_id: str) -> list[Memory]:
        """All memories of a person, also archived and deleted ones, in the order they were made."""
        return self._unit.all(_EVER_OF_PERSON, user_id=user_id)

    def not_indexed(self, user_id: str, *, limit: int) -> list[Memory]:
        """Memories of a person that search cannot find yet, because they have no row in the index."""
        return self._unit.all(_NOT_INDEXED, user_id=user_id, limit=limit)

    def naming(self, user_id: str, memory_id: str, *, even_deleted: bool = False) -> list[Memory]:
        """Memories of a person whose source names another memory: those made from it, or that rest on it."""
        found = self._unit.all(_NAMING, user_id=user_id, pattern=f'%"{memory_id}"%')
        return [each for each in found if even_deleted or each.deleted_at is None]

    def update(
        self, id: str, *, by: str = PERSON, note: Mapping[str, Any] = MappingProxyType({}), **columns: Any
    ) -> bool:
        """Set some columns; false if there is no such row or it is deleted. The ledger also keeps `note`.

        If a summary gets another content, its title and all else that was made of the old one is removed.
        """
        if "content" in columns and (known := self.get(id)) and known.source_type == SUMMARY:
            columns = {**_DERIVED, **columns}
        body = {name: value for name, value in columns.items() if name not in _NOT_IN_LEDGER}
        action = "deleted" if "deleted_at" in body else "updated"
        return super().update(id, **columns) and self._note(
            id, action, {**({} if action == "deleted" else _plain(body)), **note}, by
        )

    def delete(self, id: str, *, by: str = PERSON, note: Mapping[str, Any] = MappingProxyType({})) -> bool:
        """Mark the row as deleted. It stays in the table, but normal reads skip it."""
        return self.update(id, by=by, note=note, deleted_at=self._unit.now)

    def restore(self, id: str, *, by: str = PERSON, note: Mapping[str, Any] = MappingProxyType({})) -> bool:
        """Undo a deletion; false if there is no such row."""
        return self._unit.run(_RESTORE, id=id) == 1 and self._note(id, "restored", dict(note), by)

    def erase(self, id: str, *, by: str = PERSON) -> bool:
        """Delete a memory for good: its content leaves the table, the index and the ledger."""
        memory = self.get_even_deleted(id)
        if memory is None or memory.user_id is None:
            return False
        self._unit.run(_RESTORE, id=id)  # only rows that are not deleted can be changed
        self._unit.change(Memory, {"id": id}, **_ERASED)
        self._unit.change(Memory, {"id": id}, deleted_at=self._unit.now)
        self._note(id, "erased", {}, by, memory)
        self._erase_from_index(memory.user_id, id)
        self.ledger.remove_bodies(memory.user_id, id)
        return True

    def recorded(self, user_id: str) -> list[Memory]:
        """All memories of a person as their ledger has them, also deleted ones. Vectors are not in it."""
        values: dict[str, dict[str, Any]] = {}
        for entry in self.ledger.of_person(user_id):
            found = values.setdefault(entry.memory_id, {"created_at": entry.created_at, "deleted_at": None})
            body = json.loads(entry.body) if entry.body else {}
            found |= {name: _READ.get(name, _same)(body[name]) for name in body if name in _COLUMNS}
            found["updated_at"] = entry.created_at
            if entry.action in ("deleted", "restored", "erased"):
                found["deleted_at"] = None if entry.action == "restored" else entry.created_at
        return [Memory(**{**_EMPTY, **each, "id": id, "user_id": user_id}) for id, each in values.items()]

    def put(self, memory: Memory) -> bool:
        """Make a row as the ledger has it, without another entry; false if it is so already."""
        known = self.get_even_deleted(memory.id)
        if known is None:
            self._unit.insert(memory)
            return True
        columns = {name: getattr(memory, name) for name in _COLUMNS}
        if (known.deleted_at is None) == (memory.deleted_at is None) and all(
            getattr(known, name) == value for name, value in columns.items()
        ):
            return False
        self._unit.run(_RESTORE, id=memory.id)  # only rows that are not deleted can be changed
        self._unit.change(Memory, {"id": memory.id}, **columns, deleted_at=memory.deleted_at)
        version = self.ledger.next_version(cast(str, memory.user_id))
        self._unit.change(IndexedMemory, {"memory_id": memory.id}, version=version, **_OUTDATED)
        return True

    def _erase_from_index(self, user_id: str, id: str) -> None:
        """Remove a memory from the index, and from the context of the memory that was said after it."""
        indexed = self._unit.find_one(IndexedMemory, user_id=user_id, memory_id=id)
        if indexed is None:
            return
        here = {"user_id": user_id, "episode": indexed.episode, "ordinal": indexed.ordinal}
        after = self._unit.first(_NEXT_IN_EPISODE, **here)
        self._unit.remove(IndexedMemory, memory_id=id)
        if after is not None:
            which = {"memory_id": after.memory_id}
            alone = {"context": "", "context_words": "", "window_vector": after.own_vector}
            self._unit.change(IndexedMemory, which, version=indexed.version, **alone)

    def _row(self, new: NewMemory) -> Memory:
        given = {each.name: getattr(new, each.name) for each in fields(new)}
        given["id"] = new.id or self._unit.ids.new("mem_")
        if new.embeddings is not None:
            given["embeddings_info"] = {**(new.embeddings_info or {}), "dimensions": len(new.embeddings)}
        now = self._unit.now
        given |= {"created_at": now, "updated_at": now, "deleted_at": None}
        return Memory(**given, user_rating=None, archived=False)

    def _note(
        self, id: str, action: str, columns: dict[str, Any], actor: str, before: Memory | None = None
    ) -> bool:
        """Enter a change in the ledger, and make searches read the memory's row again.

        `before` is the memory before the change, if its source is not in the row any more.
        """
        memory = self.get_even_deleted(id)
        if memory is not None and _has_ledger(memory):
            user_id = cast(str, memory.user_id)
            changes = [LedgerChange(id, action, columns)]
            if not self.ledger.of_memory(user_id, id):  # it is older than the ledger
                changes.insert(0, LedgerChange(id, "created", _ledger_body(memory)))
            version = self.ledger.append(user_id, changes, actor=actor)
            outdated = _OUTDATED if "content" in columns else {}
            self._unit.change(IndexedMemory, {"memory_id": id}, version=version, **outdated)
            if actor != CREATOR and (action != "updated" or not _WORDS.isdisjoint(columns)):
                self._unsettle(before or memory)
        return True

    def _unsettle(self, memory: Memory) -> None:
        """Note that the memories made of the conversation must follow this change."""
        where = (memory.source_info or {}).get("conversation")
        if memory.source_type in (SUMMARY, UTTERANCE) and isinstance(where, str):
            self.work.note_change(where)


def _same(value: Any) -> Any:
    return value


_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "created_at": datetime.fromisoformat,
    **dict.fromkeys(("tags", "entities", "key_phrases"), tuple),
}
"""How the value of a column is read from the ledger, where it is JSON."""


def _has_ledger(memory: Memory) -> bool:
    return memory.user_id is not None and memory.source_type != MEMORY_BLOCK


def _ledger_body(memory: Memory) -> dict[str, Any]:
    """The values of a memory that its ledger keeps."""
    return _plain({name: getattr(memory, name) for name in _COLUMNS})


def _plain(columns: dict[str, Any]) -> dict[str, Any]:
    return {name: _json(value) for name, value in columns.items()}


def _json(value: Any) -> Any:
    if isinstance(value, datetime):
        return as_text(value)
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str | dict) else value
