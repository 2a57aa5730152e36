"""A brain without a language model: rules to understand a follow-up, a router, an interview to answer."""

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import Final

from agents.enriching import Enricher
from agents.known import Exchange
from agents.leaning import wishes
from agents.lexicon import Lexicon
from agents.patterns import INJECTED
from agents.ports import Brief, Embedded
from agents.questions import name_of
from agents.roster import Roster
from agents.router import Router
from agents.speaking import answer_to
from agents.tools.wishes import told, wish_in
from agents.values import EMERGENCY, KIND, OUT_OF_SCOPE, UNCLEAR, Enrichment, Fact, Intent
from memory_blocks.models import Blocks, Turn

_SURELY: Final = 0.8  # so sure one must be that a reply asks for something else
_STAYS: Final = 0.8  # how sure it is that a few words without a topic of their own go on with the running one
_NOTHING_NEW: Final = "new_message"


class LocalBrain:
    """Quick, offline and predictable. It repeats what was said and asks; it does not diagnose."""

    name = "local"

    def __init__(self, roster: Roster, router: Router, lexicon: Lexicon) -> None:
        self._roster = roster
        self._router = router
        self._enricher = Enricher(lexicon)

    async def extract(self, message: str, blocks: Blocks) -> Enrichment:
        """What the message means after the last question, in words that stand on their own."""
        turns, state = blocks.conversation_history.turns, blocks.active_session.conversation_state
        oldest = turns[0].turn_id if turns else blocks.next_turn
        return self._enricher.enrich(
            message,
            tuple(Exchange(turn.turn_id, turn.user_message.content, _answer(turn)) for turn in turns),
            number=blocks.next_turn,
            archived=tuple(
                Fact(kind=fact.kind, value=fact.value, turn=fact.turn)
                for fact in blocks.active_session.facts or ()
                if fact.turn < oldest and KIND.fullmatch(fact.kind)
            ),
            topic=state.active_topic,
            phase=state.conversation_phase,
        )

    async def classify(self, enrichment: Enrichment, blocks: Blocks, embedded: Embedded) -> Intent:
        """By what it is like; an answer to a question, a farewell and an order to us stay with their topic.

        Danger in an answer was heard before by the guard, which knows the question; a router does not.
        """
        before = _running(blocks)
        if before not in self._router.intents:
            return self._router.route(embedded)
        if enrichment.phase == "closing":
            return _intent(before, 0.95, "Takes leave of the running topic")
        if INJECTED.search(embedded.text):
            return _intent(before, 0.95, "Tells the agents what to do, which changes no topic")
        if not enrichment.answers:
            routed = self._router.route(embedded, before)
            if embedded.bare and enrichment.trigger == _NOTHING_NEW and routed.intent != EMERGENCY:
                return _intent(before, max(_STAYS, routed.confidence), "A few words that bring no new topic")
            return routed
        if "goal" not in enrichment.answers and not embedded.bare and wishes(embedded.text):
            wish = self._router.route(embedded, before)
            if wish.intent in self._roster.agent_types and wish.confidence >= _SURELY:
                return wish
        what = name_of(enrichment.answers[0]).removesuffix(" rating 1-10")
        about = enrichment.known.get("concern", "the running topic")
        return _intent(before, 0.95, f"Follow-up response to {what} question about {about}")

    async def speak(self, brief: Brief) -> AsyncGenerator[str, None]:
        """The answer a few words at a time, giving way to others in between."""
        text = await _worked_out(brief) + answer_to(brief, self._roster, self._enricher.is_clause)
        if brief.said and text.startswith(brief.said):
            text = text[len(brief.said) :]
        for fragment in re.findall(r"(?:\S+\s*){1,8}|\s+", text):
            yield fragment
            await asyncio.sleep(0)


# --- understanding ----------------------------------------------------------------------------------------


def _answer(turn: Turn | None) -> str:
    return turn.agent_response.content if turn and turn.agent_response else ""


def _running(blocks: Blocks) -> str | None:
    """What the conversation is about: no emergency, aside or unclear message, but what these broke into."""
    for turn in reversed(blocks.conversation_history.turns):
        intent = turn.intent_classification.intent if turn.intent_classification else UNCLEAR
        if intent not in (EMERGENCY, UNCLEAR, OUT_OF_SCOPE):
            return intent
    return None


async def _worked_out(brief: Brief) -> str:
    """What the person asked to be worked out, told in a sentence; nothing where a tool could not."""
    wish = wish_in(brief.message, brief.enrichment.known.get("measures", ""))
    if wish is None or wish.tool not in brief.specialist.tools or brief.said:
        return ""
    outcome = await brief.tools.use(wish.tool, wish.arguments)
    return told(wish, outcome.result) if outcome.success else ""


def _intent(intent: str, confidence: float, reasoning: str) -> Intent:
    return Intent(intent=intent, confidence=confidence, reasoning=reasoning)
