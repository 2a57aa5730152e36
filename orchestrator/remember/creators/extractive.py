"""The summariser without a model: it picks sentences and never changes their words. Pure.

Every sentence is a line that begins with its speaker. A short reply and the question that it answers are
picked, or left out, together.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agents import sentences
from orchestrator.recall.query.words import stem, terms
from orchestrator.remember.creators.history import HistoryMessage
from orchestrator.remember.ledger.lines import MemoryBody

LOCAL: Final = "local"
"""The maker of memories and summaries that were picked, without a model."""

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
    """A sentence, word for word on one line, with its message. `worth` ranks the sentences of the person.

    `question` is the sentence that it answers, if it says little without it.
    """

    place: int
    message_id: str
    is_person: bool
    text: str
    worth: float = 0.0
    question: "Piece | None" = None

    @property
    def line(self) -> str:
        """The sentence with its speaker, after its question."""
        said = f"{PERSON if self.is_person else ASSISTANT}{self.text}"
        return said if self.question is None else f"{self.question.line}\n{said}"


@dataclass(frozen=True, slots=True)
class Extract:
    """A summary, and the messages whose words it has. It is empty if nobody said anything."""

    body: MemoryBody | None
    rests_on: tuple[str, ...] = ()


def summarise(messages: Sequence[HistoryMessage], characters: int) -> Extract:
    """Summarise messages in at most about so many characters, with the sentences that say most.

    Only what the person said is picked. A reply of a few words keeps the question that it answers.
    """
    picked = _picked(_pieces(messages), characters)
    if not picked:
        return Extract(None)
    text = "\n".join(dict.fromkeys(piece.line for piece in picked))
    best = max(picked, key=lambda piece: piece.worth)
    own = " ".join(piece.text for piece in picked)
    body = MemoryBody(text, shortened(best.text), text, _names(own), _key_phrases(own))
    asked = (piece.question.message_id for piece in picked if piece.question)
    messages_of = {*asked, *(piece.message_id for piece in picked)}
    return Extract(body, tuple(said.id for said in messages if said.id in messages_of))


def roll(texts: Iterable[str], characters: int) -> str:
    """A rolling summary of memories: their lines in order, the least important left out if there are many."""
    lines = list(dict.fromkeys(line for text in texts for line in _units(text)))
    worth = _worths(lines)
    newer = {line: place / (len(lines) or 1) for place, line in enumerate(lines)}
    kept: set[str] = set()
    size = 0
    for line in sorted(lines, key=lambda line: -(worth[line] + newer[line])):
        if size + len(line) + 1 <= characters or not kept:
            kept.add(line)
            size += len(line) + 1
    return "\n".join(line for line in lines if line in kept)


def _units(text: str) -> list[str]:
    """The parts of a memory that are kept or left out as a whole.

    Of a picked memory, these are its lines, a question with its reply; of another one, its sentences.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    if not all(line.startswith((PERSON, ASSISTANT)) for line in lines):
        return _sentences(text)
    units: list[str] = []
    for line in lines:
        if units and units[-1].startswith(ASSISTANT) and PERSON not in units[-1].partition("\n")[2]:
            units[-1] += f"\n{line}"
        else:
            units.append(line)
    return units


def _sentences(text: str) -> list[str]:
    """The sentences of a text, each on one line."""
    return [each.strip() for each in sentences.cut(" ".join(text.split())) if each.strip()]


def _pieces(messages: Sequence[HistoryMessage]) -> list[Piece]:
    """The sentences of the person."""
    pieces: list[Piece] = []
    for said in messages:
        for sentence in _sentences(said.words):
            pieces.append(Piece(len(pieces), said.id, said.is_person, sentence))
    worth = _worths([piece.text for piece in pieces if piece.is_person])
    return [
        replace(piece, worth=worth[piece.text], question=_question(pieces, piece))
        for piece in pieces
        if piece.is_person
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
    return sorted(picked, key=lambda piece: piece.place)


def _question(pieces: Sequence[Piece], piece: Piece) -> Piece | None:
    """The question that a short reply answers: the last sentence of the answer before, if it asks."""
    before = pieces[piece.place - 1] if piece.place else piece
    if len(piece.text.split()) < _FEW_WORDS and not before.is_person and before.text.endswith("?"):
        return before
    return None


def shortened(text: str) -> str:
    """The start of a text, as a title."""
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
