"""The output guard refuses diagnoses, prescriptions, doses and false comfort in answers. Pure."""

import html
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from agents.errors import BadRules
from agents.safety.rules.text import clean

_ADVERBS: Final = (
    r"(?:(?:may|might|could|can|will|would|must|should|do|does|probably|likely|most likely|definitely|"
    r"most probably|clearly|almost certainly|certainly|obviously|just|only|also|well|really|simply|now|"
    r"very likely|still)\s+){0,4}"
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
_SOURCE: Final = re.compile(r"\(source: [^()]{1,80}\)")
_SENTENCES: Final = re.compile(r"(?<=[.!?])\s+")
_CLAUSES: Final = re.compile(
    r"[,;]\s+|\s+(?:so|but|then)\s+(?=\w)"
    r"|\s+(?=(?:if|whether|unless|in case|before (?:you|he|she|they|\w+ing))\b)"
    r"|\s+and\s+(?=(?:take|use|have|stop|skip|try|get|give|see|drop|double)\b)"
)
_ASKS: Final = re.compile(
    r"(?:(?:and|or|so|but|also|then|well|ok|okay|now|still|even|as well as|for example|such as|for instance|"
    r"if|when|in|on|at|with|to|of|from|about|has|have|had|any|another|other|something|anything|not|none|the|"
    r"your|an?|more|less|once|twice|before|after|during|since|only|just|maybe|perhaps|\w+ing|\w+ed)\b|"
    r"(?!why (?:not|do not you)\b|(?:how|what) about\b)(?:what|which|who|whom|whose|where|when|why|how)\b|"
    r"(?:do|does|did|are|is|was|were|am|have|has|had|can|could|will|would|should|shall|may|might|must)\b|\W*$)"
)
"""How a clause that asks begins. Other clauses of a question make a statement: "you have gout, do you?"."""
_ORDERS: Final = re.compile(
    r"\b(?:take|use|try|have|give|stop|skip|double|you|i|should|will|would|can|could|may|might|must|need|works?|"
    r"helps?|enough|recommend\w*|is|are)\b"
)
"""Words of clauses that do more than repeat what the person takes."""
_INSERTED: Final = re.compile(
    r"(?:can|may|might|could|will|would|should|must|is|are|was|were|has|does|often|sometimes|usually|also)\b"
)
"""How the rest of a clause begins after an insertion: "ibuprofen, together with lisinopril, can …"."""
_OPEN_END: Final = re.compile(r"\b(?:and|or|but)$")
_ATTRIBUTION: Final = re.compile(
    r"(?:as|like|that is what|so|from what|if)? ?"
    r"(?:(?:you|he|she|they) (?:have |had |has |just )?"
    r"(?:told me|tell me|said|say|mentioned|wrote|described|reported|explained)|"
    r"i (?:have )?(?:understood|noted|remember|see)(?: it| you| that)?(?: right| correctly)?)"
    r"(?: (?:so|it|this|that|me|you|earlier|before|already|yesterday|today|just now|last \w+|a \w+ ago|"
    r"(?:on|in|at) \w+))*"
    r"\W*$"
)
"""A clause that only says that the person told the clause before it."""
_DIRECTS: Final = re.compile(
    r"\b(?:take|use|try|give|stop|skip|double|halve|increase|reduce|should|must|need|recommend\w*|suggest\w*)\b"
)
_SOMEBODY: Final = (
    r"\b(?:you|your|yours|him|her|those|these|tonight|tomorrow|(?:i|we) would|"
    r"(?:for|to|on|with|get|fix|clear|stop|ease|treat|help|sort) (?:this|that|it|them)|"
    r"that (?=tablet|pill|medic|dose))\b"
)
"""Words which show that a clause addresses a person."""
_FOOD: Final = re.compile(
    r"\b(?:salt|fib(?:re|er)|proteins?|water|caffeine|coffee|sugar|vegetables?|fruit|fat|carb\w*|alcohol|fluids?|"
    r"calories|sodium|breaths?|juice|milk|tea|honey|wine|beer|glass(?:es)?|cups?|drinks?|steps?)\b"
)


class _Rule(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    id: Annotated[str, Field(pattern=r"^[a-z][a-z_.]*$")]
    patterns: Annotated[tuple[str, ...], Field(min_length=1)]
    unless: tuple[str, ...] = ()
    food: bool = False


class _Rules(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    conditions: tuple[str, ...]
    everyday: tuple[str, ...]
    general: tuple[str, ...]
    warns: tuple[str, ...]
    mild: tuple[str, ...]
    injured: tuple[str, ...]
    part: tuple[str, ...]
    finding: tuple[str, ...]
    medicines: tuple[str, ...]
    drugs: tuple[str, ...]
    amounts: tuple[str, ...]
    portions: tuple[str, ...]
    often: tuple[str, ...]
    spares: tuple[str, ...]
    recaps: tuple[str, ...]
    rule: Annotated[tuple[_Rule, ...], Field(min_length=1)]
    sentences: Mapping[str, Annotated[str, Field(min_length=1)]]

    @model_validator(mode="after")
    def _every_rule_has_a_sentence(self) -> Self:
        if missing := {claim_of(rule.id) for rule in self.rule} - set(self.sentences):
            kinds = ", ".join(sorted(missing))
            raise PydanticCustomError("sentences", "has no sentence for {kinds}", {"kinds": kinds})
        return self


def claim_of(rule_id: str) -> str:
    """The kind of claim that a rule refuses: `dose` for `dose.directive`."""
    return rule_id.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A pattern that no answer may contain, unless `unless` matches or, with `but_food`, it is about food."""

    name: str
    says: re.Pattern[str]
    unless: re.Pattern[str] | None = None
    but_food: bool = False

    def refuses(self, clause: str) -> bool:
        """Whether the rule refuses a clause."""
        harmless = (self.unless and self.unless.search(clause)) or (self.but_food and _FOOD.search(clause))
        return self.says.search(clause) is not None and not harmless


class OutputGuard:
    """Checks each sentence of a brain before it is sent."""

    def __init__(
        self,
        rules: Sequence[Refusal],
        spares: re.Pattern[str],
        recaps: re.Pattern[str],
        sentences: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._rules, self._spares, self._recaps = rules, spares, recaps
        self.sentences = sentences
        """The rules as sentences for a model, by kind of claim."""

    @property
    def claims(self) -> tuple[str, ...]:
        """The kinds of claims that are refused, each once."""
        return tuple(dict.fromkeys(claim_of(rule.name) for rule in self._rules))

    def refusals(
        self, sentence: str, further: Mapping[str, re.Pattern[str]] = MappingProxyType({})
    ) -> tuple[str, ...]:
        """The names of the rules that one or more sentences break. Without any, they may be sent.

        `further` are additional rules of the specialist.
        """
        stated = [
            clause
            for each in _SENTENCES.split(_plain(sentence))
            for clause in self._stated(each)
            if not (each.endswith("?") and _ASKS.match(clause)) and not self._spares.search(clause)
        ]
        own = [rule.name for rule in self._rules if any(map(rule.refuses, stated))]
        more = [name for name, pattern in further.items() if any(map(pattern.search, stated))]
        return tuple(dict.fromkeys((*own, *more)))

    def allowed_part(self, text: str, further: Mapping[str, re.Pattern[str]] = MappingProxyType({})) -> str:
        """The sentences of a text that break no rule."""
        return " ".join(each for each in _SENTENCES.split(text) if not self.refusals(each, further))

    def _stated(self, sentence: str) -> list[str]:
        """The clauses of a sentence that state something themselves, without what only repeats the person."""
        lead = self._recaps.match(sentence)
        clauses = _without_told(_whole_clauses(sentence[lead.end() :] if lead else sentence))
        return [clause for clause in clauses if _ORDERS.search(clause)] if lead else clauses


def _whole_clauses(sentence: str) -> list[str]:
    """The clauses of a sentence. Parts that an insertion between commas separates are one clause."""
    clauses: list[str] = []
    for part in _CLAUSES.split(sentence):
        if clauses and (_OPEN_END.search(clauses[-1]) or _INSERTED.match(part)):
            clauses[-1] += f" {part}"
        else:
            clauses.append(part)
    return clauses


def _without_told(clauses: Sequence[str]) -> list[str]:
    """The clauses without those that the one beside them attributes to the person, unless they direct."""
    kept = []
    for number, clause in enumerate(clauses):
        before, after = clauses[max(number - 1, 0)], (*clauses, "")[number + 1]
        is_told = _ATTRIBUTION.match(after) or (_ATTRIBUTION.match(before) and clause.startswith("and "))
        if not is_told or _DIRECTS.search(clause):
            kept.append(clause)
    return kept


def _plain(sentence: str) -> str:
    """The sentence in lower case, without marks and sources, with contractions and number words replaced."""
    plain = _SOURCE.sub("", _MARKS.sub("", clean(html.unescape(sentence))))
    for short, whole in _CONTRACTIONS:
        plain = short.sub(whole, plain)
    plain = re.sub(r"\b(?:a couple|couple) of\b", "2", plain)
    plain = _NUMBER_WORDS.sub(lambda found: _NUMBERS[found[0]], plain)
    plain = re.sub(r"\b(\d+) (100|1000)\b", lambda found: str(int(found[1]) * int(found[2])), plain)
    return re.sub(r"\s+", " ", plain).strip()


def load(folder: Path) -> OutputGuard:
    """Load the output guard from a folder of rules."""
    try:
        rules = _Rules.model_validate(tomllib.loads((folder / "output.toml").read_text(encoding="utf-8")))
        words = {
            "{condition}": _any(rules.conditions) + r"\b",
            "{everyday}": _any(rules.everyday),
            "{general}": _any(rules.general),
            "{warns}": _any(rules.warns),
            "{mild}": _any(rules.mild),
            "{injured}": _any(rules.injured),
            "{part}": _any(rules.part),
            "{finding}": _any(rules.finding),
            "{drug}": r"\b" + _any((*rules.medicines, *rules.drugs)) + r"\b",
            "{medicine}": r"\b" + _any(rules.medicines) + r"\b",
            "{amount}": _any(rules.amounts),
            "{portion}": _any(rules.portions) + r"\b",
            "{often}": _any(rules.often) + r"\b",
            "{adverbs}": _ADVERBS,
            "{somebody}": _SOMEBODY,
            "{where}": r"(?: (?:in|on|around|behind|of|down|under) (?:your|the|his|her) \w+)?",
        }
        return OutputGuard(
            [
                Refusal(
                    rule.id,
                    re.compile(_filled(_any(rule.patterns), words)),
                    re.compile(_filled(_any(rule.unless), words)) if rule.unless else None,
                    rule.food,
                )
                for rule in rules.rule
            ],
            re.compile(_any(rules.spares)),
            re.compile(_any(rules.recaps)),
            rules.sentences,
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
