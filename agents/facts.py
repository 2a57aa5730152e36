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


def as_reading(change: FactChange) -> FactReading:
    """A change as a brain would have read it from a message."""
    return FactReading(**change.model_dump(include=set(FactReading.model_fields)))


def known_facts(facts: Sequence[CurrentFact]) -> tuple[Fact, ...]:
    """The facts about the current subject, without facts that belong to another of their concerns.

    An operator may add kinds of facts that agents do not know; those facts are left out.
    """
    return tuple(
        Fact(kind=fact.kind, value=fact.value[:200], turn=fact.turn or 1)
        for fact in of_subject_now(facts)
        if KIND.fullmatch(fact.kind)
    )
