"""Finds many phrases in a text at once. Each belongs to a concept; small words may come between its words."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, NamedTuple, TypeAlias

from agents.safety.rules.text import Word

_CHOICE: Final = re.compile(r"\(([^()]*\)\??)")
_VOWELS: Final = frozenset("aeiou")
MOST_BETWEEN: Final = 3
"""Maximum number of small words in a row between two words of a phrase."""


class Found(NamedTuple):
    """A phrase found in a text: its concept, its words, and whether it contains a 'not' itself (`negative`).

    It is `guessed` if one of its words was misspelt and corrected.
    """

    concept: str
    start: int
    end: int
    negative: bool = False
    guessed: bool = False


_Node: TypeAlias = list[Any]
"""A node of the tree of phrases: the next words with their nodes, and the concepts of phrases that end here.

It is a list, not a class, because `marshal` stores only built-in types.
"""
_CHILDREN: Final = 0
_CONCEPTS: Final = 1

Tree: TypeAlias = tuple[_Node, set[str], set[tuple[str, str]]]
"""The root of the tree, all words, and all pairs of adjacent words in phrases."""

_Open: TypeAlias = tuple[dict[str, _Node], int, bool]
"""An incomplete match: the possible next nodes, its start, and whether a word was guessed."""
_new: Final = tuple.__new__
"""Makes a `Found` in half the time of a call of the class."""


@dataclass(frozen=True, slots=True)
class Others:
    """Turns phrases in the first person into the third person.

    Each of `persons` maps "i", "my" and so on to its own words; `endings` maps verbs to their third person.
    """

    persons: Sequence[Mapping[str, str]]
    endings: Mapping[str, str]

    def in_third_person(self, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """Yield a phrase such as "wish i was dead" as it is said of her, of him and of them."""
        if self.persons[0].keys().isdisjoint(words):
            if (says := self.endings.get(words[0])) is not None:
                yield (says, *words[1:])
            return
        verbs = [
            at for at, word in enumerate(words) if word in self.endings and (at == 0 or words[at - 1] == "i")
        ]
        for person in self.persons:
            changed = [person.get(word, word) for word in words]
            yield tuple(changed)
            if verbs:
                for at in verbs:
                    changed[at] = self.endings[words[at]]
                yield tuple(changed)


class PhraseBook:
    """Phrases by concept, as one tree of words. `between` are small words that may come inside any phrase.

    `(a|b)` in a phrase stands for either, `(a)?` for a or nothing, `word~` for the word in any of its forms.
    """

    def __init__(
        self, between: Set[str], negative: Set[str], others: "Others", tree: Tree | None = None
    ) -> None:
        self._others = others
        self._between = between
        self._negative = negative
        self.tree: Tree = tree or ([{}, ()], set(), set())
        self._root, self.vocabulary, self.pairs = self.tree

    def add(self, concept: str, phrase: str, *, of_others: bool = False) -> None:
        """Add a phrase of a concept. With `of_others`, also add it in the third person."""
        for own in spelled_out(phrase):
            self._add(concept, own)
            for other in self._others.in_third_person(own) if of_others else ():
                self._add(concept, other)

    def _add(self, concept: str, words: tuple[str, ...]) -> None:
        node, before = self._root, ""
        for word in words:
            if (child := node[_CHILDREN].get(word)) is None:
                child = node[_CHILDREN][word] = [{}, ()]
                self.vocabulary.add(word)
                if before:
                    self.pairs.add((before, word))
            node, before = child, word
        said = (concept, words[0] in self._negative)
        if said not in node[_CONCEPTS]:
            node[_CONCEPTS] = (*node[_CONCEPTS], said)

    def find(self, words: Sequence[Word]) -> list[Found]:
        """Every phrase in the text, ordered by its end."""
        found: list[Found] = []
        root, between, vocabulary = self._root[_CHILDREN], self._between, self.vocabulary
        open_at: list[_Open] = []
        last: list[_Open] = []
        older: list[_Open] = []
        oldest: list[_Open] = []
        for at, (text, readings, _) in enumerate(words):
            begun: list[_Open] = []
            for reading in readings if len(readings) > 1 or text in vocabulary else ():
                is_guess = reading != readings[-1]
                for children, start, was_guess in open_at:
                    if reading in children:
                        (following, concepts), guessed = children[reading], was_guess or is_guess
                        for name, no in concepts:
                            found.append(_new(Found, (name, start, at + 1, no, guessed)))
                        if following:
                            begun.append((following, start, guessed))
                if reading in root:
                    following, concepts = root[reading]
                    for name, no in concepts:
                        found.append(_new(Found, (name, at, at + 1, no, is_guess)))
                    if following:
                        begun.append((following, at, is_guess))
            if text in between:
                open_at = begun + last + older + oldest
                last, older, oldest = begun, last, older
            else:
                open_at = last = begun
                older = oldest = []
        return found


def spelled_out(phrase: str) -> Iterator[tuple[str, ...]]:
    """The word sequences that a phrase stands for."""
    pieces = _CHOICE.split(phrase)
    for chosen in product(*(_choices(part) if at % 2 else (part,) for at, part in enumerate(pieces))):
        yield from product(*(forms(word) for word in "".join(chosen).split()))


def _choices(choice: str) -> list[str]:
    """The options between round brackets. A `?` after them adds the empty option."""
    may_be_missing = choice.endswith("?")
    return [*choice.rstrip("?").rstrip(")").split("|"), *([""] if may_be_missing else [])]


def forms(word: str) -> tuple[str, ...]:
    """All forms of a regular verb or noun that is marked with `~`; otherwise only the word."""
    if not word.endswith("~"):
        return (word,)
    stem = word[:-1]
    made: Iterable[str]
    if stem.endswith("e"):
        made = (stem, f"{stem}s", f"{stem}d", f"{stem[:-1]}ing", f"{stem[:-1]}in")
    elif stem.endswith("y") and stem[-2] not in _VOWELS:
        made = (stem, f"{stem[:-1]}ies", f"{stem[:-1]}ied", f"{stem}ing")
    else:
        last = stem[-1]
        doubles = len(stem) > 2 and stem[-2] in _VOWELS and stem[-3] not in _VOWELS and last not in "wxyaeiou"
        long = f"{stem}{last}" if doubles else stem
        plural = f"{stem}es" if last in "sxzh" else f"{stem}s"
        made = (stem, plural, f"{stem}ed", f"{stem}ing", f"{stem}in", f"{long}ed", f"{long}ing", f"{long}in")
    return tuple(dict.fromkeys(made))
