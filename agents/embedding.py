"""The station that embeds a message once per turn, for routing, recall and whoever else compares it."""

import asyncio
from typing import Final

from agents.ports import Embedded, Embedder
from agents.reading import asks_back
from agents.values import NEW_CONCERN, Enrichment

_FEW: Final = 6


async def embed(embedder: Embedder, message: str, enrichment: Enrichment) -> Embedded:
    """What the message says, with its vector; computed in a thread, so that nobody else waits.

    The person's own words count where they stand on their own, as those that name a complaint do; a few that
    do not, as they were enriched.
    """
    bare = bool(enrichment.relevant_history) and enrichment.trigger != NEW_CONCERN and says_little(message)
    text = enrichment.enriched_message if bare else " ".join(message.split())
    vectors = await asyncio.to_thread(embedder.embed, [text])
    return Embedded(text, vectors[0], bare)


def says_little(message: str) -> bool:
    """Whether a message means little without the question before it: a few words that ask nothing."""
    return len(message.split()) <= _FEW and not asks_back(message)
