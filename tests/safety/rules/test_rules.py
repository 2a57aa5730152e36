"""Every rule is needed: each has a text that only it finds, with its kind and tier.

Findings of rules marked `always` are always certain.
"""

import pytest

from agents.safety.rules.rules import load
from agents.safety.verdict import Verdict
from tests.safety.mutations import MUTATIONS
from tests.safety.phrases import KNOWN, RULES, SAID_FOR_RULES, phrases
from tests.support.brains.models import the_guard

ALWAYS = {
    "stroke.face",
    "stroke.speech",
    "stroke.one_side",
    "stroke.side_of_body",
    "stroke.vision_balance",
    "stroke.named",
    "anaphylaxis.named",
    "anaphylaxis.airway",
    "anaphylaxis.skin_and_more",
    "infant.fever",
    "suicide.plan",
    "suicide.method",
    "suicide.method_in_general",
    "suicide.attempt",
    "suicide.preparations",
    "suicide.means",
}
"""Rules that nothing dismisses; docs/safety.md lists them."""
IN_DOUBT = {"suicide.method_in_general"}
"""Those of them whose findings are possible danger; those of the others are always certain."""
MISSPELT = ("letters swapped", "a letter dropped", "a letter doubled", "asterisks")


def test_every_rule_finds_something_that_no_other_rule_finds() -> None:
    assert set(SAID_FOR_RULES) == {rule.id for rule in load(RULES).rules}


def test_each_rule_alone_gives_its_kind_and_tier() -> None:
    wanted = {
        id: Verdict(
            each["kind"],
            each["tier"],
            (id,),
            "possible" if each["tier"] == 1 or id in IN_DOUBT else "certain",
        )
        for id, each in SAID_FOR_RULES.items()
    }

    found = {id: the_guard().check(each["said"]) for id, each in SAID_FOR_RULES.items()}

    assert {id: verdict for id, verdict in found.items() if verdict != wanted[id]} == {}


def test_the_rules_that_must_be_heard_at_any_price_are_those_of_the_list() -> None:
    assert {rule.id for rule in load(RULES).rules if rule.always} == ALWAYS


@pytest.mark.parametrize("mutation", MISSPELT)
def test_what_must_be_heard_at_any_price_is_certain_however_it_is_spelt(mutation: str) -> None:
    said = [phrase.text for name in ("emergencies", "crises") for phrase in phrases(KNOWN, name)]
    said += [SAID_FOR_RULES[id]["said"] for id in sorted(ALWAYS - IN_DOUBT)]
    misspelt = [
        text
        for plain in said
        if not ALWAYS.isdisjoint(the_guard().check(plain).rule_ids)
        for text in MUTATIONS[mutation][0](plain)
    ]

    found = [(text, the_guard().check(text)) for text in misspelt]

    heard = [(text, verdict) for text, verdict in found if not ALWAYS.isdisjoint(verdict.rule_ids)]
    assert len(heard) > 20
    assert [text for text, verdict in heard if not verdict.is_certain] == []


def test_a_misspelt_word_puts_other_rules_in_doubt() -> None:
    doubted = [
        id
        for id in set(SAID_FOR_RULES) - ALWAYS
        for text in MUTATIONS["letters swapped"][0](SAID_FOR_RULES[id]["said"])
        if the_guard().check(text).is_possible
    ]

    assert len(set(doubted)) > 50


def test_a_word_that_is_spelt_right_elsewhere_in_the_message_leaves_no_doubt() -> None:
    assert the_guard().check("I have chets pain").is_possible
    assert the_guard().check("I have chets pain. My chest pain is bad").is_certain
