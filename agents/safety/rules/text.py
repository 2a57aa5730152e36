"""Reads a message as plain words, despite misspellings, odd quotes and misplaced spaces."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import islice
from operator import add
from typing import Final, NamedTuple

_PIECES: Final = re.compile(r"[a-z]+(?:['*]+[a-z]+)*|,|[.!?;\n\[\]{}<>=#|\\]+|\d+(?:[.,/]\d+)*|[-:()]")
_LIKE_LATIN: Final = str.maketrans("авсеһіјорѕԁхуүѵκοανρτυ", "abcehijopsdxyyvkoavptu")
_QUOTES_AND_DASHES: Final = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4`", "'") | dict.fromkeys("\u2013\u2014", ";")
)
_WITHIN: Final = frozenset(",-:()")
_RUN: Final = re.compile(r"([a-z])\1{2,}")
_LETTERS_APART: Final = re.compile(r"\b(?:[a-z] ){3,}[a-z]\b")
_TWO_LETTERS_APART: Final = re.compile(r" [a-z] [a-z] ")
"""Matches within every `_LETTERS_APART`, and is quicker to look for."""
_KEEP_S: Final = frozenset(("it", "he", "she", "that", "what", "who", "there", "here", "where", "how", "let"))
_GOES_ON: Final = r"\s*(?=[a-z]|I\b|[A-Z]{2}|EpiPen)"
_BREATH: Final = re.compile(
    r"[\s.\u2026](?:"
    rf"(?<=[A-Za-z,]\u2026){_GOES_ON}"
    rf"|(?<=[A-Za-z,]\.)(?:\.+| \. \.){_GOES_ON}"
    rf"|(?<=[A-Za-z,]\s)\s*(?:\u2026|\.{{2,}}|\. \. \.){_GOES_ON}"
    r"|(?<=[A-Za-z]\s)\s*(?:um+|uh+m?|erm|hm+)\b,?(?=\s+[A-Za-z0-9]))"
)
"""An ellipsis or an "um" within a sentence. It does not end the sentence.

The pattern begins with a set of letters and looks back afterwards, because `re` looks for a set quickly.
"""
_HYPHEN: Final = re.compile(r"(?<=[a-z])-(?=[a-z])")
_DISGUISED: Final = re.compile(r"(?<![a-z0-9@$!])[a-z]*[0-9@$!][a-z0-9@$!]*")
_BESIDE_A_LETTER: Final = re.compile(r"[0-9@$!](?:(?=[a-z])|(?<=[a-z][0-9@$])|(?<=!.))")
"""Matches within every word that is changed for its signs, and is quicker to look for."""
_SIGNS: Final = str.maketrans("0134579@$!", "oieastgasi")
_OTHER_SIGNS: Final = str.maketrans("0134579@$!", "oleastgasl")
"""A second table, because 1 and ! can mean i or l."""
SHORTEST_TO_CORRECT: Final = 4
SHORTEST_DISGUISED: Final = 3
SHORTEST_WITH_A_GAP: Final = 5
SHORTEST_OF_TWO_WORDS: Final = 7
"""Minimum length of a word that is read instead of two known words."""
SHORTEST_PART: Final = 4
LONGEST_WORD: Final = 24
MOST_READINGS: Final = 8
MOST_SEEN: Final = 20_000
"""Maximum number of words in a reader's cache."""
MOST: Final = 20_000
"""Maximum number of characters read. Of a longer message, only its beginning and its end are read."""


class Word(NamedTuple):
    """One word or mark: its best reading, all readings, and whether the reader knows it."""

    text: str
    readings: tuple[str, ...]
    known: bool = False


_END: Final = (Word(".", (".",), known=True),)


def clean(text: str) -> str:
    """The text in plain lower-case letters: no accents, no invisible characters, one kind of quote."""
    if len(text) > MOST:
        text = f"{text[: MOST // 2]}\n{text[-MOST // 2 :]}"
    if not text.isascii():
        text = text.translate(_QUOTES_AND_DASHES)
    elif "`" in text:
        text = text.replace("`", "'")
    text = _BREATH.sub(" ", text)
    if text.isascii():
        text = text.lower()
    else:
        spread = unicodedata.normalize("NFKD", text).lower()
        text = "".join(
            letter for letter in spread if unicodedata.category(letter) not in ("Cf", "Mn")
        ).translate(_LIKE_LATIN)
    if "-" in text:
        text = _HYPHEN.sub(" ", text)
    if _TWO_LETTERS_APART.search(text) is None:
        return text
    return _LETTERS_APART.sub(lambda found: found[0].replace(" ", ""), text)


