"""The memories of one person in memory, ready to be searched.

It is read from the database once and then kept up to date by what changed since. Everything in it belongs to
the same person; a row of somebody else is refused.
"""

from collections.abc import Iterable
from datetime import datetime
from operator import attrgetter
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents.ports import Vectors
from orchestrator.errors import INTERNAL, AnamnesisError
from orchestrator.recall.word_index import Floats, Places, WordIndex
from orchestrator.store.repositories.memory.index import SearchRow

NO_DATE: Final = float("-inf")
"""The time of a memory without a date, in seconds since 1970."""

_MOST_OUTDATED: Final = 0.25
"""With a larger share of outdated rows, the index is built again."""


class Column:
    """A numpy array that grows. `values` are the rows in use."""

    def __init__(self, dtype: Any, width: int | None = None) -> None:
        self._shape = () if width is None else (width,)
        self._data: NDArray[Any] = np.zeros((16, *self._shape), dtype)
        self._count = 0

    @property
    def values(self) -> NDArray[Any]:
        return self._data[: self._count]

    @property
    def bytes(self) -> int:
        return self._data.nbytes

    def append(self, value: Any) -> None:
        if self._count == len(self._data):
            grown = np.zeros((2 * self._count, *self._shape), self._data.dtype)
            grown[: self._count] = self._data
            self._data = grown
        self._data[self._count] = value
        self._count += 1


class PersonIndex:
    """The searchable memories of one person, at one version of them. Hold `lock` to use it."""

    def __init__(self, user_id: str, model: str, width: int, unrelated: float = 0.0) -> None:
        self.user_id, self.model, self.width, self.unrelated = user_id, model, width, unrelated
        self.version = -1
        self.lock = Lock()
        self.clear()

    @property
    def count(self) -> int:
        """How many memories it has, searchable or not."""
        return len(self._place_of)

    def clear(self) -> None:
        """Forget all memories."""
        self.rows: list[SearchRow] = []
        self._place_of: dict[str, int] = {}
        self.words, self.window_words = WordIndex(), WordIndex()
        self._own, self._window = Column(np.float32, self.width), Column(np.float32, self.width)
        self._alive, self._has_vector = Column(np.bool_), Column(np.bool_)
        self._deleted = Column(np.bool_)
        self._episode, self._ordinal = Column(np.int32), Column(np.int64)
        self._said_at, self._speaker = Column(np.float64), Column(np.int32)
        self._worth = Column(np.float32, 3)
        self._episodes: dict[str, int] = {}
        self.speakers: dict[str, int] = {}
        self.before: Places = np.empty(0, np.int32)
        self.after: Places = np.empty(0, np.int32)
        self.after_deleted: Places = np.empty(0, np.int32)
        """The rows right after a deleted memory. What was said before does not help to find them."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def own(self) -> Vectors:
        """The vector of each memory."""
        return self._own.values

    @property
    def window(self) -> Vectors:
        """The vector of each memory together with what was said before."""
        return self._window.values

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Which rows may be found: neither deleted, archived nor outdated."""
        return self._alive.values

    @property
    def episodes(self) -> Places:
        """The number of the episode of each row."""
        return self._episode.values

    @property
    def said_at(self) -> NDArray[np.float64]:
        """When each memory was said, in seconds since 1970."""
        return self._said_at.values

    @property
    def speaker(self) -> Places:
        """The number of the speaker of each row; -1 for the person."""
        return self._speaker.values

    @property
    def worth(self) -> Floats:
        """Per row: importance around its neutral value, rating around its neutral value, pinned."""
        return self._worth.values

    @property
    def bytes(self) -> int:
        """The size of the vectors, which are nearly all of it."""
        return self._own.bytes + self._window.bytes

    def place(self, memory_id: str) -> int | None:
        """The row of a memory."""
        return self._place_of.get(memory_id)

    def update(self, rows: Iterable[SearchRow], version: int) -> None:
        """Take over rows that changed."""
        for row in rows:
            if row.user_id != self.user_id:
                raise AnamnesisError(INTERNAL, code="a memory of another person in an index")
            known = self._place_of.get(row.memory_id)
            if known is None:
                self._add(row)
            elif _is_found_alike(self.rows[known], row):
                self._change(known, row)
            else:
                self._alive.values[known] = False
                self._add(row)
        if len(self.rows) > 64 and len(self._place_of) < (1 - _MOST_OUTDATED) * len(self.rows):
            current = [self.rows[place] for place in sorted(self._place_of.values())]
            self.clear()
            for row in current:
                self._add(row)
        self._find_neighbours()
        self.version = version

    def _add(self, row: SearchRow) -> None:
        self._place_of[row.memory_id] = len(self.rows)
        self.rows.append(row)
        own, before = row.words.split(), row.context_words.split()
        self.words.add(own)
        self.window_words.add(before + own)
        has_vector = row.model == self.model and row.own_vector is not None
        self._has_vector.append(has_vector)
        for column, vector in ((self._own, row.own_vector), (self._window, row.window_vector)):
            column.append(np.frombuffer(vector, np.float16) if has_vector and vector else 0.0)
        self._episode.append(self._episodes.setdefault(row.episode, len(self._episodes)))
        self._ordinal.append(row.ordinal)
        self._said_at.append(_seconds(row.said_at))
        name = (row.speaker or "").strip()
        self._speaker.append(self.speakers.setdefault(name, len(self.speakers)) if name else -1)
        self._alive.append(row.is_searchable)
        self._deleted.append(row.deleted_at is not None)
        self._worth.append(_worth(row))

    def _change(self, place: int, row: SearchRow) -> None:
        self.rows[place] = row
        self._alive.values[place] = row.is_searchable
        self._deleted.values[place] = row.deleted_at is not None
        self._worth.values[place] = _worth(row)

    def _find_neighbours(self) -> None:
        """Find the row before and after each one in its episode; -1 if there is none."""
        count = len(self.rows)
        self.before, self.after = np.full(count, -1, np.int32), np.full(count, -1, np.int32)
        left, right = self._pairs(self.alive)
        self.before[right], self.after[left] = left, right
        deleted = self._deleted.values
        self.after_deleted = np.empty(0, np.int32)
        if deleted.any():
            left, right = self._pairs(self.alive | deleted)
            self.after_deleted = right[deleted[left]]

    def _pairs(self, which: NDArray[np.bool_]) -> tuple[Places, Places]:
        """Of the rows in `which`: each two that follow each other in an episode."""
        places = np.flatnonzero(which)
        order = places[np.lexsort((self._ordinal.values[places], self.episodes[places]))].astype(np.int32)
        are_together = self.episodes[order[1:]] == self.episodes[order[:-1]]
        return order[:-1][are_together], order[1:][are_together]


_HOW_FOUND: Final = attrgetter(
    *("words", "context_words", "model", "ordinal", "episode", "speaker", "said_at"),
    *("own_vector", "window_vector"),
)


def _is_found_alike(one: SearchRow, other: SearchRow) -> bool:
    """Whether words, vectors and place are the same."""
    return bool(_HOW_FOUND(one) == _HOW_FOUND(other))


def _seconds(moment: datetime | None) -> float:
    return NO_DATE if moment is None else moment.timestamp()


def _worth(row: SearchRow) -> tuple[float, float, float]:
    rating = 0.0 if row.user_rating is None else (row.user_rating - 3) / 2
    return (row.importance - 0.5) * 2, rating, float(row.pinned)
