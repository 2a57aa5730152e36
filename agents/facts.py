"""What a brain read from a message as changes to facts, and the known facts as agents use them. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from agents.values import KIND, Fact, FactReading
from memory_blocks.facts.changes import CurrentFact, FactChange, derived_id
from memory_blocks.facts.view import known_values as known_values
from memory_blocks.facts.view import of_subject_now


def changes_of(
    readings: Iterable[FactReading], *, turn: int, message_id: str, answer_id: str, said_at: datetime
) -> tuple[FactChange, ...]:
    """What a brain read from a message, as changes. The same attempt at a turn always gives the same ids."""
    return tuple(
        FactChange(
            id=derived_id(answer_id, str(number)),
            turn=turn,
            message_id=message_id,
            said_at=said_at,
            **reading.model_dump(),
        )
        for number, reading in enumerate(readings)
    )


def known_facts(facts: Sequence[CurrentFact]) -> tuple[Fact, ...]:
    """What is known about whom the conversation is about, without what belongs to another concern.

    A fact of a kind that agents do not know, which an operator may add, is left out.
    """
    return tuple(
        Fact(kind=fact.kind, value=fact.value[:200], turn=fact.turn or 1)
        for fact in of_subject_now(facts)
        if KIND.fullmatch(fact.kind)
    )
