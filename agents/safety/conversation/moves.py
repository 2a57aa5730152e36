"""What a message after a safety answer does about the danger: says yes, that help is coming, that it is over.

Unmistakable forms come first: a plain yes or no, a "bye". The rest is decided by a classifier that has
learned from the examples in `config/safety/moves.toml`, over sentence embeddings. Without it, the forms
decide alone.
"""

import hashlib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal, Protocol

import numpy as np

from agents.ports import Embedder, Vectors
from agents.safety.conversation.denials import admits, denies
from agents.safety.past import says_over
from agents.safety.replies.first_aid import asks
from agents.safety.verdict import ASIDE, AT_ONCE, STILL, Verdict
from agents.utterance import asks_back, asks_of_something, refers, says_little, wishes


class Move(StrEnum):
    """What a message does about the danger before it."""

    YES = "yes"
    NO = "no"
    UNSURE = "unsure"
    MISTAKE = "mistake"
    """There never was a danger."""
    OVER = "over"
    """It is over."""
    ARRIVED = "arrived"
    """Help is there."""
    BETTER = "better"
    """It is over, as far as the person feels. After some dangers that says nothing."""
    CALLED = "called"
    """Help was called, or is coming."""
    GOING = "going"
    """The person is on the way to help."""
    NOT_CALLED = "not_called"
    """Nobody has called, or nobody wants to."""
    WILL = "will"
    """The person means to call, or to tell somebody."""
    HARMLESS = "harmless"
    """The person says that it is nothing bad."""
    ASKS = "asks"
    """A question about the danger."""
    LIGHT = "light"
    """Only a "haha ok", a "thanks" or a "bye"."""
    SAME = "same"
    """More about the danger, or about how the person is."""
    OTHER = "other"
    """Another subject."""


