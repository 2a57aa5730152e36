"""A brain without a language model: it listens, keeps notes, asks an interview's questions and quotes."""

import asyncio
import re
from collections.abc import AsyncGenerator
from pathlib import Path

from agents.evaluation.follow_ups import Enrich
from agents.local.dialogue import Said, Talk
from agents.local.intents import intent_of
from agents.local.replying import medicines, texts
from agents.local.replying.replies import Replies
from agents.local.replying.turn import Turn
from agents.local.understanding import Listener
from agents.ports import Brief, Embedder, Situation
from agents.roster import Roster
from agents.routing.router import Router
from agents.tools.requests import find_tool_request, result_sentence
from agents.values import COORDINATOR, UNCLEAR, Understanding
from memory_blocks.models import Turn as KeptTurn


class LocalBrain:
    """Quick, offline and predictable. It quotes what was said and asks; it does not diagnose or interpret."""

    name = "local"

    def __init__(
        self, roster: Roster, router: Router, folder: Path, embedder: Embedder, *, is_alone: bool = True
    ) -> None:
        """`folder` has the word list, the forms and the wording. `is_alone`: no model is configured."""
        self._router, self._embedder = router, embedder
        self._listener = Listener(folder, embedder)
        self._replies = Replies(
            texts.load(folder / "replies.toml"),
            medicines.load(folder / "medicines.toml"),
            roster.specialists,
            self._listener.search,
            is_alone=is_alone,
        )

    @staticmethod
    def follow_ups(folder: Path, embedder: Embedder | None = None) -> Enrich:
        """What makes messages stand on their own, without the rest of the brain: it needs no router."""
        return Listener(folder, embedder).enrich

    async def understand(self, message: str, situation: Situation) -> Understanding:
        """What a message does, which facts it changes, what it means, and where it belongs."""
        return await asyncio.to_thread(self._understand, message, situation)

    def _understand(self, message: str, situation: Situation) -> Understanding:
        talk, state = talk_of(situation), situation.blocks.active_session.conversation_state
        understood = self._listener.understand(
            message, talk, situation.now, topic=state.active_topic, phase=state.conversation_phase
        )
        intent = intent_of(
            message,
            understood.acts,
            understood.enrichment,
            talk,
            understood.changes,
            self._router,
            self._embedder,
        )
        return Understanding(
            enrichment=understood.enrichment,
            intent=intent,
            acts=understood.acts,
            changes=understood.changes,
            proposed=understood.proposed,
            forgets_all=understood.forgets_all,
            agreed=understood.agreed,
        )

    async def speak(self, brief: Brief) -> AsyncGenerator[str, None]:
        """The answer a few words at a time, giving way to others in between."""
        text = await _worked_out(brief) or await asyncio.to_thread(self._reply, brief)
        if brief.said and text.startswith(brief.said):
            text = text[len(brief.said) :]
        for fragment in re.findall(r"(?:\S+\s*){1,8}|\s+", text):
            yield fragment
            await asyncio.sleep(0)

    def _reply(self, brief: Brief) -> str:
        if brief.specialist.says:
            return brief.specialist.says
        understanding, talk = brief.understanding, talk_of(brief.situation)
        acts = understanding.acts or self._listener.understand(brief.message, talk, brief.situation.now).acts
        return self._replies.reply(
            Turn(
                message=brief.message,
                talk=talk,
                acts=acts,
                changes=understanding.changes,
                facts=brief.facts,
                specialist=brief.specialist,
                intent=understanding.intent,
                now=brief.situation.now,
                recalled=brief.recalled,
                earlier=brief.situation.blocks.active_session.earlier_sessions or (),
                follow_up=brief.situation.follow_up,
                offer=brief.offer,
                agreed=understanding.agreed,
                undone=brief.undone,
            )
        )


def talk_of(situation: Situation) -> Talk:
    """The conversation as the blocks and facts of a situation have it."""
    turns = situation.blocks.conversation_history.turns
    said = tuple(map(_said, turns))
    return Talk(said, situation.facts, situation.blocks.next_turn, offer=situation.offer)


def _said(turn: KeptTurn) -> Said:
    return Said(
        turn=turn.turn_id,
        message=turn.user_message.content,
        answer=turn.agent_response.content if turn.agent_response else "",
        at=turn.timestamp,
        intent=turn.intent_classification.intent if turn.intent_classification else UNCLEAR,
        agent=turn.agent_response.agent_type if turn.agent_response else COORDINATOR,
    )


async def _worked_out(brief: Brief) -> str:
    """The result of a calculation that the person asked for, as a sentence; empty if no tool could do it."""
    known = {fact.kind: fact.value for fact in brief.facts if fact.is_of_person}
    wish = find_tool_request(brief.message, known.get("measures", ""), age=known.get("age", ""))
    if wish is None or wish.tool not in brief.specialist.tools or brief.said:
        return ""
    outcome = await brief.tools.use(wish.tool, wish.arguments)
    return result_sentence(wish, outcome.result).strip() if outcome.success else ""
