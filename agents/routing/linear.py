"""A linear classifier over vectors: multinomial logistic regression with calibrated probabilities.

It is our own code because it is trained on the user's machine, and scikit-learn would bring scipy and a
hundred megabytes for one call. Everything is deterministic.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agents.ports import Vectors

Classes: TypeAlias = NDArray[np.int64]

STRENGTH: Final = 10.0
"""The inverse of the L2 penalty, found by cross-validation on the shipped examples. 3 to 30 do as well."""

_STEPS: Final = 250
_FOLDS: Final = 5
_TEMPERATURES: Final = np.geomspace(0.2, 8.0, 60)


@dataclass(frozen=True, slots=True)
class Linear:
    """A direction per class, and the sharpness that calibrates the scores."""

    weights: Vectors
    bias: Vectors
    sharpness: float = 1.0

    def probabilities(self, vectors: Vectors) -> Vectors:
        """The probability of each class, for each row. Each row sums to 1."""
        return softmax((vectors @ self.weights + self.bias) * np.float32(self.sharpness))


def softmax(scores: Vectors) -> Vectors:
    """Scores as probabilities, row by row."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Vectors = powers / powers.sum(axis=1, keepdims=True)
    return shares


def train(vectors: Vectors, classes: Classes, count: int) -> tuple[Linear, Vectors]:
    """Train for `count` classes. Also return, for each row, the probabilities without training on that row.

    The sharpness (one over the temperature) calibrates those held-out probabilities.
    Every class has the same weight, whatever its number of rows.
    """
    held_out = _held_out_scores(vectors, classes, count)
    weights, bias = _fit(vectors, classes, count)
    balance = 1 / np.bincount(classes, minlength=count)[classes]
    rows = np.arange(len(classes))

    def surprise(sharpness: float) -> float:
        given = softmax(held_out * np.float32(sharpness))[rows, classes]
        return float(balance @ -np.log(np.maximum(given, 1e-9)))

    sharpness = float(min(_TEMPERATURES, key=surprise))
    return Linear(weights, bias, sharpness), softmax(held_out * np.float32(sharpness))


def _held_out_scores(vectors: Vectors, classes: Classes, count: int) -> Vectors:
    """Score each row by a classifier that was trained without it. Each class is spread over all folds."""
    order = np.argsort(classes, kind="stable")
    folds = np.empty(len(classes), dtype=np.int64)
    folds[order] = np.arange(len(classes)) % _FOLDS
    scores = np.zeros((len(classes), count), dtype=np.float32)
    for fold in range(_FOLDS):
        kept, left_out = folds != fold, folds == fold
        if left_out.any() and kept.any():
            weights, bias = _fit(vectors[kept], classes[kept], count)
            scores[left_out] = vectors[left_out] @ weights + bias
    return scores


def _fit(vectors: Vectors, classes: Classes, count: int) -> tuple[Vectors, Vectors]:
    """Nesterov's accelerated gradient on the penalised loss. Centred rows make it converge faster."""
    centre = vectors.mean(axis=0)
    rows = vectors - centre
    sizes = np.bincount(classes, minlength=count)
    share = (1 / (sizes[classes] * np.count_nonzero(sizes))).astype(np.float32)[:, np.newaxis]
    wanted = np.eye(count, dtype=np.float32)[classes]
    penalty = np.float32(1 / (STRENGTH * len(rows)))
    steepest = np.linalg.norm((rows * share).T @ rows, 2)
    pace = np.float32(1 / (0.5 * (steepest + 1) + penalty))  # + 1: the bias is a column of ones

    weights = ahead = np.zeros((rows.shape[1], count), dtype=np.float32)
    bias = bias_ahead = np.zeros(count, dtype=np.float32)
    for step in range(_STEPS):
        error = (softmax(rows @ ahead + bias_ahead) - wanted) * share
        new_weights = ahead - pace * (rows.T @ error + penalty * ahead)
        new_bias = bias_ahead - pace * error.sum(axis=0)
        swing = np.float32(step / (step + 3))
        ahead = new_weights + swing * (new_weights - weights)
        bias_ahead = new_bias + swing * (new_bias - bias)
        weights, bias = new_weights, new_bias
    return weights, bias - centre @ weights
