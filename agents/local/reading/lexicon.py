"""The words of `lexicon.toml`, and where they stand in a text."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agents.errors import BadRoster

_TOKEN: Final = re.compile(r"[a-z\u00c0-\u024f]+(?:['-][a-z\u00c0-\u024f]+)*'?|\d+(?:[.,]\d+)?|[^\w\s]")
_SCANNED: Final = frozenset(("complaints", "body", "medicines", "conditions"))
_COUNTED: Final = frozenset(("complaints.nouns", "body.parts", "medicines.names", "conditions.names"))


@dataclass(frozen=True, slots=True)
class Word:
    """One word or mark of a text, in lower case, with its place in it."""

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
            for entry in sorted(entries | {_plural(each) for each in entries if name in _COUNTED}):
                parts = tuple(word.text for word in words_of(entry))
                self._by_first.setdefault(parts[0], []).append((parts, name))
        for found in self._by_first.values():
            found.sort(key=lambda each: -len(each[0]))

    def group(self, name: str) -> frozenset[str]:
        """The entries of one group; none if there is no such group."""
        return self._groups.get(name, frozenset())

    def mentions(self, words: tuple[Word, ...]) -> Iterator[Mention]:
        """Every entry in the text, the longest at each place; one place may be of several groups."""
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


def load(path: Path) -> Lexicon:
    """Load the lexicon."""
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise BadRoster(path.name, "$", "cannot be read as TOML") from None
    groups: dict[str, tuple[str, ...]] = {}
    for section, lists in said.items():
        for name, entries in lists.items() if isinstance(lists, dict) else ():
            if not isinstance(entries, list) or not all(isinstance(each, str) for each in entries):
                raise BadRoster(path.name, f"{section}.{name}", "is not a list of words")
            groups[f"{section}.{name}"] = tuple(" ".join(each.lower().split()) for each in entries)
    return Lexicon(groups)


def words_of(text: str) -> tuple[Word, ...]:
    """The words and marks of a text, in their order."""
    return tuple(Word(found[0], found.start(), found.end()) for found in _TOKEN.finditer(text.lower()))


def _plural(word: str) -> str:
    if word.endswith("s"):
        return word
    if word.endswith(("sh", "ch", "x")):
        return f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") and word[-2] not in "aeiou" else f"{word}s"
