"""`anamnesis facts`: an operator sees and changes what is known, and each change lasts."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from agents.models.scripted import ScriptedBrain
from agents.values import FactReading
from memory_blocks.facts.changes import Decider, Op
from orchestrator.cli import cli
from orchestrator.settings import VARIABLES
from orchestrator.store import migrations
from orchestrator.store.checks.invariants import check
from tests.support.orchestrators import a_store, an_orchestrator
from tests.support.protocol_client import conversing

HEADACHE = FactReading(
    op=Op.ADD, kind="concern", subject="person", value="headache", decided_by=Decider.MODEL
)


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """An SQLite database in the data folder. At the end, all invariants must hold."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANAMNESIS_DATA_DIR", str(tmp_path))
    url = f"sqlite:///{tmp_path / 'anamnesis.db'}"
    migrations.upgrade(url)
    yield url
    store = a_store(url)
    found = check(store)
    store.close_now()
    assert found == []


async def a_turn(url: str, brain: ScriptedBrain, conversation_id: str | None = None) -> str:
    given = {"conversation_id": conversation_id} if conversation_id else {}
    async with an_orchestrator(url, brain).open() as orchestrator, conversing(orchestrator, **given) as peer:
        await peer.ask("I have a headache")
        return peer.conversation_id


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["facts", *arguments], prog_name="anamnesis")


def listed(conversation_id: str, *options: str) -> list[dict[str, Any]]:
    result = run("show", conversation_id, "--json", *options)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.output.splitlines()]


async def test_what_an_operator_changes_is_used_by_the_next_turn_and_lasts(url: str) -> None:
    here = await a_turn(url, ScriptedBrain(changes=[(HEADACHE,)]))
    (headache,) = listed(here)

    assert run("replace", here, headache["id"][:12], "migraine").exit_code == 0
    assert run("add", here, "allergies", "penicillin", "--stable").exit_code == 0
    assert run("add", here, "age", "4", "--subject", "daughter").exit_code == 0
    brain = ScriptedBrain()
    await a_turn(url, brain, here)

    known = [(fact.subject, fact.kind, fact.value) for fact in brain.situations[0].facts]
    assert known == [
        ("person", "concern", "migraine"),
        ("person", "allergies", "penicillin"),
        ("daughter", "age", "4"),
    ]
    assert {fact.decided_by for fact in brain.situations[0].facts} == {"operator"}
    assert {each["value"] for each in listed(here)} == {"migraine", "penicillin", "4"}


async def test_a_retracted_fact_is_gone_and_its_changes_are_still_there(url: str) -> None:
    here = await a_turn(url, ScriptedBrain(changes=[(HEADACHE,)]))
    (headache,) = listed(here)

    assert run("retract", here, headache["id"]).exit_code == 0

    assert listed(here) == []
    assert run("show", here).output == "Nothing is known yet.\n"
    assert [each["op"] for each in listed(here, "--all")] == ["add", "retract"]
    assert "retract" in run("show", here, "--all").output


async def test_a_fact_can_be_added_before_the_first_turn(url: str) -> None:
    async with an_orchestrator(url).open() as orchestrator, conversing(orchestrator) as peer:
        here = peer.conversation_id
    assert run("add", here, "allergies", "nuts").exit_code == 0
    brain = ScriptedBrain()

    await a_turn(url, brain, here)

    assert [fact.value for fact in brain.situations[0].facts] == ["nuts"]


async def test_a_change_of_no_fact_and_a_value_that_is_too_long_are_refused(url: str) -> None:
    here = await a_turn(url, ScriptedBrain(changes=[(HEADACHE,)]))

    assert "No facts have this id" in run("retract", here, "fact_none").output
    assert "value: string should have at most 240" in run("add", here, "noted", "x" * 241).output
    assert len(listed(here, "--all")) == 1
