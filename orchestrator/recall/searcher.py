"""Searches the memories of one person: keeps their indexes in memory and up to date, and ranks."""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import partial
from threading import Lock
from time import perf_counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agents.errors import AgentError
from agents.ports import Embedder, Period, Vectors
from memory_blocks.ports import Clock
from orchestrator.errors import as_ours
from orchestrator.ops.logs import get_logger
from orchestrator.recall.person_index import PersonIndex
from orchestrator.recall.query import events, periods
from orchestrator.recall.query.events import DatedText, Event
from orchestrator.recall.query.question import ReadQuery, named, read, without_names
from orchestrator.recall.query.repair import needs_repair, widened
from orchestrator.recall.query.words import terms
from orchestrator.recall.ranking import Ranking, rank
from orchestrator.recall.recipe import Recipe
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.repositories.memory.index import SearchRow

log = get_logger()

MOST_CHARACTERS: Final = 8_000
"""A longer query is searched by its beginning."""

_MOST_OF_EVENT: Final = 10
"""So many memories are looked at for the date of an event."""

_ANY: Final = -1.0
"""A minimum that every memory of a period reaches."""

_SAID: Final = frozenset(terms("tell told say said talk talked mention mentioned discuss discussed"))
"""Words of a query that do not say what it is about."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found, and the dates it was narrowed to."""

    ranking: Ranking
    question: ReadQuery
    period: Period | None
    is_repaired: bool
    embedding_milliseconds: float
    """How long the embedding of the query took."""
    by_vectors: bool
    """Whether vectors were compared. The recipe or a failure of the model may leave only words."""


