"""The danger classifier: finds danger by the meaning of a message, in words that no rule has.

A message is compared with every phrase of `config/safety/phrases/`, by kernel ridge regression over sentence
embeddings. The solution is exact, so nothing is random.
An embedding hardly changes with small words that reverse a meaning ("no", "lol", "in 2010"). So the words
that a message shares with a phrase count, too.
The classifier can only raise the verdict of the rules, never lower it. Without an embedding model, the rules
work alone.
"""

import hashlib
import os
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agents.ports import Embedded, Embedder, Vectors
from agents.safety.verdict import MEANT, Verdict

Class: TypeAlias = Literal["none", "emergency", "crisis"]
CLASSES: Final[tuple[Class, ...]] = ("none", "emergency", "crisis")
FILES: Final[Mapping[str, Class]] = {
    "calm.toml": "none",
    "ordinary.toml": "none",
    "emergencies.toml": "emergency",
    "crises.toml": "crisis",
}
FILES_BY_CLASS: Final = ("retold.toml", "sideways.toml", "voices.toml")
"""Files with a table per class, for the classifier only. `retold.toml` has enriched messages; `sideways.toml`
has danger without its usual words, and those words without danger; `voices.toml` has anything, as all kinds
of people write it."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """Minimum likeness of a message to emergencies, to crises, or to both together, to be raised."""

    emergency: float = 0.6
    crisis: float = 0.5
    either: float = 0.7

    def reached(self, emergency: float, crisis: float) -> bool:
        """Whether a message with these likenesses is raised."""
        return emergency >= self.emergency or crisis >= self.crisis or emergency + crisis >= self.either

    def surer(self) -> "Threshold":
        """A higher threshold for a single sentence, since the sentences beside it may make it harmless."""
        return Threshold(*(share + _FOR_A_PART for share in (self.emergency, self.crisis, self.either)))


_FOR_A_PART: Final = 0.05
"""Added to the threshold for a single sentence. Of 100 hard negatives, 11.8 were raised without judging
sentences alone, 14.1 with this at 0, and 13.2 with this value."""
SURE: Final = Threshold()
"""Measured on phrases of a quarter of `voices.toml` in which the rules found nothing, trained on the rest:
5 of 100 calm phrases, 86 of 100 emergencies and 79 of 100 crises are raised. With a threshold for the sum
alone, 66 of 100 crises are raised."""

_NARROWNESS: Final = 2.0
"""How fast the influence of a phrase falls with its distance. Results are the same from 1.4 to 3."""
_RELUCTANCE: Final = 0.1
"""Regularisation: how strongly a phrase that contradicts its neighbours is ignored."""
_WORDS_COUNT: Final = 0.3
"""The weight of shared words beside the embedding. From 0.1 to 1 it improves results on unseen phrases."""
_RAREST: Final = 3
"""Minimum number of phrases that contain a word, or a pair of words, for it to count."""
_WORD: Final = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+|[?!]")
_NUMBER: Final = "0"
_EDGE: Final = "."
_BETWEEN: Final = re.compile(r"(?<=[.!?;:])\s+|\n+|\s+[-\u2013\u2014]+\s+|\s*\u2026\s*")
_FEWEST_WORDS: Final = 3
_MOST_PARTS: Final = 8
RULE: Final = "ears"
"""The id of the classifier's rule. It keeps this name because stored safety events and alerts contain it."""


@dataclass(frozen=True, slots=True)
class Learned:
    """The phrases as vectors with the weight of each for each class, and the same for the words they share.

    One row per phrase or word. `rarity` is the weight of a word in a message that contains it.
    """

    phrases: Vectors
    says: Vectors
    words: NDArray[np.str_]
    rarity: Vectors
    words_say: Vectors


class DangerClassifier:
    """Compares messages with the learned phrases, with an embedding model."""

    def __init__(self, embedder: Embedder, learned: Learned, sure: Threshold = SURE) -> None:
        self._embedder, self._learned, self.sure = embedder, learned, sure
        self._places = {word: place for place, word in enumerate(learned.words.tolist())}

    def hear(self, embedded: Embedded) -> Verdict:
        """The verdict on a message by the vectors of its turn.

        If the whole message is not flagged, each of its sentences is judged alone, with a higher threshold.
        """
        verdict = self._heard(embedded, self.sure)
        for part in () if verdict.flagged else embedded.parts:
            verdict = verdict.raised_by(self._heard(part, self.sure.surer()))
        return verdict

    def check(self, text: str) -> Verdict:
        """Like `hear`, for a text that is not embedded yet. Computes for some milliseconds."""
        parts = sentences(text)
        first, *rest = map(Embedded, (text, *parts), self._embedder.embed([text, *parts]))
        return self.hear(replace(first, parts=tuple(rest)))

    def _heard(self, embedded: Embedded, sure: Threshold) -> Verdict:
        _, emergency, crisis = (float(share) for share in self._shares(embedded.text, embedded.vector))
        if not sure.reached(emergency, crisis):
            return Verdict()
        return Verdict("crisis" if crisis > emergency else "emergency", MEANT, (RULE,), "possible")

    def shares(self, texts: Sequence[str]) -> Vectors:
        """The likeness of each text to each class, a row per text: about 1 for its class, 0 if unlike all."""
        vectors = self._embedder.embed(texts)
        return np.array([self._shares(text, vector) for text, vector in zip(texts, vectors, strict=True)])

    def _shares(self, text: str, vector: Vectors) -> Vectors:
        learned = self._learned
        shares: Vectors = _likeness(vector, learned.phrases) @ learned.says
        said = [self._places[word] for word in _said(text) if word in self._places]
        if (length := np.linalg.norm(learned.rarity[said])) > 0:
            shares += learned.rarity[said] / length @ learned.words_say[said]
        return shares


