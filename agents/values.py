"""The values that the stations of a turn pass on: an enriched message and its intent."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from agents.fact_kinds.episode import NONE as NONE
from memory_blocks.facts.changes import LISTS as LISTS
from memory_blocks.facts.changes import Decider, Op
from memory_blocks.models import ContextEnrichment, IntentClassification, Sentiment

MOST_ENRICHED: Final = 400
"""Maximum length of an enriched message."""

EMERGENCY: Final = "EMERGENCY"
COORDINATOR: Final = "COORDINATOR"
UNCLEAR: Final = "UNCLEAR"
OUT_OF_SCOPE: Final = "OUT_OF_SCOPE"

KIND: Final = re.compile(r"[a-z_]{1,40}")
"""The pattern of a kind of fact, such as `severity`."""

Share: TypeAlias = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Value(BaseModel):
    """Base of what a brain returns. It is validated, because a model can return anything."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Fact(Value):
    """Something the person stated, such as `severity` `8/10`, and the turn in which they stated it."""

    kind: Annotated[str, Field(pattern=f"^{KIND.pattern}$")]
    value: Annotated[str, Field(min_length=1, max_length=200)]
    turn: Annotated[int, Field(ge=1)]


UNSPECIFIED: Final = "yes, not specified"
"""The value of a kind that the person confirmed without naming anything."""

NOT_SURE: Final = "not sure"
NOT_SAID: Final = "prefers not to say"
"""The values of a kind that the person does not know, or does not want to tell. Neither is asked again."""

NO_VALUE: Final = re.compile(
    rf"(?:no|stopped) |not (?:pregnant|expecting)|{'|'.join((NONE, UNSPECIFIED, NOT_SURE, NOT_SAID))}$"
)


def has_some(value: str) -> bool:
    """Whether a value names something the person has: not `no statins`, not `none reported`."""
    return value == UNSPECIFIED or any(each and not NO_VALUE.match(each) for each in value.split(", "))


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn: the person's message and the answer."""

    turn: int
    message: str
    answer: str = ""


def values_of(facts: Iterable[Fact]) -> dict[str, str]:
    """The latest value of each kind of fact; all values of the kinds in `LISTS`, joined."""
    values: dict[str, str] = {}
    for fact in facts:
        several = fact.kind in LISTS and fact.kind in values
        values[fact.kind] = f"{values[fact.kind]}, {fact.value}" if several else fact.value
    return values


NEW_CONCERN: Final = "new_concern"
"""The trigger of a message that names a new complaint."""


TOPIC_WANTED: Final = "topic_wanted"
"""The trigger of a message that asks for another topic."""

WANTS: Final = "User wants to talk about: "
"""The beginning of an enriched message that asks for another topic."""


class Enrichment(Value):
    """A message rewritten so that it can be understood alone, and all facts known so far.

    `answers`: the kinds of fact that this message gave in reply to a question.
    `asked_before`: the kinds that were asked for earlier and are not answered.
    `passed_over`: those of them to which the person replied with something else.
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
        """The value of each kind of fact, as `values_of` returns it."""
        return values_of(self.facts)

    def for_block(self) -> ContextEnrichment:
        """The part that is kept in conversation_history."""
        return ContextEnrichment(
            previous_context=self.previous_context,
            enriched_message=self.enriched_message,
            relevant_history=self.relevant_history,
        )


class Intent(Value):
    """The intent of a message, with confidence and reasoning.

    `between`: the intents among which an unclear message could not be decided.
    """

    intent: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")]
    confidence: Share
    reasoning: Annotated[str, Field(min_length=1)]
    between: tuple[str, ...] = ()

    def for_block(self) -> IntentClassification:
        """The part that is kept in conversation_history."""
        return IntentClassification(intent=self.intent, confidence=self.confidence, reasoning=self.reasoning)


class ActKind(StrEnum):
    """What somebody does with a clause of a message."""

    ANSWER = "answer"
    FACT = "fact"
    HEALTH_QUESTION = "health_question"
    MEMORY_QUESTION = "memory_question"
    REMEMBER = "remember"
    CORRECT = "correct"
    FORGET = "forget"
    UNDO = "undo"
    SUMMARISE = "summarise"
    OTHER_REQUEST = "other_request"
    COMPLAINT = "complaint"
    TOPIC_LEFT = "topic_left"
    TOPIC_RESUMED = "topic_resumed"
    FEELING = "feeling"
    SMALL_TALK = "small_talk"
    GREETING = "greeting"
    THANKS = "thanks"
    GOODBYE = "goodbye"
    ABOUT_US = "about_us"
    UNCLEAR = "unclear"


class Act(Value):
    """What somebody does with one clause of a message, in their words. A message can have several."""

    kind: ActKind
    words: Annotated[str, Field(max_length=400)] = ""
    confidence: Share = 1.0


class FactReading(Value):
    """A change to the facts as a brain reads it from a message.

    It has the fields of `FactChange` that the message itself decides. `target` is the id of the fact that is
    replaced, retracted, doubted or repeated. The turn adds its own number, the message's id and the time.
    """

    op: Op
    target: str | None = None
    kind: Annotated[str, Field(pattern=f"^{KIND.pattern}$")]
    subject: Annotated[str, Field(min_length=1, max_length=60)]
    about: Annotated[str, Field(max_length=120)] = ""
    value: Annotated[str, Field(min_length=1, max_length=200)]
    stable: bool = False
    true_when: Annotated[str, Field(max_length=120)] = ""
    words: Annotated[str, Field(max_length=200)] = ""
    decided_by: Decider
    confidence: Share = 1.0


class Offer(Value):
    """Changes of what is remembered that the person is asked about before they are made.

    `derived` are texts that were made from it and are deleted with it. `messages` counts the messages of the
    person that searches will not find any more. `for_good`: it cannot be undone. `everything`: all that is
    remembered of the person is deleted, also what is no fact.
    """

    changes: tuple[FactReading, ...]
    derived: tuple[str, ...] = ()
    messages: Annotated[int, Field(ge=0)] = 0
    for_good: bool = False
    everything: bool = False


class Understanding(Value):
    """Everything a brain reads from one message: what it means, which facts change, where it belongs.

    `proposed` are changes that the person asks for and that are made only after they were asked once.
    `forgets_all`: they ask to forget everything. `agreed`: they say yes to the offer of the last answer.
    `in_haste`: a model would have been asked, but the person may be in danger.
    """

    enrichment: Enrichment
    intent: Intent
    acts: tuple[Act, ...] = ()
    changes: tuple[FactReading, ...] = ()
    proposed: tuple[FactReading, ...] = ()
    forgets_all: bool = False
    agreed: bool = False
    in_haste: bool = False
