"""Conversations with the local brain, kept as text files; `make conversations` renews them.

In a kept conversation a line `# …` says what it is about. `person:` lines are what the person says, and
`person, aside:` lines are messages that do not answer the question before them. A line that begins with an
agent's type is the answer of that agent; `COORDINATOR/OUT_OF_SCOPE:` names the intent too. The conversation
runs through a whole orchestrator: guard, danger classifier and router decide who answers.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from agents.facts import changes_of
from agents.local import LocalBrain
from agents.ports import Brief, Prompt, Recalled
from agents.roster import pick
from agents.stations.understand import understand
from agents.values import COORDINATOR, OUT_OF_SCOPE, UNCLEAR, Enrichment, Intent, Offer
from memory_blocks.edits import CompletedTurn, complete_turn, empty
from memory_blocks.facts.changes import CurrentFact, FactChange, current_facts
from memory_blocks.models import AgentResponse, Blocks, UserMessage
from orchestrator.ops import logs
from orchestrator.orchestrator import Orchestrator
from orchestrator.remember.utterances import utterance_id
from orchestrator.safety.monitor import SafetyMonitor
from orchestrator.settings import load
from orchestrator.store import migrations
from orchestrator.store.engine.database import Transaction
from orchestrator.wiring import build_monitor
from tests.support.brains.models import minilm
from tests.support.builders import HandClock, a_conversation, a_situation
from tests.support.orchestrators import agents, an_orchestrator, history, local_brain, messages
from tests.support.protocol_client import TIMEOUT, TRACE, Frame, Peer, conversing

KEPT = Path(__file__).parents[2] / "conversations"
PERSON = "person"
ASIDE = f"{PERSON}, aside"
PROMPT = Prompt(name="a", text="Be kind.", revision="1")


@dataclass(frozen=True)
class TurnResult:
    """The result of one message."""

    enrichment: Enrichment
    intent: Intent
    agent: str
    answer: str
    blocks: Blocks


class Talk:
    """A conversation under way."""

    def __init__(self, brain: LocalBrain | None = None) -> None:
        self._brain = brain or local_brain()
        self._roster = agents()
        self._clock = HandClock()
        self.blocks = empty(a_conversation())
        self.results: list[TurnResult] = []
        self._changes: tuple[FactChange, ...] = ()
        self._offer: Offer | None = None

    @property
    def facts(self) -> tuple[CurrentFact, ...]:
        """The facts that hold."""
        return current_facts(self._changes)

    async def say(self, message: str, *, label: str = "", answer: str | None = None) -> TurnResult:
        """Send a message; `label` names the expected agent, `answer` replaces its answer."""
        situation = replace(a_situation(self.blocks, current_facts(self._changes)), offer=self._offer)
        understanding = await understand(self._brain, message, situation, self._roster.intents)
        intent = _as_labelled(label) or understanding.intent
        understanding = understanding.model_copy(update={"intent": intent})
        enrichment, number = understanding.enrichment, len(self.results) + 1
        agent, moment = pick(intent, self._roster), self._clock.tick()
        agreed = self._offer.changes if self._offer and understanding.agreed else ()
        self._offer = Offer(changes=understanding.proposed) if understanding.proposed else None
        self._changes += changes_of(
            (*agreed, *understanding.changes),
            turn=number,
            message_id=f"msg_{number}",
            answer_id=f"resp_{number}",
            said_at=moment,
        )
        facts = current_facts(self._changes)
        brief = Brief(agent, message, understanding, situation, facts, Recalled(), PROMPT, offer=self._offer)
        if answer is None:
            answer = "".join([fragment async for fragment in self._brain.speak(brief)])
        turn = CompletedTurn(
            turn_id=number,
            timestamp=moment,
            user_message=UserMessage(content=message, message_id=f"msg_{number}"),
            enrichment=enrichment.for_block(),
            intent=intent.for_block(),
            response=AgentResponse(agent_type=agent.agent_type, content=answer, response_id=f"resp_{number}"),
            agent_name=agent.display_name,
            topic=enrichment.topic,
            trigger=enrichment.trigger,
            phase=enrichment.phase,
            facts=facts,
        )
        self.blocks = complete_turn(self.blocks, turn, self._clock.now())
        self.results.append(TurnResult(enrichment, intent, agent.agent_type, answer, self.blocks))
        return self.results[-1]


def _as_labelled(label: str) -> Intent | None:
    if not label:
        return None
    agent, _, intent = label.partition("/")
    name = intent or (UNCLEAR if agent == COORDINATOR else agent)
    return Intent(intent=name, confidence=0.95, reasoning="As the text has it")


def kept() -> list[Path]:
    """The kept conversations."""
    return sorted(KEPT.glob("*.txt"))


def kept_over() -> list[Path]:
    """The kept texts of several conversations of one person."""
    return sorted((KEPT / "memory").glob("*.txt"))


def lines_of(text: str) -> Iterator[tuple[str, str]]:
    """The speaker and the text of each line."""
    for line in text.splitlines():
        if line and not line.startswith(("#", "===", " ")):
            who, _, said = line.partition(": ")
            yield who, said


async def held(text: str) -> str:
    """Hold the conversation again with the same messages. Returns it with today's answers."""
    result = [line for line in text.splitlines() if line.startswith("#")] + [""]
    with TemporaryDirectory() as folder:
        url = _new_store(folder)
        orchestrator = an_orchestrator(url, local_brain(), monitor=_a_monitor())
        async with orchestrator.open(), conversing(orchestrator) as peer:
            spoken = [(who, said) for who, said in lines_of(text) if who in (PERSON, ASIDE)]
            for _, message in spoken:
                await peer.ask(message)
            turns = (await history(orchestrator, peer.conversation_id)).turns
    for (speaker, message), turn in zip(spoken, turns, strict=True):
        assert turn.agent_response is not None
        assert turn.intent_classification is not None
        answer = re.sub(r"\d\d:\d\d UTC", "09:30 UTC", turn.agent_response.content)
        who, intent = turn.agent_response.agent_type, turn.intent_classification.intent
        label = f"{who}/{intent}" if (who, intent) == (COORDINATOR, OUT_OF_SCOPE) else who
        result += [f"{speaker}: {message}", f"{label}: {answer}", ""]
    return "\n".join(result).rstrip() + "\n"