LOWERS: Final = frozenset(
    (Move.MISTAKE, Move.ARRIVED, Move.BETTER, Move.HARMLESS, Move.CALLED, Move.GOING, Move.WILL)
)
"""Moves that make the answer milder, and so must be plain."""
SURE: Final = 0.45
"""Minimum score of a move for the classifier to be believed."""
PLAINLY: Final = 0.65
"""The same for the statement that it is nothing bad, which people also make in danger."""
MARGIN: Final = 0.2
"""Minimum distance to the next move, for a move that makes the answer milder."""
RELATED: Final = 0.25
"""From this likeness to the danger on, a message after certain danger is about it, whatever its subject
seems, and a question after possible danger is."""
BACK_TO_IT: Final = 0.4
"""The likeness that is needed instead if the message before was about another subject, or if only one message
was about the danger so far, which may have been a mistake."""
A_LITTLE: Final = 0.1
"""The likeness that a few words need after an immediate emergency that only one message was about so far."""
BARELY_LIKE: Final = 0.2
"""How much a message must be like danger to be read with the possible danger before it."""
_SHORT_QUESTION: Final = 8
"""Up to how many words a question for first aid has, as long as only one message was about the danger."""
_FEW_WORDS: Final = 5
"""Up to how many words a reply with a "yes" is nothing but a yes."""
_NARROWNESS: Final = 2.0
_RIDGE: Final = 0.1
_MOST_WORDS: Final = 40
"""A longer message is not classified: it does more than one thing."""
_ORDINARY: Final = ("everyday.toml", "health.toml", "ordinary.toml")
_EVERY: Final = 12
"""Every how many of the ordinary phrases is an example of another subject."""
_CLASSES: Final = (
    Move.CALLED,
    Move.GOING,
    Move.ARRIVED,
    Move.BETTER,
    Move.MISTAKE,
    Move.NOT_CALLED,
    Move.WILL,
    Move.HARMLESS,
    Move.ASKS,
    Move.SAME,
    Move.OTHER,
    Move.LIGHT,
)
_TURNS_AROUND: Final = re.compile(r"\b(?:but|though|although|except|however|yet)\b", re.IGNORECASE)
_DENIES: Final = re.compile(
    r"\b(?:no|not|nobody|none|never|cannot|should|shall|if|would|tried|trying|thinking|instead|without"
    r"|afraid|scared|busy|engaged|hung|cut off|voicemail|unable|failed|wish|wrong|yesterday|tomorrow"
    r"|last (?:night|week|month|year|time))\b"
    r"|\b(?:do|does|did|is|are|was|were|have|has|had|wo|ca|could|would|should|ai)n['\u2019]?t\b",
    re.IGNORECASE,
)
_YES: Final = re.compile(
    r"\W*(?:(?:oh|ok(?:ay)?|well|um+|god)\W+)*(?:yes|yeah|yep|yup|yea|of course|already"
    r"|(?:i|we|he|she|they|my \w+) (?:have|has|did)|i['\u2019]?ve)"
    r"(?:\W+(?:i|we|he|she|they|my \w+|have|has|did|just|now|already|done|called|ago|a few|a|thanks|\d+"
    r"|minutes?|mins?|seconds?))*\W*",
    re.IGNORECASE,
)
"""A mere yes to the question whether somebody has called."""
_CALLED_SOMEBODY: Final = re.compile(
    r"\b(?:called|rang|phoned|texted|messaged|told) (?:my|a|our)\b", re.IGNORECASE
)
_ASKED_FOR_HELP: Final = re.compile(r"\b(?:has somebody called|is help on the way)\b", re.IGNORECASE)
_SERVICE: Final = re.compile(
    r"\b(?:999|911|112|000|988|ambulance|paramedics?|police|officers|shelter|help ?line|hot ?line"
    r"|crisis (?:line|team)|samaritans|for help)\b",
    re.IGNORECASE,
)
_OF_HELP: Final = re.compile(
    r"\b(?:999|911|112|000|988|ambulances?|paramedics?|crew|fire (?:brigade|engine)|police|call handler"
    r"|help ?line|crisis (?:line|team)|samaritans|shelter|a ?(?:&|and|n) ?e|emergency (?:room|department)"
    r"|(?:they|they['\u2019]?re|they are|someone|somebody|help)(?: \w+)? (?:here|coming)"
    r"|(?:is|are|['\u2019]s) (?:driving|taking) (?:me|him|her|us)|on (?:the|my|our) way"
    r"|(?:rang|rung|phoned|called) (?:them|it|for)|to (?:the )?hospital|blue lights)\b",
    re.IGNORECASE,
)
"""Words of a message that speaks of help for the danger before it."""
_CALLED: Final = re.compile(
    r"\b(?:called|calling|rang|phoned|on the (?:phone|line) (?:to|with))\b"
    r"|\b(?:on (?:the|its|their) way|coming)\b",
    re.IGNORECASE,
)
_ASKS_LEAVE: Final = re.compile(
    r"\W*(?:and |so |but |ok |or )*(?:should|shall|can|could|may|must|do) (?:i|we|he|she|they)\b",
    re.IGNORECASE,
)
_SOFTENS: Final = re.compile(
    r"\b(?:but|only|just|mild|mildly|slight|slightly|a (?:bit|little)|better|usual|not (?:\w+ )?bad)\b",
    re.IGNORECASE,
)
_NOT_YET: Final = re.compile(r"\bnot (?:yet|now|right now|at the moment|today|tonight)\b", re.IGNORECASE)


class Forms(Protocol):
    """Recognises plain answers and endings. The guard implements it."""

    def answer(self, text: str) -> Literal["yes", "no", "unsure"] | None:
        """What a reply plainly says to a question about danger."""
        ...

    def brings_nothing(self, text: str) -> bool:
        """Whether a text has no content of its own: an answer, a thank-you, "what should I do"."""
        ...

    def is_light(self, text: str) -> bool:
        """Whether a text is only a "haha ok", a "thanks" or a "bye"."""
        ...

    def is_mistake(self, text: str, earlier: Verdict) -> bool:
        """Whether a text only says that the previous danger was a mistake, a joke or a false alarm."""
        ...

    def is_over(self, text: str, earlier: Verdict) -> bool:
        """Whether a text says that the previous danger is over, cared for or never existed, and no more."""
        ...

    def takes_back(self, text: str) -> bool:
        """Whether a text names a danger but retracts it."""
        ...


class Scores(Protocol):
    """Compares a text with examples of each move. `MoveClassifier` implements it."""

    def scores(self, text: str) -> Mapping[Move, float]:
        """The score of each move: about 1 for an example of it, about 0 for other texts."""
        ...


@dataclass(frozen=True, slots=True)
class Reply:
    """A message after danger, with what it is read with."""

    said: str
    asked: str = ""
    """What the assistant said before it."""
    likeness: float | None = None
    """How much it is like the danger before it, by its meaning; None if there is no classifier."""
    names_aid: bool = False
    """Whether it names something that a first-aid text is about: to eat, to drive, a pen."""
    names_its_aid: bool = False
    """Whether that text belongs to the danger before it: a pen after an allergic reaction."""


