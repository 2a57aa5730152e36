"""The station that embeds a message once per turn, for routing and recall."""

import asyncio
import re
from collections.abc import Collection
from typing import Final

from agents.ports import Embedded, Embedder
from agents.utterance import asks_about_it, says_little, tells_of_it
from agents.values import NEW_CONCERN, TOPIC_WANTED, WANTS, Enrichment

_TOPICS: Final = ("concern", "request")


async def embed(embedder: Embedder, message: str, enrichment: Enrichment, known: Collection[str]) -> Embedded:
    """The text that represents the message, with its vector, computed in a thread."""
    text, bare = text_to_embed(message, enrichment, known)
    vectors = await asyncio.to_thread(embedder.embed, [text])
    return Embedded(text, vectors[0], bare)


def text_to_embed(message: str, enrichment: Enrichment, known: Collection[str]) -> tuple[str, bool]:
    """The text that represents a message, and whether it was only a few words in reply to a question.

    This is the message itself if it can be understood alone, as one that names a complaint or a wish can. A
    short reply, or a question about something earlier, is embedded as it was enriched. If the person asks to
    change the topic, only the new topic is embedded. `known` are the kinds of fact that are known by now.
    """
    depends = bool(enrichment.relevant_history) and (says_little(message) or asks_about_it(message))
    bare = enrichment.trigger != NEW_CONCERN and (depends or tells_of_it(message))
    has_topic = any(kind in known for kind in _TOPICS)
    text = enrichment.enriched_message if bare and has_topic else " ".join(message.split())
    if enrichment.trigger == TOPIC_WANTED:
        text, bare = re.split(r"; | \(", enrichment.enriched_message.removeprefix(WANTS))[0], False
    return text, bare
