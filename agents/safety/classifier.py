"""A second pair of ears: hears from what a message means, by its embedding, what the rules have no words for.

A message is compared with every phrase of `config/safety/phrases/`, and each says of what class it is with
the weight it was given: kernel ridge regression over sentence embeddings, solved at once, so no lot is drawn.
An embedding is nearly deaf to small words that turn a meaning round ("no", "lol", "in 2010"), so the words
that a message shares with a phrase count a little beside it.
It listens where the rules heard nothing, and so can only raise what they said; where there is no embedding
model, the rules do without.
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
from agents.safety.guard import MEANT, Verdict

Class: TypeAlias = Literal["none", "emergency", "crisis"]
CLASSES: Final[tuple[Class, ...]] = ("none", "emergency", "crisis")
FILES: Final[Mapping[str, Class]] = {
    "calm.toml": "none",
    "ordinary.toml": "none",
    "emergencies.toml": "emergency",
    "crises.toml": "crisis",
}
FOR_THE_EARS: Final = ("retold.toml", "sideways.toml", "voices.toml")
"""Have a table for each class: in the words the ears are given for messages that say little, the extractor's;
and in those of people who tell of danger without its words, use its words without danger, or speak of
anything as all sorts of people do."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """How much a message must be like one kind of danger, or like both together, before the ears raise it."""

    emergency: float = 0.6
    crisis: float = 0.5
    either: float = 0.7

    def reached(self, emergency: float, crisis: float) -> bool:
        """Whether a message with these shares is to be raised."""
        return emergency >= self.emergency or crisis >= self.crisis or emergency + crisis >= self.either

    def surer(self) -> "Threshold":
        """How much a sentence must be so that is heard alone: what stands beside it may make it harmless."""
        return Threshold(*(share + _FOR_A_PART for share in (self.emergency, self.crisis, self.either)))


_FOR_A_PART: Final = 0.05
"""Of 100 hard negatives by others 11.8 were raised without parts, 14.1 with parts at no more, so 13.2."""
SURE: Final = Threshold()
"""Where the rules heard nothing in a quarter of `voices.toml`, ears that had learned all else raised 5 of 100
calm phrases, 86 of 100 emergencies and 79 of 100 crises; by the sum alone, 66 of 100 crises."""

_NARROWNESS: Final = 2.0
"""How fast a phrase has less to say as a message is less like it; flat from 1.4 to 3, by the same trial."""
_RELUCTANCE: Final = 0.1
"""How much the phrases of a class must agree before one of another class among them is believed."""
_WORDS_COUNT: Final = 0.3
"""How much shared words count beside the meaning; from 0.1 to 1 better than none, for phrases of another."""
_RAREST: Final = 3
"""In how many phrases a word, or two in a row, must stand to count."""
_WORD: Final = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+|[?!]")
_NUMBER: Final = "0"
_EDGE: Final = "."
_BETWEEN: Final = re.compile(r"(?<=[.!?;:])\s+|\n+|\s+[-\u2013\u2014]+\s+|\s*\u2026\s*")
_FEWEST_WORDS: Final = 3
_MOST_PARTS: Final = 8
RULE: Final = "ears"


@dataclass(frozen=True, slots=True)
class Learned:
    """The phrases as vectors, and what each says of the classes; the same of the words they share.

    A row for a phrase or for a word. `rarity` is how much a word weighs in a message that has it.
    """

    phrases: Vectors
    says: Vectors
    words: NDArray[np.str_]
    rarity: Vectors
    words_say: Vectors


class DangerClassifier:
    """What was learned, and the model that makes vectors of messages."""

    def __init__(self, embedder: Embedder, learned: Learned, sure: Threshold = SURE) -> None:
        self._embedder, self._learned, self.sure = embedder, learned, sure
        self._places = {word: place for place, word in enumerate(learned.words.tolist())}

    def hear(self, embedded: Embedded) -> Verdict:
        """What a message means, by the vectors that its turn has of it, if it is enough like danger.

        So does a sentence of it alone that is a little more so: whatever is said beside it, and to whom.
        """
        verdict = self._heard(embedded, self.sure)
        for part in () if verdict.flagged else embedded.parts:
            verdict = verdict.raised_by(self._heard(part, self.sure.surer()))
        return verdict

    def check(self, text: str) -> Verdict:
        """The same of a text that nobody has embedded. Computes for some milliseconds."""
        parts = sentences(text)
        first, *rest = map(Embedded, (text, *parts), self._embedder.embed([text, *parts]))
        return self.hear(replace(first, parts=tuple(rest)))

    def _heard(self, embedded: Embedded, sure: Threshold) -> Verdict:
        _, emergency, crisis = (float(share) for share in self._shares(embedded.text, embedded.vector))
        if not sure.reached(emergency, crisis):
            return Verdict()
        return Verdict("crisis" if crisis > emergency else "emergency", MEANT, (RULE,))

    def shares(self, texts: Sequence[str]) -> Vectors:
        """How much each text is like each class, a row per text: about 1 for its own, 0 if unlike all."""
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
    """The sentences of a text that has several, without those that say too little; not endlessly many."""
    parts = [part for part in _BETWEEN.split(text) if part]
    told = [part for part in parts if len(part.split()) >= _FEWEST_WORDS] if len(parts) > 1 else []
    return told if len(told) <= _MOST_PARTS else told[: _MOST_PARTS // 2] + told[-_MOST_PARTS // 2 :]


def load(folder: Path, embedder: Embedder, cache: Path) -> DangerClassifier:
    """The ears for these phrases and this model: from the cache, or learned, which takes a minute."""
    phrases = _phrases(folder)
    kept = cache / f"ears-{_digest(phrases, embedder.name)}.npz"
    learned = _read(kept)
    if learned is None:
        learned = learn(embedder, phrases)
        cache.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(f".{os.getpid()}.npz")  # several processes may learn at once
        np.savez(part, **{field.name: getattr(learned, field.name) for field in fields(learned)})
        part.replace(kept)
    return DangerClassifier(embedder, learned)


def learn(embedder: Embedder, phrases: Mapping[str, Class]) -> Learned:
    """What each phrase says, so that together they tell the classes apart; danger weighs as much as calm."""
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
    """The words that several phrases have, how rare each is, and which a phrase has, a row of length 1."""
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
    """The words of a text, and every two that stand together; where it begins and ends counts, too."""
    found = _WORD.findall(text.lower().replace("\u2019", "'"))
    words = [_EDGE, *(_NUMBER if word.isdigit() else word for word in found), _EDGE]
    pairs = (f"{one} {other}" for one, other in pairwise(words))
    return list(dict.fromkeys((*words[1:-1], *pairs)))


def _likeness(some: Vectors, others: Vectors) -> Vectors:
    """1 for the same vector, and ever less the further they are apart; all are of length 1."""
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
    for name in FOR_THE_EARS:
        tables = tomllib.loads((folder / name).read_text(encoding="utf-8"))
        for kind in CLASSES:
            found |= dict.fromkeys(tables[kind]["phrases"], kind)
    return found


def _digest(phrases: Mapping[str, Class], model: str) -> str:
    how = f"{_NARROWNESS} {_RELUCTANCE} {_WORDS_COUNT} {_RAREST} {_WORD.pattern}"
    parts = [model, how, *(f"{kind} {text}" for text, kind in phrases.items())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
