"""The station that has a brain read a message, and checks the reading."""

import asyncio
import re
from collections.abc import Iterable, Sequence, Set
from typing import Final

from agents.ports import Brain, Situation
from agents.values import MOST_ENRICHED, UNCLEAR, Enrichment, FactReading, Intent, Understanding
from memory_blocks.facts.changes import CurrentFact, Op
from memory_blocks.models import Blocks

QUICK_SECONDS: Final = 2.0
"""How long a brain may take for a message in danger. The safety answer does not depend on it."""

MOST_CHANGES: Final = 40
"""How many changes to the facts one message can make."""

NOT_READ: Final = Intent(intent=UNCLEAR, confidence=0.0, reasoning="The message was not read in time")


async def understand(
    brain: Brain, message: str, situation: Situation, intents: Set[str] | None = None
) -> Understanding:
    """The brain's reading, corrected by what exists: turns, facts and, if given, `intents`.

    For a message in danger, a brain that fails or is slow is not waited for; the message stays as it is.
    """
    if not situation.urgent:
        return _checked(await brain.understand(message, situation), situation, intents)
    try:
        async with asyncio.timeout(QUICK_SECONDS):
            return _checked(await brain.understand(message, situation), situation, intents)
    except Exception:
        enrichment = Enrichment(previous_context="Not considered", enriched_message=_cut(message) or "…")
        return Understanding(enrichment=enrichment, intent=NOT_READ)


def slug(text: str) -> str:
    """`text` as a snake_case name of at most 80 characters."""
    return re.sub(r"[\W_]+", "_", text.lower()).strip("_")[:80].rstrip("_")


def _checked(found: Understanding, situation: Situation, intents: Set[str] | None) -> Understanding:
    return found.model_copy(
        update={
            "enrichment": _checked_enrichment(found.enrichment, situation.blocks),
            "intent": _checked_intent(found.intent, intents),
            "changes": tuple(_checked_changes(found.changes, situation.facts))[:MOST_CHANGES],
        }
    )


def _checked_enrichment(enrichment: Enrichment, blocks: Blocks) -> Enrichment:
    """The enrichment without references to turns that do not exist, its texts as the blocks need them."""
    latest = blocks.conversation_history.total_turns
    references = dict.fromkeys(enrichment.relevant_history)
    return enrichment.model_copy(
        update={
            "enriched_message": _cut(enrichment.enriched_message),
            "relevant_history": tuple(ref for ref in references if _existed(ref, latest)),
            "facts": tuple(fact for fact in enrichment.facts if fact.turn <= latest + 1),
            "topic": slug(enrichment.topic) or "conversation",
            "trigger": slug(enrichment.trigger) or "new_message",
            "phase": slug(enrichment.phase) or blocks.active_session.conversation_state.conversation_phase,
        }
    )


def _checked_intent(intent: Intent, intents: Set[str] | None) -> Intent:
    """The intent; one that is not among `intents` becomes UNCLEAR, so that the person is asked."""
    if intents is None or intent.intent in intents:
        return intent
    return Intent(intent=UNCLEAR, confidence=0.0, reasoning="The brain named an intent that does not exist")


def _checked_changes(readings: Iterable[FactReading], facts: Sequence[CurrentFact]) -> Iterable[FactReading]:
    """The changes that can be made to `facts`.

    A replacement of no fact adds one; a doubt about no fact adds a doubtful one. A change that ends no fact
    is dropped, and so is a withdrawal: only a turn that is answered again withdraws.
    """
    known, targets = {_key(fact): fact.id for fact in facts}, {fact.id for fact in facts}
    for reading in readings:
        subject, op = " ".join(reading.subject.split()), reading.op
        target = reading.target if reading.target in targets else None
        if not subject or op is Op.WITHDRAW or (op.ends and target is None):
            continue
        if op is Op.REPLACE and target is None:
            op = Op.ADD
        update = {"subject": subject, "op": op, "target": target}
        checked = reading.model_copy(update=update)
        if op is Op.ADD and target is None:  # said before: a repetition
            checked = checked.model_copy(update={"target": known.get(_key(checked))})
        yield checked


def _key(fact: FactReading | CurrentFact) -> tuple[str, ...]:
    return tuple(part.casefold() for part in (fact.kind, fact.subject, fact.about, fact.value))


def _existed(reference: str, latest: int) -> bool:
    found = re.fullmatch(r"turn_([1-9][0-9]{0,8})", reference)
    return found is not None and int(found[1]) <= latest


def _cut(text: str) -> str:
    return text if len(text) <= MOST_ENRICHED else f"{text[: MOST_ENRICHED - 1].rstrip()}…"
