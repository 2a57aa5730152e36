"""A brain without a model: rules to understand a follow-up, keywords to route it, an interview to answer."""

import asyncio
import re
from collections.abc import AsyncGenerator

from agents.enriching import Enricher
from agents.lexicon import Lexicon
from agents.ports import Brief
from agents.questions import name_of
from agents.reading import asks_back
from agents.roster import Roster
from agents.speaking import answer_to
from agents.understanding import Exchange
from agents.values import EMERGENCY, KIND, UNCLEAR, Enrichment, Fact, Intent
from memory_blocks.models import Blocks, Turn


class LocalBrain:
    """Quick, offline and predictable. It repeats what was said and asks; it does not diagnose."""

    name = "local"

    def __init__(self, roster: Roster, lexicon: Lexicon) -> None:
        self._roster = roster
        self._enricher = Enricher(lexicon)
        self._keywords = {
            each.agent_type: [(word, _as_word(word)) for word in each.keywords]
            for each in roster.agents.values()
        }

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

    async def classify(self, enrichment: Enrichment, blocks: Blocks) -> Intent:
        """By its words; an answer to a question, or a message without such words, stays with its topic."""
        before = blocks.active_session.agent_context.last_intent
        quoted = re.search(r'"(.*?)"', enrichment.enriched_message)
        own_words = quoted[1] if quoted else enrichment.enriched_message
        found = {
            intent: [word for word, pattern in keywords if pattern.search(own_words)]
            for intent, keywords in self._keywords.items()
        }
        if found.get(EMERGENCY):
            return _intent(EMERGENCY, 0.9, f"Mentions {_listed(found[EMERGENCY])}")
        if enrichment.answers and before in self._roster.agent_types:
            what = name_of(enrichment.answers[0]).removesuffix(" rating 1-10")
            about = enrichment.known.get("concern", "the running topic")
            return _intent(before, 0.95, f"Follow-up response to {what} question about {about}")
        ranked = sorted(found, key=lambda intent: len(found[intent]), reverse=True)
        best, second = ranked[0], ranked[1]
        if not found[best]:
            if before in self._roster.agent_types and not asks_back(own_words):
                return _intent(before, 0.8, "Goes on with the running topic")
            return _intent(UNCLEAR, 0.3, "Names nothing that belongs to one of the specialists")
        if before in found and len(found[before]) == len(found[best]):
            best, second = before, best if best != before else second
        clear = len(found[best]) > len(found[second]) or not found[second]
        sure = 0.9 if not found[second] else 0.7 if clear else 0.55
        return _intent(best, sure, f"Clear mention of {_listed(found[best])}")

    async def speak(self, brief: Brief) -> AsyncGenerator[str, None]:
        """The answer word by word, giving way to others in between."""
        text = answer_to(brief, self._roster, self._enricher.is_clause)
        if brief.said and text.startswith(brief.said):
            text = text[len(brief.said) :]
        for fragment in re.findall(r"\S+\s*|\s+", text):
            yield fragment
            await asyncio.sleep(0)


# --- understanding ----------------------------------------------------------------------------------------


def _answer(turn: Turn | None) -> str:
    return turn.agent_response.content if turn and turn.agent_response else ""


def _as_word(word: str) -> re.Pattern[str]:
    """A pattern that finds `word` where it stands alone."""
    return re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)


def _intent(intent: str, confidence: float, reasoning: str) -> Intent:
    return Intent(intent=intent, confidence=confidence, reasoning=reasoning)


def _listed(words: list[str]) -> str:
    return ", ".join(words[:3])
