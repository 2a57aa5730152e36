"""A second pair of ears: hears from what a message means, by its embedding, what the rules have no words for.

A small softmax regression over sentence embeddings, trained from the phrases of `config/safety/phrases/`. It
is deterministic: no lot is drawn, and training takes a fixed number of steps. It may raise what the rules
said, and never lower it; where there is no embedding model, the rules do without.
"""

import hashlib
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from agents.ports import Embedder
from agents.safety.guard import Verdict

Class = Literal["none", "emergency", "crisis"]
CLASSES: Final[tuple[Class, ...]] = ("none", "emergency", "crisis")
FILES: Final[Mapping[str, Class]] = {
    "calm.toml": "none",
    "ordinary.toml": "none",
    "emergencies.toml": "emergency",
    "crises.toml": "crisis",
}
SURE: Final = 0.7
"""How sure the ears must be before they raise anything: they are there for what is plain in meaning alone."""
TIER: Final = 2
RULE: Final = "ears"
_STEPS: Final = 400
_RATE: Final = 4.0
_DECAY: Final = 2e-4

Weights = NDArray[np.float64]


class Ears:
    """The trained weights, and the model that makes vectors of messages."""

    def __init__(self, embedder: Embedder, weights: Weights, sure: float = SURE) -> None:
        self._embedder, self._weights, self._sure = embedder, weights, sure

    def check(self, text: str, context: str | None = None) -> Verdict:
        """What the message means, if that is plain enough. Computes for some milliseconds."""
        shares = self.shares([text])[0]
        best = int(np.argmax(shares))
        kind = CLASSES[best]
        if kind == "none" or shares[best] < self._sure:
            return Verdict()
        return Verdict(kind, TIER, (RULE,))

    def shares(self, texts: Sequence[str]) -> Weights:
        """How sure the ears are of each class, a row per text."""
        return _softmax(_with_one(self._embedder.embed(texts)) @ self._weights)


def load(folder: Path, embedder: Embedder, cache: Path) -> Ears:
    """The ears for these phrases and this model: from the cache, or trained, which takes a minute."""
    phrases = _phrases(folder)
    kept = cache / f"ears-{_digest(phrases, embedder.name)}.npy"
    try:
        weights = np.load(kept, allow_pickle=False)
    except (OSError, ValueError):
        weights = train(embedder, phrases)
        cache.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(f".{os.getpid()}.npy")  # several processes may learn at once
        np.save(part, weights, allow_pickle=False)
        part.replace(kept)
    return Ears(embedder, weights)


def train(embedder: Embedder, phrases: Mapping[str, Class]) -> Weights:
    """The weights that tell the phrases apart. Every class counts the same, however many phrases it has."""
    vectors = _with_one(embedder.embed(list(phrases)))
    answers = np.eye(len(CLASSES))[[CLASSES.index(each) for each in phrases.values()]]
    importance = (answers / answers.sum(axis=0) / len(CLASSES)).sum(axis=1, keepdims=True)
    weights = np.zeros((vectors.shape[1], len(CLASSES)))
    for _ in range(_STEPS):
        error = (_softmax(vectors @ weights) - answers) * importance
        weights -= _RATE * (vectors.T @ error + _DECAY * weights)
    return weights


def _phrases(folder: Path) -> dict[str, Class]:
    found: dict[str, Class] = {}
    for name, kind in FILES.items():
        for table in tomllib.loads((folder / name).read_text(encoding="utf-8")).values():
            found |= dict.fromkeys(table["phrases"], kind)
    return found


def _digest(phrases: Mapping[str, Class], model: str) -> str:
    parts = [model, str((_STEPS, _RATE, _DECAY)), *(f"{kind} {text}" for text, kind in phrases.items())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _with_one(vectors: NDArray[np.float32]) -> Weights:
    return np.hstack([vectors.astype(np.float64), np.ones((len(vectors), 1))])


def _softmax(scores: Weights) -> Weights:
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Weights = raised / raised.sum(axis=1, keepdims=True)
    return shares
