"""A brain without a language model: rules to understand a follow-up, a router, an interview to answer."""

import asyncio
import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Final

from agents.evaluation.follow_ups import Enrich
from agents.facts import known_facts
from agents.local.enriching import Enricher
from agents.local.fact_readings import readings_of
from agents.local.leaning import names_again
from agents.local.lexicon import load
from agents.local.patterns import INJECTED
from agents.local.speaking import answer_to
from agents.ports import Brief, Embedded, Embedder, Situation
from agents.questions import kinds_asked, last_question, name_of
from agents.roster import Roster
from agents.routing.router import Router
from agents.stations.embed import embed
from agents.tools.requests import find_tool_request, result_sentence
from agents.utterance import wishes
from agents.values import (
    COORDINATOR,
    EMERGENCY,
    KIND,
    NEW_CONCERN,
    OUT_OF_SCOPE,
    TOPIC_WANTED,
    UNCLEAR,
    Enrichment,
    Exchange,
    Intent,
    Understanding,
    values_of,
)
from memory_blocks.models import Blocks, Turn

_SURELY: Final = 0.8  # so sure one must be that a reply asks for something else
_STAYS: Final = 0.8  # how sure it is that what brings no topic of its own goes on with the running one
_CLEARLY: Final = 0.7  # so sure one must be that a question, wish or complaint leaves the topic ...
_SURELY_ELSE: Final = 0.9  # ... and where it speaks of what was spoken of, or of a goal that was asked for
_ASKS: Final = "question"


class LocalBrain:
    """Quick, offline and predictable. It repeats what was said and asks; it does not diagnose."""

    name = "local"

    def __init__(self, roster: Roster, router: Router, lexicon: Path, embedder: Embedder) -> None:
        self._roster = roster
        self._router = router
        self._embedder = embedder
        self._enricher = Enricher(load(lexicon))

    @staticmethod
    def follow_ups(lexicon: Path) -> Enrich:
        """What makes messages stand on their own, without the rest of the brain: it needs no router."""
        return Enricher(load(lexicon)).enrich

    async def understand(self, message: str, situation: Situation) -> Understanding:
        """What the message means after the last question, which facts are new in it, and where it belongs."""
        enrichment, now = self._enrich(message, situation), situation.blocks.next_turn
        intent = _intent(UNCLEAR, 0.0, "Not routed, because the person may be in danger")
        if not situation.urgent:
            embedded = await embed(self._embedder, message, enrichment, values_of(enrichment.facts))
            intent = self._classify(enrichment, situation.blocks, embedded)
        changes = tuple(readings_of(enrichment, situation.facts, now))
        return Understanding(enrichment=enrichment, intent=intent, changes=changes)

    def _enrich(self, message: str, situation: Situation) -> Enrichment:
        """The message in words that can be understood alone."""
        blocks = situation.blocks
        turns, state = blocks.conversation_history.turns, blocks.active_session.conversation_state
        oldest = turns[0].turn_id if turns else blocks.next_turn
        return self._enricher.enrich(
            message,
            tuple(Exchange(turn.turn_id, turn.user_message.content, _answer(turn)) for turn in turns),
            number=blocks.next_turn,
            archived=tuple(
                fact
                for fact in known_facts(situation.facts)
                if fact.turn < oldest and KIND.fullmatch(fact.kind)
            ),
            topic=state.active_topic,
            phase=state.conversation_phase,
        )

    def _classify(self, enrichment: Enrichment, blocks: Blocks, embedded: Embedded) -> Intent:
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
        if enrichment.trigger == TOPIC_WANTED:
            return self._wanted(embedded, before, blocks)
        if not enrichment.answers:
            return self._weighed(self._router.route(embedded, before), before, enrichment, blocks, embedded)
        if "goal" not in enrichment.answers and not embedded.bare and wishes(embedded.text):
            wish = self._router.route(embedded, before)
            if wish.intent in self._roster.agent_types and wish.confidence >= _SURELY:
                return wish
        what = name_of(enrichment.answers[0]).removesuffix(" rating 1-10")
        about = enrichment.known.get("concern", "the running topic")
        return _intent(before, 0.95, f"Follow-up response to {what} question about {about}")

    def _wanted(self, embedded: Embedded, before: str, blocks: Blocks) -> Intent:
        """Where that belongs which the person would rather talk about: where it was spoken of before, if not
        here; else where it is like.
        """
        for turn in reversed(blocks.conversation_history.turns):
            intent = _intent_of(turn)
            if intent not in (before, EMERGENCY, UNCLEAR, OUT_OF_SCOPE) and names_again(
                embedded.text, [turn.user_message.content]
            ):
                return _intent(intent, _STAYS, "Wants to go back to what was spoken of before")
        return self._router.route(embedded)

    def _weighed(
        self, routed: Intent, before: str, enrichment: Enrichment, blocks: Blocks, embedded: Embedded
    ) -> Intent:
        """Where a message belongs that answers nothing: leaving a topic takes more than beginning one.

        What names no complaint, asks nothing and wishes for nothing goes on with what it was said to. What
        does leaves where it clearly belongs elsewhere; where that is open, the coordinator asks once.
        """
        if routed.intent in (before, EMERGENCY):
            return routed
        turns = blocks.conversation_history.turns
        asked = _answer(turns[-1])
        wish, question = wishes(embedded.text), enrichment.trigger == _ASKS
        nothing_new = enrichment.trigger != NEW_CONCERN and not question and not wish
        if nothing_new and (embedded.bare or last_question(asked)):
            return _intent(before, max(_STAYS, routed.confidence), "A statement that brings no new topic")
        a_goal = wish and ("goal" in kinds_asked(asked) or "goal" in enrichment.known)
        if routed.intent == OUT_OF_SCOPE and not a_goal:
            return routed
        if question and any(f.kind == "asked_about" and f.turn == blocks.next_turn for f in enrichment.facts):
            return routed  # it names a medicine
        said = [turn.user_message.content for turn in turns if _intent_of(turn) == before]
        of_it = a_goal or (not embedded.bare and names_again(embedded.text, said))
        if routed.intent != UNCLEAR and routed.confidence >= (_SURELY_ELSE if of_it else _CLEARLY):
            return routed
        if of_it or before in routed.between or not (question or wish):
            return _intent(before, _STAYS, "Does not clearly leave the running topic")
        if routed.intent == UNCLEAR or _speaker(turns[-1]) == COORDINATOR:
            return routed
        return Intent(
            intent=UNCLEAR,
            confidence=round(1 - routed.confidence, 4),
            reasoning=f"May leave {before} for {routed.intent} ({routed.confidence:.2f})",
            between=(routed.intent, before),
        )

    async def speak(self, brief: Brief) -> AsyncGenerator[str, None]:
        """The answer a few words at a time, giving way to others in between."""
        brief = _with_facts(brief)
        worked, text = await _worked_out(brief), answer_to(brief, self._roster, self._enricher.is_clause)
        if worked:
            text = (worked + (_next_step(brief, text) if _only_asks(brief) else text)).rstrip()
        if brief.said and text.startswith(brief.said):
            text = text[len(brief.said) :]
        for fragment in re.findall(r"(?:\S+\s*){1,8}|\s+", text):
            yield fragment
            await asyncio.sleep(0)


