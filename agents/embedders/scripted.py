"""An embedder for tests: texts that share words are near each other. It needs no model."""

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from agents.ports import Vectors


class WordEmbedder:
    """Each word has its own direction, derived from its digest. A text is the sum of its words."""

    name = "words"

    def __init__(self, width: int = 384) -> None:
        self.width = width

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a row of length 1 per text, in the same order."""
        vectors = np.zeros((len(texts), self.width), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in re.findall(r"\w+", text.lower()) or [""]:
                row += self._direction(word)
            row /= np.linalg.norm(row)
        return vectors

    def _direction(self, word: str) -> Vectors:
        seed = int.from_bytes(hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest())
        direction: Vectors = np.random.default_rng(seed).standard_normal(self.width, dtype=np.float32)
        return direction
