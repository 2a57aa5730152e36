"""One turn, top to bottom: from a stored message to a finished answer and the blocks that remember it."""

from contextlib import aclosing
from dataclasses import replace

from agents.facts import known_values
from agents.ports import Brief
from agents.roster import pick
from agents.sentences import sentences
from agents.stations.embed import embed
from agents.stations.understand import understand
from orchestrator.ops import faults
from orchestrator.ops.telemetry import station
from orchestrator.safety.assessment import UnderstoodMessage
from orchestrator.turn.answer import Answer, answering
from orchestrator.turn.queue import ClaimedTurn, OpenTurn
from orchestrator.turn.recalled import beyond, is_about_memory, search_record
from orchestrator.turn.record import Routing
from orchestrator.turn.services import TurnServices


async def take_turn(claimed: ClaimedTurn, services: TurnServices) -> None:
    """Answer one message, then remember it. However the turn ends, it ends once, with a stored frame."""
    turn = claimed.turn
    async with answering(claimed, services) as answer:
        await _answer(answer, turn, services)
    if services.remembering is not None:
        await services.remembering.after_turn(
            turn.conversation.user_id, turn.conversation_id, search_record(turn, answer.searched)
        )


async def _answer(answer: Answer, turn: OpenTurn, services: TurnServices) -> None:
    text = answer.message
    with station("read"):
        situation = await answer.begin()

    with station("understand"):
        understanding = await understand(services.brain, text, situation, services.roster.intents)
    faults.point("after_understand")
    enrichment, intent = understanding.enrichment, understanding.intent
    facts = answer.understand(understanding)

    known = UnderstoodMessage(turn.message.contents, turn.safety, situation.blocks, enrichment)
    with station("guard"):
        decision = await answer.assess(known)
    if decision.reply is not None and not decision.needs_classifier:
        await answer.reply(understanding, decision)  # grave danger does not wait for the embedding model
        return

    with station("embed"):
        embedded = await embed(services.embedder, text, enrichment, known_values(facts))
    known = replace(known, embedded=embedded)
    with station("guard"):
        decision = await answer.assess(known)
    if decision.reply is not None:
        await answer.reply(understanding, decision)
        return

    with station("recall"):
        given = answer.known_facts(everything=is_about_memory(understanding))
        answer.searched = await services.recall.search(
            embedded,
            turn.conversation.user_id,
            turn.conversation_id,
            [each.memory.id for each in given],
        )
        recalled = beyond(situation.blocks, answer.searched, given)
    faults.point("after_recall")
    decision = await answer.assess(replace(known, intent=intent))
    await answer.show_understanding(recalled, intent.reasoning)
    if decision.reply is not None:
        await answer.reply(understanding, decision)
        return

    with station("pick"):
        specialist = pick(decision.intent, services.roster)
    understanding = understanding.model_copy(update={"intent": decision.intent})
    answer.route(Routing(understanding, specialist))

    for sentence in decision.preface:
        await answer.say(sentence)
    prompt = services.prompts.prompt(specialist)
    answer.run.prompt, answer.run.prompt_revision = prompt.name, prompt.revision
    brief = Brief(
        specialist,
        text,
        understanding,
        situation,
        facts,
        recalled,
        prompt,
        turn.said,
        answer.tools(services.toolbox.only(specialist.tools)),
    )
    with station("answer"):
        async with aclosing(sentences(services.brain.speak(brief))) as spoken:
            async for sentence in spoken:
                await answer.say_checked(sentence)
