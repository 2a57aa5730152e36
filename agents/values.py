"""What the agents hand to each other: a message understood, and where it belongs."""

import re
from collections.abc import Iterable
from typing import Annotated, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from memory_blocks.models import ContextEnrichment, IntentClassification, Sentiment

MOST_ENRICHED: Final = 400

EMERGENCY: Final = "EMERGENCY"
COORDINATOR: Final = "COORDINATOR"
UNCLEAR: Final = "UNCLEAR"
OUT_OF_SCOPE: Final = "OUT_OF_SCOPE"

KIND: Final = re.compile(r"[a-z_]{1,40}")
"""How a kind of fact is written."""

Share: TypeAlias = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Value(BaseModel):
    """The base of what a brain returns. A model behind it may be wrong, so every value is checked."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Fact(Value):
    """Something the person stated, such as `severity` `8/10`, and the turn in which they did."""

    kind: Annotated[str, Field(pattern=f"^{KIND.pattern}$")]
    value: Annotated[str, Field(min_length=1, max_length=200)]
    turn: Annotated[int, Field(ge=1)]


LISTS: Final = frozenset(
    (
        "associated_symptoms",
        "medications",
        "other_medicines",
        "conditions",
        "allergies",
        "triggers",
        "relief",
        "measures",
        "readings",
        "family_history",
        "noted",
        "mentioned",
        "earlier_concern",
    )
)
"""Kinds of fact of which a person may state several."""


NONE: Final = "none reported"
"""The value of a kind that was denied as a whole, so that it is not asked again."""


def values_of(facts: Iterable[Fact]) -> dict[str, str]:
    """Each kind with its latest value; of kinds that may have several, all of them."""
    values: dict[str, str] = {}
    for fact in facts:
        several = fact.kind in LISTS and fact.kind in values
        values[fact.kind] = f"{values[fact.kind]}, {fact.value}" if several else fact.value
    return values


NEW_CONCERN: Final = "new_concern"
"""What moves a conversation when a complaint is named that was not there before."""


TOPIC_WANTED: Final = "topic_wanted"
"""What moves it when the person says what they would rather talk about."""

WANTS: Final = "User wants to talk about: "
"""How an enriched message begins that says so."""


class Enrichment(Value):
    """A message made to stand on its own, and what is known by now.

    `answers` are the kinds of fact that this message gave in reply to a question, `asked_before` the kinds
    asked for earlier and still open; those of them `passed_over` were met by something that is no answer.
    """

    previous_context: Annotated[str, Field(min_length=1)]
    enriched_message: Annotated[str, Field(min_length=1)]
    relevant_history: tuple[str, ...] = ()
    topic: str = "conversation"
    trigger: str = "new_message"
    phase: str = "opening"
    facts: tuple[Fact, ...] = ()
    answers: tuple[str, ...] = ()
    asked_before: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()
    quality: Share = 1.0
    corrected: bool = False
    sentiment: Sentiment | None = None

    @property
    def known(self) -> dict[str, str]:
        """The value of each kind of fact: the latest, or all where a person may state several."""
        return values_of(self.facts)

    def for_block(self) -> ContextEnrichment:
        """The part of it that a turn in conversation_history keeps."""
        return ContextEnrichment(
            previous_context=self.previous_context,
            enriched_message=self.enriched_message,
            relevant_history=self.relevant_history,
        )


class Intent(Value):
    """Where a message belongs, how surely, and why. An unclear one may lie `between` some that are clear."""

    intent: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")]
    confidence: Share
    reasoning: Annotated[str, Field(min_length=1)]
    between: tuple[str, ...] = ()

    def for_block(self) -> IntentClassification:
        """The intent as a turn in conversation_history keeps it."""
        return IntentClassification(intent=self.intent, confidence=self.confidence, reasoning=self.reasoning)