def read_move(forms: Forms, reply: Reply, earlier: Verdict, classifier: Scores | None = None) -> Move:
    """What a message does about the danger before it."""
    plain = _answer(forms, reply, earlier) if earlier.is_possible else _plain(forms, reply, earlier)
    if plain is not None:
        return plain
    said = reply.said
    known = None
    if classifier is not None and len(said.split()) <= _MOST_WORDS:
        known = _classified(said, earlier, classifier)
    if known in (None, Move.LIGHT, Move.OTHER) and forms.brings_nothing(said):
        return Move.ASKS if asks_back(said) else Move.SAME
    move = known or _by_form(reply, earlier)
    if earlier.is_possible:
        return Move.OTHER if move is Move.ASKS and (reply.likeness or 0.0) < RELATED else move
    if move not in (Move.SAME, Move.ASKS, Move.OTHER):
        return move
    if not _is_about(move, reply, earlier):
        return Move.OTHER
    return Move.ASKS if move is Move.ASKS or asks(said) else Move.SAME


def _is_about(move: Move, reply: Reply, earlier: Verdict) -> bool:
    """Whether a message after certain danger is about it, rather than about another subject.

    It speaks of help, or is like that danger; or it continues right after it, as a question about it or in a
    few words. If only one message was about the danger so far, that may have been a mistake, and more is
    needed.
    """
    if _OF_HELP.search(reply.said):
        return True
    is_aside, is_firm = ASIDE in earlier.rule_ids, earlier.is_firm or reply.likeness is None
    likeness = reply.likeness or 0.0
    if likeness >= (BACK_TO_IT if is_aside or not is_firm else RELATED):
        return move is not Move.OTHER or is_aside or not wishes(reply.said)
    if is_aside:
        return False
    at_once = earlier.tier == AT_ONCE
    is_emergency = at_once and earlier.kind == "emergency"
    is_little = is_emergency and says_little(reply.said) and (is_firm or likeness >= A_LITTLE)
    is_short = is_firm or len(reply.said.split()) <= _SHORT_QUESTION
    names_aid = reply.names_its_aid or (is_emergency and reply.names_aid and is_short)
    if is_little or (at_once and names_aid and asks(reply.said)):
        return True
    match move:
        case Move.ASKS:
            return is_firm or STILL not in earlier.rule_ids or likeness >= RELATED
        case Move.SAME:
            return is_firm or not says_little(reply.said)
    return False


def _answer(forms: Forms, reply: Reply, earlier: Verdict) -> Move | None:
    """What a message plainly answers to the question about a possible danger.

    In a crisis, "not yet" is no no. A "yes" before a longer text that is not at all like danger answers
    something else: "yeah I'd be lost without my dog".
    """
    said, is_emergency = reply.said, earlier.kind == "emergency"
    match forms.answer(said):
        case "yes" if len(said.split()) <= _FEW_WORDS or (reply.likeness or 0.0) >= BARELY_LIKE:
            return Move.UNSURE if is_emergency and _SOFTENS.search(said) else Move.YES
        case "no":
            return Move.UNSURE if not is_emergency and _NOT_YET.search(said) else Move.NO
        case "unsure":
            return Move.UNSURE
    if forms.is_over(said, earlier) or denies(forms, said):
        return Move.NO
    if not is_emergency and admits(said):
        return Move.YES
    return Move.LIGHT if forms.is_light(said) else None


def _plain(forms: Forms, reply: Reply, earlier: Verdict) -> Move | None:
    """What a message after certain danger plainly does."""
    said = reply.said
    if forms.is_mistake(said, earlier):
        return Move.MISTAKE
    if forms.is_over(said, earlier):
        return Move.OVER
    if denies(forms, said):
        return Move.HARMLESS if earlier.kind == "crisis" or earlier.can_be_felt else None
    if earlier.can_be_felt and says_over(said) and not asks(said):
        return Move.HARMLESS
    if forms.is_light(said):
        return Move.LIGHT
    if _ASKED_FOR_HELP.search(reply.asked):
        if _YES.fullmatch(said):
            return Move.CALLED
        if forms.answer(said) == "no" and forms.brings_nothing(said):
            return Move.NOT_CALLED
    return None


