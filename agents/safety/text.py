"""What a person typed, as plain words: whatever the spelling, the quotes or the spaces between them."""

import re
import unicodedata
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

_PIECES: Final = re.compile(r"\d+(?:[.,/]\d+)*|[a-z]+(?:'[a-z]+)*|[.!?;\n\[\]{}<>=#|\\]+|,|[-:()]")
_LIKE_LATIN: Final = str.maketrans("авсеһіјорѕԁхуүѵκοανρτυ", "abcehijopsdxyyvkoavptu")
_QUOTES: Final = str.maketrans(dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4`", "'"))
_DASHES: Final = str.maketrans(dict.fromkeys("\u2013\u2014", ";"))
_WITHIN: Final = frozenset(",-:()")
_RUN: Final = re.compile(r"([a-z])\1{2,}")
_LETTERS_APART: Final = re.compile(r"\b(?:[a-z] ){3,}[a-z]\b")
_KEEP_S: Final = frozenset(("it", "he", "she", "that", "what", "who", "there", "here", "where", "how", "let"))
_HYPHEN: Final = re.compile(r"(?<=[a-z])-(?=[a-z])")
_NUMBER: Final = re.compile(r"(?<=\d)(?=[a-z])|(?<=[a-z])(?=\d)")
SHORTEST_TO_CORRECT: Final = 5
SHORTEST_WITH_A_GAP: Final = 7
SHORTEST_PART: Final = 4
LONGEST_WORD: Final = 24
MOST_SEEN: Final = 20_000
"""How many different words a reader remembers having thought about."""
MOST: Final = 20_000
"""How many characters of a message are listened to, its beginning and its end; more is no chat message."""


class Word(NamedTuple):
    """One word or mark: its best reading, all of them, and whether the reader knows it."""

    text: str
    readings: tuple[str, ...]
    known: bool = False


_END: Final = (Word(".", (".",), known=True),)


def clean(text: str) -> str:
    """The text in small plain letters: no accents, no invisible characters, one kind of quote."""
    if len(text) > MOST:
        text = f"{text[: MOST // 2]}\n{text[-MOST // 2 :]}"
    text = text.translate(_QUOTES).translate(_DASHES)
    if text.isascii():
        text = text.lower()
    else:
        spread = unicodedata.normalize("NFKD", text).lower()
        text = "".join(
            letter for letter in spread if unicodedata.category(letter) not in ("Cf", "Mn")
        ).translate(_LIKE_LATIN)
    text = _HYPHEN.sub(" ", text)
    return _LETTERS_APART.sub(lambda found: found[0].replace(" ", ""), text)


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads text as words it knows. `known` are its words, `expand` what short forms stand for.

    A word it does not know is read as the known one that differs by a slip of the pen, if it is long enough
    for that to be no guess; words of the language that only look alike are `known`, too.
    """

    known: Set[str]
    worth_correcting: Set[str]
    expand: Mapping[str, tuple[str, ...]]
    _slips: Mapping[str, tuple[str, ...]] = field(init=False, repr=False)
    _seen: dict[str, tuple[Word, ...]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        slips: dict[str, list[str]] = {}
        for word in self.worth_correcting:
            if len(word) >= SHORTEST_TO_CORRECT:
                for shorter in _shortened(word):
                    slips.setdefault(shorter, []).append(word)
        object.__setattr__(self, "_slips", {key: tuple(sorted(set(words))) for key, words in slips.items()})

    def read(self, text: str) -> list[Word]:
        """The words of a text."""
        seen = self._seen
        words = [
            word for piece in _PIECES.findall(clean(text)) for word in seen.get(piece) or self._words(piece)
        ]
        for at in reversed(self._torn(words)):
            whole = words[at].text + words[at + 1].text
            words[at : at + 2] = [Word(whole, (whole,), known=True)]
        return words

    def quote(self, text: str, start: int, end: int) -> str:
        """How the words from `start` to `end` of a text were written."""
        cleaned = clean(text)
        pieces = [(piece, word) for piece in _PIECES.finditer(cleaned) for word in self._words(piece[0])]
        spans = [piece.span() for piece, _ in pieces]
        for at in reversed(self._torn([word for _, word in pieces])):
            spans[at : at + 2] = [(spans[at][0], spans[at + 1][1])]
        return cleaned[spans[start][0] : spans[end - 1][1]]

    def _words(self, piece: str) -> tuple[Word, ...]:
        """What a piece of text is read as: one word mostly, more when it was short for them."""
        if not piece[0].isalpha():
            return (Word(piece, (piece,), known=True),) if piece[0].isdigit() or piece in _WITHIN else _END
        words = tuple(Word(each[0], each, each[0] in self.known) for each in self._think(piece))
        if len(self._seen) < MOST_SEEN:
            self._seen[piece] = words
        return words

    def _think(self, piece: str) -> tuple[tuple[str, ...], ...]:
        if piece.endswith("'s") and piece[:-2] not in _KEEP_S:
            piece = piece[:-2]
        word = piece.replace("'", "")
        if word in self.expand:
            return tuple((each,) for each in self.expand[word])
        if word in self.known:
            return ((word,),)
        for shorter in (_RUN.sub(r"\1\1", word), _RUN.sub(r"\1", word)):
            if shorter in self.expand:
                return tuple((each,) for each in self.expand[shorter])
            if shorter in self.known:
                return ((shorter,),)
        word = _RUN.sub(r"\1\1", word)[:LONGEST_WORD]
        if meant := self._meant(word):
            return ((*meant, word),)
        if parts := self._parts(word):
            return tuple((part,) for part in parts)
        return ((word,),)

    def _meant(self, word: str) -> tuple[str, ...]:
        """Known words that one slip (two in a long word) turns into this one."""
        if len(word) < SHORTEST_TO_CORRECT:
            return ()
        near: dict[str, int] = {}
        for shorter in _shortened(word):
            for candidate in self._slips.get(shorter, ()):
                if candidate not in near and _is_slip(word, candidate):
                    near[candidate] = _distance(word, candidate)
        if not near:
            return ()
        best = min(near.values())
        return tuple(sorted((each for each, distance in near.items() if distance == best)))[:4]

    def _parts(self, word: str) -> tuple[str, ...]:
        """Two known words that were written as one."""
        if len(word) < SHORTEST_WITH_A_GAP:
            return ()
        for cut in range(len(word) - SHORTEST_PART, SHORTEST_PART - 1, -1):
            if word[:cut] in self.known and word[cut:] in self.known:
                return word[:cut], word[cut:]
        return ()

    def _torn(self, words: Sequence[Word]) -> list[int]:
        """Where a space fell into a long word: it begins there, and the next one is the rest of it."""
        torn: list[int] = []
        for at, (this, following) in enumerate(pairwise(words)):
            if this.known and following.known:
                continue
            whole = this.text + following.text
            if len(whole) >= SHORTEST_WITH_A_GAP and whole in self.worth_correcting and at - 1 not in torn:
                torn.append(at)
        return torn


def _shortened(word: str) -> set[str]:
    """The word itself, and with each letter left out: what one slip away from it also is."""
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}


def _is_slip(word: str, meant: str) -> bool:
    """Whether one may well have meant the other: a short word only had two letters exchanged or doubled."""
    if word[0] != meant[0] and word[:2] != meant[1::-1]:
        return False
    if len(meant) == SHORTEST_TO_CORRECT:
        return sorted(word) == sorted(meant) or _once(word) == _once(meant)
    return _distance(word, meant) <= (1 if len(meant) < 9 else 2)


def _once(word: str) -> str:
    """The word without doubled letters."""
    return re.sub(r"(.)\1", r"\1", word)


def _distance(one: str, other: str) -> int:
    """How many slips (a letter more, less, another, or two exchanged) lie between two words, 3 for more."""
    if abs(len(one) - len(other)) > 2:
        return 3
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, against in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != against))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == against:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return min(row[-1], 3)
