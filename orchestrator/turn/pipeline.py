"""One turn, top to bottom: from a stored message to a finished answer and the blocks that remember it."""

import asyncio
from contextlib import aclosing
from dataclasses import replace

from agents.ports import Brief, Embedded, Recalled
from agents.roster import pick
from agents.sentences import sentences
from agents.stations.classify import classify
from agents.stations.embed import embed
from agents.stations.extract import extract, extract_quickly
from agents.values import Enrichment, Intent
from memory_blocks.models import Blocks
from orchestrator.ops import faults
from orchestrator.ops.telemetry import station
from orchestrator.safety.monitor import Understanding
from orchestrator.store.rows import Conversation
from orchestrator.turn.answer import answering
from orchestrator.turn.queue import ClaimedTurn
from orchestrator.turn.record import Routing
from orchestrator.turn.services import TurnServices


async def take_turn(claimed: ClaimedTurn, services: TurnServices) -> None:
    """Answer one message. However the turn ends, it ends once, with a stored frame."""
    turn = claimed.turn
    async with answering(claimed, services) as answer:
        text = answer.message
        with station("read"):
            blocks = await answer.begin()

        with station("extract"):
            extract_message = extract_quickly if answer.in_danger else extract
            enrichment = await extract_message(services.brain, text, blocks)
        faults.point("after_extract")

        known = Understanding(turn.message.contents, turn.safety, blocks, enrichment)
        with station("guard"):
            decision = await answer.assess(known)
        if decision.reply is not None and not decision.needs_classifier:
            await answer.reply(enrichment, decision)  # grave danger does not wait for the embedding model
            return

        with station("embed"):
            embedded = await embed(services.embedder, text, enrichment)
        known = replace(known, embedded=embedded)
        with station("guard"):
            decision = await answer.assess(known)
        if decision.reply is not None:
            await answer.reply(enrichment, decision)
            return

        recalled, intent = await _recall_and_classify(
            services, turn.conversation, enrichment, blocks, embedded
        )
        faults.point("after_classify")
        decision = await answer.assess(replace(known, intent=intent))
        await answer.show_understanding(recalled, intent.reasoning)
        if decision.reply is not None:
            await answer.reply(enrichment, decision)
            return

        with station("pick"):
            specialist = pick(decision.intent, services.roster)
        answer.route(Routing(enrichment, decision.intent, specialist))

        for sentence in decision.preface:
            await answer.say(sentence)
        brief = Brief(
            specialist,
            text,
            enrichment,
            decision.intent,
            blocks,
            recalled,
            services.prompts.prompt(specialist),
            turn.said,
            answer.tools(services.toolbox.only(specialist.tools)),
        )
        with station("answer"):
            async with aclosing(sentences(services.brain.speak(brief))) as spoken:
                async for sentence in spoken:
                    await answer.say_checked(sentence)


async def _recall_and_classify(
    services: TurnServices, whose: Conversation, enrichment: Enrichment, blocks: Blocks, embedded: Embedded
) -> tuple[Recalled, Intent]:
    """Search long-term memory and classify the message, at the same time."""

    async def search() -> Recalled:
        with station("recall"):
            return await services.recall.search(embedded, whose.user_id, whose.id)

    async def find_intent() -> Intent:
        with station("classify"):
            return await classify(services.brain, enrichment, blocks, embedded, services.roster.intents)

    async with asyncio.TaskGroup() as group:
        searching, classifying = group.create_task(search()), group.create_task(find_intent())
    return searching.result(), classifying.result()