def _classified(said: str, earlier: Verdict, classifier: Scores) -> Move | None:
    """The move with the highest score; None if that is low, or not plain for a move that makes milder."""
    ranked = sorted(classifier.scores(said).items(), key=lambda each: -each[1])
    (move, score), (_, following) = ranked[:2]
    if score < (PLAINLY if move is Move.HARMLESS and earlier.is_possible else SURE):
        return None
    if move not in LOWERS:
        return move
    if asks_back(said):
        return Move.ASKS
    is_asked = earlier.is_certain and move in (Move.MISTAKE, Move.HARMLESS)  # who says so is asked once
    is_plain = (is_asked or score - following >= MARGIN) and _TURNS_AROUND.search(said) is None
    if not is_plain or (move not in (Move.MISTAKE, Move.HARMLESS) and _DENIES.search(said)):
        return None
    if earlier.family == "violence" and move in (Move.CALLED, Move.ARRIVED) and not _SERVICE.search(said):
        return None  # "he is coming" may be said of an attacker
    if earlier.kind == "emergency" and _CALLED_SOMEBODY.search(said) and not _SERVICE.search(said):
        return None
    if move not in (Move.BETTER, Move.HARMLESS) or earlier.can_be_felt:
        return move
    return Move.HARMLESS if earlier.kind == "crisis" and earlier.is_certain else Move.SAME


def _by_form(reply: Reply, earlier: Verdict) -> Move:
    """What a message does by its form, if nothing else decides."""
    said = reply.said
    if not asks_back(said) and not _DENIES.search(said) and _CALLED.search(said) and _SERVICE.search(said):
        return Move.CALLED
    if _ASKS_LEAVE.match(said) and earlier.kind == "emergency":
        return Move.ASKS
    if asks_of_something(said) and not refers(said):
        return Move.OTHER
    if asks_back(said):
        return Move.ASKS
    if wishes(said) and not refers(said):
        return Move.OTHER
    return Move.SAME if says_little(said) or (reply.likeness or 0.0) >= RELATED else Move.OTHER


class MoveClassifier:
    """Compares a text with the examples of each move, by kernel ridge regression. Thread-safe."""

    def __init__(self, embedder: Embedder, landmarks: Vectors, weights: Vectors) -> None:
        self._embedder, self._landmarks, self._weights = embedder, landmarks, weights

    def scores(self, text: str) -> Mapping[Move, float]:
        """The score of each move that has examples. Computes for about two milliseconds."""
        (row,) = _kernel(self._embedder.embed([text]), self._landmarks) @ self._weights
        return {move: float(score) for move, score in zip(_CLASSES, row, strict=True)}


def load(folder: Path, embedder: Embedder, cache: Path) -> MoveClassifier:
    """The classifier for `moves.toml` of a folder: from the cache, or learned, which takes some seconds."""
    examples = _examples(folder)
    how = f"{embedder.name} {_NARROWNESS} {_RIDGE} {examples}"
    file = cache / f"moves-{hashlib.sha256(how.encode()).hexdigest()[:16]}.npz"
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return MoveClassifier(embedder, arrays["landmarks"], arrays["weights"])
    except (OSError, ValueError, KeyError, EOFError):
        pass
    landmarks = embedder.embed([text for texts in examples for text in texts])
    targets = [
        np.tile(row, (len(texts), 1)) for row, texts in zip(np.eye(len(examples)), examples, strict=True)
    ]
    inner = _kernel(landmarks, landmarks).astype(np.float64) + _RIDGE * np.eye(len(landmarks))
    weights: Vectors = np.linalg.solve(inner, np.concatenate(targets)).astype(np.float32)
    cache.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}.npz")  # several processes may learn at once
    np.savez(part, landmarks=landmarks, weights=weights)
    part.replace(file)
    return MoveClassifier(embedder, landmarks, weights)


def _kernel(vectors: Vectors, landmarks: Vectors) -> Vectors:
    kernel: Vectors = np.exp(np.float32(_NARROWNESS) * (vectors @ landmarks.T - 1))
    return kernel


def _examples(folder: Path) -> list[list[str]]:
    """The examples of each class of `_CLASSES`. Some ordinary phrases are examples of another subject."""
    tables = tomllib.loads((folder / "moves.toml").read_text(encoding="utf-8"))
    ordinary = [
        phrase
        for name in _ORDINARY
        for table in tomllib.loads((folder / "phrases" / name).read_text(encoding="utf-8")).values()
        for phrase in table["phrases"]
    ]
    return [tables[move] + (ordinary[::_EVERY] if move is Move.OTHER else []) for move in _CLASSES]
