"""A message in possible danger is answered at once, and read by the model after that."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agents.models.requests import ModelRequest
from memory_blocks.facts.changes import Decider
from orchestrator.orchestrator import Orchestrator
from orchestrator.settings import shipped_config
from orchestrator.store import migrations
from tests.support.brains.models import minilm
from tests.support.brains.right_readings import (
    ScriptedModel,
    a_reading,
    differences,
    load_cases,
    scripted_brain,
)
from tests.support.orchestrators import ANN, an_orchestrator, history
from tests.support.protocol_client import SENTENCE, Frame, Peer, conversing

CASES = {case.id: case for case in load_cases(shipped_config() / "evals" / "follow_ups.right_readings.jsonl")}
CHEST = "wait, now I've got chest pain, it just started"


@dataclass
class SlowModel(ScriptedModel):
    """Reads nothing before `may_read` is set."""

    began: asyncio.Event = field(default_factory=asyncio.Event)
    may_read: asyncio.Event = field(default_factory=asyncio.Event)

    async def decide(self, request: ModelRequest) -> str:
        self.began.set()
        await self.may_read.wait()
        return await super().decide(request)


def served(folder: Path, model: ScriptedModel) -> Orchestrator:
    url = f"sqlite:///{folder / 'store.db'}"
    migrations.upgrade(url)
    return an_orchestrator(url, scripted_brain(model), embedder=minilm(), remembers=True)


def a_change(value: str) -> dict[str, object]:
    return {"op": "add", "kind": "concern", "subject": "person", "value": value, "words": value}


def text_of(frame: Frame) -> str:
    return str(frame.body["text"])


async def values(orchestrator: Orchestrator, peer: Peer) -> list[tuple[str, Decider]]:
    changes = await orchestrator.store.read(lambda tx: tx.facts.changes(peer.conversation_id))
    return [(each.value, each.decided_by) for each in changes]


async def test_the_models_reading_of_a_message_in_danger_arrives_and_lasts(tmp_path: Path) -> None:
    assert await differences(CASES["fa036"], tmp_path) == []


async def test_no_sentence_waits_for_that_reading(tmp_path: Path) -> None:
    model = SlowModel(a_reading("User has chest pain", [a_change("chest pain since just now")]))
    async with served(tmp_path, model).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.say(CHEST)
        await model.began.wait()
        said = await peer.until(lambda frame: frame.type == SENTENCE and len(text_of(frame)) > 20)
        model.may_read.set()
        rest = await peer.answer()
        turn = (await history(orchestrator, peer.conversation_id)).turns[-1]
        kept = await values(orchestrator, peer)

    last = [frame.body for frame in rest if frame.type == SENTENCE][-1]
    assert said
    assert (last["text"], last["isFinal"]) == ("", True)
    assert turn.context_enrichment is not None
    assert turn.context_enrichment.enriched_message == "User has chest pain"
    assert kept == [("chest pain since just now", Decider.MODEL)]


async def test_the_next_message_does_not_wait_for_that_reading(tmp_path: Path) -> None:
    model = SlowModel()
    async with served(tmp_path, model).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.say(CHEST)
        await model.began.wait()
        await peer.say("I cannot breathe and my lips are blue")
        first = await peer.answer()
        second = await peer.until(lambda frame: frame.type == SENTENCE)

    assert [frame.body["isFinal"] for frame in first if frame.type == SENTENCE][-1]
    assert second[-1].meta["safety"] == "emergency"


@pytest.mark.parametrize("trouble", ["fails", "undo", "forget"])
async def test_the_first_reading_stays_if_that_one_fails_or_asks_to_change_memories(
    tmp_path: Path, trouble: str
) -> None:
    model = ScriptedModel(a_reading("Something else", [a_change("something else")]))
    model.fails = trouble == "fails"
    if not model.fails:
        model.reading["acts"] = [{"kind": trouble, "words": CHEST, "confidence": 1.0}]
    async with served(tmp_path, model).open() as orchestrator, conversing(orchestrator) as peer:
        frames = await peer.ask(CHEST)
        kept = await values(orchestrator, peer)

    assert {decider for _, decider in kept} == {Decider.LOCAL}
    assert "model.trouble" not in frames[-1].meta


async def test_what_was_never_asked_cannot_be_agreed_to(tmp_path: Path) -> None:
    model = ScriptedModel(a_reading("User takes sertraline", [a_change("sertraline")]))
    async with served(tmp_path, model).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask("I take sertraline")
        model.fails = True
        await peer.ask("forget everything, I have crushing chest pain and my left arm is numb")
        await peer.ask("yes")
        kept = await values(orchestrator, peer)
        memories = await orchestrator.store.read(lambda tx: tx.memories.of_person_ever(ANN))

    assert ("sertraline", Decider.MODEL) in kept
    assert not [
        each for each in memories if each.deleted_at is not None and each.content == "I take sertraline"
    ]
