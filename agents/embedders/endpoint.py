"""Sentence embeddings by an OpenAI-style endpoint, `/embeddings`."""

import json
from collections.abc import Sequence
from typing import Any, Final

import httpx
import numpy as np

from agents.errors import EmbeddingFailed
from agents.ports import Vectors

_AT_ONCE: Final = 32
_MOST_CHARACTERS: Final = 8_000
"""The rest of a longer text is ignored."""

_MOST_BYTES: Final = 16_000_000
_CONNECT_SECONDS: Final = 5.0


class EmbeddingEndpoint:
    """Asks a server for vectors, and scales them to length 1. Safe to use from several threads.

    A reply with other vectors than were asked for is refused. No error quotes a text or a reply.
    """

    def __init__(
        self, url: str, key: str, model: str, width: int, seconds: float, *, label: str = ""
    ) -> None:
        self.name, self.width, self._model = f"{label or model} ({width})", width, model
        self._http = httpx.Client(
            base_url=f"{url.rstrip('/')}/",
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(seconds, connect=_CONNECT_SECONDS),
            trust_env=False,
        )

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a row per text, in the same order. Raises EmbeddingFailed."""
        valid = [text[:_MOST_CHARACTERS].encode("utf-8", "replace").decode() for text in texts]
        parts = [self._ask(valid[start : start + _AT_ONCE]) for start in range(0, len(valid), _AT_ONCE)]
        return np.concatenate(parts) if parts else np.empty((0, self.width), np.float32)

    def _ask(self, texts: Sequence[str]) -> Vectors:
        # Endpoints refuse empty texts.
        asked = {"model": self._model, "input": [text if text.strip() else "." for text in texts]}
        try:
            with self._http.stream("POST", "embeddings", json=asked) as response:
                if not response.is_success:
                    raise EmbeddingFailed(self.name, f"it answered with status {response.status_code}")
                data = bytearray()
                for chunk in response.iter_bytes():
                    data += chunk
                    if len(data) > _MOST_BYTES:
                        raise EmbeddingFailed(self.name, "its reply is too long")
        except httpx.HTTPError as error:
            raise EmbeddingFailed(self.name, f"it cannot be reached ({type(error).__name__})") from None
        vectors = _vectors(bytes(data), len(texts), self.width)
        if vectors is None:
            raise EmbeddingFailed(
                self.name, f"its reply has not {len(texts)} vectors of {self.width} numbers"
            )
        return vectors


def _vectors(data: bytes, count: int, width: int) -> Vectors | None:
    """The vectors of a reply in the order of the texts; None if the reply is not as it should be."""
    try:
        rows: list[dict[str, Any]] = json.loads(data)["data"]
        ordered = sorted(rows, key=lambda row: row.get("index", 0))
        vectors = np.array([row["embedding"] for row in ordered], dtype=np.float32)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if vectors.shape != (count, width) or not np.isfinite(vectors).all():
        return None
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / lengths if (lengths > 0).all() else None
