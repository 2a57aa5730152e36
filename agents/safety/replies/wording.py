"""The fixed texts of safety answers, with the phone numbers of a region."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.errors import BadRules
from agents.safety.language import OTHER
from agents.safety.replies.first_aid import FirstAid
from agents.safety.replies.first_aid import load as load_first_aid
from agents.safety.verdict import (
    AT_ONCE,
    CALLED,
    FIRM,
    GOING,
    MEANWHILE,
    MISTAKE,
    NO_HELP,
    PLANNED,
    STILL,
    Family,
    Verdict,
)

ELSEWHERE: Final = "elsewhere"
SOMEBODY: Final = "person"
"""The relation of somebody whose relation to the writer is not known."""

ROUTER: Final = "router"
"""The rule of an emergency that only the router found. The router cannot tell it from a crisis."""

CLAIMS: Final = ("dose", "prescription", "diagnosis", "reassurance")
"""The kinds of claims that a brain may not make, the gravest first. Ids of output rules begin with them."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Region(_Section):
    """Whom to call in an emergency, in a crisis and about violence, and the source of these numbers."""

    emergency: Annotated[str, Field(min_length=1)]
    crisis: Annotated[str, Field(min_length=1)]
    abuse: Annotated[str | None, Field(min_length=1)] = None
    source: Annotated[str, Field(min_length=1)]


class Text(_Section):
    """One answer: the sentence that is sent at once, and those after it."""

    first: Annotated[str, Field(min_length=1)]
    rest: tuple[Annotated[str, Field(min_length=1)], ...]


_Sentence: TypeAlias = Annotated[str, Field(min_length=1)]
_Variants: TypeAlias = Annotated[tuple[Text, ...], Field(min_length=2)]


class _Refused(_Section):
    diagnosis: _Sentence
    dose: _Sentence
    prescription: _Sentence
    reassurance: _Sentence
    other: _Sentence


class _Texts(_Section):
    caution: str
    refused: _Refused
    error: str
    no_danger: str
    or_crisis: str
    emergency: Mapping[str, tuple[Text, ...]]
    crisis: Mapping[str, tuple[Text, ...]]
    violence: Mapping[str, tuple[Text, ...]]
    possible: Mapping[str, _Variants]
    again: Mapping[Family, Annotated[tuple[_Sentence, ...], Field(min_length=2)]]
    settled: Mapping[Family, _Sentence]
    comes_back: Mapping[Family | Literal["called"], Annotated[tuple[_Sentence, ...], Field(min_length=2)]]
    light: Mapping[Family | Literal["called"], Annotated[tuple[_Sentence, ...], Field(min_length=2)]]
    meanwhile: Mapping[Family, _Variants]
    called: Mapping[Family, _Variants]
    going: Mapping[Family, _Variants]
    planned: Mapping[Family, _Variants]
    no_help: Mapping[Family, _Variants]
    foreign: Mapping[str, str]