def sentences(text: str) -> list[str]:
    """The sentences of a text with several, without very short ones; at most `_MOST_PARTS`."""
    parts = [part for part in _BETWEEN.split(text) if part]
    long = [part for part in parts if len(part.split()) >= _FEWEST_WORDS] if len(parts) > 1 else []
    return long if len(long) <= _MOST_PARTS else long[: _MOST_PARTS // 2] + long[-_MOST_PARTS // 2 :]


def load(folder: Path, embedder: Embedder, cache: Path) -> DangerClassifier:
    """The classifier for these phrases and this model: from the cache, or trained in about a minute."""
    phrases = _phrases(folder)
    kept = cache / f"classifier-{_digest(phrases, embedder.name)}.npz"
    learned = _read(kept)
    if learned is None:
        learned = learn(embedder, phrases)
        cache.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(f".{os.getpid()}.npz")  # several processes may train at the same time
        np.savez(part, **{field.name: getattr(learned, field.name) for field in fields(learned)})
        part.replace(kept)
    return DangerClassifier(embedder, learned)


def learn(embedder: Embedder, phrases: Mapping[str, Class]) -> Learned:
    """Train on the phrases. Dangerous and calm phrases together have equal weight."""
    vectors = embedder.embed(list(phrases))
    classes = np.array([CLASSES.index(each) for each in phrases.values()], dtype=np.int64)
    words, rarity, said = _words_of(list(phrases))
    alike: Vectors = said @ said.T
    alike *= np.float32(_WORDS_COUNT)
    alike += _likeness(vectors, vectors)
    is_calm = classes == CLASSES.index("none")
    share = np.where(is_calm, np.count_nonzero(is_calm), np.count_nonzero(~is_calm)) / len(classes)
    alike[np.diag_indices_from(alike)] += _RELUCTANCE * 2 * share.astype(np.float32)
    says = np.linalg.solve(alike, np.eye(len(CLASSES), dtype=np.float32)[classes])
    return Learned(vectors, says, words, rarity, np.float32(_WORDS_COUNT) * (said.T @ says))


def _words_of(phrases: Sequence[str]) -> tuple[NDArray[np.str_], Vectors, Vectors]:
    """The words that several phrases share, their rarity, and a row of length 1 per phrase."""
    said = [_said(phrase) for phrase in phrases]
    counts = Counter(word for each in said for word in each)
    words = sorted(word for word, count in counts.items() if count >= _RAREST)
    rarity = np.log(len(phrases) / np.array([counts[word] for word in words], dtype=np.float32))
    places = {word: place for place, word in enumerate(words)}
    rows = np.zeros((len(phrases), len(words)), dtype=np.float32)
    for row, each in zip(rows, said, strict=True):
        known = [places[word] for word in each if word in places]
        row[known] = rarity[known]
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(lengths > 0, lengths, 1)
    return np.array(words, dtype=np.str_), rarity, rows


def _said(text: str) -> list[str]:
    """The words of a text and all pairs of adjacent words, including the pairs at its start and its end."""
    found = _WORD.findall(text.lower().replace("\u2019", "'"))
    words = [_EDGE, *(_NUMBER if word.isdigit() else word for word in found), _EDGE]
    pairs = (f"{one} {other}" for one, other in pairwise(words))
    return list(dict.fromkeys((*words[1:-1], *pairs)))


def _likeness(some: Vectors, others: Vectors) -> Vectors:
    """1 for equal vectors, falling with their distance. All vectors have length 1."""
    likeness: Vectors = np.exp(np.float32(_NARROWNESS) * (some @ others.T - 1))
    return likeness


def _read(kept: Path) -> Learned | None:
    try:
        with np.load(kept, allow_pickle=False) as file:
            return Learned(**{field.name: file[field.name] for field in fields(Learned)})
    except (OSError, ValueError, KeyError, EOFError):
        return None


def _phrases(folder: Path) -> dict[str, Class]:
    found: dict[str, Class] = {}
    for name, kind in FILES.items():
        for table in tomllib.loads((folder / name).read_text(encoding="utf-8")).values():
            found |= dict.fromkeys(table["phrases"], kind)
    for name in FILES_BY_CLASS:
        tables = tomllib.loads((folder / name).read_text(encoding="utf-8"))
        for kind in CLASSES:
            found |= dict.fromkeys(tables[kind]["phrases"], kind)
    return found


def _digest(phrases: Mapping[str, Class], model: str) -> str:
    how = f"{_NARROWNESS} {_RELUCTANCE} {_WORDS_COUNT} {_RAREST} {_WORD.pattern}"
    parts = [model, how, *(f"{kind} {text}" for text, kind in phrases.items())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
