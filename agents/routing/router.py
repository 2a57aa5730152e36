"""Finds the intent of a message by the examples that `agents.toml` gives for each intent.

A linear model over sentence embeddings, trained once from the examples, gives probabilities. A message unlike
all examples is out of scope. The running intent of the conversation counts as more likely, and decides
if the message says too little by itself.
"""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final
from zipfile import BadZipFile

import numpy as np

from agents.ports import Embedded, Embedder, Vectors
from agents.routing.linear import Classes, Linear, train
from agents.utterance import asks_back, refers, wishes
from agents.values import EMERGENCY, OUT_OF_SCOPE, UNCLEAR, Intent

_VERSION: Final = "1"  # of the cache file's format; part of its fingerprint
_NEAREST: Final = 3
_SHARE_OF_PROBABILITY: Final = np.float32(0.3)
_REFUSED: Final = 0.05  # the share of examples that may count as out of scope ...
_REFUSED_BESIDE_EXAMPLES: Final = 0.01  # ... and if there are out-of-scope examples as well
_NEAR_ENOUGH: Final = 0.8  # a message this near is never out of scope, even if all examples are very similar
_BATCH: Final = 256
_BARE: Final = 4  # a message of at most this many words says little by itself
_SHORT: Final = 12
_LEANING_BARE: Final = 12.0  # how much more likely the running topic is, for a message that says little
_LEANING: Final = 2.5
_LEANING_LONG: Final = 1.5
_LEANING_ASKED: Final = 8.0  # a question usually is about the running topic
_HEARD: Final = np.float32(30)  # how much more likely an emergency is if a rule found one
_NEAR_DANGER: Final = 0.5  # minimum nearness to an example of an emergency, if no rule found one
_NEGLIGIBLE: Final = 0.02
_ALARMED: Final = 0.8  # a few words are an emergency only above this probability


@dataclass(frozen=True)
class Router:
    """The trained router. Safe to use from several threads."""

    intents: tuple[str, ...]
    examples: tuple[str, ...]
    classes: Classes
    vectors: Vectors
    linear: Linear
    farthest: float
    sure_enough: float

    def route(self, embedded: Embedded, running: str | None = None) -> Intent:
        """The intent of one message. `running` is the intent of the conversation before it."""
        return self.route_all([embedded], [running])[0]

    def route_all(
        self, messages: Sequence[Embedded], running: Sequence[str | None], alarms: Sequence[bool] = ()
    ) -> list[Intent]:
        """The intents of many messages, in the same order. `alarms`: the guard flagged the message."""
        routed: list[Intent] = []
        alarms = alarms or [False] * len(messages)
        for start in range(0, len(messages), _BATCH):
            batch = messages[start : start + _BATCH]
            vectors = np.stack([embedded.vector for embedded in batch])
            probabilities = self.linear.probabilities(vectors)
            if (danger := self._numbers.get(EMERGENCY)) is not None:
                probabilities[:, danger] *= np.where(alarms[start : start + _BATCH], _HEARD, np.float32(1))
                probabilities /= probabilities.sum(axis=1, keepdims=True)
            routed += [
                self._decide(embedded, shares if heard else self._calmed(embedded, shares), before)
                for embedded, shares, before, heard in zip(
                    batch,
                    probabilities,
                    running[start : start + _BATCH],
                    alarms[start : start + _BATCH],
                    strict=True,
                )
            ]
        return routed

    def _decide(self, embedded: Embedded, shares: Vectors, running: str | None) -> Intent:
        goes_on = running in self._numbers and running not in (UNCLEAR, OUT_OF_SCOPE)
        words, asks = len(embedded.text.split()), asks_back(embedded.text)
        bare = embedded.bare or (words <= _BARE and not asks and not wishes(embedded.text))
        emergency = self._numbers.get(EMERGENCY, -1)
        alarmed = int(shares.argmax()) == emergency and (shares[emergency] > _ALARMED or not bare)
        if goes_on and not alarmed:
            said = _LEANING_ASKED if asks else _LEANING if words <= _SHORT else _LEANING_LONG
            nothing_new = (UNCLEAR, OUT_OF_SCOPE) if refers(embedded.text) and not asks else (UNCLEAR,)
            times = _LEANING_BARE if bare else said
            shares = self._leaning(shares, self._numbers[str(running)], times, nothing_new)
        ranked = np.argsort(-shares, kind="stable")
        best, second = int(ranked[0]), int(ranked[min(1, len(ranked) - 1)])
        intent, sure = self.intents[best], float(min(shares[best], 1.0))
        near, example = self._nearest(best, embedded.vector)
        like = near + float(_SHARE_OF_PROBABILITY) * sure
        far = like < self.farthest and intent != EMERGENCY
        if intent == running and bare:
            return _intent(intent, sure, "Says little by itself, so it goes on with the running topic")
        if far and intent != OUT_OF_SCOPE:
            outside = 1 - like / (2 * self.farthest) if like > 0 else 1.0  # from 0.5 at the border
            outside = max(1 - sure, outside)
            if words <= 1:
                return _intent(UNCLEAR, outside, "Too little is said to tell what it belongs to")
            return _intent(OUT_OF_SCOPE, outside, "Like none of the examples of what belongs here")
        if sure < self.sure_enough and intent != EMERGENCY:
            other = self.intents[second]
            return Intent(
                intent=UNCLEAR,
                confidence=round(1 - sure, 4),
                reasoning=f"Could belong to {intent} ({sure:.2f}) or to {other} ({shares[second]:.2f})",
                between=tuple(each for each in (intent, other) if each not in (UNCLEAR, OUT_OF_SCOPE)),
            )
        return _intent(intent, sure, f'Reads like "{example}", an example of {intent}')

    def _calmed(self, embedded: Embedded, shares: Vectors) -> Vectors:
        """The probabilities if no rule found danger: no emergency, unless its examples are the nearest of
        all and near enough."""
        danger = self._numbers.get(EMERGENCY)
        if danger is None or shares[danger] < _NEGLIGIBLE or len(shares) == 1:
            return shares
        near = [self._nearest(number, embedded.vector)[0] for number in range(len(self.intents))]
        if near[danger] >= max(_NEAR_DANGER, *near):
            return shares
        calmed = shares.copy()
        calmed[danger] = 0
        scaled: Vectors = calmed / calmed.sum()
        return scaled

    def _leaning(self, shares: Vectors, running: int, times: float, nothing_new: tuple[str, ...]) -> Vectors:
        """The probabilities with the running intent raised. Intents in `nothing_new` count for it."""
        leaning = shares.copy()
        for number in (self._numbers[each] for each in nothing_new if each in self._numbers):
            leaning[running] += leaning[number]
            leaning[number] = 0
        leaning[running] *= np.float32(times)
        scaled: Vectors = leaning / leaning.sum()
        return scaled

    def _nearest(self, intent: int, vector: Vectors) -> tuple[float, str]:
        """The mean nearness of an intent's nearest examples, and the nearest one."""
        first, vectors = self._own[intent]
        nearness = vectors @ vector
        nearest = np.argsort(-nearness, kind="stable")[:_NEAREST]
        return float(nearness[nearest].mean()), self.examples[first + int(nearest[0])]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {intent: number for number, intent in enumerate(self.intents)}

    @cached_property
    def _own(self) -> list[tuple[int, Vectors]]:
        """For each intent, the index of its first example and the vectors of its examples."""
        starts = np.searchsorted(self.classes, np.arange(len(self.intents) + 1))
        return [(int(start), self.vectors[start:end]) for start, end in pairwise(starts)]


