"""The danger classifier: how much a text is like danger, by its meaning.

It has learned from the examples in `config/safety/phrases/`, most of which are ordinary life. A text is
compared with a part of them, the landmarks, by kernel ridge regression over sentence embeddings. The
landmarks are chosen by a digest and the solution is exact, so nothing is random.
An embedding hardly changes with small words that reverse a meaning ("no", "lol", "in 2010"). So the words
that a text shares with the examples count, too, and so do the findings of the rules, each with whether
something retracts it: "chest pain" and "chest pain, years ago" differ in that.
"""

import hashlib
import os
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agents.ports import Embedder, Vectors
from agents.safety.rules.compiled import fingerprint

Class: TypeAlias = Literal["none", "emergency", "crisis"]
CLASSES: Final[tuple[Class, ...]] = ("none", "emergency", "crisis")
FILES: Final[Mapping[str, Class]] = {
    "calm.toml": "none",
    "ordinary.toml": "none",
    "emergencies.toml": "emergency",
    "crises.toml": "crisis",
}
"""The files whose phrases the rules are tested with, too, and the class of each."""

Findings: TypeAlias = Callable[[str], Sequence[str]]
"""Gives the names of what the rules find in a text."""

_LANDMARKS: Final[Mapping[Class, int]] = {"none": 3200, "emergency": 1500, "crisis": 1500}
"""With how many examples of each class a text is compared. Half as many found a tenth fewer crises."""
_BLOCK: Final = 2_000
"""How many examples are compared with the landmarks at a time while learning, to save memory."""
_NARROWNESS: Final = 4.0
"""How quickly the influence of an example falls with distance. Chosen among 2 to 6."""
_RIDGE: Final = 0.3
"""How strongly the solution is smoothed. Hardly any effect between 0.1 and 1."""
_WORDS_COUNT: Final = 0.6
"""Weight of shared words and findings beside the meaning."""
_RAREST: Final = 3
"""Minimum number of examples that must contain a word or a pair of words for it to count."""
_WORD: Final = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+|[?!]")
_NUMBER: Final = "0"
_EDGE: Final = "."
_BETWEEN: Final = re.compile(r"(?<=[.!?;:])\s+|\n+|\s+[-\u2013\u2014]+\s+|\s*\u2026\s*")
_JOINT: Final = re.compile(r",\s+|\s+(?=(?:and|but|so|because|then|also|plus|now)\b)", re.IGNORECASE)
_FEWEST_WORDS: Final = 3
_LONGEST_PART: Final = 30
"""A longer sentence is divided where it joins two thoughts."""
MOST_PARTS: Final = 200
"""How many parts of a text are looked at; more than any message that people write has."""


OTHER_KIND: Final = 0.25
"""How much the likeness to an emergency counts where a crisis is asked about, and the other way round."""


class Likeness(NamedTuple):
    """How much a text is like an emergency and like a crisis: about 1 for an example, 0 for other texts."""

    emergency: float
    crisis: float

    @property
    def danger(self) -> float:
        """How much it is like any danger: the greater likeness, and half of the lesser one."""
        return max(self) + 0.5 * max(min(self), 0.0)

    def of(self, kind: Class) -> float:
        """How much it is like this kind of danger. The other kind counts a little."""
        own, other = (self.crisis, self.emergency) if kind == "crisis" else self
        return own + OTHER_KIND * max(other, 0.0)


@dataclass(frozen=True, slots=True)
class Learned:
    """What was learned: the landmarks' vectors and the words, each with its weight for the two dangers.

    `rarity` is the weight of a word within a text.
    """

    landmarks: Vectors
    landmark_weights: Vectors
    words: NDArray[np.str_]
    rarity: Vectors
    word_weights: Vectors


