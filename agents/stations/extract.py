"""The station that enriches a message with its context, and checks the brain's result."""

import asyncio
import re
from typing import Final

from agents.ports import Brain
from agents.values import MOST_ENRICHED, Enrichment
from memory_blocks.models import Blocks

QUICK_SECONDS: Final = 2.0
"""How long a brain may take for a message in danger. The safety answer does not depend on it."""


async def extract(brain: Brain, message: str, blocks: Blocks) -> Enrichment:
    """The brain's enrichment, corrected by the blocks: references to turns that do not exist are dropped."""
    enrichment = await brain.extract(message, blocks)
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


async def extract_quickly(brain: Brain, message: str, blocks: Blocks) -> Enrichment:
    """`extract` for a message in danger. If the brain fails or is slow, the message stays as it is."""
    try:
        async with asyncio.timeout(QUICK_SECONDS):
            return await extract(brain, message, blocks)
    except Exception:
        return Enrichment(previous_context="Not considered", enriched_message=_cut(message))


def slug(text: str) -> str:
    """`text` as a snake_case name of at most 80 characters."""
    return re.sub(r"[\W_]+", "_", text.lower()).strip("_")[:80].rstrip("_")


def _existed(reference: str, latest: int) -> bool:
    found = re.fullmatch(r"turn_([1-9][0-9]{0,8})", reference)
    return found is not None and int(found[1]) <= latest


def _cut(text: str) -> str:
    return text if len(text) <= MOST_ENRICHED else f"{text[: MOST_ENRICHED - 1].rstrip()}…"
