"""What the classifier of intents is given."""

from types import SimpleNamespace
from typing import Any

import pytest

from agents.local.intents import intent_of
from agents.ports import Embedded
from agents.values import Enrichment, Intent
from tests.support.memory.memories import EMBEDDER

ENRICHED = "User rates headache severity as 8 out of 10 (severe)"


class RecordingRouter:
    """A classifier that keeps what it is given."""

    intents: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.given: list[Embedded] = []

    def route(self, embedded: Embedded, before: str | None) -> Intent:
        self.given.append(embedded)
        return Intent(intent="GENERAL_HEALTH", confidence=0.9, reasoning="test")


@pytest.mark.requirement("001-003")
def test_the_classifier_is_given_the_enriched_message_of_a_short_reply() -> None:
    router: Any = RecordingRouter()
    talk: Any = SimpleNamespace(running=None, facts=(SimpleNamespace(kind="concern"),), about="headache")
    enrichment = Enrichment(
        previous_context="How bad is your headache?",
        enriched_message=ENRICHED,
        relevant_history=("How bad is your headache?",),
    )

    intent_of("8 out of 10", (), enrichment, talk, (), router, EMBEDDER)

    (given,) = router.given
    assert given.text == ENRICHED
    assert given.vector.tolist() == EMBEDDER.embed([ENRICHED])[0].tolist()