class DangerClassifier:
    """Compares texts with what was learned. Safe to use from several threads."""

    def __init__(self, embedder: Embedder, learned: Learned, findings: Findings) -> None:
        self._embedder, self._learned, self._findings = embedder, learned, findings
        self._places = {word: place for place, word in enumerate(learned.words.tolist())}

    def likeness(self, texts: Sequence[str]) -> list[Likeness]:
        """How much each text is like danger. Computes for one or two milliseconds per text."""
        learned, different = self._learned, list(dict.fromkeys(texts))
        scores = _kernel(self._embedder.embed(different), learned.landmarks) @ learned.landmark_weights
        for row, text in zip(scores, different, strict=True):
            places = [self._places[word] for word in _words(text, self._findings) if word in self._places]
            if (length := np.linalg.norm(learned.rarity[places])) > 0:
                row += learned.rarity[places] / length @ learned.word_weights[places]
        found = {
            text: Likeness(float(row[0]), float(row[1])) for text, row in zip(different, scores, strict=True)
        }
        return [found[text] for text in texts]


def parts_of(text: str) -> list[str]:
    """The sentences of a text, long ones divided into thoughts; without those of one or two words.

    A text that is one short sentence has one part: itself.
    """
    parts: list[str] = []
    for sentence in filter(str.strip, _BETWEEN.split(text)):
        parts += _thoughts(sentence) if len(sentence.split()) > _LONGEST_PART else [sentence.strip()]
    parts = [part for part in parts if len(part.split()) >= _FEWEST_WORDS] or [text.strip()]
    if len(parts) > MOST_PARTS:
        joined = -(-len(parts) // MOST_PARTS)
        parts = [" ".join(parts[at : at + joined]) for at in range(0, len(parts), joined)]
    return parts


def _thoughts(sentence: str) -> list[str]:
    """A long sentence in pieces of at most `_LONGEST_PART` words, cut between thoughts if possible."""
    pieces: list[str] = []
    for thought in _JOINT.split(sentence):
        words = thought.split()
        if pieces and len(pieces[-1].split()) + len(words) <= _LONGEST_PART:
            pieces[-1] = f"{pieces[-1]} {thought.strip()}"
        else:
            starts = range(0, len(words), _LONGEST_PART)
            pieces += [" ".join(words[start : start + _LONGEST_PART]) for start in starts]
    return pieces


def load(folder: Path, embedder: Embedder, cache: Path, findings: Findings) -> DangerClassifier:
    """The classifier for the examples in `folder`/phrases, the rules in `folder` and this model.

    It is read from the cache, or learned, which takes a minute.
    """
    examples = _examples(folder / "phrases")
    file = cache / f"classifier-{_digest(examples, embedder.name, fingerprint(folder))}.npz"
    learned = _read(file)
    if learned is None:
        learned = learn(embedder, examples, findings)
        cache.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}.npz")  # several processes may learn at once
        np.savez(part, **{field.name: getattr(learned, field.name) for field in fields(learned)})
        part.replace(file)
    return DangerClassifier(embedder, learned, findings)


def learn(embedder: Embedder, examples: Mapping[str, Class], findings: Findings) -> Learned:
    """Learn to tell the classes of these examples apart."""
    texts, classes = list(examples), list(examples.values())
    vectors = embedder.embed(texts)
    chosen = _landmarks(examples)
    words, rarity, rows = _bags([_words(text, findings) for text in texts])
    target = np.array([[each == "emergency", each == "crisis"] for each in classes], dtype=np.float64)
    among = _with_words(vectors[chosen], [rows[at] for at in chosen], vectors[chosen], rows, chosen)
    inner = np.float64(_RIDGE) * among.astype(np.float64)
    outer = np.zeros((len(chosen), 2))
    for start in range(0, len(texts), _BLOCK):
        block = slice(start, start + _BLOCK)
        kernel = _with_words(vectors[block], rows[block], vectors[chosen], rows, chosen)
        inner += kernel.T @ kernel
        outer += kernel.T @ target[block]
    inner[np.diag_indices_from(inner)] += 1e-3  # landmarks may be nearly equal
    weights = np.linalg.solve(inner, outer)
    word_weights = np.zeros((len(words), 2))
    for weight, row in zip(weights, (rows[at] for at in chosen), strict=True):
        for place, share in row:
            word_weights[place] += _WORDS_COUNT * share * weight
    return Learned(
        vectors[chosen],
        weights.astype(np.float32),
        np.array(words, dtype=np.str_),
        rarity,
        word_weights.astype(np.float32),
    )