def _with_facts(brief: Brief) -> Brief:
    """The brief of a message that a model read, with the known facts in its enrichment."""
    enrichment = brief.understanding.enrichment
    if enrichment.facts:
        return brief
    enrichment = enrichment.model_copy(update={"facts": known_facts(brief.facts)})
    return replace(brief, understanding=brief.understanding.model_copy(update={"enrichment": enrichment}))


# --- understanding ----------------------------------------------------------------------------------------


def _answer(turn: Turn | None) -> str:
    return turn.agent_response.content if turn and turn.agent_response else ""


def _speaker(turn: Turn) -> str:
    return turn.agent_response.agent_type if turn.agent_response else ""


def _intent_of(turn: Turn) -> str:
    return turn.intent_classification.intent if turn.intent_classification else UNCLEAR


def _running(blocks: Blocks) -> str | None:
    """What the conversation is about: no emergency, aside or unclear message, but what these broke into."""
    for turn in reversed(blocks.conversation_history.turns):
        intent = _intent_of(turn)
        if intent not in (EMERGENCY, UNCLEAR, OUT_OF_SCOPE):
            return intent
    return None


async def _worked_out(brief: Brief) -> str:
    """What the person asked to be worked out, told in a sentence; nothing where a tool could not."""
    known = brief.understanding.enrichment.known
    wish = find_tool_request(
        brief.message,
        known.get("measures", ""),
        about=known.get("about_whom", ""),
        age=known.get("age", ""),
    )
    if wish is None or wish.tool not in brief.specialist.tools or brief.said:
        return ""
    outcome = await brief.tools.use(wish.tool, wish.arguments)
    return result_sentence(wish, outcome.result) if outcome.success else ""


_ASKED_WITH: Final = frozenset(("measures", "request", "asked_about", "about_whom", "age", "mentioned"))


def _only_asks(brief: Brief) -> bool:
    """Whether a message says nothing beside what it asks to be worked out."""
    now = brief.situation.blocks.next_turn
    return all(fact.kind in _ASKED_WITH for fact in brief.understanding.enrichment.facts if fact.turn == now)


def _next_step(brief: Brief, answer: str) -> str:
    """What is still asked once a wish is granted: what it broke into, if that is open. Nobody says then that
    they cannot help with it.
    """
    if brief.specialist.agent_type == COORDINATOR:
        return ""
    turns = brief.situation.blocks.conversation_history.turns
    before = last_question(_answer(turns[-1])) if turns else None
    if before and set(kinds_asked(before)) & set(brief.understanding.enrichment.passed_over):
        return before
    return last_question(answer) or ""


def _intent(intent: str, confidence: float, reasoning: str) -> Intent:
    return Intent(intent=intent, confidence=confidence, reasoning=reasoning)
