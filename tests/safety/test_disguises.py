"""Every phrase of the suite has its kind and tier, whatever is done to it between a head and a keyboard."""

import pytest

from agents.safety.guard import Verdict
from tests.safety.mutations import MUTATIONS
from tests.safety.phrases import KNOWN, Phrase, phrases, the_guard

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
"""How many phrases of a red flag may be told to see somebody today; all others are told to call now."""
MEANT = {"overdose": 1, "drowning_asphyxia": 1}
"""How many phrases of a red flag tell that it was meant, and are crises."""
BODY_FIRST = {"abuse": 4, "psychosis": 2}
"""How many phrases of a crisis tell of an injury or an illness as well, which is spoken to first."""


def themes(known: list[Phrase]) -> list[str]:
    return sorted({phrase.theme for phrase in known})


def verdicts(known: list[Phrase], theme: str) -> list[Verdict]:
    return [the_guard().check(phrase.text) for phrase in known if phrase.theme == theme]


def lowered(known: list[Phrase], theme: str) -> list[tuple[str, str]]:
    """What was done to which phrases of a theme for them to be of another kind, or of too low a tier."""
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


@pytest.mark.parametrize("theme", themes(EMERGENCIES))
def test_every_red_flag_has_its_kind_and_tier(theme: str) -> None:
    heard = verdicts(EMERGENCIES, theme)

    assert sum(verdict.kind == "crisis" for verdict in heard) == MEANT.get(theme, 0)
    assert sum(verdict.tier == 2 for verdict in heard) == OF_TIER_2.get(theme, 0)
    assert min(verdict.tier for verdict in heard) >= 2


@pytest.mark.parametrize("theme", themes(CRISES))
def test_every_crisis_has_its_kind_and_the_least_tier_of_its_theme(theme: str) -> None:
    (least,) = {phrase.tier for phrase in CRISES if phrase.theme == theme}
    heard = verdicts(CRISES, theme)

    assert sum(verdict.kind == "emergency" for verdict in heard) == BODY_FIRST.get(theme, 0)
    assert min(verdict.tier for verdict in heard) == least


@pytest.mark.parametrize("theme", themes(EMERGENCIES))
def test_every_phrasing_of_a_red_flag_is_caught_in_every_disguise(theme: str) -> None:
    assert lowered(EMERGENCIES, theme) == []


@pytest.mark.parametrize("theme", themes(CRISES))
def test_every_phrasing_of_a_crisis_is_caught_in_every_disguise(theme: str) -> None:
    assert lowered(CRISES, theme) == []


@pytest.mark.parametrize("name", MUTATIONS)
def test_every_disguise_is_put_on_by_many(name: str) -> None:
    change, least = MUTATIONS[name]

    assert sum(1 for phrase in (*EMERGENCIES, *CRISES) for _ in change(phrase.text)) >= least
