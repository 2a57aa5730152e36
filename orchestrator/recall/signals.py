"""Scores every memory of a person for a query, signal by signal. Pure functions over numpy arrays.

Every signal is kept, because together they explain why a memory was found.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agents.ports import Vectors
from orchestrator.recall.person_index import PersonIndex
from orchestrator.recall.query.question import ReadQuery, named
from orchestrator.recall.recipe import Recipe
from orchestrator.recall.word_index import Floats

_DAY: Final = 86_400.0
_BEST_OF_EPISODE: Final = 3
_ONLY_BEST: Final = 2_000
"""So many of the best memories are looked at for the best of each episode."""

_UNRELATED, _SAME = 0.15, 0.75
"""The cosine of texts that have nothing to do with each other, and of texts that say the same."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Per memory: the weighted signals, their sum, the cosine, and how well it matches on its own."""

    signals: Mapping[str, Floats]
    total: Floats
    similarity: Floats
    match: Floats


def score(
    index: PersonIndex, question: ReadQuery, vector: Vectors | None, recipe: Recipe, now: datetime
) -> Scores:
    """Score every memory of an index, which must not be empty."""
    words = index.words.score(question.terms)
    window_words = index.window_words.score(question.terms)
    nothing = np.zeros(len(index), np.float32)
    own = nothing if vector is None else nearness(index, index.own, vector)
    window = nothing.copy() if vector is None else nearness(index, index.window, vector)
    alone = index.after_deleted
    if len(alone):
        window[alone] = own[alone]
        window_words.scores[alone] = words.scores[alone]
        window_words.coverage[alone] = words.coverage[alone]

    weighted = {
        "words": recipe.words * _of_best(words.scores, index.alive),
        "words_window": recipe.words_window * _of_best(window_words.scores, index.alive),
        "vector": recipe.vector * _of_best(own, index.alive),
        "vector_window": recipe.vector_window * _of_best(window, index.alive),
    }
    found = sum(weighted.values(), nothing)
    best = float(found.max(initial=0.0, where=index.alive)) or 1.0
    signals: dict[str, Floats] = {name: (each / best).astype(np.float32) for name, each in weighted.items()}

    several = question.asks_for_several
    signals["speaker"] = (recipe.several_speaker if several else recipe.speaker) * _speaker(index, question)
    signals["date"] = recipe.date * _date(index, question)
    base = np.where(index.alive, sum(signals.values(), nothing), 0.0).astype(np.float32)
    signals["neighbour"] = (recipe.several_neighbour if several else recipe.neighbour) * _neighbour(
        index, base
    )
    signals["episode"] = recipe.episode * _episode(index, base)
    importance, rating, pinned = index.worth.T
    signals["importance"] = recipe.importance * importance
    signals["rating"] = recipe.rating * rating
    signals["pinned"] = recipe.pinned * pinned
    signals["recency"] = recipe.recency * _recency(index, now, recipe.recency_days)

    similarity = np.maximum(own, window).astype(np.float32)
    by_meaning = np.clip((similarity - _UNRELATED) / (_SAME - _UNRELATED), 0.0, 1.0)
    by_words = window_words.coverage  # the window has all words of the memory, too
    match = np.maximum(by_meaning, by_words * (0.5 + 0.5 * by_meaning)).astype(np.float32)
    total = np.maximum(sum(signals.values(), nothing), 0.0).astype(np.float32)
    return Scores(signals, total, similarity, match)


def nearness(index: PersonIndex, vectors: Vectors, vector: Vectors) -> Floats:
    """The cosines of vectors with one, on a scale where unrelated texts have about 0 with every model."""
    found = cosines(vectors, vector)
    if index.unrelated:
        np.clip((found - index.unrelated) / (1 - index.unrelated), 0, None, out=found)
    return found


def cosines(vectors: Vectors, vector: Vectors) -> Floats:
    """The cosine of each row with a vector.

    BLAS would use all cores for this, and wait for them actively: on a busy machine that takes several times
    as long as one core.
    """
    found: Floats = np.einsum("ij,j->i", vectors, vector)
    return found


def _of_best(scores: Floats, alive: NDArray[np.bool_]) -> Floats:
    """The scores as shares of the best one."""
    best = float(scores.max(initial=0.0, where=alive))
    shares: Floats = np.clip(scores / best, 0.0, 1.0) if best > 0 else np.zeros_like(scores)
    return shares


def _speaker(index: PersonIndex, question: ReadQuery) -> Floats:
    """1 for the memories of the speaker whom the query names, unless it names several."""
    names = named(question.text, index.speakers)
    if len(names) != 1:
        return np.zeros(len(index), np.float32)
    spoke: Floats = (index.speaker == index.speakers[names[0]]).astype(np.float32)
    return spoke


def _date(index: PersonIndex, question: ReadQuery) -> Floats:
    """1 for the memories of a month that the query names, in a year that it names, if it names one."""
    matches = np.zeros(len(index), np.float32)
    if not question.months:
        return matches
    dated = np.flatnonzero(np.isfinite(index.said_at))
    months = index.said_at[dated].astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
    in_month = np.isin(months % 12 + 1, list(question.months))
    in_year = np.isin(months // 12 + 1970, list(question.years)) if question.years else True
    matches[dated] = in_month & in_year
    return matches


def _neighbour(index: PersonIndex, base: Floats) -> Floats:
    """The better of the scores of the memories said just before and just after."""
    padded = np.append(base, np.float32(0))  # the place -1 is the zero at the end
    return np.maximum(padded[index.before], padded[index.after])


def _episode(index: PersonIndex, base: Floats) -> Floats:
    """The mean of the best scores of the memory's episode."""
    best = np.flatnonzero(index.alive)
    if len(best) > _ONLY_BEST:
        best = best[np.argpartition(-base[best], _ONLY_BEST)[:_ONLY_BEST]]
    order = best[np.lexsort((-base[best], index.episodes[best]))]
    episodes = index.episodes[order]
    starts = np.flatnonzero(np.r_[True, episodes[1:] != episodes[:-1]]) if len(order) else np.empty(0, int)
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    sums = np.zeros(int(index.episodes.max(initial=-1)) + 1, np.float32)
    counts = np.zeros_like(sums)
    first = rank < _BEST_OF_EPISODE
    np.add.at(sums, episodes[first], base[order[first]])
    np.add.at(counts, episodes[first], 1)
    means: Floats = (sums / np.maximum(counts, 1)).astype(np.float32)
    return means[index.episodes]


def _recency(index: PersonIndex, now: datetime, days: float) -> Floats:
    age = np.maximum(now.timestamp() - index.said_at, 0.0).astype(np.float32)
    recency: Floats = np.exp(age * np.float32(-1 / (_DAY * days)))
    return recency