class Wording:
    """The texts of one region with its numbers filled in."""

    def __init__(
        self, texts: _Texts, of_others: _Texts, region: Region, elsewhere: Region, first_aid: FirstAid
    ) -> None:
        """`of_others` are the texts for a danger that is not the writer's own."""
        self._texts, self._of_others = texts, of_others
        self.first_aid = first_aid
        abuse = region.abuse or elsewhere.abuse or region.crisis
        self._numbers = {"emergency": region.emergency, "crisis": region.crisis, "abuse": abuse}
        self.caution = texts.caution.format_map(self._numbers)
        self.error = texts.error.format_map(self._numbers)
        self.no_danger = texts.no_danger.format_map(self._numbers)

    @property
    def numbers(self) -> Mapping[str, str]:
        """Whom to call, by `emergency`, `crisis` and `abuse`."""
        return self._numbers

    def refused(self, rules: Sequence[str]) -> str:
        """What is said in place of a sentence that breaks these rules, by the kind of its gravest claim."""
        broken = {rule.partition(".")[0] for rule in rules}
        texts = dict(self._texts.refused)
        return self._filled(texts[next((kind for kind in CLAIMS if kind in broken), "other")])

    def foreign(self, language: str) -> str:
        """The text before the answer to a message in another language, in that language too if we can."""
        texts = self._texts.foreign
        said = (
            texts[OTHER]
            if language not in texts or language == OTHER
            else f"{texts[language]} {texts[OTHER]}"
        )
        return said.format_map(self._numbers)

    def settled(self, danger: Verdict) -> str:
        """The answer to a person who says that a danger is over, or that help is there."""
        return self._filled(self._for(danger).settled[danger.family], danger)

    def comes_back(self, danger: Verdict, *, again: bool = False) -> str:
        """The text before an answer about another topic, while a danger stands; a shorter one `again`."""
        return self._filled(self._for(danger).comes_back[_name(danger)][again], danger)

    def light(self, danger: Verdict, earlier: int) -> str:
        """The answer to a mere "haha ok" or "bye" after a certain danger."""
        variants = self._for(danger).light[_name(danger)]
        return self._filled(variants[earlier % len(variants)], danger)

    def answer(self, verdict: Verdict, earlier: int) -> tuple[str, ...]:
        """The sentences of a safety answer. `earlier` ones in the conversation make its wording differ.

        Possible danger gets one question.
        """
        return tuple(self._filled(sentence, verdict) for sentence in self._answer(verdict, earlier))

    def _for(self, danger: Verdict) -> _Texts:
        """The texts for the writer, or for somebody who writes about another person."""
        return self._texts if danger.relation is None else self._of_others

    def _answer(self, verdict: Verdict, earlier: int) -> Iterator[str]:
        texts, family, rules = self._for(verdict), verdict.family, verdict.rule_ids
        tiers: Mapping[str, tuple[Text, ...]] = getattr(texts, family)
        variants = tiers.get(str(verdict.tier)) or tiers["3"]
        if verdict.is_possible:
            variants = self._questions(verdict)
            text = variants[earlier % len(variants)]
        elif (topic := self.first_aid.by_rule(rules)) is not None:
            text = Text(first=topic.first, rest=topic.rest)
            if STILL not in rules:  # a new danger: whom to call comes first
                text = Text(first=variants[0].first, rest=(topic.first, *topic.rest))
        elif (after := self._after(verdict)) is not None:
            text = after[earlier % len(after)]
        elif earlier < len(variants):
            text = variants[earlier]
        else:
            again = texts.again[family]
            text = Text(first=again[earlier % len(again)], rest=())
        yield text.first
        if {ROUTER} == {*rules} - {STILL, FIRM}:
            yield texts.or_crisis
        yield from text.rest

    def _after(self, verdict: Verdict) -> tuple[Text, ...] | None:
        """The texts for what the person said about a danger before: a question, or how it is with help."""
        texts = self._for(verdict)
        by_mark = {
            MEANWHILE: texts.meanwhile,
            NO_HELP: texts.no_help,
            PLANNED: texts.planned,
            CALLED: texts.called,
            GOING: texts.going,
        }
        return next((by_mark[mark][verdict.family] for mark in by_mark if mark in verdict.rule_ids), None)

    def _questions(self, verdict: Verdict) -> tuple[Text, ...]:
        """The questions about a possible danger: by the family of a rule that fired, else by kind."""
        possible = self._for(verdict).possible
        families = (rule.split(".")[0] for rule in verdict.rule_ids)
        by_rule = (family for family in families if family in possible)
        name = MISTAKE if MISTAKE in verdict.rule_ids else next(by_rule, verdict.family)
        return possible[name]

    def _filled(self, sentence: str, danger: Verdict | None = None) -> str:
        """The sentence with its numbers and a capital first letter: it may begin with a service's name.

        `{them}` is the person in danger, such as "your daughter".
        """
        relation = danger.relation if danger else None
        them = f"your {relation}" if relation and relation != SOMEBODY else "this person"
        filled = sentence.format_map({**self._numbers, "them": them})
        return filled[:1].upper() + filled[1:]

    def check(self) -> None:
        """Fill in every text. Raises `KeyError` or `ValueError` if a placeholder or a text is missing."""
        for language in (OTHER, *self._texts.foreign):
            self.foreign(language)
        for texts in (self._texts, self._of_others):
            self._check(texts)
        for topic in self.first_aid.topics:
            self._fill((Text(first=topic.first, rest=topic.rest),))

    def _check(self, texts: _Texts) -> None:
        families = get_args(Family)
        for variants in texts.possible.values():
            self._fill(variants)
        for name in (*families, "called"):
            for sentence in (*texts.comes_back[name], *texts.light[name]):
                self._filled(sentence)
        for name in families:
            for after in (
                texts.possible,
                texts.called,
                texts.going,
                texts.planned,
                texts.no_help,
                texts.meanwhile,
            ):
                self._fill(after[name])
            for variants in getattr(texts, name).values():
                self._fill(variants)
            for sentence in (*texts.again[name], texts.settled[name]):
                self._filled(sentence)
            getattr(texts, name)[str(AT_ONCE)]
        self._fill(texts.possible[MISTAKE])

    def _fill(self, variants: tuple[Text, ...]) -> None:
        for sentence in (part for text in variants for part in (text.first, *text.rest)):
            self._filled(sentence)


def _name(danger: Verdict) -> Family | Literal["called"]:
    """The name of a short text: `called` if help is coming."""
    return danger.family if {CALLED, GOING}.isdisjoint(danger.rule_ids) else "called"


def load(folder: Path, region: str) -> Wording:
    """Load the texts of a folder for a region; for an unknown region, those that are right anywhere."""
    try:
        own = _toml(folder / "texts.toml")
        others = own.pop("others")
        of_others = {
            name: {**texts, **others.get(name, {})} if isinstance(texts, dict) else texts
            for name, texts in own.items()
        }
        regions = {name: Region.model_validate(each) for name, each in _toml(folder / "regions.toml").items()}
        wording = Wording(
            _Texts.model_validate(own),
            _Texts.model_validate(of_others),
            regions.get(region) or regions[ELSEWHERE],
            regions[ELSEWHERE],
            load_first_aid(folder),
        )
        wording.check()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise BadRules("texts.toml", ".".join(map(str, first["loc"])), first["msg"]) from None
    except (KeyError, ValueError, IndexError):
        raise BadRules("texts.toml", "$", "names a placeholder or a text that does not exist") from None
    return wording


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise BadRules(path.name, "$", "cannot be read as TOML") from None


def known_regions(folder: Path) -> tuple[str, ...]:
    """The names of the regions with known numbers."""
    return tuple(sorted(set(_toml(folder / "regions.toml")) - {ELSEWHERE}))
