"""Puts scored memories into an order: best first, different ones first if the query asks for several."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agents.ports import Vectors
from orchestrator.recall import signals
from orchestrator.recall.person_index import PersonIndex
from orchestrator.recall.query.question import ReadQuery
from orchestrator.recall.recipe import Recipe
from orchestrator.recall.signals import Scores
from orchestrator.store.repositories.memory.index import SearchRow

_POOL: Final = 40
"""So many of the best memories are compared with each other."""

_HIGHEST_FLOOR: Final = 0.5
"""The score of an average memory counts as 0, but at most this share of the best."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that was found: its score, the cosine of its text, and every signal that made the score."""

    row: SearchRow
    position: int
    score: float
    similarity: float
    signals: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidates, best first, and what did not become one."""

    candidates: tuple[Candidate, ...] = ()
    searched: int = 0
    """How many memories the search looked at."""
    below_minimum: int = 0
    beyond_limit: int = 0
    outside_period: int = 0
    minimum: float = 0.0
    scores: Mapping[str, float] = field(default_factory=dict)
    """The score of the memories that were asked for by id, found or not."""


def rank(
    index: PersonIndex,
    question: ReadQuery,
    vector: Vectors | None,
    recipe: Recipe,
    now: datetime,
    *,
    most: int,
    within: NDArray[np.bool_] | None = None,
    watched: tuple[str, ...] = (),
) -> Ranking:
    """The best `most` memories for a query; with `within`, only of these rows. Best scores are at most 1."""
    allowed = index.alive if within is None else index.alive & within
    places = np.flatnonzero(allowed)
    outside = int(index.alive.sum()) - len(places)
    if not len(places):
        return Ranking(searched=0, outside_period=outside, minimum=recipe.minimum)
    scored = signals.score(index, question, vector, recipe, now)
    best = float(scored.total[places].max(initial=0.0))
    floor = min(float(np.median(scored.total[places])), _HIGHEST_FLOOR * best)
    strength = float(scored.match[places].max(initial=0.0))
    scale = strength / (best - floor) if best > 0 else 0.0
    final = ((scored.total - floor) * scale).astype(np.float32)
    # Scores are at most `strength`, so below `best_needed` nothing passes.
    minimum = recipe.minimum if strength >= recipe.best_needed else recipe.best_needed
    passing = places[final[places] >= minimum]
    order = _best_first(passing, final, max(most, _POOL))
    if question.asks_for_several:
        order, final = _spread(index, order, final, recipe, best * scale)
    chosen = order[:most]
    descending = np.minimum.accumulate(final[chosen]) if len(chosen) else final[chosen]
    return Ranking(
        candidates=tuple(
            _candidate(index, scored, int(place), position, float(value))
            for position, (place, value) in enumerate(zip(chosen, descending, strict=True), 1)
        ),
        searched=len(places),
        below_minimum=len(places) - len(passing),
        beyond_limit=len(passing) - len(chosen),
        outside_period=outside,
        minimum=minimum,
        scores={each: float(final[place]) for each in watched if (place := index.place(each)) is not None},
    )


def _best_first(places: NDArray[np.intp], final: NDArray[np.float32], most: int) -> NDArray[np.intp]:
    """The `most` memories with the highest scores, best first; of equal scores, the older one first."""
    if len(places) > most:
        least = np.partition(final[places], len(places) - most)[len(places) - most]
        places = places[final[places] >= least]
    return places[np.lexsort((places, -final[places]))]


def _spread(
    index: PersonIndex, order: NDArray[np.intp], final: NDArray[np.float32], recipe: Recipe, unit: float
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Order the best memories so that similar ones are spread.

    A memory loses score if a better one is similar to it or belongs to its episode. Losses are multiples of
    `unit`.
    """
    pool = order[:_POOL]
    if len(pool) < 2:
        return order, final
    vectors, episodes = index.own[pool], index.episodes[pool]
    value = final[pool].copy()
    nearest, repeats = np.zeros(len(pool), np.float32), np.zeros(len(pool), np.float32)
    left = np.ones(len(pool), bool)
    chosen, final = [], final.copy()
    for _ in pool:
        loss = unit * (recipe.several_difference * nearest + recipe.several_spread * repeats)
        at = int(np.argmax(np.where(left, value - loss, -np.inf)))
        final[pool[at]] = max(float(value[at] - loss[at]), 0.0)
        chosen.append(pool[at])
        left[at] = False
        nearest = np.maximum(nearest, signals.nearness(index, vectors, vectors[at]))
        repeats += episodes == episodes[at]
    return np.concatenate([np.array(chosen, order.dtype), order[_POOL:]]), final


def _candidate(index: PersonIndex, scored: Scores, place: int, position: int, value: float) -> Candidate:
    return Candidate(
        row=index.rows[place],
        position=position,
        score=round(min(max(value, 0.0), 1.0), 6),
        similarity=round(float(scored.similarity[place]), 6),
        signals={name: round(float(each[place]), 4) for name, each in scored.signals.items() if each[place]},
    )
