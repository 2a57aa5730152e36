"""The station that embeds a message once per turn, for routing, recall and whoever else compares it."""

import asyncio
import re
from typing import Final

from agents.leaning import asks_about_it, says_little, tells_of_it
from agents.ports import Embedded, Embedder
from agents.safety.ears import sentences
from agents.values import NEW_CONCERN, TOPIC_WANTED, WANTS, Enrichment

_TOPICS: Final = ("concern", "request")


async def embed(embedder: Embedder, message: str, enrichment: Enrichment) -> Embedded:
    """What the message says, with its vector; computed in a thread, so that nobody else waits.

    The person's own words count where they stand on their own, as those that name a complaint or a wish do; a
    few that do not, and a question about what was said before, as they were enriched. Of what they would
    rather talk about, only what that is. The sentences of several are embedded with it, for the ears.
    """
    leans = bool(enrichment.relevant_history) and (says_little(message) or asks_about_it(message))
    bare = enrichment.trigger != NEW_CONCERN and (leans or tells_of_it(message))
    about_something = not enrichment.known.keys().isdisjoint(_TOPICS)
    text = enrichment.enriched_message if bare and about_something else " ".join(message.split())
    if enrichment.trigger == TOPIC_WANTED:
        text, bare = re.split(r"; | \(", enrichment.enriched_message.removeprefix(WANTS))[0], False
    parts = [] if bare else sentences(message)
    vectors = await asyncio.to_thread(embedder.embed, [text, *parts])
    return Embedded(text, vectors[0], bare, tuple(map(Embedded, parts, vectors[1:])))
