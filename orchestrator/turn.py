"""One turn, top to bottom: from a stored message to a finished answer and the blocks that remember it."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass

from agents import context_extractor, embedding
from agents.intent_classifier import classify
from agents.ports import Brain, Brief, Embedded, Embedder, PromptBook, Recall, Recalled
from agents.roster import Roster, pick
from agents.sentences import sentences
from agents.tools.toolbox import Toolbox
from agents.values import EMERGENCY, Enrichment, Intent
from memory_blocks.ledger import Ledger
from memory_blocks.models import Blocks
from orchestrator import faults
from orchestrator.answer import answering
from orchestrator.outbox import Outbox
from orchestrator.shown import Shown
from orchestrator.telemetry import station
from orchestrator.turnstile import Ticket
from orchestrator.watch import Hearing, Watch, remembered


@dataclass(frozen=True, slots=True)
class Stations:
    """What a turn walks through. A rehearsal is a turn with another brain or prompts, on a scratch store."""

    brain: Brain
    embedder: Embedder
    recall: Recall
    roster: Roster
    prompts: PromptBook
    toolbox: Toolbox
    ledger: Ledger
    shown: Shown
    watch: Watch
    outbox: Outbox
    deadline_seconds: float
    attempts: int


async def take_turn(ticket: Ticket, house: Stations) -> None:
    """Answer one message. However the answer ends, it ends once, in frames that are stored."""
    said, person_id = ticket.turn.message.contents, ticket.turn.conversation.user_id
    async with answering(
        ticket,
        house.outbox,
        house.ledger,
        house.shown,
        house.watch,
        deadline_seconds=house.deadline_seconds,
        attempts=house.attempts,
    ) as answer:
        with station("read"):
            blocks = await answer.begin()

        with station("extract"):
            extract = context_extractor.extract_soon if answer.in_danger else context_extractor.extract
            enrichment = await extract(house.brain, said, blocks)
        faults.point("after_extract")

        earlier = remembered(ticket.turn.heard_last)
        with station("guard"):
            over = house.watch.settles(said, earlier)
            retold = Hearing() if over else house.watch.hear_again(said, enrichment, blocks)
            heard = await answer.heard(retold)
        if heard.may_be_graver and not over:  # who is in grave danger waits for no model
            with station("embed"):
                embedded = await embedding.embed(house.embedder, said, enrichment)
            with station("guard"):
                heard = await answer.heard(house.watch.hear_meaning(said, enrichment, embedded))
        if heard.is_danger:
            await answer.reassure(enrichment, house.roster)
            return

        if over:
            answer.routed(enrichment, over, house.roster.agents[EMERGENCY])
            await answer.say(house.watch.wording.settled)
            return

        async with asyncio.TaskGroup() as beside:
            recalling = beside.create_task(_recall(house, embedded, person_id))
            classifying = beside.create_task(_classify(house, enrichment, blocks, embedded))
        recalled, intent = recalling.result(), classifying.result()
        faults.point("after_classify")
        hearing, intent = house.watch.hear_intent(said, enrichment, embedded, intent)
        stays = house.watch.hear_after(said, enrichment, intent, earlier)
        heard = await answer.heard(hearing.raised_by(stays))
        await answer.understood(recalled, intent)
        if heard.is_danger:
            await answer.reassure(enrichment, house.roster)
            return

        with station("pick"):
            specialist = pick(intent, house.roster)
        answer.routed(enrichment, intent, specialist)

        if back := house.watch.wording.comes_back(earlier.verdict):
            await answer.say(back)
        prompt = house.prompts.prompt(specialist)
        tools = answer.tools(house.toolbox.only(specialist.tools))
        brief = Brief(specialist, said, enrichment, intent, blocks, recalled, prompt, ticket.turn.said, tools)
        with station("answer"):
            async with aclosing(sentences(house.brain.speak(brief))) as spoken:
                async for sentence in spoken:
                    if refused := house.watch.refusals(sentence, specialist):
                        await answer.refuse(sentence, refused)
                    else:
                        await answer.say(sentence)


async def _recall(house: Stations, embedded: Embedded, person_id: str) -> Recalled:
    with station("recall"):
        return await house.recall.search(embedded, person_id)


async def _classify(house: Stations, enrichment: Enrichment, blocks: Blocks, embedded: Embedded) -> Intent:
    with station("classify"):
        return await classify(house.brain, enrichment, blocks, embedded, house.roster.intents)