def _landmarks(examples: Mapping[str, Class]) -> list[int]:
    """The places of the examples that texts are compared with: in each class the lowest digests."""
    by_class: dict[Class, list[tuple[bytes, int]]] = defaultdict(list)
    for place, (text, kind) in enumerate(examples.items()):
        by_class[kind].append((hashlib.blake2b(text.encode()).digest(), place))
    return [place for kind, some in by_class.items() for _, place in sorted(some)[: _LANDMARKS[kind]]]


_Row: TypeAlias = list[tuple[int, float]]
"""The words of a text, by their places in the vocabulary, each with its share; the squares add up to 1."""


def _bags(bags: Sequence[Sequence[str]]) -> tuple[list[str], Vectors, list[_Row]]:
    """The words that several texts have, how rare each is, and the words of each text."""
    counts = Counter(word for bag in bags for word in bag)
    words = sorted(word for word, count in counts.items() if count >= _RAREST)
    rarity = np.log(len(bags) / np.array([counts[word] for word in words], dtype=np.float32))
    places = {word: place for place, word in enumerate(words)}
    rows: list[_Row] = []
    for bag in bags:
        known = [places[word] for word in bag if word in places]
        length = float(np.linalg.norm(rarity[known])) or 1.0
        rows.append([(place, float(rarity[place]) / length) for place in known])
    return words, rarity, rows


def _with_words(
    vectors: Vectors, own: Sequence[_Row], landmarks: Vectors, rows: Sequence[_Row], chosen: Sequence[int]
) -> Vectors:
    """The likeness of texts to the landmarks, by meaning and by shared words.

    The words are added one by one; as a dense matrix they would not fit into memory.
    """
    kernel = _kernel(vectors, landmarks)
    texts_with: dict[int, list[tuple[int, float]]] = defaultdict(list)
    landmarks_with: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for number, row in enumerate(own):
        for place, share in row:
            texts_with[place].append((number, share))
    for column, number in enumerate(chosen):
        for place, share in rows[number]:
            landmarks_with[place].append((column, share))
    for place, some in texts_with.items():
        if place not in landmarks_with:
            continue
        numbers, shares = zip(*some, strict=True)
        columns, landmark_shares = zip(*landmarks_with[place], strict=True)
        shared = _WORDS_COUNT * np.outer(shares, landmark_shares)
        kernel[np.ix_(numbers, columns)] += shared.astype(np.float32)
    return kernel


def _words(text: str, findings: Findings) -> list[str]:
    """The words of a text, every two adjacent ones, and its findings.

    The start and the end of the text count as words.
    """
    found = _WORD.findall(text.lower().replace("\u2019", "'"))
    words = [_EDGE, *(_NUMBER if word.isdigit() else word for word in found), _EDGE]
    pairs = (f"{one} {other}" for one, other in pairwise(words))
    return list(dict.fromkeys((*words[1:-1], *pairs, *findings(text))))


def _kernel(vectors: Vectors, landmarks: Vectors) -> Vectors:
    """1 for the same vector, and ever less the further two are apart; all have length 1."""
    kernel: Vectors = np.exp(np.float32(_NARROWNESS) * (vectors @ landmarks.T - 1))
    return kernel


def _read(file: Path) -> Learned | None:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return Learned(**{field.name: arrays[field.name] for field in fields(Learned)})
    except (OSError, ValueError, KeyError, EOFError):
        return None


def _examples(folder: Path) -> dict[str, Class]:
    """The texts of a folder with their classes: four files have one class, the others a table for each."""
    found: dict[str, Class] = {}
    for path in sorted(folder.glob("*.toml")):
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        for name, table in tables.items():
            kind = FILES.get(path.name) or next((each for each in CLASSES if each == name), None)
            if kind is not None:
                found |= dict.fromkeys(table["phrases"], kind)
    return found


def _digest(examples: Mapping[str, Class], model: str, rules: str) -> str:
    how = f"{_LANDMARKS} {_NARROWNESS} {_RIDGE} {_WORDS_COUNT} {_RAREST} {_WORD.pattern}"
    parts = [model, rules, how, *(f"{kind} {text}" for text, kind in examples.items())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
