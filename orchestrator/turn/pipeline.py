"""One turn, top to bottom: from a stored message to a finished answer and the blocks that remember it."""

from contextlib import aclosing
from dataclasses import replace

from agents.facts import known_values
from agents.roster import pick
from agents.sentences import sentences
from agents.stations.embed import embed
from agents.stations.understand import understand
from orchestrator.ops import faults
from orchestrator.ops.telemetry import station
from orchestrator.remember.requests import Settled
from orchestrator.safety.assessment import UnderstoodMessage
from orchestrator.turn.answer import Answer, answering, assess_or_reply, brief_for, read_again, recall
from orchestrator.turn.queue import ClaimedTurn, OpenTurn
from orchestrator.turn.recalled import is_memory_request, search_record
from orchestrator.turn.record import Routing
from orchestrator.turn.services import TurnServices


async def take_turn(claimed: ClaimedTurn, services: TurnServices) -> None:
    """Answer one message, then remember it. However the turn ends, it ends once, with a stored frame."""
    turn = claimed.turn
    with services.foreground.turn():
        async with answering(claimed, services) as answer:
            await _answer(answer, turn, services)
            await read_again(answer)
    if services.memory.remembering is not None:
        await services.memory.remembering.after_turn(
            turn.conversation.user_id, turn.conversation_id, search_record(turn, answer.searched)
        )


async def _answer(answer: Answer, turn: OpenTurn, services: TurnServices) -> None:
    agents, text = services.agents, answer.message
    with station("read"):
        situation = await answer.begin()

    with station("understand"):
        understanding = await understand(agents.brain, text, situation, agents.roster.intents)
    faults.point("after_understand")
    settled = Settled(understanding)
    if is_memory_request(understanding):
        settled = await answer.settle(understanding, situation)
    understanding, enrichment = settled.understanding, understanding.enrichment
    facts = answer.understand(understanding)

    known = UnderstoodMessage(turn.message.contents, turn.safety, situation.blocks, enrichment)
    if await assess_or_reply(answer, understanding, known) is None:
        return  # grave danger does not wait for the embedding model

    with station("embed"):
        embedded = await embed(agents.embedder, text, enrichment, known_values(facts))
    known = replace(known, embedded=embedded)
    if await assess_or_reply(answer, understanding, known) is None:
        return

    with station("recall"):
        recalled = await recall(answer, embedded, understanding, situation)
    faults.point("after_recall")
    known = replace(known, intent=understanding.intent)
    decision = await assess_or_reply(answer, understanding, known, recalled)
    if decision is None:
        return

    with station("pick"):
        specialist = pick(decision.intent, agents.roster)
    routing = Routing(understanding.model_copy(update={"intent": decision.intent}), specialist)
    answer.route(routing)
    for sentence in decision.preface:
        await answer.say(sentence)
    brief = brief_for(answer, routing, situation, facts, recalled, settled)
    with station("answer"):
        async with aclosing(sentences(agents.brain.speak(brief))) as spoken:
            async for sentence in spoken:
                await answer.say_checked(sentence)
