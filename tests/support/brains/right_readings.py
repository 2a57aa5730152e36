"""Measures whether a right reading arrives unchanged: `python -m tests.support.brains.right_readings FILE`.

FILE has one JSON object per line: `history` (messages of `user` and `assistant` in turn), `message`, the
words that a right reading `has` and `lacks`, and the `kind` of follow-up. `right_reading` makes a reading of
them, and a scripted model gives it. What a change replaces, takes back or doubts is known before, from
somebody else.
"""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal

import click
from pydantic import BaseModel, ConfigDict

from agents.errors import ModelTrouble
from agents.models.fallback import ModelBrain, ModelOptions
from agents.models.requests import ModelRequest
from agents.models.retries import Breaker
from agents.models.understanding import labelled
from agents.ports import ToolUser
from agents.stations.understand import slug
from memory_blocks.facts.changes import PERSON, Decider, FactChange, Op, current_facts, derived_id
from orchestrator.ops import logs
from orchestrator.orchestrator import Orchestrator
from orchestrator.store import migrations
from tests.support.brains.model_brains import PATIENT, extractor_prompt
from tests.support.brains.models import minilm
from tests.support.orchestrators import agents, an_orchestrator, history, local_brain
from tests.support.protocol_client import Peer, conversing

_BEFORE: Final = "as said before"
"""The value of what is known before a message that replaces, takes back or doubts it."""


class Said(BaseModel):
    """A message of the person, or an answer."""

    model_config = ConfigDict(frozen=True)

    role: Literal["user", "assistant"]
    text: str


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


