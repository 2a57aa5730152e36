"""The station that classifies a message, and checks that the intent exists."""

from collections.abc import Set

from agents.ports import Brain, Embedded
from agents.values import UNCLEAR, Enrichment, Intent
from memory_blocks.models import Blocks


async def classify(
    brain: Brain,
    enrichment: Enrichment,
    blocks: Blocks,
    embedded: Embedded,
    intents: Set[str] | None = None,
) -> Intent:
    """The brain's intent. One that is not among `intents` becomes UNCLEAR, so that the person is asked."""
    intent = await brain.classify(enrichment, blocks, embedded)
    if intents is None or intent.intent in intents:
        return intent
    return Intent(intent=UNCLEAR, confidence=0.0, reasoning="The brain named an intent that does not exist")
