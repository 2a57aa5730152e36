"""What no brain may say: diagnoses, prescriptions and doses are refused, sentence by sentence. Pure."""

import html
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.errors import BadRules
from agents.safety.text import clean

_ADVERBS: Final = (
    r"(?:(?:may|might|could|can|will|would|must|should|do|does|probably|likely|most likely|definitely|"
    r"clearly|almost certainly|certainly|obviously|just|only|also|well|really|simply|now|very likely|still)"
    r"\s+){0,4}"
)
_CONTRACTIONS: Final = (
    (re.compile(r"\bcan'?t\b|\bcan not\b"), "cannot"),
    (re.compile(r"\bwon'?t\b"), "will not"),
    (re.compile(r"\b(do|does|did|is|are|was|were|has|have|had|should|would|could|must)n'?t\b"), r"\1 not"),
    (re.compile(r"\b(you|we|they)'?re\b"), r"\1 are"),
    (re.compile(r"\b(i)'?m\b"), r"\1 am"),
    (re.compile(r"\b(i|you|we|they)'?ve\b"), r"\1 have"),
    (re.compile(r"\b(i|you|it|this|that|he|she|they|we)'ll\b"), r"\1 will"),
    (re.compile(r"\b(i|you|it|he|she|they|we)'d\b"), r"\1 would"),
    (re.compile(r"\b(it|this|that|there|here|what|he|she)'s\b"), r"\1 is"),
)
_UP_TO_TEN: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS: Final = {word: str(number) for number, word in enumerate(_UP_TO_TEN, 1)} | {
    "twelve": "12",
    "fifteen": "15",
    "twenty": "20",
    "thirty": "30",
    "fifty": "50",
    "hundred": "100",
    "thousand": "1000",
}
_NUMBER_WORDS: Final = re.compile(rf"\b(?:{'|'.join(_NUMBERS)})\b")
_MARKS: Final = re.compile(r"[*_`~#>|\"]+")
_SENTENCES: Final = re.compile(r"(?<=[.!?])\s+")
_CLAUSES: Final = re.compile(r"[,;]\s+|\s+(?:so|but|then)\s+(?=\w)")
_FOOD: Final = re.compile(
    r"\b(?:salt|fib(?:re|er)|proteins?|water|caffeine|coffee|sugar|vegetables?|fruit|fat|carb\w*|alcohol|fluids?|"
    r"calories|sodium|breakfast|breaths?)\b"
)


class _Rule(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    id: Annotated[str, Field(pattern=r"^[a-z][a-z_.]*$")]
    patterns: Annotated[tuple[str, ...], Field(min_length=1)]
    food: bool = False


class _Rules(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    conditions: tuple[str, ...]
    medicines: tuple[str, ...]
    amounts: tuple[str, ...]
    often: tuple[str, ...]
    spares: tuple[str, ...]
    rule: Annotated[tuple[_Rule, ...], Field(min_length=1)]


class OutputGuard:
    """Reads what a brain says before anybody else does."""

    def __init__(
        self, rules: Mapping[str, re.Pattern[str]], spares: re.Pattern[str], of_food: frozenset[str]
    ) -> None:
        self._rules, self._spares, self._of_food = rules, spares, of_food

    def refusals(
        self, sentence: str, further: Mapping[str, re.Pattern[str]] = MappingProxyType({})
    ) -> tuple[str, ...]:
        """The rules that a sentence breaks, or a few of them together; it may be said when there is none.

        `further` are rules of whoever says it, on top of those that hold for all.
        """
        told = [
            clause
            for each in _SENTENCES.split(_plain(sentence))
            if not each.endswith("?")
            for clause in _CLAUSES.split(each)
            if not self._spares.search(clause)
        ]
        return tuple(
            name
            for name, pattern in (*self._rules.items(), *further.items())
            if any(
                pattern.search(clause) and not (name in self._of_food and _FOOD.search(clause))
                for clause in told
            )
        )


def _plain(sentence: str) -> str:
    """A sentence in small letters, without marks, contractions and number words."""
    plain = _MARKS.sub("", clean(html.unescape(sentence)))
    for short, whole in _CONTRACTIONS:
        plain = short.sub(whole, plain)
    plain = _NUMBER_WORDS.sub(lambda found: _NUMBERS[found[0]], plain)
    plain = re.sub(r"\b(\d+) (100|1000)\b", lambda found: str(int(found[1]) * int(found[2])), plain)
    return re.sub(r"\s+", " ", plain).strip()


def load(folder: Path) -> OutputGuard:
    """The output guard of a folder of rules."""
    try:
        rules = _Rules.model_validate(tomllib.loads((folder / "output.toml").read_text(encoding="utf-8")))
        words = {
            "{condition}": _any(rules.conditions) + r"\b",
            "{medicine}": r"\b" + _any(rules.medicines) + r"\b",
            "{amount}": _any(rules.amounts),
            "{often}": _any(rules.often) + r"\b",
            "{adverbs}": _ADVERBS,
        }
        return OutputGuard(
            {rule.id: re.compile(_filled(_any(rule.patterns), words)) for rule in rules.rule},
            re.compile(_any(rules.spares)),
            frozenset(rule.id for rule in rules.rule if rule.food),
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise BadRules("output.toml", ".".join(map(str, first["loc"])), first["msg"]) from None
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, re.error):
        raise BadRules("output.toml", "$", "cannot be read as rules") from None


def _any(patterns: Sequence[str]) -> str:
    return f"(?:{'|'.join(patterns)})"


def _filled(pattern: str, words: Mapping[str, str]) -> str:
    for name, stands_for in words.items():
        pattern = pattern.replace(name, stands_for)
    return pattern