def misspellings_of(words: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """An index of words by each form with one letter left out, for words long enough to be corrected."""
    slips: dict[str, list[str]] = {}
    for word in words:
        if len(word) >= SHORTEST_TO_CORRECT:
            for shorter in _shortened(word):
                slips.setdefault(shorter, []).append(word)
    return {key: tuple(sorted(set(words))) for key, words in slips.items()}


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads text as known words. `known` are these words; `expand` maps short forms to their words.

    An unknown word that is long enough is read as the known word that differs by a typing error. Ordinary
    words that look similar are `known`, so that they are not corrected. `written` maps short forms with
    digits or signs to their words. The words of `pairs` are not joined into one.
    """

    known: Set[str]
    worth_correcting: Set[str]
    expand: Mapping[str, tuple[str, ...]]
    written: Mapping[str, str] = field(default_factory=dict)
    pairs: Set[tuple[str, str]] = frozenset()
    misspellings: Mapping[str, tuple[str, ...]] | None = None
    """The result of `misspellings_of`, if it was computed before."""
    _signs: re.Pattern[str] = field(init=False, repr=False)
    _whole: frozenset[str] = field(init=False, repr=False)
    """The words that are recognised with a space inside."""
    _slips: Mapping[str, tuple[str, ...]] = field(init=False, repr=False)
    _alike: Mapping[tuple[str, str, int], list[str]] = field(init=False, repr=False)
    _seen: dict[str, tuple[Word, ...]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_signs", _any_of(self.written))
        whole = (word for word in (*self.worth_correcting, *self.expand) if len(word) >= SHORTEST_WITH_A_GAP)
        object.__setattr__(self, "_whole", frozenset(whole))
        alike: dict[tuple[str, str, int], list[str]] = {}
        for word in sorted(self.worth_correcting):
            alike.setdefault((word[0], word[-1], len(word)), []).append(word)
        object.__setattr__(self, "_alike", alike)
        slips = self.misspellings
        if slips is None:
            slips = misspellings_of((*self.worth_correcting, *self.expand))
        object.__setattr__(self, "_slips", slips)

    def read(self, text: str) -> list[Word]:
        """The words of a text."""
        seen, plain = self._seen, self._plain(text)
        pieces = _PIECES.findall(plain)
        if not self._whole.isdisjoint(map(add, pieces, islice(pieces, 1, None))):
            pieces = self._joined(pieces)
        return [word for piece in pieces for word in seen.get(piece) or self._words(piece)]

    def quote(self, text: str, start: int, end: int) -> str:
        """The words from `start` to `end` as they were written in the text."""
        plain = self._plain(text)
        spans = [(first, last) for piece, first, last in self._pieces(plain) for _ in self._words(piece)]
        return plain[spans[start][0] : spans[end - 1][1]]

    def _plain(self, text: str) -> str:
        plain = clean(text)
        if self.written:
            plain = self._signs.sub(self._spelled, plain)
        if _BESIDE_A_LETTER.search(plain) is None:
            return plain
        return _DISGUISED.sub(self._undisguised, plain)

    def _spelled(self, form: re.Match[str]) -> str:
        return self.written[form[0]]

    def _undisguised(self, found: re.Match[str]) -> str:
        """Replace the digits and signs in a word of a finding by letters ("su1c1de", but not "b12")."""
        typed = found[0]
        word = typed.rstrip("!")
        letters = sum(letter.isalpha() for letter in word)
        if len(word) < SHORTEST_DISGUISED or 2 * letters < len(word) or letters == len(word):
            return typed
        for signs in (_SIGNS, _OTHER_SIGNS):
            if (meant := word.translate(signs)) in self.worth_correcting:
                return meant + typed[len(word) :]
        return typed

    def _words(self, piece: str) -> tuple[Word, ...]:
        """The words of a piece of text: usually one; several for a short form."""
        words: tuple[Word, ...]
        if (piece in self.known and piece not in self.expand) or piece[0].isdigit() or piece in _WITHIN:
            words = (Word(piece, (piece,), known=True),)
        elif piece[0].isalpha():
            words = tuple(Word(each[0], each, each[-1] in self.known) for each in self._think(piece))
        else:
            words = _END
        if len(self._seen) < MOST_SEEN:
            self._seen[piece] = words
        return words

    def _think(self, piece: str) -> tuple[tuple[str, ...], ...]:
        if "*" in piece:
            return (self._hidden(piece),)
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
        squeezed = _RUN.sub(r"\1\1", word)[:LONGEST_WORD]
        if meant := self._meant(squeezed):
            short_for = self.expand.get(meant[0], ())
            return tuple((each,) for each in short_for) or ((*meant, squeezed),)
        return self._parts(word) or ((squeezed,),)

    def _hidden(self, piece: str) -> tuple[str, ...]:
        """The possible words for one with hidden letters, such as "d*ad"."""
        shape = piece.replace("'", "")
        alike = self._alike.get((shape[0], shape[-1], len(shape)), ())
        meant = [word for word in alike if all(map(_may_be, shape, word))]
        return (*meant[:MOST_READINGS], piece)

    def _meant(self, word: str) -> tuple[str, ...]:
        """The known words that differ by one typing error, or by two in a long word."""
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
        if once := near.keys() & _without_a_double(word):
            return tuple(sorted(once))
        return tuple(sorted(each for each, distance in near.items() if distance == best))[:MOST_READINGS]

    def _parts(self, word: str) -> tuple[tuple[str], ...]:
        """Two known words that were written as one, preferably words of findings."""
        found: tuple[tuple[str], ...] = ()
        for cut in range(len(word) - SHORTEST_PART, SHORTEST_PART - 1, -1):
            halves = word[:cut], word[cut:]
            read = [self.expand.get(half) or ((half,) if half in self.known else ()) for half in halves]
            if all(read):
                found = tuple((part,) for half in read for part in half)
                if all(half in self.worth_correcting for half in halves):
                    break
        return found

    def _pieces(self, plain: str) -> list[tuple[str, int, int]]:
        """The words and marks of a text with their positions. Words split by a space are joined."""
        pieces = [(found[0], *found.span()) for found in _PIECES.finditer(plain)]
        for at in range(len(pieces) - 2, -1, -1):
            (this, start, _), (following, _, end) = pieces[at : at + 2]
            if self._is_torn(this, following):
                pieces[at : at + 2] = [(this + following, start, end)]
        return pieces

    def _joined(self, pieces: Sequence[str]) -> list[str]:
        """The pieces of a text, those of a word that a space has split joined, as by `_pieces`."""
        joined: list[str] = []
        following = ""
        for this in reversed(pieces):
            if this + following in self._whole and following and self._is_torn(this, following):
                this += following
                joined[-1] = this
            else:
                joined.append(this)
            following = this
        joined.reverse()
        return joined

    def _is_torn(self, this: str, following: str) -> bool:
        whole = this + following
        if whole not in self._whole:
            return False
        if this in self.known and following in self.known:
            return len(whole) >= SHORTEST_OF_TWO_WORDS and (this, following) not in self.pairs
        return True


def _any_of(forms: Iterable[str]) -> re.Pattern[str]:
    """Matches each of the forms, if no letter or digit is beside it; the longest, if several begin alike.

    Every branch begins with a letter of its own, because `re` looks for those quickly.
    """
    by_first: dict[str, list[str]] = {}
    for form in sorted(forms, key=len, reverse=True):
        by_first.setdefault(re.escape(form[0]), []).append(re.escape(form[1:]))
    branches = (f"{first}(?<![a-z0-9]{first})(?:{'|'.join(rest)})" for first, rest in by_first.items())
    return re.compile(rf"(?:{'|'.join(branches)})(?![a-z0-9])")


def _may_be(hidden: str, letter: str) -> bool:
    return hidden in ("*", letter)


def _shortened(word: str) -> set[str]:
    """The word, and the word with each letter left out. Words that differ by one error share one of these."""
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}


def _is_slip(word: str, meant: str) -> bool:
    """Whether `word` is probably a misspelling of `meant`. Short words allow fewer kinds of errors."""
    if word[0] != meant[0] and word[:2] != meant[1::-1]:
        return False
    if len(meant) == SHORTEST_TO_CORRECT:
        return sorted(word) == sorted(meant) and word[-1] == meant[-1]
    if len(meant) == SHORTEST_TO_CORRECT + 1:
        return sorted(word) == sorted(meant) or _once(word) == _once(meant) or _shorter_by_one(word, meant)
    return _distance(word, meant) <= (1 if len(meant) < 9 else 2)


def _shorter_by_one(word: str, meant: str) -> bool:
    """Whether `word` is `meant` without one of its inner letters."""
    inside = (meant[:at] + meant[at + 1 :] for at in range(1, len(meant) - 1))
    return word in inside


def _without_a_double(word: str) -> set[str]:
    """The word with one of its doubled letters reduced to a single one, in all ways."""
    return {word[:at] + word[at + 1 :] for at in range(1, len(word)) if word[at] == word[at - 1]}


def _once(word: str) -> str:
    """The word without doubled letters."""
    return re.sub(r"(.)\1", r"\1", word)


def _distance(one: str, other: str) -> int:
    """The number of typing errors between two words that share a form with one letter left out: 1 or 2.

    An error is a letter added, left out or replaced, or two letters exchanged.
    """
    if len(one) != len(other):
        return 1
    apart = [at for at, (letter, against) in enumerate(zip(one, other, strict=True)) if letter != against]
    if len(apart) == 2:
        first, second = apart
        exchanged = second == first + 1 and one[first] == other[second] and one[second] == other[first]
        return 1 if exchanged else 2
    return min(len(apart), 2)
