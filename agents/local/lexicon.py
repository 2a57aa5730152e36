"""The words of `lexicon.toml`, and where they stand in a text."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agents.errors import BadRoster
from agents.utterance import word_set as word_set

MOST_READ: Final = 2_000
"""Of a long message, this many characters are searched for facts."""

_TOKEN: Final = re.compile(r"[a-z\u00c0-\u024f]+(?:['-][a-z\u00c0-\u024f]+)*'?|\d+(?:[.,]\d+)?|[^\w\s]")
_PLAIN: Final = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-"})
_NOT: Final = "do does did have has had is are was were would could should"
_SHORTENED: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), by)
    for pattern, by in (
        (rf"\b({'|'.join(_NOT.split())}|wo)nt\b", r"\1n't"),
        (r"\b(ca)nt\b", r"\1n't"),
        (r"\b(i)m\b", r"\1'm"),
        (r"\b(i|they|we|you)ve\b", r"\1've"),
        (r"\b(that|he|she|there|what)s\b", r"\1's"),
    )
)
"""Words as they are written without their mark, where they can be nothing else, and with it."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word or mark of a text, in small letters, with its place in it."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Mention:
    """An entry of the lexicon where a text has it: words `first` to `last`, the latter excluded."""

    group: str
    text: str
    first: int
    last: int


class Lexicon:
    """Entries of one or more words, by group (`complaints.nouns`), found in one pass over a text."""

    def __init__(self, groups: Mapping[str, Iterable[str]]) -> None:
        self._groups = {name: frozenset(entries) for name, entries in groups.items()}
        self._by_first: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        for name, entries in self._groups.items():
            if name.split(".")[0] not in _SCANNED:
                continue
            owners = entries if name == "people.relatives" else frozenset()
            owned = {f"{each}{mark}" for each in owners for mark in ("'s", "s")}  # `my babys cough`
            for entry in sorted(entries | owned | {plural(each) for each in entries if name in _COUNTED}):
                parts = tuple(word.text for word in words_of(entry))
                self._by_first.setdefault(parts[0], []).append((parts, name))
        for found in self._by_first.values():
            found.sort(key=lambda each: -len(each[0]))

    def group(self, name: str) -> frozenset[str]:
        """The entries of one group; none where there is no such group."""
        return self._groups.get(name, frozenset())

    def mentions(self, words: tuple[Word, ...]) -> tuple[Mention, ...]:
        """Every entry in the text, the longest at each place; one place may be of several groups."""
        return tuple(self._found(words))

    def _found(self, words: tuple[Word, ...]) -> Iterator[Mention]:
        texts = tuple(word.text for word in words)
        covered = 0
        for at, text in enumerate(texts):
            longest = 0
            for parts, group in self._by_first.get(text, ()):
                size = len(parts)
                if size < longest or texts[at : at + size] != parts or at + size <= covered:
                    continue
                longest = size
                yield Mention(group, " ".join(parts), at, at + size)
            covered = max(covered, at + longest)


_SCANNED: Final = frozenset(("complaints", "body", "medicines", "conditions", "people"))
_COUNTED: Final = frozenset(
    ("complaints.nouns", "body.parts", "medicines.names", "conditions.names", "people.relatives")
)


def load(path: Path) -> Lexicon:
    """The lexicon that a file holds."""
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise BadRoster(path.name, "$", "cannot be read as TOML") from None
    groups: dict[str, tuple[str, ...]] = {}
    for section, lists in said.items():
        if not isinstance(lists, dict):
            raise BadRoster(path.name, section, "is not a section")
        for name, entries in lists.items():
            if not isinstance(entries, list) or not all(
                isinstance(each, str) and words_of(each) for each in entries
            ):
                raise BadRoster(path.name, f"{section}.{name}", "is not a list of words")
            groups[f"{section}.{name}"] = tuple(" ".join(each.lower().split()) for each in entries)
    return Lexicon(groups)


def plain(text: str) -> str:
    """A text on one line with straight quotes, cut to what is read of it; `dont` is read as `don't`."""
    text = " ".join(text[:MOST_READ].translate(_PLAIN).split())
    for pattern, by in _SHORTENED:
        text = pattern.sub(by, text)
    return text


def words_of(text: str) -> tuple[Word, ...]:
    """The words and marks of a text, in their order."""
    return tuple(Word(found[0], found.start(), found.end()) for found in _TOKEN.finditer(text.lower()))


def plural(word: str) -> str:
    """A word's regular plural; one that ends in `s` stays as it is."""
    if word.endswith("s"):
        return word
    if word.endswith(("sh", "ch", "x")):
        return f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") and word[-2] not in "aeiou" else f"{word}s"


def any_of(entries: Iterable[str]) -> re.Pattern[str]:
    """A pattern that finds any of the entries where it stands as words, the longest first."""
    listed = "|".join(re.escape(each) for each in sorted(entries, key=len, reverse=True))
    return re.compile(rf"(?<![\w'])(?:{listed})(?![\w'])", re.IGNORECASE)