def train_router(
    examples: Mapping[str, Sequence[str]], sure_enough: float, embedder: Embedder, kept: Path | None = None
) -> Router:
    """A router for these intents, each with at least one example.

    The trained model is cached in the folder `kept` under a fingerprint of its inputs. If the folder cannot
    be written, the model is trained again each time.
    """
    intents = tuple(examples)
    texts = tuple(text for intent in intents for text in examples[intent])
    classes = np.repeat(np.arange(len(intents)), [len(examples[intent]) for intent in intents])
    file = kept / f"router-{_fingerprint(examples, embedder)}.npz" if kept else None
    vectors, linear, farthest = (file and _read(file)) or _learn(intents, texts, classes, embedder, file)
    return Router(intents, texts, classes, vectors, linear, min(farthest, _NEAR_ENOUGH), sure_enough)


def _learn(
    intents: tuple[str, ...], texts: tuple[str, ...], classes: Classes, embedder: Embedder, file: Path | None
) -> tuple[Vectors, Linear, float]:
    vectors = embedder.embed(texts)
    linear, held_out = train(vectors, classes, len(intents))
    farthest = _farthest(intents, vectors, classes, held_out)
    if file is not None:
        _write(file, vectors, linear, farthest)
    return vectors, linear, farthest


def _farthest(intents: tuple[str, ...], vectors: Vectors, classes: Classes, held_out: Vectors) -> float:
    """The threshold for out of scope, chosen so that only a small share of the examples would be below it."""
    belonging: list[float] = []
    for number, intent in enumerate(intents):
        own = np.flatnonzero(classes == number)
        if intent in (UNCLEAR, OUT_OF_SCOPE) or len(own) <= _NEAREST:
            continue
        cosines = vectors[own] @ vectors[own].T
        np.fill_diagonal(cosines, -1)  # an example must not count as its own neighbour
        near = np.sort(cosines, axis=1)[:, -_NEAREST:].mean(axis=1)
        belonging += list(near + _SHARE_OF_PROBABILITY * held_out[own, number])
    if not belonging:
        return -1.0
    return float(np.quantile(belonging, _REFUSED_BESIDE_EXAMPLES if OUT_OF_SCOPE in intents else _REFUSED))


def _fingerprint(examples: Mapping[str, Sequence[str]], embedder: Embedder) -> str:
    digest = hashlib.sha256(f"{_VERSION}\0{embedder.name}".encode())
    for intent, texts in examples.items():
        digest.update("\0".join((intent, *texts)).encode() + b"\0\0")
    return digest.hexdigest()[:16]


def _read(file: Path) -> tuple[Vectors, Linear, float] | None:
    try:
        with file.open("rb") as opened, np.load(opened) as kept:
            linear = Linear(kept["weights"], kept["bias"], float(kept["sharpness"]))
            return kept["vectors"], linear, float(kept["farthest"])
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):  # missing or damaged: train again
        return None


def _write(file: Path, vectors: Vectors, linear: Linear, farthest: float) -> None:
    scratch = file.with_suffix(f".{id(linear):x}.tmp")
    try:
        with scratch.open("wb") as opened:
            np.savez(
                opened,
                vectors=vectors,
                weights=linear.weights,
                bias=linear.bias,
                sharpness=np.float64(linear.sharpness),
                farthest=np.float64(farthest),
            )
        scratch.rename(file)
    except OSError:
        with suppress(OSError):
            scratch.unlink()


def _intent(intent: str, confidence: float, reasoning: str) -> Intent:
    return Intent(intent=intent, confidence=round(confidence, 4), reasoning=reasoning)
