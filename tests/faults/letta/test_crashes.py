"""A process is killed between recording a step and doing it in Letta; the next one makes both agree."""

import asyncio
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from letta_client import Letta

from agents.models.requests import EXTRACTOR
from memory_blocks.models import Label
from orchestrator.letta.agents import blocks_are_synced
from orchestrator.store.checks.invariants import check
from orchestrator.store.engine.database import Store, Transaction
from tests.faults.client import TIMEOUT, Client, Cut
from tests.faults.crash_checks import Run, after_a_death, finish
from tests.faults.deployment import Deployment
from tests.integration.letta.test_upkeep import a_letta_setup
from tests.support.servers.forked_servers import Forker
from tests.support.servers.letta_helpers import digests_here, digests_in_letta, turns_in_letta
from tools.servers.letta import LETTA_EMBEDDING, LETTA_MODEL, Address

pytestmark = pytest.mark.timeout(600)

KILLED = -9


def in_soak(*values: object) -> Any:
    """Another pass of a point that `make test` covers; `make soak` runs it."""
    return pytest.param(*values, marks=pytest.mark.soak)


def over_letta(letta: Address, tag: str) -> dict[str, object]:
    """The settings of a server that uses these agents, with long timeouts for a busy machine."""
    return {
        "letta_base_url": letta.base_url,
        "letta_model": LETTA_MODEL,
        "letta_embedding": LETTA_EMBEDDING,
        "letta_tag": tag,
        "letta_sync_seconds": TIMEOUT,
        "letta_copy_seconds": 0,
    }


def let_claims_end(store: Store) -> None:
    """Let the claims of a dead process expire."""
    past = "UPDATE letta_agents SET expires_at = created_at WHERE holder IS NOT NULL"
    store.write_now(lambda tx: tx.unit.connection.execute(past))


@pytest.mark.parametrize(
    ("point", "number"),
    [
        ("after_agent_made", 1),
        in_soak("after_intent_commit", 1),
        ("after_intent_commit", 2),
        in_soak("after_block_put", 1),
        ("after_block_put", 6),
        in_soak("after_applied_commit", 1),
        ("after_applied_commit", 2),
    ],
)
async def test_a_copy_of_the_blocks_that_a_kill_interrupted_is_completed_by_the_next_server(
    deployment: Deployment, letta: Address, tag: str, point: str, number: int
) -> None:
    deployment.settings.update(over_letta(letta, tag))
    client = Client()
    run = Run(client)
    dying = await deployment.start(fault=f"{point}:{number}")
    with suppress(Cut):
        await dying.meet(client)
        await client.ask("I am having a headache")
        await client.ask("8")
        await client.until(lambda: False)
    code = await dying.ended()
    run.problems += after_a_death(deployment, run)
    store = deployment.open_store()
    let_claims_end(store)

    server = await deployment.start()
    await server.meet(client)
    for message_id in client.asked:
        await client.answered(message_id)
    await client.ask("Since yesterday")
    async with asyncio.timeout(TIMEOUT):
        while not store.read_now(partial(blocks_are_synced, client.conversation_id)):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    await finish(deployment, run, server)

    with Letta(base_url=letta.base_url, max_retries=0) as plain:
        there = digests_in_letta(plain, tag, client.conversation_id)
    here = store.read_now(partial(digests_here, client.conversation_id))
    store.close_now()
    assert (code, run.problems) == (KILLED, [])
    assert there == here


class Syncing:
    """Runs `anamnesis letta sync` in its own processes, over the same store and server."""

    def __init__(self, forker: Forker, settings: dict[str, object], data: Path) -> None:
        self._forker, self._settings, self._data = forker, settings, data

    async def ends(self, fault: str = "") -> int:
        """Run it with a fault at that point. Returns the exit code."""
        settings = {**self._settings, "fault": fault}
        environment = {f"ANAMNESIS_{name.upper()}": str(value) for name, value in settings.items()}
        with (self._data / "log").open("ab") as log:
            arguments = ["--data", str(self._data), "letta", "sync"]
            pid = self._forker.fork(arguments, environment, (), log.fileno(), log.fileno())
        return await asyncio.to_thread(self._forker.exit_code, pid)


