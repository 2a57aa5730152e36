"""Measures whether a model's right reading arrives unchanged: `python -m tests.support.right_readings FILE`.

FILE has one JSON object per line: `dialogue` (pairs of `user` and `assistant`), `message`, and `right` with
`enriched` and `facts` (op, kind, subject, about, value). A scripted model gives the right reading of the
message. What a change replaces, retracts or doubts is known before, from somebody else.
"""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from pydantic import BaseModel, ConfigDict

from agents.models.fallback import ModelBrain, ModelOptions
from agents.models.requests import ModelRequest
from agents.models.retries import Breaker
from agents.models.understanding import labelled
from agents.ports import ToolUser
from agents.stations.understand import slug
from memory_blocks.facts.changes import Decider, FactChange, Op, current_facts, derived_id
from orchestrator.ops import logs
from orchestrator.orchestrator import Orchestrator
from orchestrator.store import migrations
from tests.support.brains import PATIENT, extractor_prompt
from tests.support.models import minilm
from tests.support.orchestrators import agents, an_orchestrator, history, local_brain
from tests.support.protocol_client import Peer, conversing


class Said(BaseModel):
    """A message of the person, and the answer."""

    model_config = ConfigDict(frozen=True)

    user: str
    assistant: str


class RightFact(BaseModel):
    """A change to the facts that a message makes."""

    model_config = ConfigDict(frozen=True)

    op: Op
    kind: str
    subject: str
    about: str = ""
    value: str

    @property
    def key(self) -> tuple[str, ...]:
        """What must arrive unchanged."""
        return self.op, slug(self.kind), self.subject, self.about, self.value


class RightReading(BaseModel):
    """What a message means and changes. Other fields of a record are ignored."""

    model_config = ConfigDict(frozen=True)

    enriched: str
    facts: tuple[RightFact, ...] = ()


class Case(BaseModel):
    """A message after a dialogue, and its right reading."""

    model_config = ConfigDict(frozen=True)

    id: str
    dialogue: tuple[Said, ...]
    message: str
    right: RightReading


@dataclass
class ScriptedModel:
    """A model whose next reading and next answer a test sets. `asked` counts the readings."""

    name = "scripted"
    repeatable = True
    reading: dict[str, Any] = field(default_factory=dict)
    answer: str = "Noted."
    asked: int = 0
    requests: list[ModelRequest] = field(default_factory=list)
    """What it was sent for its answers."""

    async def decide(self, request: ModelRequest) -> str:
        """The scripted reading."""
        self.asked += 1
        return json.dumps(self.reading)

    async def speak(self, request: ModelRequest, tools: ToolUser) -> AsyncGenerator[str, None]:
        """The scripted answer."""
        self.requests.append(request)
        yield self.answer


def a_reading(enriched: str, changes: Iterable[dict[str, Any]] = ()) -> dict[str, Any]:
    """A whole reply of a model that reads a message."""
    return {
        "enriched_message": enriched,
        "previous_context": "As told",
        "relevant_history": [],
        "topic": "evaluation",
        "trigger": "follow_up",
        "phase": "history_taking",
        "acts": [],
        "changes": list(changes),
        "intent": "GENERAL_HEALTH",
        "confidence": 0.9,
        "reasoning": "As scripted",
    }


async def differences(case: Case, folder: Path) -> list[str]:
    """What of the right reading did not arrive, or did not last; empty if all of it did."""
    url, model = f"sqlite:///{folder / f'{case.id}.db'}", ScriptedModel()
    migrations.upgrade(url)
    brain = ModelBrain(
        model, local_brain(), agents(), extractor_prompt(), ModelOptions((), PATIENT, Breaker())
    )
    async with (
        an_orchestrator(url, brain, embedder=minilm()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        for said in case.dialogue:
            model.reading, model.answer = a_reading(said.user), said.assistant
            await peer.ask(said.user)
        targets = await _known_before(orchestrator, peer, case)
        model.reading, model.answer = a_reading(case.right.enriched, _changes(case, targets)), "Noted."
        before = model.asked
        await peer.ask(case.message)
        if model.asked == before:
            return ["decided locally"]
        found = await _not_arrived(orchestrator, peer, case)
        facts = current_facts(await _stored(orchestrator, peer))
        model.reading = a_reading("User says thanks")
        await peer.ask("thank you so much for that")
        if current_facts(await _stored(orchestrator, peer)) != facts:
            found.append("the facts changed in the next turn")
        return found


async def _stored(orchestrator: Orchestrator, peer: Peer) -> list[FactChange]:
    return await orchestrator.store.read(lambda tx: tx.facts.changes(peer.conversation_id))


async def _known_before(orchestrator: Orchestrator, peer: Peer, case: Case) -> dict[int, str]:
    """Store what the message changes as facts, and return their labels by the number of the change."""
    made = {
        number: FactChange(
            id=derived_id(case.id, str(number)),
            op=Op.ADD,
            kind=slug(fact.kind),
            subject=fact.subject,
            about=fact.about,
            value="as said before",
            said_at=datetime.now(UTC),
            decided_by=Decider.OPERATOR,
        )
        for number, fact in enumerate(case.right.facts)
        if fact.op is not Op.ADD
    }
    await orchestrator.store.write(lambda tx: tx.facts.add(peer.conversation_id, list(made.values())))
    known = labelled(current_facts(await _stored(orchestrator, peer)))
    labels = {fact.id: label for label, fact in known.items()}
    return {number: labels[change.id] for number, change in made.items()}


def _changes(case: Case, targets: dict[int, str]) -> Iterable[dict[str, Any]]:
    for number, fact in enumerate(case.right.facts):
        yield {**fact.model_dump(mode="json"), "target": targets.get(number), "stable": False, "words": ""}


async def _not_arrived(orchestrator: Orchestrator, peer: Peer, case: Case) -> list[str]:
    turn = (await history(orchestrator, peer.conversation_id)).turns[-1]
    found = []
    if turn.context_enrichment is None or turn.context_enrichment.enriched_message != case.right.enriched:
        found.append("another enrichment")
    made = [
        (change.op, change.kind, change.subject, change.about, change.value)
        for change in await _stored(orchestrator, peer)
        if change.message_id == turn.user_message.message_id
    ]
    wanted = [fact.key for fact in case.right.facts]
    if made != wanted:
        found.append(f"other changes: {len(made)} instead of {len(wanted)}")
    return found


def load_cases(path: Path) -> list[Case]:
    """The cases of a file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Case.model_validate_json(line) for line in lines if line]


async def _report(cases: list[Case]) -> None:
    unchanged = 0
    for case in cases:
        with TemporaryDirectory() as folder:
            found = await differences(case, Path(folder))
        unchanged += not found
        if found:
            click.echo(f"{case.id}: {'; '.join(found)}")
    click.echo(f"{unchanged} of {len(cases)} arrived unchanged ({100 * unchanged / len(cases):.1f} %)")


if __name__ == "__main__":
    logs.configure("error")
    asyncio.run(_report(load_cases(Path(sys.argv[1]))))
