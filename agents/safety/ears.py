"""A second pair of ears: hears from what a message means, by its embedding, what the rules have no words for.

A message is compared with every phrase of `config/safety/phrases/`, and each says of what class it is with
the weight it was given: kernel ridge regression over sentence embeddings, solved at once, so no lot is drawn.
It listens where the rules heard nothing, and so can only raise what they said; where there is no embedding
model, the rules do without.
"""

import hashlib
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

import numpy as np

from agents.ports import Embedded, Embedder, Vectors
from agents.safety.guard import Verdict

Class: TypeAlias = Literal["none", "emergency", "crisis"]
CLASSES: Final[tuple[Class, ...]] = ("none", "emergency", "crisis")
FILES: Final[Mapping[str, Class]] = {
    "calm.toml": "none",
    "ordinary.toml": "none",
    "emergencies.toml": "emergency",
    "crises.toml": "crisis",
}
FOR_THE_EARS: Final = ("retold.toml", "sideways.toml")
"""Have a table for each class: in the words the ears are given for messages that say little, the extractor's;
and in those of people who tell of danger without its words, or use its words without danger."""
SURE: Final = 0.62
"""How much a message must be like danger before the ears raise anything. Each phrase judged by all others, 35
in 1,000 calm ones would be raised, and 87 % of emergencies and 80 % of crises."""

_NARROWNESS: Final = 2.0
"""How fast a phrase has less to say as a message is less like it; flat from 1.4 to 3, by the same trial."""
_RELUCTANCE: Final = 0.1
"""How much the phrases of a class must agree before one of another class among them is believed."""
TIER: Final = 2
RULE: Final = "ears"


@dataclass(frozen=True, slots=True)
class Learned:
    """The phrases as vectors, and what each says of the classes, a row for a phrase."""

    phrases: Vectors
    says: Vectors

    def shares(self, vectors: Vectors) -> Vectors:
        """How much each vector is like each class: about 1 for its own, 0 for all when unlike all."""
        shares: Vectors = _likeness(vectors, self.phrases) @ self.says
        return shares


class Ears:
    """What was learned, and the model that makes vectors of messages."""

    def __init__(self, embedder: Embedder, learned: Learned, sure: float = SURE) -> None:
        self._embedder, self._learned, self._sure = embedder, learned, sure

    def hear(self, embedded: Embedded) -> Verdict:
        """What a message means, by the vector that its turn has of it, if it is enough like danger."""
        (shares,) = self._learned.shares(embedded.vector[np.newaxis])
        _, emergency, crisis = (float(share) for share in shares)
        if emergency + crisis < self._sure:
            return Verdict()
        return Verdict("crisis" if crisis > emergency else "emergency", TIER, (RULE,))

    def check(self, text: str) -> Verdict:
        """The same of a text that nobody has embedded. Computes for some milliseconds."""
        return self.hear(Embedded(text, self._embedder.embed([text])[0]))

    def shares(self, texts: Sequence[str]) -> Vectors:
        """How much each text is like each class, a row per text."""
        return self._learned.shares(self._embedder.embed(texts))


def load(folder: Path, embedder: Embedder, cache: Path) -> Ears:
    """The ears for these phrases and this model: from the cache, or learned, which takes a minute."""
    phrases = _phrases(folder)
    kept = cache / f"ears-{_digest(phrases, embedder.name)}.npz"
    learned = _read(kept)
    if learned is None:
        learned = learn(embedder, phrases)
        cache.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(f".{os.getpid()}.npz")  # several processes may learn at once
        np.savez(part, phrases=learned.phrases, says=learned.says)
        part.replace(kept)
    return Ears(embedder, learned)


def learn(embedder: Embedder, phrases: Mapping[str, Class]) -> Learned:
    """What each phrase says, so that together they tell the classes apart; danger weighs as much as calm."""
    vectors = embedder.embed(list(phrases))
    classes = np.array([CLASSES.index(each) for each in phrases.values()], dtype=np.int64)
    alike = _likeness(vectors, vectors)
    is_calm = classes == CLASSES.index("none")
    share = np.where(is_calm, np.count_nonzero(is_calm), np.count_nonzero(~is_calm)) / len(classes)
    alike[np.diag_indices_from(alike)] += _RELUCTANCE * 2 * share.astype(np.float32)
    return Learned(vectors, np.linalg.solve(alike, np.eye(len(CLASSES), dtype=np.float32)[classes]))


def _likeness(some: Vectors, others: Vectors) -> Vectors:
    """1 for the same vector, and ever less the further they are apart; all are of length 1."""
    likeness: Vectors = np.exp(np.float32(_NARROWNESS) * (some @ others.T - 1))
    return likeness


def _read(kept: Path) -> Learned | None:
    try:
        with np.load(kept, allow_pickle=False) as file:
            return Learned(file["phrases"], file["says"])
    except (OSError, ValueError, KeyError, EOFError):
        return None


def _phrases(folder: Path) -> dict[str, Class]:
    found: dict[str, Class] = {}
    for name, kind in FILES.items():
        for table in tomllib.loads((folder / name).read_text(encoding="utf-8")).values():
            found |= dict.fromkeys(table["phrases"], kind)
    for name in FOR_THE_EARS:
        tables = tomllib.loads((folder / name).read_text(encoding="utf-8"))
        for kind in CLASSES:
            found |= dict.fromkeys(tables[kind]["phrases"], kind)
    return found


def _digest(phrases: Mapping[str, Class], model: str) -> str:
    parts = [model, *(f"{kind} {text}" for text, kind in phrases.items())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
