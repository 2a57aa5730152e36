"""What rotated out is searchable in Letta, once; what fell behind is made good; what is over is removed."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

import pytest
from letta_client import Letta

from memory_blocks.edits import complete_turn
from memory_blocks.ledger import Ledger
from memory_blocks.limits import Limits
from memory_blocks.mirrors.letta import LettaMirror
from memory_blocks.models import Conversation
from orchestrator.clock import SystemClock
from orchestrator.letta_agents import AgentRegistry, are_shown
from orchestrator.letta_blocks import LettaPlace, StoredJournal
from orchestrator.letta_upkeep import Upkeep
from orchestrator.shown import Shown
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.database import Store, Transaction
from tests.builders import a_completed_turn
from tests.houses import agents
from tests.lettas import a_registry, turns_in_letta
from tests.world import keep_receipts
from tools.servers.letta import LETTA_MODEL, Address
from tools.toolchain import CHECKOUT

pytestmark = pytest.mark.timeout(600)


@dataclass
class Desk:
    """All that is needed to look after one conversation in Letta."""

    store: Store
    registry: AgentRegistry
    upkeep: Upkeep
    ledger: Ledger

    def take_turns(self, count: int, conversation_id: str = "c1") -> None:
        """Write turns into the blocks of a conversation, and nothing into Letta."""
        for _ in range(count):
            self.store.write_now(partial(self._take_turn, conversation_id))

    def _take_turn(self, conversation_id: str, tx: Transaction) -> None:
        row = tx.conversations.lock(conversation_id)
        conversation, blocks = Conversation(row.id, row.user_id, row.created_at), SqlBlockStore(tx.blocks)
        reading = self.ledger.read(blocks, conversation, actor="test")
        turn = replace(a_completed_turn(reading.blocks.next_turn), timestamp=tx.now)
        after = complete_turn(reading.blocks, turn, tx.now, self.ledger.limits)
        written = self.ledger.write(blocks, conversation, reading, after, actor="test")
        keep_receipts(tx, conversation_id, (*reading.receipts, *written.receipts))


@asynccontextmanager
async def a_desk(base_url: str, store: Store, tag: str, *, rest_seconds: float = 0) -> AsyncIterator[Desk]:
    ledger = Ledger(SystemClock(), Limits(), agents().agent_types)
    async with a_registry(base_url, store, tag) as registry:
        mirror = LettaMirror(LettaPlace(registry, store), StoredJournal(store))
        shown = Shown(mirror, ledger, store, patience_seconds=60, rest_seconds=rest_seconds)
        yield Desk(store, registry, Upkeep(registry, store, shown, holder="worker_1"), ledger)


@pytest.mark.requirement("001-033")
async def test_turns_that_rotated_out_are_found_by_searching_in_letta_and_are_there_once(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_desk(letta.base_url, opened, tag) as desk:
        desk.take_turns(21)
        await desk.upkeep.archive("c1")
        opened.write_now(
            lambda tx: tx.unit.connection.execute("UPDATE letta_passages SET passage_id = NULL")
        )  # as if the process had died before it could note it
        await desk.upkeep.archive("c1")
        await desk.upkeep.archive("c1")
        extractor = await desk.registry.agent("c1", "extractor")

    with Letta(base_url=letta.base_url, max_retries=0) as client:
        found = client.agents.passages.search(agent_id=extractor, query="headache", tags=["conversation:c1"])
        kept = list(client.agents.passages.list(agent_id=extractor))
        there = turns_in_letta(client, extractor)
    turns = opened.read_now(lambda tx: [each.turn_id for each in tx.blocks.archived("c1")])
    assert found.count > 0
    assert len({each.text for each in kept}) == len(kept)
    assert there == turns
    assert turns


async def test_blocks_that_fell_behind_are_told_and_made_good(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_desk(letta.base_url, opened, tag) as desk:
        await desk.registry.agent("c1", "extractor")
        desk.take_turns(1)

        before = {each.state for each in await desk.upkeep.inspect()}
        done = await desk.upkeep.look()
        after = {each.state for each in await desk.upkeep.inspect()}

    assert (before, done, after) == ({"ok", "behind"}, 1, {"ok"})
    rows = opened.read_now(lambda tx: (tx.letta.blocks("c1"), tx.blocks.load("c1")))
    assert {label: row.digest for label, row in rows[0].items()} == {
        label: block.digest for label, block in rows[1].items()
    }
    assert not any(row.intent for row in rows[0].values())


async def test_an_agent_that_somebody_removed_is_made_again_with_the_blocks_as_they_stand(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_desk(letta.base_url, opened, tag) as desk:
        await desk.registry.server.delete_agent(await desk.registry.agent("c1", "extractor"))
        desk.take_turns(1)

        left = await desk.upkeep.sync()

        assert left == []
        assert {each.state for each in await desk.upkeep.inspect()} == {"ok"}


async def test_a_removed_agent_is_made_again_beside_the_turns_and_keeps_no_other_waiting(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_desk(letta.base_url, opened, tag, rest_seconds=600) as desk:
        opened.write_now(lambda tx: tx.conversations.create("bob", id="c2"))
        removed = await desk.registry.agent("c1", "extractor")
        await desk.registry.agent("c2", "extractor")
        desk.take_turns(1)
        desk.take_turns(1, "c2")
        await desk.upkeep.look()
        desk.take_turns(1)
        desk.take_turns(1, "c2")
        await desk.registry.server.delete_agent(removed)

        await desk.upkeep.look()

        assert opened.read_now(partial(are_shown, "c2"))
        assert not opened.read_now(partial(are_shown, "c1"))
    async with a_desk(letta.base_url, opened, tag) as desk:
        await desk.registry.agent("c1", "extractor")
        await desk.upkeep.look()

        assert {each.state for each in await desk.upkeep.inspect()} == {"ok"}
    assert opened.read_now(partial(are_shown, "c1"))


async def test_what_is_over_or_nobody_s_is_pruned_with_its_blocks(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_desk(letta.base_url, opened, tag) as desk:
        opened.write_now(lambda tx: tx.conversations.create("bob", id="c2"))
        opened.write_now(lambda tx: tx.conversations.create("bob", id="c3"))
        for conversation_id in ("c1", "c2", "c3"):
            await desk.registry.agent(conversation_id, "extractor")
        opened.write_now(lambda tx: tx.conversations.update("c1", status="archived"))
        opened.write_now(lambda tx: tx.letta.forget("c2"))

        told = {(each.state, each.conversation_id) for each in await desk.upkeep.prune()}

        left = await desk.registry.server.agents(tag)
        assert {("over", "c1"), ("orphaned", "c2")} <= told
        assert [sorted(each.tags)[0] for each in left] == ["conversation:c3"]
        assert len(await desk.registry.server.blocks(tag)) == 4


async def test_the_command_tells_what_is_not_as_it_should_be_and_sets_it_right(
    letta: Address, tag: str, opened: Store, embedded: str
) -> None:
    async def run(command: str, base_url: str = letta.base_url) -> tuple[int | None, str]:
        ours = {
            "LETTA_BASE_URL": base_url,
            "ANAMNESIS_LETTA_TAG": tag,
            "ANAMNESIS_LETTA_MODEL": LETTA_MODEL,
            "ANAMNESIS_LETTA_SHOW_SECONDS": "60",
            "ANAMNESIS_DATABASE_URL": embedded,
        }
        asked = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "orchestrator", "letta", command, "--json"),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, **ours},
            cwd=CHECKOUT,
        )
        told, _ = await asked.communicate()
        return asked.returncode, told.decode()

    async with a_desk(letta.base_url, opened, tag) as desk:
        await desk.registry.agent("c1", "extractor")
        desk.take_turns(1)

    codes = [(await run(command))[0] for command in ("status", "sync", "status", "prune")]

    assert codes == [1, 0, 0, 0]
    assert '"behind"' not in (await run("status"))[1]
    assert (await run("status", base_url=""))[0] == 2
