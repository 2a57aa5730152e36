"""The fixed texts of safety answers, with the phone numbers of a region."""

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.errors import BadRules
from agents.safety.after_danger import AT_ONCE, CALLED, MEANWHILE
from agents.safety.language import OTHER
from agents.safety.verdict import STILL, Verdict

ELSEWHERE: Final = "elsewhere"

ROUTER: Final = "router"
"""The rule of an emergency that only the router found. The router cannot tell it from a crisis."""


VIOLENCE: Final = ("abuse.", "assault.", "harm_to_others")
"""Id prefixes of the rules about violence."""
OTHER_CRISES: Final = ("suicide.", "self_harm", "psychosis.")
"""Id prefixes of the rules about other crises."""


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


class _Texts(_Section):
    caution: str
    refused: str
    error: str
    settled: str
    or_crisis: str
    emergency: Mapping[str, tuple[Text, ...]]
    crisis: Mapping[str, tuple[Text, ...]]
    violence: Mapping[str, tuple[Text, ...]]
    again: Mapping[str, Annotated[tuple[str, ...], Field(min_length=2)]]
    comes_back: Mapping[str, Annotated[str, Field(min_length=1)]]
    meanwhile: Annotated[tuple[Text, ...], Field(min_length=2)]
    called: Annotated[tuple[Text, ...], Field(min_length=2)]
    foreign: Mapping[str, str]


class Wording:
    """The texts of one region with its numbers filled in."""

    def __init__(self, texts: _Texts, region: Region, elsewhere: Region) -> None:
        self._texts = texts
        abuse = region.abuse or elsewhere.abuse or region.crisis
        self._numbers = {"emergency": region.emergency, "crisis": region.crisis, "abuse": abuse}
        self.caution = texts.caution.format_map(self._numbers)
        self.refused = texts.refused.format_map(self._numbers)
        self.error = texts.error.format_map(self._numbers)
        self.settled = texts.settled.format_map(self._numbers)

    def foreign(self, language: str) -> str:
        """The text before the answer to a message in another language, in that language too if we can."""
        texts = self._texts.foreign
        said = (
            texts[OTHER]
            if language not in texts or language == OTHER
            else f"{texts[language]} {texts[OTHER]}"
        )
        return said.format_map(self._numbers)

    def comes_back(self, earlier: Verdict) -> str:
        """The text before an answer about another topic, after an immediate crisis; empty otherwise."""
        if earlier.kind != "crisis" or earlier.tier < AT_ONCE:
            return ""
        return _begun(self._texts.comes_back[_kind(earlier)].format_map(self._numbers))

    def answer(self, verdict: Verdict, earlier: int) -> tuple[str, ...]:
        """The sentences of a safety answer. `earlier` ones in the conversation make its wording differ."""
        for rule, texts in ((MEANWHILE, self._texts.meanwhile), (CALLED, self._texts.called)):
            if rule in verdict.rule_ids:
                text = texts[(earlier - 1) % len(texts)]
                return tuple(_begun(each.format_map(self._numbers)) for each in (text.first, *text.rest))
        kind = _kind(verdict)
        tiers: Mapping[str, tuple[Text, ...]] = getattr(self._texts, kind)
        variants = tiers.get(str(verdict.tier)) or tiers["3"]
        either = (self._texts.or_crisis,) if {ROUTER} == {*verdict.rule_ids} - {STILL} else ()
        if earlier < len(variants):
            said = (variants[earlier].first, *either, *variants[earlier].rest)
        else:
            again = self._texts.again[kind]
            said = (again[earlier % len(again)], *either)
        return tuple(_begun(sentence.format_map(self._numbers)) for sentence in said)


def _begun(sentence: str) -> str:
    """The sentence with a capital first letter, since it may begin with the name of a service."""
    return sentence[:1].upper() + sentence[1:]


def _kind(verdict: Verdict) -> str:
    """The group of texts for a verdict: those for violence if only rules about violence fired."""
    if verdict.kind != "crisis":
        return "emergency"
    crises = [rule for rule in verdict.rule_ids if rule.startswith((*VIOLENCE, *OTHER_CRISES))]
    return "violence" if crises and all(rule.startswith(VIOLENCE) for rule in crises) else "crisis"


def load(folder: Path, region: str) -> Wording:
    """Load the texts of a folder for a region; for an unknown region, those that are right anywhere."""
    try:
        texts = _Texts.model_validate(_toml(folder / "texts.toml"))
        regions = {name: Region.model_validate(each) for name, each in _toml(folder / "regions.toml").items()}
        wording = Wording(texts, regions.get(region) or regions[ELSEWHERE], regions[ELSEWHERE])
        for language in (OTHER, *texts.foreign):
            wording.foreign(language)
        for rule, at in product((MEANWHILE, CALLED), range(len(texts.meanwhile) + len(texts.called))):
            wording.answer(Verdict("emergency", rule_ids=(rule,)), at)
        for kind, tiers in (
            (Verdict("emergency"), texts.emergency),
            (Verdict("crisis"), texts.crisis),
            (Verdict("crisis", rule_ids=("abuse.violence",)), texts.violence),
        ):
            wording.comes_back(replace(kind, tier=AT_ONCE))
            for tier, variants in tiers.items():
                for at in range(len(variants) + 2):
                    wording.answer(replace(kind, tier=int(tier)), at)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise BadRules("texts.toml", ".".join(map(str, first["loc"])), first["msg"]) from None
    except (KeyError, ValueError, IndexError):
        raise BadRules("texts.toml", "$", "names a placeholder or a text that does not exist") from None
    return wording


def _toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise BadRules(path.name, "$", "cannot be read as TOML") from None


def known_regions(folder: Path) -> tuple[str, ...]:
    """The names of the regions with known numbers."""
    return tuple(sorted(set(_toml(folder / "regions.toml")) - {ELSEWHERE}))