class Searcher:
    """Finds memories. Thread-safe; indexes of people who were not searched for lately are dropped.

    `unrelated` is the cosine that the embedding model gives to texts that have nothing to do with each other.
    """

    def __init__(
        self, store: Store, embedder: Embedder, clock: Clock, *, cache_bytes: int, unrelated: float = 0.0
    ) -> None:
        self._unrelated = unrelated
        self._store, self._embedder, self._clock = store, embedder, clock
        self._cache_bytes = cache_bytes
        self._indexes: OrderedDict[str, PersonIndex] = OrderedDict()
        self._lock = Lock()

    def search(
        self,
        user_id: str,
        text: str,
        recipe: Recipe,
        *,
        vector: Vectors | None = None,
        most: int | None = None,
        watched: tuple[str, ...] = (),
        skip_repair: bool = False,
        zone: tzinfo = UTC,
    ) -> Found:
        """Search the memories of one person. Reads the database; call it from a thread.

        `vector` is that of the query, if it is known. `watched` are ids of memories whose score is reported
        even if they are not found. `zone` is the person's time zone.
        """
        text = text[:MOST_CHARACTERS]
        question, now = read(text), self._clock.now()
        index = self._index(user_id)
        by_meaning = recipe.vector > 0 or recipe.vector_window > 0
        with index.lock:
            self._refresh(index)
            names = named(text, index.speakers) if by_meaning else []
        began = perf_counter()
        event, event_vector = events.read(text), None
        try:
            vector = self._vector(text, names, vector) if by_meaning else None
            event_vector = self._vector(event.name, [], None) if event and by_meaning else None
        except AgentError as error:
            log.warning("query_not_embedded", error=as_ours(error).problem.name)
            vector = None
        embedding = (perf_counter() - began) * 1000
        period = periods.read(text, now, zone)
        if period is None and event is not None:
            period = events.period(event, self._memories_of(index, event, event_vector, recipe, now), zone)
        with index.lock:
            within = None if period is None else _within(index, period)
            if period is not None and _names_only(text, period):
                recipe = recipe.model_copy(update={"minimum": _ANY, "best_needed": _ANY})
            search = partial(
                rank,
                index,
                vector=vector,
                recipe=recipe,
                now=now,
                most=most or recipe.candidates,
                watched=watched,
            )
            ranking = search(question=question, within=within)
            repaired = None if skip_repair else _widened(index, question, ranking)
            if repaired is not None:
                question = repaired
                ranking = search(question=question, within=within)
            if period is not None and not ranking.candidates:
                period = None
                ranking = search(question=question)
        return Found(ranking, question, period, repaired is not None, embedding, vector is not None)

    def _memories_of(
        self, index: PersonIndex, event: Event, vector: Vectors | None, recipe: Recipe, now: datetime
    ) -> list[DatedText]:
        """The memories about an event, best first."""
        with index.lock:
            ranking = rank(index, read(event.name), vector, recipe, now, most=_MOST_OF_EVENT)
        rows = [each.row for each in ranking.candidates if each.score >= events.LEAST_SCORE]
        ids, user_id = [row.memory_id for row in rows], index.user_id
        contents = self._store.read_now(lambda tx: tx.memory_index.contents(user_id, ids)) if ids else {}
        return [
            DatedText(
                contents[row.memory_id].content,
                str((row.source_info or {}).get("true_when", "")),
                row.said_at,
            )
            for row in rows
            if row.memory_id in contents and row.said_at is not None
        ]

    def _vector(self, text: str, names: list[str], vector: Vectors | None) -> Vectors:
        """The query's vector. If it names speakers, the mean with that of the query without the names."""
        texts = [] if vector is not None else [text]
        if names:
            texts.append(without_names(text, names))
        vectors = self._embedder.embed(texts) if texts else np.empty((0, self._embedder.width), np.float32)
        total: Vectors = vectors.sum(axis=0) + (0 if vector is None else vector)
        length = float(np.linalg.norm(total))
        return (total / length if length else total).astype(np.float32)

    def _index(self, user_id: str) -> PersonIndex:
        with self._lock:
            index = self._indexes.get(user_id)
            if index is None:
                index = PersonIndex(user_id, self._embedder.name, self._embedder.width, self._unrelated)
                self._indexes[user_id] = index
            self._indexes.move_to_end(user_id)
            total = sum(each.bytes for each in self._indexes.values())
            while total > self._cache_bytes and len(self._indexes) > 1:
                total -= self._indexes.popitem(last=False)[1].bytes
            return index

    def _refresh(self, index: PersonIndex) -> None:
        """Read what changed since the index was last used."""
        user_id, known = index.user_id, index.version
        changed = self._store.read_now(lambda tx: _changed_since(tx, user_id, known))
        if changed is None:
            return
        rows, version, count = changed
        index.update(rows, version)
        if index.count != count:  # rows were removed for good
            index.clear()
            index.update(self._store.read_now(lambda tx: tx.memory_index.since(user_id, -1)), version)


def _changed_since(tx: Transaction, user_id: str, version: int) -> tuple[list[SearchRow], int, int] | None:
    """The rows that changed after a version, the new one, and how many there are; None if nothing changed."""
    now = tx.memory_index.version(user_id)
    if now == version:
        return None
    return tx.memory_index.since(user_id, version), now, tx.memory_index.count(user_id)


def _widened(index: PersonIndex, question: ReadQuery, ranking: Ranking) -> ReadQuery | None:
    """A wider query for a second search; None if the first is good enough, or nothing similar is known."""
    unknown = [term for term in question.terms if term not in index.words]
    if not needs_repair(len(unknown), len(question.terms), len(ranking.candidates)):
        return None
    return widened(question, unknown, index.words.vocabulary)


def _names_only(text: str, period: Period) -> bool:
    """Whether a query, such as "what did I tell you last week?", asks for all that was said in a period."""
    return set(terms(text)) - set(terms(period.words)) <= _SAID


def _within(index: PersonIndex, period: Period) -> NDArray[np.bool_]:
    start, end = _seconds(period.start, -np.inf), _seconds(period.end, np.inf)
    return np.isfinite(index.said_at) & (index.said_at >= start) & (index.said_at < end)


def _seconds(moment: datetime | None, otherwise: float) -> float:
    return otherwise if moment is None else moment.timestamp()
