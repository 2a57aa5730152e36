"""Detects messages that are not in English, which the guard cannot judge. Pure."""

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from agents.errors import BadRules

OTHER: Final = "other"
"""Any language that `languages.toml` does not name."""
_WORD: Final = re.compile(r"[^\W\d_]+")
_LOOKED_AT: Final = 2_000
_ENOUGH: Final = 2.0
_LONG: Final = 6
_SHORT_WORD: Final = 5
_SHORTEST_CRY: Final = 3


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class _Language(_Section):
    telling: frozenset[str]
    words: frozenset[str]
    weak: frozenset[str]


class _Languages(_Section):
    english: frozenset[str]
    scripts: Mapping[str, str]
    languages: Mapping[str, _Language]


class Languages:
    """Detects the languages of `languages.toml`."""

    def __init__(self, config: _Languages, known: frozenset[str]) -> None:
        self._english, self._known, self._scripts = config.english, config.english | known, config.scripts
        self._weights: dict[str, list[tuple[str, float]]] = {}
        for name, language in config.languages.items():
            for weight, words in ((2.0, language.telling), (1.0, language.words), (0.5, language.weak)):
                for word in words:
                    self._weights.setdefault(word, []).append((name, weight))

    def foreign(self, text: str) -> str | None:
        """The language of a message; None if it is English or too short to decide."""
        text = text[:_LOOKED_AT]
        if not text.isascii():
            text = unicodedata.normalize("NFKC", text)
            if (script := self._script(text)) is not None:
                return script
        words = _WORD.findall(_plain(text))
        weight: dict[str, float] = {}
        seen: dict[str, set[str]] = {}
        for word in words:
            for name, worth in self._weights.get(word, ()):
                weight[name] = weight.get(name, 0) + worth
                seen.setdefault(name, set()).add(word)
        english = sum(word in self._english for word in words)
        if weight:
            best = max(weight, key=lambda name: weight[name])
            alone = len(words) == 1 and len(words[0]) > _SHORTEST_CRY
            if weight[best] >= _ENOUGH and weight[best] > english and (alone or len(seen[best]) > 1):
                return best
        return OTHER if self._hardly_english(words) else None

    def _script(self, text: str) -> str | None:
        """The language of the script in which most words are written; None if that is Latin."""
        words = _WORD.findall(text)
        scripts = [script for word in words if (script := _alphabet(word)) is not None]
        if len(scripts) * 2 <= len(words):
            return None
        most = max(scripts, key=scripts.count)
        kana = {unicodedata.name(letter, "").split(" ")[0] for letter in text} & {"HIRAGANA", "KATAKANA"}
        return self._scripts.get(min(kana) if kana else most, OTHER)

    def _hardly_english(self, words: list[str]) -> bool:
        """Whether hardly any word is English. Long words do not count, since a list of medicines has many."""
        ours = sum(word in self._known for word in words)
        small = sum(len(word) <= _SHORT_WORD for word in words)
        return len(words) >= _LONG and small * 2 >= len(words) and ours * _LONG <= len(words)


def load(folder: Path, known: frozenset[str]) -> Languages:
    """Load the languages from a folder of rules. `known` are English words that the rules use."""
    try:
        said = tomllib.loads((folder / "languages.toml").read_text(encoding="utf-8"))
        return Languages(_Languages.model_validate(said), known)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise BadRules("languages.toml", ".".join(map(str, first["loc"])), first["msg"]) from None
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise BadRules("languages.toml", "$", "cannot be read as TOML") from None


def _alphabet(word: str) -> str | None:
    """The script of most letters of a word; None if that is Latin."""
    named = [unicodedata.name(letter, "").split(" ")[0] for letter in word]
    foreign = [name for name in named if name != "LATIN"]
    return max(foreign, key=foreign.count) if len(foreign) * 2 > len(named) else None


def _plain(text: str) -> str:
    """The text in lower case without accents, and without the apostrophes of English words."""
    text = text.casefold().replace("\u2019", "'")
    for ending in ("n't", "'m", "'ve", "'s", "'ll", "'re", "'d"):
        text = text.replace(ending, ending.replace("'", ""))
    if text.isascii():
        return text
    spread = unicodedata.normalize("NFD", text.replace("\u0131", "i").replace("\u0142", "l"))
    return "".join(letter for letter in spread if unicodedata.category(letter) not in ("Mn", "Cf"))
