"""A second pair of ears: hears from what a message means, by its embedding, what the rules have no words for.

A linear classifier over sentence embeddings, trained from the phrases of `config/safety/phrases/`; no lot is
drawn. It listens where the rules heard nothing, and so can only raise what they said; where there is no
embedding model, the rules do without. An embedding is deaf to a 'no' or a 'years ago', so the ears are silent
where the rules heard danger spoken of and taken back.
"""

import hashlib
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

import numpy as np

from agents.linear import Linear, train
from agents.ports import Embedded, Embedder, Vectors
from agents.safety.guard import Guard, Verdict

Class: TypeAlias = Literal["none", "emergency", "crisis"]
CLASSES: Final[tuple[Class, ...]] = ("none", "emergency", "crisis")
FILES: Final[Mapping[str, Class]] = {
    "calm.toml": "none",
    "ordinary.toml": "none",
    "emergencies.toml": "emergency",
    "crises.toml": "crisis",
}
RETOLD: Final = "retold.toml"
"""Has a table for each class, in the words the ears are given for a few that say little: the extractor's."""
SURE: Final = 0.9
"""How probable danger must be before the ears raise anything; below, some ordinary replies would do so."""
TIER: Final = 2
RULE: Final = "ears"


class Ears:
    """What was learned, and the model that makes vectors of messages."""

    def __init__(self, embedder: Embedder, learned: Linear, guard: Guard, sure: float = SURE) -> None:
        self._embedder, self._learned, self._guard, self._sure = embedder, learned, guard, sure

    def hear(self, embedded: Embedded) -> Verdict:
        """What a message means, by the vector that its turn has of it, if danger is probable enough."""
        (shares,) = self._learned.probabilities(embedded.vector[np.newaxis])
        none, emergency, crisis = (float(share) for share in shares)
        if 1 - none < self._sure or self._guard.takes_back(embedded.text):
            return Verdict()
        return Verdict("crisis" if crisis > emergency else "emergency", TIER, (RULE,))

    def check(self, text: str) -> Verdict:
        """The same of a text that nobody has embedded. Computes for some milliseconds."""
        return self.hear(Embedded(text, self._embedder.embed([text])[0]))

    def shares(self, texts: Sequence[str]) -> Vectors:
        """How probable each class is, a row per text."""
        return self._learned.probabilities(self._embedder.embed(texts))


def load(folder: Path, embedder: Embedder, cache: Path, guard: Guard) -> Ears:
    """The ears for these phrases and this model: from the cache, or learned, which takes a minute."""
    phrases = _phrases(folder)
    kept = cache / f"ears-{_digest(phrases, embedder.name)}.npz"
    learned = _read(kept)
    if learned is None:
        learned = learn(embedder, phrases)
        cache.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(f".{os.getpid()}.npz")  # several processes may learn at once
        np.savez(part, weights=learned.weights, bias=learned.bias, sharpness=np.float64(learned.sharpness))
        part.replace(kept)
    return Ears(embedder, learned, guard)


def learn(embedder: Embedder, phrases: Mapping[str, Class]) -> Linear:
    """The classifier that tells the phrases apart."""
    classes = np.array([CLASSES.index(each) for each in phrases.values()], dtype=np.int64)
    return train(embedder.embed(list(phrases)), classes, len(CLASSES))[0]


def _read(kept: Path) -> Linear | None:
    try:
        with np.load(kept, allow_pickle=False) as file:
            return Linear(file["weights"], file["bias"], float(file["sharpness"]))
    except (OSError, ValueError, KeyError, EOFError):
        return None


def _phrases(folder: Path) -> dict[str, Class]:
    found: dict[str, Class] = {}
    for name, kind in FILES.items():
        for table in tomllib.loads((folder / name).read_text(encoding="utf-8")).values():
            found |= dict.fromkeys(table["phrases"], kind)
    retold = tomllib.loads((folder / RETOLD).read_text(encoding="utf-8"))
    for kind in CLASSES:
        found |= dict.fromkeys(retold[kind]["phrases"], kind)
    return found


def _digest(phrases: Mapping[str, Class], model: str) -> str:
    parts = [model, *(f"{kind} {text}" for text, kind in phrases.items())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
