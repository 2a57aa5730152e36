"""Facts in a turn: the changes that a reading asks for, and what is known about whom it is about. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Final

from agents.values import Fact, FactReading, values_of
from memory_blocks.facts import PERSON, CurrentFact, FactChange

ABOUT_WHOM: Final = "about_whom"
"""The kind under which it is known whom a conversation is about if not the person who writes."""

_CONCERNS: Final = ("concern", "request")


def changes_of(
    readings: Iterable[FactReading], *, turn: int, message_id: str, answer_id: str, said_at: datetime
) -> tuple[FactChange, ...]:
    """What a brain read from a message, as changes. The same attempt at a turn always gives the same ids."""
    return tuple(
        FactChange(
            id=f"fact_{blake2b(f'{answer_id} {number}'.encode(), digest_size=12).hexdigest()}",
            turn=turn,
            message_id=message_id,
            said_at=said_at,
            **reading.model_dump(),
        )
        for number, reading in enumerate(readings)
    )


def subject_now(facts: Sequence[CurrentFact]) -> str:
    """Whom the conversation is about: whoever the latest concern or request belongs to."""
    concerns = [fact for fact in facts if fact.kind in _CONCERNS]
    return max(concerns, key=lambda fact: fact.last_said_at).subject if concerns else PERSON


def known_facts(facts: Sequence[CurrentFact]) -> tuple[Fact, ...]:
    """What is known about the subject of the conversation, without what belongs to another concern."""
    subject = subject_now(facts)
    own = [fact for fact in facts if fact.subject == subject]
    concerns = [fact.value for fact in own if fact.kind == "concern"]
    others = {value.casefold() for value in concerns[:-1]}
    return tuple(
        Fact(kind=fact.kind, value=fact.value[:200], turn=fact.turn or 1)
        for fact in own
        if fact.about.casefold() not in others
    )


def known_values(facts: Sequence[CurrentFact]) -> dict[str, str]:
    """The value of each kind of `known_facts`, and whom they are about if that is somebody else."""
    values, subject = values_of(known_facts(facts)), subject_now(facts)
    return values if subject == PERSON else {ABOUT_WHOM: subject, **values}
