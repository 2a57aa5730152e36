"""The summariser without a model: it picks sentences and never changes their words. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from agents import sentences
from orchestrator.recall.query.words import stem, terms
from orchestrator.remember.creators.history import Said
from orchestrator.remember.ledger.lines import Body

ASSISTANT: Final = "Assistant: "
PERSON: Final = "Person: "
"""Every line of a summary begins with one of these, so that no answer is taken for a fact of the person."""

_FEW_WORDS: Final = 4
_MOST_LISTED: Final = 8
_LONGEST_TITLE: Final = 80
_NUMBER: Final = re.compile(r"\d")
_NAME: Final = re.compile(r"(?<=[\w,;] )(?!I\b)[A-Z][\w'-]+(?: [A-Z][\w'-]+)*")
_WORD: Final = re.compile(r"[^\W\d_][\w'-]{2,}")


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence, word for word, with its message. `place` orders all sentences; `worth` ranks them."""

    place: int
    message_id: str
    is_person: bool
    text: str
    worth: float

    @property
    def line(self) -> str:
        """The sentence with its speaker."""
        return f"{PERSON if self.is_person else ASSISTANT}{self.text}"


@dataclass(frozen=True, slots=True)
class Extract:
    """A summary, and the messages whose words it has. It is empty if nobody said anything."""

    body: Body | None
    rests_on: tuple[str, ...] = ()


def summarise(messages: Sequence[Said], characters: int) -> Extract:
    """Summarise messages in at most about so many characters, with the sentences that say most.

    Only what the person said is picked. A reply of a few words keeps the question that it answers.
    """
    pieces = _pieces(messages)
    picked = _picked([piece for piece in pieces if piece.is_person], characters)
    if not picked:
        return Extract(None)
    kept = sorted({*picked, *_questions(pieces, picked)}, key=lambda piece: piece.place)
    text = "\n".join(dict.fromkeys(piece.line for piece in kept))
    best = max(picked, key=lambda piece: piece.worth)
    own = " ".join(piece.text for piece in kept if piece.is_person)
    body = Body(text, _shortened(best.text), text, _names(own), _key_phrases(own))
    return Extract(body, tuple(dict.fromkeys(piece.message_id for piece in kept)))


def roll(texts: Iterable[str], characters: int) -> str:
    """A rolling summary of memories: their lines in order, the least important left out if there are many."""
    lines = list(dict.fromkeys(line for text in texts for line in text.split("\n") if line.strip()))
    worth = _worths(lines)
    newer = {line: place / (len(lines) or 1) for place, line in enumerate(lines)}
    kept: set[str] = set()
    size = 0
    for line in sorted(lines, key=lambda line: -(worth[line] + newer[line])):
        if size + len(line) + 1 <= characters or not kept:
            kept.add(line)
            size += len(line) + 1
    return "\n".join(line for line in lines if line in kept)


def _pieces(messages: Sequence[Said]) -> list[Piece]:
    cut = [
        (said, sentence.strip())
        for said in messages
        for sentence in sentences.cut(said.words)
        if sentence.strip()
    ]
    worth = _worths([text for said, text in cut if said.is_person])
    return [
        Piece(place, said.id, said.is_person, text, worth.get(text, 0.0))
        for place, (said, text) in enumerate(cut)
    ]


def _worths(texts: Sequence[str]) -> dict[str, float]:
    """How much each text says: by words that are rare here, by numbers and names; a question says less."""
    words = {text: set(terms(text)) for text in texts}
    count = Counter(word for found in words.values() for word in found)
    return {
        text: sum(1 / count[word] for word in found) ** 0.5
        + (1.0 if _NUMBER.search(text) else 0.0)
        + (0.5 if _NAME.search(text) else 0.0)
        - (1.0 if text.endswith("?") else 0.0)
        for text, found in words.items()
    }


def _picked(pieces: Sequence[Piece], characters: int) -> list[Piece]:
    picked: list[Piece] = []
    size = 0
    for piece in sorted(pieces, key=lambda piece: (-piece.worth, piece.place)):
        if not picked or size + len(piece.line) + 1 <= characters:
            picked.append(piece)
            size += len(piece.line) + 1
    return picked


def _questions(pieces: Sequence[Piece], picked: Sequence[Piece]) -> Iterable[Piece]:
    """The questions that short replies answer: the last sentence of the answer before, if it asks."""
    for piece in picked:
        before = pieces[piece.place - 1] if piece.place else piece
        if len(piece.text.split()) < _FEW_WORDS and not before.is_person and before.text.endswith("?"):
            yield before


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST_TITLE:
        return text
    return text[:_LONGEST_TITLE].rpartition(" ")[0] or text[:_LONGEST_TITLE]


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_NAME.findall(text)))[:_MOST_LISTED]


def _key_phrases(text: str) -> tuple[str, ...]:
    """The words that occur most often, as they are written."""
    written: dict[str, str] = {}
    for word in _WORD.findall(text):
        if terms(word):
            written.setdefault(stem(word.lower()), word.lower())
    count = Counter(term for term in terms(text) if term in written)
    return tuple(written[term] for term, _ in count.most_common(_MOST_LISTED))