class Case(BaseModel):
    """A message after a dialogue, and what is known of its right reading."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    history: tuple[Said, ...]
    message: str
    has: tuple[str, ...]
    lacks: tuple[str, ...] = ()
    kind: Literal["answer", "switch", "return", "correction", "other_person", "aside", "unsure"]

    @property
    def turns(self) -> list[tuple[str, str]]:
        """The earlier messages of the person with their answers."""
        return [(said.text, answer.text) for said, answer in batched_pairs(self.history)]


@dataclass(frozen=True)
class RightReading:
    """What a message means and changes."""

    enriched: str
    facts: tuple[RightFact, ...] = ()


def right_reading(case: Case) -> RightReading:
    """A reading with all that a right one has and nothing that it lacks, and a change that fits its kind."""
    words = ", ".join(case.has)
    enriched = f"User ({case.kind}) means: {words}"
    changes = {
        "answer": (Op.ADD, "noted", PERSON, case.has[0]),
        "return": (Op.ADD, "noted", PERSON, case.has[0]),
        "correction": (Op.REPLACE, "noted", PERSON, case.has[0]),
        "unsure": (Op.UNSURE, "noted", PERSON, case.has[0]),
        "switch": (Op.ADD, "concern", PERSON, ""),
        "other_person": (Op.ADD, "noted", case.has[0], ""),
    }
    if case.kind not in changes:
        return RightReading(enriched)
    op, kind, subject, about = changes[case.kind]
    facts = [RightFact(op=op, kind=kind, subject=subject, about=about, value=words)]
    if op is Op.REPLACE:  # what was corrected may also take back something else
        facts.append(RightFact(op=Op.RETRACT, kind="taken_back", subject=subject, about=about, value=_BEFORE))
    return RightReading(enriched, tuple(facts))


def batched_pairs(said: Sequence[Said]) -> Iterator[tuple[Said, Said]]:
    """The messages of a dialogue in pairs."""
    return zip(said[::2], said[1::2], strict=True)


@dataclass
class ScriptedModel:
    """A model whose next reading and next answer a test sets. `asked` counts the readings.

    If `fails`, it refuses to read. If `hold` is set, an answer pauses before its last sentence until the
    event happens.
    """

    name = "scripted"
    repeatable = True
    reading: dict[str, Any] = field(default_factory=dict)
    answer: str = "Noted."
    fails: bool = False
    hold: asyncio.Event | None = None
    asked: int = 0
    requests: list[ModelRequest] = field(default_factory=list)
    """What it was sent for its answers."""
    readings: list[ModelRequest] = field(default_factory=list)
    """What it was sent for its readings."""

    async def decide(self, request: ModelRequest) -> str:
        """The scripted reading."""
        self.asked += 1
        self.readings.append(request)
        if self.fails:
            raise ModelTrouble("http_503")
        return json.dumps(self.reading)

    async def speak(self, request: ModelRequest, tools: ToolUser) -> AsyncGenerator[str, None]:
        """The scripted answer."""
        self.requests.append(request)
        yield self.answer
        if self.hold is not None:
            await self.hold.wait()
            yield " that is all."


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


def scripted_brain(model: ScriptedModel) -> ModelBrain:
    """A brain that asks this model."""
    return ModelBrain(
        model, local_brain(), agents(), extractor_prompt(), ModelOptions((), PATIENT, Breaker())
    )


async def differences(case: Case, folder: Path) -> list[str]:
    """What of the right reading did not arrive, or did not last; empty if all of it did."""
    url, model, right = f"sqlite:///{folder / f'{case.id}.db'}", ScriptedModel(), right_reading(case)
    migrations.upgrade(url)
    async with (
        an_orchestrator(url, scripted_brain(model), embedder=minilm()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        for number, (message, answer) in enumerate(case.turns):
            concern = {"op": Op.ADD, "kind": "concern", "subject": PERSON, "value": message[:60]}
            model.reading, model.answer = a_reading(message, [] if number else [concern]), answer
            await peer.ask(message)
        targets = await _known_before(orchestrator, peer, case.id, right)
        model.reading, model.answer = a_reading(right.enriched, _changes(right, targets)), "Noted."
        before = model.asked
        await peer.ask(case.message)
        if model.asked == before:
            return ["decided locally"]
        found = await _not_arrived(orchestrator, peer, right)
        facts = current_facts(await _stored(orchestrator, peer))
        model.reading = a_reading("User says thanks")
        await peer.ask("thank you so much for that")
        if current_facts(await _stored(orchestrator, peer)) != facts:
            found.append("the facts changed in the next turn")
        return found


async def _stored(orchestrator: Orchestrator, peer: Peer) -> list[FactChange]:
    return await orchestrator.store.read(lambda tx: tx.facts.changes(peer.conversation_id))


async def _known_before(
    orchestrator: Orchestrator, peer: Peer, case_id: str, right: RightReading
) -> dict[int, str]:
    """Store what the message changes as facts, and return their labels by the number of the change."""
    made = {
        number: FactChange(
            id=derived_id(case_id, str(number)),
            op=Op.ADD,
            kind=slug(fact.kind),
            subject=fact.subject,
            about=fact.about,
            value=_BEFORE,
            said_at=datetime.now(UTC),
            decided_by=Decider.OPERATOR,
        )
        for number, fact in enumerate(right.facts)
        if fact.op is not Op.ADD
    }
    await orchestrator.store.write(lambda tx: tx.facts.add(peer.conversation_id, list(made.values())))
    known = labelled(current_facts(await _stored(orchestrator, peer)))
    labels = {fact.id: label for label, fact in known.items()}
    return {number: labels[change.id] for number, change in made.items()}


def _changes(right: RightReading, targets: dict[int, str]) -> Iterable[dict[str, Any]]:
    for number, fact in enumerate(right.facts):
        yield {**fact.model_dump(mode="json"), "target": targets.get(number), "stable": False, "words": ""}


async def _not_arrived(orchestrator: Orchestrator, peer: Peer, right: RightReading) -> list[str]:
    turn = (await history(orchestrator, peer.conversation_id)).turns[-1]
    found = []
    if turn.context_enrichment is None or turn.context_enrichment.enriched_message != right.enriched:
        found.append("another enrichment")
    made = [
        (change.op, change.kind, change.subject, change.about, change.value)
        for change in await _stored(orchestrator, peer)
        if change.message_id == turn.user_message.message_id
    ]
    wanted = [fact.key for fact in right.facts]
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
