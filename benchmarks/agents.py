"""The agents' work in one turn, compared with the bare embedding call; start-up time and memory."""

import asyncio
import resource
import subprocess
import sys
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from statistics import quantiles
from time import perf_counter

from agents.evaluation.routing import RoutingFigures, load_cases, route_lines
from agents.facts import changes_of
from agents.local import LocalBrain
from agents.ports import Brain, Brief, Embedder, Recalled, Situation
from agents.roster import Roster, pick
from agents.routing.router import Router
from agents.sentences import sentences
from agents.stations.embed import embed
from agents.stations.understand import understand
from memory_blocks.edits import CompletedTurn, complete_turn, empty
from memory_blocks.facts.changes import current_facts
from memory_blocks.facts.view import changes_in
from memory_blocks.models import AgentResponse, Blocks, Conversation, UserMessage
from orchestrator.ops.clock import SystemClock
from orchestrator.safety.assessment import SafetyRecord, UnderstoodMessage
from orchestrator.safety.monitor import SafetyMonitor
from orchestrator.settings import configured, load, shipped_config
from orchestrator.wiring import (
    build_monitor,
    load_embedder,
    load_guard,
    load_prompts,
    load_roster,
    load_router,
)

STARTING = (
    "from orchestrator.settings import load; from orchestrator.wiring import build_orchestrator;"
    "import tempfile; build_orchestrator(load(given={'data.dir': tempfile.mkdtemp()}))"
)


TALKS = 16
"""How many conversations take turns. After their first messages, each message has earlier ones before it."""


SHELF = load_prompts(load(environment={}), load_roster())


async def _turn(
    brain: Brain, embedder: Embedder, monitor: SafetyMonitor, roster: Roster, blocks: Blocks, text: str
) -> tuple[float, float, Blocks]:
    """Run one turn: understand, embed, answer.

    Returns the seconds of the agents, the seconds of the guard, and the blocks after the turn.
    """
    before = perf_counter()
    monitor.message_received(text)
    listened = perf_counter() - before
    began = perf_counter()
    situation = Situation(blocks, current_facts(changes_in(blocks.active_session)), SystemClock().now())
    understanding = await understand(brain, text, situation, roster.intents)
    enrichment, intent = understanding.enrichment, understanding.intent
    embedded = await embed(embedder, text, enrichment, enrichment.known)
    who = pick(intent, roster)
    made = changes_of(
        understanding.changes,
        turn=blocks.next_turn,
        message_id=f"msg_{blocks.next_turn}",
        answer_id=f"resp_{blocks.next_turn}",
        said_at=situation.now,
    )
    facts = current_facts((*changes_in(blocks.active_session), *made))
    brief = Brief(who, text, understanding, situation, facts, Recalled(), SHELF.prompt(who))
    async with aclosing(sentences(brain.speak(brief))) as spoken:
        answer = "".join([sentence async for sentence in spoken])
    took, number, now = perf_counter() - began, blocks.next_turn, SystemClock().now()
    before = perf_counter()
    known = UnderstoodMessage(text, SafetyRecord(1), blocks, enrichment)
    decision = monitor.message_understood(known, monitor.message_understood(known))
    monitor.message_understood(replace(known, embedded=embedded), decision)
    listened += perf_counter() - before
    turn = CompletedTurn(
        turn_id=number,
        timestamp=now,
        user_message=UserMessage(content=text, message_id=f"msg_{number}"),
        enrichment=enrichment.for_block(),
        intent=intent.for_block(),
        response=AgentResponse(agent_type=who.agent_type, content=answer, response_id=f"resp_{number}"),
        agent_name=who.display_name,
        topic=enrichment.topic,
        trigger=enrichment.trigger,
        phase=enrichment.phase,
        facts=facts,
    )
    return took, listened, complete_turn(blocks, turn, now)


def _bare(embedder: Embedder, text: str) -> float:
    """The seconds of the embedding model alone, with a text that it has not seen."""
    began = perf_counter()
    embedder.embed([text])
    return perf_counter() - began


async def _compared(
    brain: Brain, embedder: Embedder, monitor: SafetyMonitor, roster: Roster, texts: Sequence[str]
) -> tuple[list[float], list[float], list[float], list[float]]:
    """Measure the model alone and whole turns, in alternation, so that both meet the same load.

    Returns the seconds of the model, of turns, of turns with the guard, and of first turns.
    """
    new = empty(Conversation("conv_bench", "bench", SystemClock().now()))
    alone, whole, guarded, talks = [], [], [], [new] * TALKS
    for number, (one, other) in enumerate(zip(texts[::2], texts[1::2], strict=False)):
        alone.append(_bare(embedder, one))
        took, listened, talks[number % TALKS] = await _turn(
            brain, embedder, monitor, roster, talks[number % TALKS], other
        )
        whole.append(took)
        guarded.append(took + listened)
    again = [(await _turn(brain, embedder, monitor, roster, new, text))[0] for text in texts[1::2]]
    return alone[TALKS:], whole[TALKS:], guarded[TALKS:], again


def _print_quantiles(name: str, took: Sequence[float]) -> tuple[float, float]:
    cuts = quantiles(took, n=100)
    p50, p99 = cuts[49] * 1000, cuts[98] * 1000
    print(f"{name:<34} p50 {p50:6.2f} ms   p99 {p99:6.2f} ms")
    return p50, p99


def _routing(router: Router, embedder: Embedder) -> None:
    guard = load_guard(load().models.dir)
    for path in sorted((shipped_config() / "evals").glob("routing.*.jsonl")):
        cases = load_cases(path)
        began = perf_counter()
        routed = route_lines(router, embedder, guard, [case.said for case in cases])
        rate = len(cases) / (perf_counter() - began)
        print(f"{path.name}: {RoutingFigures(cases, tuple(routed)).summary()}, {rate:.0f} messages/s")


def main() -> None:
    """Print the figures."""
    settings, roster = load(), load_roster()
    embedder = load_embedder(settings)
    router = load_router(settings, roster, embedder)
    brain = LocalBrain(roster, router, configured("local", None), embedder)
    sets = sorted((shipped_config() / "evals").glob("routing.*.jsonl"))
    texts = [case.text for path in sets for case in load_cases(path)]
    alone, whole, guarded, again = asyncio.run(
        _compared(brain, embedder, build_monitor(settings, embedder), roster, texts)
    )
    bare, turn = _print_quantiles("the embedding call alone", alone), _print_quantiles("a turn", whole)
    _print_quantiles("the same, and the guard", guarded)
    _print_quantiles("the same messages, seen before", again)
    print(f"{'ratio':<34} p50 {turn[0] / bare[0]:6.2f}      p99 {turn[1] / bare[1]:6.2f}")
    _routing(router, embedder)
    print(f"this process at its largest: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    began = perf_counter()
    subprocess.run([sys.executable, "-c", STARTING], check=True)
    print(f"an orchestrator built in a new process: {perf_counter() - began:.2f} s")
