"""Every rule is needed: each has something said that it alone hears, of its kind and with its tier."""

from typing import Any

import pytest

from agents.safety.guard import Verdict
from agents.safety.rules import load
from tests.safety.phrases import RULES, SAID_FOR_RULES, the_guard


def test_every_rule_has_something_that_it_alone_hears() -> None:
    assert set(SAID_FOR_RULES) == {rule.id for rule in load(RULES).rules}


@pytest.mark.parametrize("rule_id", SAID_FOR_RULES)
def test_a_rule_alone_gives_its_kind_and_tier(rule_id: str) -> None:
    heard: dict[str, Any] = SAID_FOR_RULES[rule_id]

    assert the_guard().check(heard["said"]) == Verdict(heard["kind"], heard["tier"], (rule_id,))
