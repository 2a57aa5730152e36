"""Puts words before each text, by which some models tell queries from passages."""

from collections.abc import Sequence

from agents.ports import Embedder, Vectors


class PrefixedEmbedder:
    """An embedder that reads each text with a prefix: "query: " or "passage: "."""

    def __init__(self, embedder: Embedder, prefix: str) -> None:
        self._embedder, self._prefix = embedder, prefix
        self.name, self.width = embedder.name, embedder.width

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a row per text, in the same order."""
        return self._embedder.embed([f"{self._prefix}{text}" for text in texts])
