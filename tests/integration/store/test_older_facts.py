"""A conversation of a release without changes to facts goes on with the facts that its block has."""

import json
from pathlib import Path

import pytest

from agents.models.scripted import ScriptedBrain
from agents.values import FactReading
from memory_blocks.facts.changes import Decider, Op, current_facts
from memory_blocks.trace import digest
from orchestrator.store import migrations
from orchestrator.store.checks.invariants import check
from orchestrator.store.engine.database import Transaction
from orchestrator.store.engine.packing import pack
from tests.support.orchestrators import an_orchestrator
from tests.support.protocol_client import conversing

FACTS = [
    {"kind": "concern", "value": "fever", "turn": 1},
    {"kind": "about_whom", "value": "daughter", "turn": 1},
    {"kind": "medications", "value": "ibuprofen, paracetamol", "turn": 1},
]


def make_older(tx: Transaction, conversation_id: str, version: str | None) -> None:
    """Write the block as a release with that version of the blocks did."""
    block = tx.blocks.load(conversation_id)["active_session"]
    session = json.loads(block.value or "") | {"schema_version": version, "facts": FACTS}
    if version is None:
        del session["schema_version"], session["facts"]
    text = json.dumps(session, separators=(",", ":"))
    tx.unit.connection.execute("DELETE FROM fact_changes")
    tx.unit.connection.execute(
        "UPDATE block_revisions SET base = NULL, packed = ?, size = ?, digest = ?, schema_version = ?"
        " WHERE label = 'active_session'",
        (pack(text), len(text), digest(text), version or "1.0"),
    )
    tx.unit.connection.execute(
        "UPDATE blocks SET value = ?, digest = ?, schema_version = ? WHERE label = 'active_session'",
        (text, digest(text), version or "1.0"),
    )


@pytest.mark.parametrize("version", ["1.1", None])
async def test_the_facts_of_an_older_release_are_used_and_become_changes(
    tmp_path: Path, version: str | None
) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    migrations.upgrade(url)
    async with an_orchestrator(url).open() as orchestrator, conversing(orchestrator) as peer:
        here = peer.conversation_id
        await peer.ask("My daughter has a fever")
        await orchestrator.store.write(lambda tx: make_older(tx, here, version))

    age = FactReading(op=Op.ADD, kind="age", subject="daughter", value="4", decided_by=Decider.MODEL)
    brain = ScriptedBrain(changes=[(age,)])
    async with (
        an_orchestrator(url, brain).open() as orchestrator,
        conversing(orchestrator, conversation_id=here) as peer,
    ):
        for message in ("She is 4", "Thank you"):
            await peer.ask(message)
        changes = await orchestrator.store.read(lambda tx: tx.facts.changes(here))
        blocks = await orchestrator.store.read(lambda tx: tx.blocks.load(here))
        found = [each for each in check(orchestrator.store) if each.invariant in ("I13", "I22", "blocks")]

    known = ["fever", "daughter", "ibuprofen", "paracetamol"] if version else []
    assert [fact.value for fact in brain.situations[0].facts] == known
    assert [(fact.subject, fact.value) for fact in current_facts(changes)] == [
        ("daughter", value) for value in (*known, "4")
    ]
    assert json.loads(blocks["active_session"].value or "")["schema_version"] == "1.2"
    assert found == []