@pytest.fixture
def syncing(forker: Forker, letta: Address, tag: str, embedded: str, tmp_path: Path) -> Syncing:
    return Syncing(forker, {**over_letta(letta, tag), "database_url": embedded}, tmp_path)


@pytest.mark.parametrize(
    ("turns_since", "point", "number"),
    [
        (0, "after_intent_commit", 1),
        in_soak(0, "after_block_put", 1),
        (1, "after_block_put", 4),
        (0, "before_adopt_commit", 1),
        (0, "after_adopt_commit", 1),
    ],
)
async def test_an_edit_in_letta_survives_a_process_killed_while_overwriting_it(
    syncing: Syncing, letta: Address, tag: str, opened: Store, turns_since: int, point: str, number: int
) -> None:
    async with a_letta_setup(letta.base_url, opened, tag) as setup:
        await setup.registry.agent("c1", EXTRACTOR)
        setup.take_turns(1)
        await setup.upkeep.run_once()
        setup.take_turns(turns_since)
    summary = opened.read_now(lambda tx: tx.letta.blocks("c1"))[Label.CONTEXT_SUMMARY].block_id
    with Letta(base_url=letta.base_url, max_retries=0) as plain:
        text = plain.blocks.retrieve(block_id=summary).value
        plain.blocks.update(block_id=summary, value=f"{text}\nNurse Joy is deaf.")

    killed = await syncing.ends(f"{point}:{number}")
    let_claims_end(opened)
    ended = await syncing.ends()

    with Letta(base_url=letta.base_url, max_retries=0) as plain:
        digests = digests_in_letta(plain, tag, "c1")
    stored, aside = opened.read_now(
        lambda tx: (tx.blocks.load("c1")[Label.CONTEXT_SUMMARY].value or "", tx.blocks.quarantined("c1"))
    )
    assert (killed, ended) == (KILLED, 0)
    assert any("Nurse Joy is deaf." in text for text in (stored, *(each.value for each in aside)))
    assert digests == opened.read_now(partial(digests_here, "c1"))
    revisions, written = opened.read_now(lambda tx: (_revisions(tx), _written(tx)))
    assert written == revisions
    assert check(opened, quiesced=True, mirrored=True) == []


def _revisions(tx: Transaction) -> list[tuple[str, int]]:
    """All revisions, by block."""
    ids = tx.blocks.memory_ids("c1")
    return sorted((ids[label], each.revision) for label in Label for each in tx.blocks.revisions("c1", label))


def _written(tx: Transaction) -> list[tuple[str, int]]:
    """The revisions that traces report as written, once per trace."""
    traces = tx.traces.of_conversation("c1")
    return sorted(
        (each.memory_id, int(str((each.meta or {})["revision"])))
        for each in traces
        if each.action != "retrieved"
    )


@pytest.mark.parametrize(
    ("point", "number"),
    [
        ("after_plan_commit", 1),
        in_soak("after_passage_put", 1),
        ("after_passage_put", 2),
        ("after_kept_commit", 1),
    ],
)
async def test_turns_are_in_letta_once_after_a_process_was_killed_while_archiving(
    syncing: Syncing, letta: Address, tag: str, opened: Store, tmp_path: Path, point: str, number: int
) -> None:
    async with a_letta_setup(letta.base_url, opened, tag) as setup:
        extractor = await setup.registry.agent("c1", EXTRACTOR)
        setup.take_turns(45)

    killed = await syncing.ends(f"{point}:{number}")
    let_claims_end(opened)
    ended = await syncing.ends()

    with Letta(base_url=letta.base_url, max_retries=0) as plain:
        there = turns_in_letta(plain, extractor)
        digests = digests_in_letta(plain, tag, "c1")
        passages = list(plain.agents.passages.list(agent_id=extractor))
    turns = opened.read_now(lambda tx: [each.turn_id for each in tx.blocks.archived("c1")])
    noted = opened.read_now(lambda tx: tx.letta.planned_passages("c1"))
    assert (killed, ended) == (KILLED, 0), (tmp_path / "log").read_text()
    assert there == turns
    assert len(passages) > number
    assert noted == []
    assert digests == opened.read_now(partial(digests_here, "c1"))
