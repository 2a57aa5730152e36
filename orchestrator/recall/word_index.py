"""A word index in memory, scored by BM25+."""

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
Places: TypeAlias = NDArray[np.int32]

SATURATION: Final = 1.2
LENGTH: Final = 0.4
LOWER_BOUND: Final = 1.0
"""The parameters k1, b and delta of BM25+."""


_FREQUENT: Final = 2_000
_MOST_KEPT: Final = 200


@dataclass(frozen=True, slots=True)
class WordScores:
    """Per text: its BM25+ score, and the share of the query's words that it has, weighed by their rarity."""

    scores: Floats
    coverage: Floats


class WordIndex:
    """Which texts have which words. Texts are only added; whoever uses it ignores the outdated ones."""

    def __init__(self) -> None:
        self._texts: dict[str, tuple[array[int], array[float]]] = {}
        self._lengths = array("f")
        self._total = 0
        self._factors: Floats = np.empty(0, np.float32)
        self._weights: dict[str, Floats] = {}
        """How much a frequent word counts in each of its texts. Computed once, until texts are added."""

    def __len__(self) -> int:
        return len(self._lengths)

    def __contains__(self, word: str) -> bool:
        return word in self._texts

    @property
    def vocabulary(self) -> Iterable[str]:
        """All words of all texts."""
        return self._texts.keys()

    def add(self, words: Sequence[str]) -> None:
        """Add the next text."""
        place = len(self._lengths)
        for word, count in Counter(words).items():
            places, counts = self._texts.setdefault(word, (array("i"), array("f")))
            places.append(place)
            counts.append(count)
        self._weights.clear()
        self._lengths.append(len(words))
        self._total += len(words)

    def score(self, words: Iterable[str]) -> WordScores:
        """The score of every text for these words."""
        count = len(self._lengths)
        scores, coverage = np.zeros(count, np.float32), np.zeros(count, np.float32)
        if not count or not self._total:
            return WordScores(scores, coverage)
        factors = self._length_factors()
        all_rarities = 0.0
        for word in dict.fromkeys(words):
            places, counts = self._found(word)
            rarity = log(1 + (count - len(places) + 0.5) / (len(places) + 0.5))
            all_rarities += rarity
            if len(places):
                rare = np.float32(rarity)
                scores[places] += rare * self._weights_of(word, places, counts, factors)
                coverage[places] += rare
        return WordScores(scores, coverage / all_rarities if all_rarities else coverage)

    def _weights_of(self, word: str, places: Places, counts: Floats, factors: Floats) -> Floats:
        """How much a word counts in each of its texts, apart from its rarity."""
        if word in self._weights:
            return self._weights[word]
        weights: Floats = (LOWER_BOUND + counts * (SATURATION + 1) / (counts + factors[places])).astype(
            np.float32
        )
        if len(places) >= _FREQUENT and len(self._weights) < _MOST_KEPT:
            self._weights[word] = weights
        return weights

    def _length_factors(self) -> Floats:
        """How much a word counts less in longer texts, per text; computed anew only if texts were added."""
        count = len(self._lengths)
        if len(self._factors) != count:
            lengths = np.array(self._lengths, np.float32)
            self._factors = SATURATION * (1 - LENGTH + LENGTH * lengths / (self._total / count))
        return self._factors

    def _found(self, word: str) -> tuple[Places, Floats]:
        if word not in self._texts:
            return np.empty(0, np.int32), np.empty(0, np.float32)
        places, counts = self._texts[word]
        return np.frombuffer(places, np.int32), np.frombuffer(counts, np.float32)
