"""Every phrase of the suite has its kind and tier, also misspelt or changed in other ways."""

import pytest

from agents.safety.verdict import Verdict
from tests.safety.mutations import MUTATIONS
from tests.safety.phrases import KNOWN, Phrase, phrases
from tests.support.brains.models import the_guard

EMERGENCIES = phrases(KNOWN, "emergencies")
CRISES = phrases(KNOWN, "crises")
OF_TIER_2 = {
    "breathing": 2,
    "gi_bleed": 2,
    "infant": 2,
    "collapse": 2,
    "adrenal_endocrine": 2,
    "bites_stings": 8,
    "blood_pressure": 10,
    "mixed": 1,
}
"""Number of phrases of a red flag that may get tier 2, see a doctor; the others must get 3, call now."""
MEANT = {"overdose": 1, "drowning_asphyxia": 1}
"""Number of phrases of a red flag that describe an intention, and so are crises."""
BODY_FIRST = {"abuse": 4, "psychosis": 2}
"""Number of phrases of a crisis that also describe an injury or an illness, which is answered first."""


def themes(known: list[Phrase]) -> list[str]:
    return sorted({phrase.theme for phrase in known})


def verdicts(known: list[Phrase], theme: str) -> list[Verdict]:
    return [the_guard().check(phrase.text) for phrase in known if phrase.theme == theme]


def lowered(known: list[Phrase], theme: str) -> list[tuple[str, str]]:
    """The changed phrases of a theme that got another kind or too low a tier, with the change."""
    found = []
    for phrase in known:
        if phrase.theme == theme:
            plain = the_guard().check(phrase.text)
            least = phrase.tier or plain.tier
            for name, (change, _) in MUTATIONS.items():
                for text in change(phrase.text):
                    verdict = the_guard().check(text)
                    if verdict.kind != plain.kind or verdict.tier < least:
                        found.append((name, text))
    return found


def test_every_red_flag_has_its_kind_and_tier(subtests: pytest.Subtests) -> None:
    for theme in themes(EMERGENCIES):
        with subtests.test(theme=theme):
            heard = verdicts(EMERGENCIES, theme)

            assert sum(verdict.kind == "crisis" for verdict in heard) == MEANT.get(theme, 0)
            assert sum(verdict.tier == 2 for verdict in heard) == OF_TIER_2.get(theme, 0)
            assert min(verdict.tier for verdict in heard) >= 2


def test_every_crisis_has_its_kind_and_the_least_tier_of_its_theme(subtests: pytest.Subtests) -> None:
    for theme in themes(CRISES):
        with subtests.test(theme=theme):
            (least,) = {phrase.tier for phrase in CRISES if phrase.theme == theme}
            heard = verdicts(CRISES, theme)

            assert sum(verdict.kind == "emergency" for verdict in heard) == BODY_FIRST.get(theme, 0)
            assert min(verdict.tier for verdict in heard) == least


@pytest.mark.parametrize("part", range(8))
def test_every_phrasing_of_a_red_flag_is_caught_in_every_disguise(part: int) -> None:
    assert [found for theme in themes(EMERGENCIES)[part::8] for found in lowered(EMERGENCIES, theme)] == []


@pytest.mark.parametrize("theme", themes(CRISES))
def test_every_phrasing_of_a_crisis_is_caught_in_every_disguise(theme: str) -> None:
    assert lowered(CRISES, theme) == []


def test_every_mutation_applies_to_many_phrases() -> None:
    known = [phrase.text for phrase in (*EMERGENCIES, *CRISES)]
    put_on = {name: sum(1 for text in known for _ in change(text)) for name, (change, _) in MUTATIONS.items()}

    assert {name: times for name, times in put_on.items() if times < MUTATIONS[name][1]} == {}
