"""Caches the vectors of the latest texts, so that a repeated text is not computed again."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

import numpy as np

from agents.ports import Embedder, Vectors


class RememberingEmbedder:
    """An embedder with a bounded cache in front. The cache is keyed by digest and keeps no text."""

    def __init__(self, embedder: Embedder, most: int = 2048) -> None:
        self._embedder = embedder
        self._most = most
        self._known: OrderedDict[bytes, Vectors] = OrderedDict()
        self._lock = Lock()
        self.name = embedder.name
        self.width = embedder.width

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a row per text. Only new texts are computed, each once."""
        digests = [
            hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts
        ]
        with self._lock:
            found = {digest: self._known[digest] for digest in digests if digest in self._known}
        new = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in found}
        found |= zip(new, self._embedder.embed(list(new.values())), strict=True) if new else {}
        with self._lock:
            for digest in digests:
                self._known[digest] = found[digest]
                self._known.move_to_end(digest)
            while len(self._known) > self._most:
                self._known.popitem(last=False)
        if not texts:
            return np.empty((0, self.width), dtype=np.float32)
        return np.stack([found[digest] for digest in digests])
