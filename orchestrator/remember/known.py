"""What is known for good of a person from their other conversations, as facts that a turn can use."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError

from memory_blocks.facts.changes import CurrentFact, Decider, FactChange, Op, current_facts
from orchestrator.remember.facts import FACT
from orchestrator.store.engine.database import Transaction
from orchestrator.store.rows import Memory

MOST_KNOWN: Final = 30
"""So many facts of other conversations a turn gets: the most important and the newest ones."""


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A lasting fact that was said in another conversation, and the memory that keeps it."""

    memory: Memory
    fact: CurrentFact


def known_facts(tx: Transaction, user_id: str, conversation_id: str) -> tuple[KnownFact, ...]:
    """The facts that hold, or of which it is not known, and that were last said elsewhere; oldest first."""
    found = []
    for memory in tx.memories.of_type(user_id, FACT, limit=MOST_KNOWN):
        source: dict[str, Any] = memory.source_info or {}
        holds = source.get("current") or (source.get("conflict") and not source.get("ended_at"))
        if holds and source.get("conversation") != conversation_id:
            fact = _fact(memory, source)
            if fact is not None:
                found.append(KnownFact(memory, fact))
    return tuple(sorted(found, key=lambda each: each.fact.said_at))


def with_known(known: Sequence[KnownFact], changes: Sequence[FactChange]) -> tuple[CurrentFact, ...]:
    """The facts of other conversations, then those of this one, whose changes these are.

    This conversation outranks the others: what it states again, replaces or ends is not taken from them.
    """
    own = current_facts(changes)
    withdrawn = {change.target for change in changes if change.op is Op.WITHDRAW}
    targets = {change.target for change in changes if change.target and change.id not in withdrawn}
    stated = {_key(fact) for fact in own}
    kept = [each.fact for each in known if each.fact.id not in targets and _key(each.fact) not in stated]
    return (*kept, *own)


def _key(fact: CurrentFact) -> tuple[str, ...]:
    """What no two facts share. Two values that contradict each other are two facts."""
    return fact.subject, fact.kind, fact.about, fact.value.casefold()


def _fact(memory: Memory, source: dict[str, Any]) -> CurrentFact | None:
    """The fact that a memory keeps; None if an older version has stored it without what is needed here."""
    try:
        said_at = datetime.fromisoformat(source["said_at"])
        return CurrentFact(
            id=source["change"],
            kind=source["kind"],
            subject=source["subject"],
            about=source.get("about", ""),
            value=source["value"],
            stable=True,
            true_when=source.get("true_when", ""),
            said_at=said_at,
            turn=None,
            message_id=None,
            words=source.get("words", ""),
            decided_by=Decider(source["decided_by"]),
            confidence=memory.confidence,
            times_said=source.get("times_said", 1),
            last_said_at=said_at,
            conversation_id=source["conversation"],
        )
    except (KeyError, ValueError, ValidationError):
        return None
