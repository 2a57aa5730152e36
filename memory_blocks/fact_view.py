"""The facts in active_session: the view of the current facts that it has room for. Pure."""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

from memory_blocks.facts import LISTS, PERSON, Decider, FactChange, Op
from memory_blocks.models import ActiveSession, Fact

ABOUT_WHOM: Final = "about_whom"
"""The kind by which blocks of version 1.1 say whom a conversation is about."""


def changes_in(session: ActiveSession) -> tuple[FactChange, ...]:
    """The changes that the facts of a block amount to, if there are no others.

    Before facts had a subject, the fact `about_whom` named it for all of them, and the values of a list were
    one value.
    """
    facts = session.facts or ()
    subject = next((fact.value for fact in facts if fact.kind == ABOUT_WHOM), PERSON)
    return tuple(
        FactChange(
            id=f"fact_{_digest(session.session_info.session_id, str(number), fact.kind, value)}",
            op=Op.ADD,
            kind=fact.kind,
            subject=subject[:60],
            value=value,
            said_at=session.session_info.last_activity,
            turn=fact.turn,
            decided_by=Decider.LOCAL,
        )
        for number, fact in enumerate(facts)
        for value in _values(fact)
    )


def _values(fact: Fact) -> Iterator[str]:
    if fact.kind not in LISTS:
        yield fact.value
        return
    yield from filter(None, (value.strip() for value in fact.value.split(", ")))


def _digest(*parts: str) -> str:
    return blake2b("\n".join(parts).encode(), digest_size=12).hexdigest()