async def held_over(text: str) -> str:
    """Hold several conversations of one person again. They are divided by lines such as `=== 3 days later`.

    Below each answer are the facts that it was given from other conversations, and what it stored or deleted.
    """
    result = [line for line in text.splitlines() if line.startswith("#")] + [""]
    clock = HandClock()
    with TemporaryDirectory() as folder:
        orchestrator = an_orchestrator(
            _new_store(folder),
            local_brain(),
            monitor=_a_monitor(),
            clock=clock,
            remembers=True,
            follow_up_days=30,
        )
        async with orchestrator.open():
            for part in re.split(r"^(?==== )", text, flags=re.MULTILINE):
                if found := re.match(r"=== (\d+) days later\n", part):
                    clock.tick(86_400 * int(found[1]))
                    result.append(found[0])
                async with conversing(orchestrator) as peer:
                    for who, message in lines_of(part):
                        if who == PERSON:
                            clock.tick()
                            frames = await peer.ask(message)
                            await _is_remembered(orchestrator, peer)
                            turn = (await history(orchestrator, peer.conversation_id)).turns[-1]
                            assert turn.agent_response is not None
                            answer = f"{turn.agent_response.agent_type}: {turn.agent_response.content}"
                            result += [f"{PERSON}: {message}", answer, *_memory_lines(frames), ""]
    return re.sub(r"\n+(=== .*)\n+", r"\n\n\1\n\n", "\n".join(result)).rstrip() + "\n"


def _memory_lines(frames: Sequence[Frame]) -> Iterator[str]:
    """The long-term memories that an answer used or changed, in a fixed order."""
    traces = [
        each.body for each in frames if each.type == TRACE and each.body["memoryType"] != "memory_block"
    ]
    lines = {
        f"    {each['action']} {each['memoryType']}"
        f"{' (deleted)' if each['metadata'].get('deleted') else ''}: {each['content']}".rstrip(": ")
        for each in traces
    }
    return iter(sorted(lines))


async def _is_remembered(orchestrator: Orchestrator, peer: Peer) -> None:
    """Wait until the last message is a memory, and search can find every memory of the person."""
    assert peer.conversation_id is not None
    written = await messages(orchestrator, peer.conversation_id)
    said = [each for each in written if each.message_role == "user"]
    memory_id = utterance_id(said[-1].id)

    def is_searchable(tx: Transaction) -> bool:
        kept = tx.memories.get_even_deleted(memory_id)
        owner = None if kept is None else kept.user_id
        return owner is not None and not tx.memories.not_indexed(owner, limit=1)

    async with asyncio.timeout(TIMEOUT):
        while not await orchestrator.store.read(is_searchable):  # noqa: ASYNC110  another task sends no event
            await asyncio.sleep(0.01)


def _new_store(folder: str) -> str:
    url = f"sqlite:///{folder}/store.db"
    migrations.upgrade(url)
    return url


@cache
def _a_monitor() -> SafetyMonitor:
    return build_monitor(load(environment={}), minilm())


def renew() -> None:
    """Write every kept conversation with today's answers; a diff shows what changed."""
    logs.configure("error")
    for path in kept_over():
        path.write_text(asyncio.run(held_over(path.read_text(encoding="utf-8"))), encoding="utf-8")
    for path in kept():
        path.write_text(asyncio.run(held(path.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    renew()
