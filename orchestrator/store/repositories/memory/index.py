"""The index of long-term memories, and the record of each search.

Every query here asks for one person's rows, except those that look for vectors of another model. The table's
keys make sure that an index row and its memory belong to the same person.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, and_, any_, bindparam, func, select

from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.engine.types import JsonObject, Words
from orchestrator.store.engine.unit import Unit
from orchestrator.store.repositories.memory.ledger import MemoryLedger
from orchestrator.store.repositories.memory.memories import MEMORY_BLOCK
from orchestrator.store.rows import IndexedMemory, Memory, Retrieval

_index, _memory = IndexedMemory.table, Memory.table


@dataclass(frozen=True, slots=True)
class SearchRow:
    """What a search needs to know of a memory: how it is found, and what it is worth."""

    memory_id: str
    user_id: str
    version: int
    ordinal: int
    episode: str
    speaker: str | None
    said_at: datetime | None
    external_id: str | None
    words: str
    context_words: str
    model: str | None
    own_vector: bytes | None
    window_vector: bytes | None
    importance: float
    confidence: float
    user_rating: int | None
    pinned: bool
    archived: bool
    source_type: str | None
    source_info: JsonObject | None
    created_at: datetime
    deleted_at: datetime | None

    @property
    def is_searchable(self) -> bool:
        """Whether a search may find it."""
        return self.deleted_at is None and not self.archived and self.source_type != MEMORY_BLOCK


_OF_INDEX = (
    *("memory_id", "user_id", "version", "ordinal", "episode", "speaker", "said_at", "external_id"),
    *("words", "context_words", "model", "own_vector", "window_vector"),
)
_OF_MEMORY = (
    *("importance", "confidence", "user_rating", "pinned", "archived", "source_type", "source_info"),
    *("created_at", "deleted_at"),
)
_SINCE = Statement(
    select(*(_index.c[name] for name in _OF_INDEX), *(_memory.c[name] for name in _OF_MEMORY))
    .join_from(
        _index, _memory, and_(_memory.c.id == _index.c.memory_id, _memory.c.user_id == _index.c.user_id)
    )
    .where(_index.c.user_id == bindparam("user_id"), _index.c.version > bindparam("version"))
    .order_by(_index.c.ordinal),
    SearchRow,
)
_LAST_OF_EPISODE = Statement(
    all_of(IndexedMemory)
    .where(_index.c.user_id == bindparam("user_id"), _index.c.episode == bindparam("episode"))
    .order_by(_index.c.ordinal.desc())
    .limit(1),
    IndexedMemory,
)
_LAST_PLACE = Statement(
    select(func.coalesce(func.max(_index.c.ordinal), 0)).where(_index.c.user_id == bindparam("user_id")), int
)
_COUNT = Statement(select(func.count()).where(_index.c.user_id == bindparam("user_id")), int)
_EXTERNAL = Statement(
    select(_index.c.external_id, _index.c.memory_id, _index.c.digest, _index.c.model).where(
        _index.c.user_id == bindparam("user_id"), _index.c.external_id.is_not(None)
    ),
    lambda external, memory, digest, model: (external, (memory, digest, model)),
)
_OTHER_MODEL = Statement(
    all_of(IndexedMemory)
    .where(_index.c.model.is_not(None), _index.c.model != bindparam("model"))
    .order_by(_index.c.model, _index.c.user_id, _index.c.ordinal)
    .limit(bindparam("limit")),
    IndexedMemory,
)


_COUNTS_BY_MODEL = Statement(
    select(_index.c.model, func.count()).where(_index.c.model.is_not(None)).group_by(_index.c.model),
    lambda model, count: (model, count),
)


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a memory."""

    id: str
    title: str | None
    content: str
    tags: tuple[str, ...]


def _reading_contents(is_one_of: ColumnElement[bool]) -> Statement[Content]:
    columns = (_memory.c.id, _memory.c.title, _memory.c.content, _memory.c.tags)
    alive = (_memory.c.user_id == bindparam("user_id"), _memory.c.deleted_at.is_(None))
    return Statement(select(*columns).where(*alive, is_one_of), Content)


