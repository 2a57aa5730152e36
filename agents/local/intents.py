"""Which intent a message belongs to. What is no complaint, question or wish stays with the running one."""

from collections.abc import Sequence
from typing import Final

from agents.local.dialogue import Talk, stems
from agents.local.reading.facts import CONCERN
from agents.ports import Embedded, Embedder
from agents.routing.router import Router
from agents.stations.embed import text_to_embed
from agents.values import (
    EMERGENCY,
    OUT_OF_SCOPE,
    TOPIC_WANTED,
    UNCLEAR,
    Act,
    ActKind,
    Enrichment,
    FactReading,
    Intent,
)

_STAYS: Final = frozenset(
    (
        ActKind.ANSWER,
        ActKind.MEMORY_QUESTION,
        ActKind.REMEMBER,
        ActKind.CORRECT,
        ActKind.FORGET,
        ActKind.UNDO,
        ActKind.SUMMARISE,
        ActKind.COMPLAINT,
        ActKind.SMALL_TALK,
        ActKind.GREETING,
        ActKind.THANKS,
        ActKind.GOODBYE,
        ActKind.ABOUT_US,
        ActKind.UNCLEAR,
    )
)
_CLEARLY: Final = 0.7
_SURELY: Final = 0.9
_STAYING: Final = 0.8


def intent_of(
    message: str,
    acts: Sequence[Act],
    enrichment: Enrichment,
    talk: Talk,
    changes: Sequence[FactReading],
    router: Router,
    embedder: Embedder,
) -> Intent:
    """The intent of a message."""
    before = talk.running
    kinds = {act.kind for act in acts}
    if before in router.intents and kinds and kinds <= _STAYS:
        what = (
            f"Follow-up response to {enrichment.answers[0].replace('_', ' ')} question "
            f"about {talk.about or 'the running topic'}"
            if enrichment.answers
            else "Brings no topic of its own"
        )
        return _intent(str(before), 0.95, what)
    if ActKind.TOPIC_RESUMED in kinds and (resumed := _resumed(message, talk)):
        return _intent(resumed, _STAYING, "Goes back to what was spoken of before")
    known = {fact.kind for fact in talk.facts} | {change.kind for change in changes}
    text, bare = text_to_embed(message, enrichment, known)
    routed = router.route(
        Embedded(text, embedder.embed([text])[0], bare), before if before in router.intents else None
    )
    if before not in router.intents or routed.intent in (before, EMERGENCY):
        return routed
    new_topic = enrichment.trigger == TOPIC_WANTED or any(change.kind == CONCERN for change in changes)
    wants = bool(kinds & {ActKind.HEALTH_QUESTION, ActKind.OTHER_REQUEST, ActKind.TOPIC_LEFT})
    if routed.intent == OUT_OF_SCOPE:
        return (
            routed
            if wants and not new_topic
            else _intent(str(before), _STAYING, "A statement that brings no new topic")
        )
    if routed.intent == UNCLEAR or (not new_topic and not wants):
        return _intent(str(before), _STAYING, "A statement that brings no new topic")
    same = bool(stems(message) & stems(talk.about))
    if routed.confidence >= (_SURELY if same else _CLEARLY):
        return routed
    return _intent(str(before), _STAYING, "Does not clearly leave the running topic")


def _resumed(message: str, talk: Talk) -> str | None:
    words = stems(message)
    for turn in talk.said:
        if turn.intent not in (EMERGENCY, UNCLEAR, OUT_OF_SCOPE) and words & stems(turn.message):
            return turn.intent
    return None


def _intent(intent: str, confidence: float, reasoning: str) -> Intent:
    return Intent(intent=intent, confidence=confidence, reasoning=reasoning)
