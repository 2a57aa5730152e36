"""Every rule is needed: each has something said that it alone hears, of its kind and with its tier."""

from agents.safety.rules import load
from agents.safety.verdict import Verdict
from tests.models import the_guard
from tests.safety.phrases import RULES, SAID_FOR_RULES


def test_every_rule_finds_something_that_no_other_rule_finds() -> None:
    assert set(SAID_FOR_RULES) == {rule.id for rule in load(RULES).rules}


def test_each_rule_alone_gives_its_kind_and_tier() -> None:
    wanted = {
        id: Verdict(each["kind"], each["tier"], (id,), "possible" if each["tier"] == 1 else "certain")
        for id, each in SAID_FOR_RULES.items()
    }

    found = {id: the_guard().check(each["said"]) for id, each in SAID_FOR_RULES.items()}

    assert {id: verdict for id, verdict in found.items() if verdict != wanted[id]} == {}