_IDS = bindparam("ids", type_=Words())
_CONTENTS = {
    "sqlite": _reading_contents(_memory.c.id.in_(select(func.json_each(_IDS).table_valued("value").c.value))),
    "postgresql": _reading_contents(_memory.c.id == any_(_IDS)),
}


class MemoryIndex:
    """The tables `memory_index` and `retrievals`."""

    def __init__(self, unit: Unit, ledger: MemoryLedger) -> None:
        self._unit, self._ledger = unit, ledger

    def since(self, user_id: str, version: int) -> list[SearchRow]:
        """The rows of one person that changed after a version, in the order they were told."""
        return self._unit.all(_SINCE, user_id=user_id, version=version)

    def version(self, user_id: str) -> int:
        """How often this person's memories have changed."""
        head = self._ledger.head(user_id)
        return head.version if head else 0

    def contents(self, user_id: str, ids: Sequence[str]) -> dict[str, Content]:
        """The contents of these memories, as far as they are this person's and not deleted."""
        found = self._unit.all(_CONTENTS[self._unit.dialect.name], user_id=user_id, ids=tuple(ids))
        return {each.id: each for each in found}

    def count(self, user_id: str) -> int:
        """How many rows a person has."""
        return self._unit.first(_COUNT, user_id=user_id) or 0

    def external(self, user_id: str) -> dict[str, tuple[str, str, str | None]]:
        """For each imported id of a person: the memory, the digest of the indexed text, and the model."""
        return dict(self._unit.all(_EXTERNAL, user_id=user_id))

    def last_of_episode(self, user_id: str, episode: str) -> IndexedMemory | None:
        """The memory of an episode that was told last."""
        return self._unit.first(_LAST_OF_EPISODE, user_id=user_id, episode=episode)

    def last_place(self, user_id: str) -> int:
        """The place of the memory that was told last; 0 if there is none."""
        return self._unit.first(_LAST_PLACE, user_id=user_id) or 0

    def get(self, user_id: str, memory_id: str) -> IndexedMemory | None:
        """The index row of a memory of this person."""
        return self._unit.find_one(IndexedMemory, user_id=user_id, memory_id=memory_id)

    def by_external_id(self, user_id: str, external_id: str) -> IndexedMemory | None:
        """The index row of a memory that was imported under this id."""
        return self._unit.find_one(IndexedMemory, user_id=user_id, external_id=external_id)

    def with_other_model(self, model: str, *, limit: int) -> list[IndexedMemory]:
        """Rows of anybody whose vectors are of another model. Rows without vectors are none of them."""
        return self._unit.all(_OTHER_MODEL, model=model, limit=limit)

    def counts_by_model(self) -> dict[str, int]:
        """How many rows have vectors of each model."""
        return dict(self._unit.all(_COUNTS_BY_MODEL))

    def next_version(self, user_id: str) -> int:
        """A new version for the rows that are written next. Other writers of this person wait."""
        return self._ledger.next_version(user_id)

    def put(self, rows: Sequence[IndexedMemory]) -> None:
        """Add rows; a row of the same memory is replaced."""
        for row in rows:
            self._unit.remove(IndexedMemory, memory_id=row.memory_id)
        self._unit.insert(*rows)

    def record(self, retrievals: Sequence[Retrieval]) -> None:
        """Store what searches found."""
        self._unit.insert(*retrievals)

    def retrieval(self, id: str) -> Retrieval | None:
        """One search by its id."""
        return self._unit.find_one(Retrieval, id=id)

    def retrievals_of_message(self, conversation_id: str, message_id: str) -> list[Retrieval]:
        """The searches for a message, in order."""
        return self._unit.find(
            Retrieval, "created_at", "id", conversation_id=conversation_id, message_id=message_id
        )

    def retrievals(self, user_id: str) -> list[Retrieval]:
        """The recorded searches of a person, oldest first."""
        return self._unit.find(Retrieval, "created_at", "id", user_id=user_id)
