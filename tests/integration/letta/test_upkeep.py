"""Upkeep in Letta: turns are archived once, outdated blocks are updated, ended conversations are removed."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from letta_client import Letta

from memory_blocks.edits import complete_turn
from memory_blocks.ledger.ledger import Ledger
from memory_blocks.limits import Limits
from memory_blocks.mirrors.letta import LettaMirror
from memory_blocks.models import Conversation, Label
from orchestrator.errors import LettaTrouble
from orchestrator.letta.agents import AgentRegistry, blocks_are_synced
from orchestrator.letta.blocks import LettaCopies, StoredJournal
from orchestrator.letta.server import LettaAgent
from orchestrator.letta.specs import MEMORY_TOOLS
from orchestrator.letta.upkeep import Upkeep
from orchestrator.ops.clock import SystemClock
from orchestrator.ops.waiting import Waiting
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.turn.block_sync import BlockSync
from orchestrator.turn.outbox import Outbox
from tests.integration.letta.test_scenario import a_letta_orchestrator
from tests.support.builders import a_completed_turn
from tests.support.commands import run
from tests.support.orchestrators import agents
from tests.support.protocol_client import conversing
from tests.support.servers.letta_helpers import a_registry, held_back, turns_in_letta, until_synced
from tests.support.stored_turns import keep_receipts
from tools.servers.letta import LETTA_EMBEDDING, LETTA_MODEL, Address

pytestmark = pytest.mark.timeout(600)


@dataclass
class LettaSetup:
    """Everything that the upkeep of one conversation in Letta needs."""

    store: Store
    registry: AgentRegistry
    upkeep: Upkeep
    ledger: Ledger
    sync: BlockSync

    def take_turns(self, count: int, conversation_id: str = "c1") -> None:
        """Write turns into the stored blocks of a conversation, not into Letta."""
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
async def a_letta_setup(
    base_url: str, store: Store, tag: str, *, rest_seconds: float = 0, making_seconds: float = 60
) -> AsyncIterator[LettaSetup]:
    ledger = Ledger(SystemClock(), Limits(), agents().agent_types)
    async with a_registry(base_url, store, tag) as registry:
        place = LettaCopies(registry, store, Waiting(making_seconds, making_seconds))
        mirror = LettaMirror(place, StoredJournal(store))
        sync = BlockSync(mirror, ledger, Outbox(store), Waiting(60, 60), rest_seconds=rest_seconds)
        upkeep = Upkeep(registry, store, sync, holder="worker_1")
        yield LettaSetup(store, registry, upkeep, ledger, sync)


@pytest.mark.requirement("001-033")
async def test_turns_that_rotated_out_are_found_by_searching_in_letta_and_are_there_once(
    letta: Address, tag: str, opened: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.letta.passages.MAX_PASSAGE", 1)
    async with a_letta_setup(letta.base_url, opened, tag) as setup:
        setup.take_turns(21)
        await setup.upkeep.archive("c1")
        opened.write_now(
            lambda tx: tx.unit.connection.execute("UPDATE letta_passages SET passage_id = NULL")
        )  # as if the process had died before it could record it
        await setup.upkeep.archive("c1")
        await setup.upkeep.archive("c1")
        extractor = await setup.registry.agent("c1", "extractor")

    with Letta(base_url=letta.base_url, max_retries=0) as client:
        found = client.agents.passages.search(agent_id=extractor, query="headache", tags=["conversation:c1"])
        kept = list(client.agents.passages.list(agent_id=extractor))
        there = turns_in_letta(client, extractor)
    turns = opened.read_now(lambda tx: [each.turn_id for each in tx.blocks.archived("c1")])
    assert found.count > 0
    assert len(kept) == len(turns)
    assert len({each.text for each in kept}) == len(kept)
    assert there == turns
    assert turns


def archives_of(client: Letta, tag: str) -> list[str]:
    """The archives with a tag, as a plain client sees them."""
    return [each.id for each in client.archives.list(limit=1_000).items if each.name.startswith(f"{tag}-")]


async def test_a_new_extractor_keeps_the_archived_turns_and_has_each_once(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_letta_setup(letta.base_url, opened, tag) as setup:
        before = await setup.registry.agent("c1", "extractor")
        setup.take_turns(21)
        await setup.upkeep.archive("c1")
        await setup.registry.server.delete_agent(before)

        left = await setup.upkeep.sync()
        after = await setup.registry.agent("c1", "extractor")
        result = {each.state for each in await setup.upkeep.inspect()}
        with Letta(base_url=letta.base_url, max_retries=0) as client:
            kept, archives = turns_in_letta(client, after), archives_of(client, tag)
            client.agents.delete(agent_id=after)
            client.archives.delete(archive_id=archives[0])
            await setup.upkeep.sync()  # the archive was deleted, too: it is filled again
            anew = turns_in_letta(client, await setup.registry.agent("c1", "extractor"))

    turns = opened.read_now(lambda tx: [each.turn_id for each in tx.blocks.archived("c1")])
    assert turns
    assert after != before
    assert (left, result) == ([], {"ok"})
    assert kept == anew == turns
    assert len(archives) == 1


@pytest.mark.parametrize("how", ["over", "extractor_gone", "nobody_s", "nobody_s_and_without_agent"])
async def test_the_archive_of_a_pruned_conversation_is_removed(
    letta: Address, tag: str, opened: Store, how: str
) -> None:
    async with (
        a_letta_setup(letta.base_url, opened, tag) as setup,
        a_letta_setup(letta.base_url, opened, f"{tag}-other") as other,
    ):
        opened.write_now(lambda tx: tx.conversations.create("bob", id="c2"))
        extractor = await setup.registry.agent("c1", "extractor")
        for each, conversation_id in ((setup, "c1"), (other, "c2")):
            each.take_turns(21, conversation_id)
            await each.upkeep.archive(conversation_id)
        with Letta(base_url=letta.base_url, max_retries=0) as client:
            (theirs,) = archives_of(client, f"{tag}-other")
            (ours,) = set(archives_of(client, tag)) - {theirs}
            kept = client.passages.search(query="headache", archive_id=ours)[0].passage
            search = partial(client.passages.search, tags=kept.tags, tag_match_mode="all")
            before = [each.passage.id for each in search()]
            if how.startswith("nobody_s"):
                opened.write_now(lambda tx: tx.letta.forget("c1"))
            else:
                opened.write_now(lambda tx: tx.conversations.update("c1", status="archived"))
            if how in ("extractor_gone", "nobody_s_and_without_agent"):
                client.agents.delete(agent_id=extractor)

            await setup.upkeep.prune()

            assert before == [kept.id]
            assert archives_of(client, tag) == [theirs]
            assert search() == []


async def test_outdated_blocks_are_reported_and_updated(letta: Address, tag: str, opened: Store) -> None:
    async with a_letta_setup(letta.base_url, opened, tag) as setup:
        await setup.registry.agent("c1", "extractor")
        setup.take_turns(1)

        before = {each.state for each in await setup.upkeep.inspect()}
        done = await setup.upkeep.run_once()
        after = {each.state for each in await setup.upkeep.inspect()}

    assert (before, done, after) == ({"ok", "behind"}, 1, {"ok"})
    rows = opened.read_now(lambda tx: (tx.letta.blocks("c1"), tx.blocks.load("c1")))
    assert {label: row.digest for label, row in rows[0].items()} == {
        label: block.digest for label, block in rows[1].items()
    }
    assert not any(row.intent for row in rows[0].values())


async def test_an_agent_that_somebody_removed_is_created_again_with_the_current_blocks(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_letta_setup(letta.base_url, opened, tag) as setup:
        await setup.registry.server.delete_agent(await setup.registry.agent("c1", "extractor"))
        setup.take_turns(1)

        left = await setup.upkeep.sync()

        assert left == []
        assert {each.state for each in await setup.upkeep.inspect()} == {"ok"}


@pytest.mark.parametrize("removed", ["agent", "block"])
async def test_removed_agents_and_blocks_are_created_again_in_the_background_without_delaying_others(
    letta: Address, tag: str, opened: Store, removed: str
) -> None:
    async with a_letta_setup(letta.base_url, opened, tag, rest_seconds=600) as setup:
        opened.write_now(lambda tx: tx.conversations.create("bob", id="c2"))
        extractor = await setup.registry.agent("c1", "extractor")
        await setup.registry.agent("c2", "extractor")
        for conversation_id in ("c1", "c2"):
            setup.take_turns(1, conversation_id)
        await setup.upkeep.run_once()
        for conversation_id in ("c1", "c2"):
            setup.take_turns(1, conversation_id)
        if removed == "agent":
            await setup.registry.server.delete_agent(extractor)
        else:
            block = opened.read_now(lambda tx: tx.letta.blocks("c1"))["active_session"]
            await setup.registry.server.delete_block(block.block_id)

        await setup.upkeep.run_once()
        beside = opened.read_now(partial(blocks_are_synced, "c2"))
        await setup.registry.agent("c1", "extractor")
        await setup.upkeep.run_once()

        assert beside
        assert opened.read_now(partial(blocks_are_synced, "c1"))
        assert {each.state for each in await setup.upkeep.inspect()} == {"ok"}


async def test_an_agent_that_takes_long_to_create_is_used_as_soon_as_it_exists(
    letta: Address, tag: str, opened: Store
) -> None:
    async with (
        a_letta_setup(letta.base_url, opened, tag, rest_seconds=600, making_seconds=0.05) as setup,
        held_back(setup.registry) as let_go,
    ):
        setup.take_turns(1)
        for _ in range(2):
            await setup.upkeep.update_blocks("c1")
        early = opened.read_now(partial(blocks_are_synced, "c1"))
        let_go.set()
        await setup.registry.agent("c1", "extractor")
        await setup.upkeep.update_blocks("c1")

    assert not early
    assert opened.read_now(partial(blocks_are_synced, "c1"))


async def test_an_agent_of_a_former_role_is_removed_and_the_blocks_stay(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_letta_setup(letta.base_url, opened, tag) as setup:
        extractor, former = [await setup.registry.agent("c1", role) for role in ("extractor", "NUTRITION")]
        opened.write_now(
            lambda tx: tx.unit.connection.execute(
                "UPDATE letta_agents SET role = 'classifier' WHERE role = 'NUTRITION'"
            )
        )
        setup.take_turns(1)
        await setup.upkeep.run_once()
        there = {each.id: each for each in await setup.registry.server.agents(tag)}

    assert former not in there
    assert there.keys() == {extractor}
    assert set(there[extractor].blocks) == set(Label)
    assert [row.role for row in opened.read_now(lambda tx: tx.letta.agents("c1"))] == ["extractor"]


async def test_changed_agents_and_blocks_are_reported_and_repaired(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_letta_setup(letta.base_url, opened, tag) as setup:
        extractor, nutritionist = [
            await setup.registry.agent("c1", role) for role in ("extractor", "NUTRITION")
        ]
        setup.take_turns(1)
        await setup.upkeep.run_once()
        blocks = opened.read_now(lambda tx: tx.letta.blocks("c1"))
        with Letta(base_url=letta.base_url, max_retries=0) as client:
            client.agents.update(agent_id=nutritionist, system="You are a pirate.")
            client.agents.blocks.detach(agent_id=nutritionist, block_id=blocks["active_session"].block_id)
            client.blocks.update(
                block_id=blocks["context_summary"].block_id, limit=100, description="Mine.", read_only=True
            )
            for tool in client.agents.tools.list(agent_id=extractor):
                client.agents.tools.detach(agent_id=extractor, tool_id=tool.id)

        result = {(each.state, each.what) for each in await setup.upkeep.inspect() if each.state != "ok"}
        left = await setup.upkeep.sync()

        assert result == {
            ("drifted", "agent extractor: tools"),
            ("drifted", "agent nutrition: system, blocks"),
            ("drifted", "block context_summary: limit, description, read_only"),
        }
        assert left == []
        assert {each.state for each in await setup.upkeep.inspect()} == {"ok"}
        there = {each.id: each for each in await setup.registry.server.agents(tag)}
    assert set(there) == {extractor, nutritionist}
    assert there[extractor].tools == set(MEMORY_TOOLS)
    assert "pirate" not in there[nutritionist].settings["system"]
    assert there[nutritionist].blocks["active_session"].id == blocks["active_session"].block_id
    assert there[extractor].blocks["context_summary"].limit == Limits().of(Label.CONTEXT_SUMMARY)


async def test_a_new_tag_is_given_to_everything_and_leaves_nothing_behind(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_letta_setup(letta.base_url, opened, tag) as setup:
        before = [await setup.registry.agent("c1", role) for role in ("extractor", "NUTRITION")]
        setup.take_turns(21)
        await setup.upkeep.run_once()
        blocks = {each.id for each in await setup.registry.server.blocks(tag)}
    async with a_letta_setup(letta.base_url, opened, f"{tag}-new") as setup:
        result = {each.what for each in await setup.upkeep.inspect() if each.state == "drifted"}
        left = await setup.upkeep.sync()
        after = [await setup.registry.agent("c1", role) for role in ("extractor", "NUTRITION")]
        states = {each.state for each in await setup.upkeep.inspect()}
        server = setup.registry.server
        under_the_first = [*await server.agents(tag), *await server.blocks(tag)]
        names = {each.name for each in await server.agents(f"{tag}-new")}
        people = [each.key for each in await server.identities() if each.key.startswith(tag)]
        moved = {each.id for each in await server.blocks(f"{tag}-new")}
        archives = [each.name for each in await server.archives() if each.name.startswith(tag)]

    assert {"agent extractor: tags", "agent nutrition: tags", "block active_session: tags"} <= result
    assert (left, states) == ([], {"ok"})
    assert (after, moved) == (before, blocks)
    assert under_the_first == []
    assert names == {f"{tag}-new-c1-extractor", f"{tag}-new-c1-nutrition"}
    assert people == [f"{tag}-new:ann"]
    assert archives == [f"{tag}-new-c1-extractor's Archive"]


async def test_blocks_get_the_currently_configured_limits(letta: Address, tag: str, opened: Store) -> None:
    async with a_registry(letta.base_url, opened, tag) as registry:
        before = await registry.agent("c1", "extractor")
    limits = Limits(context_summary_limit=6_000)
    async with a_registry(letta.base_url, opened, tag, limits=limits) as registry:
        after = await registry.agent("c1", "extractor")
        blocks = await registry.server.agent_blocks(after)

    assert after == before
    assert blocks[Label.CONTEXT_SUMMARY].limit == 6_000


async def test_a_conversation_that_cannot_be_archived_does_not_block_others(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_letta_setup(letta.base_url, opened, tag) as setup:
        opened.write_now(lambda tx: tx.conversations.create("bob", id="c2"))
        for conversation_id in ("c1", "c2"):
            await setup.registry.agent(conversation_id, "extractor")
            setup.take_turns(21, conversation_id)
            await setup.upkeep.update_blocks(conversation_id)
        await setup.registry.server.delete_agent(await setup.registry.agent("c1", "extractor"))

        await setup.upkeep.run_once()
        other, again = [await setup.registry.agent(each, "extractor") for each in ("c2", "c1")]
        await setup.upkeep.run_once()

    turns = opened.read_now(lambda tx: [each.turn_id for each in tx.blocks.archived("c1")])
    with Letta(base_url=letta.base_url, max_retries=0) as client:
        assert turns_in_letta(client, other) == turns
        assert turns_in_letta(client, again) == turns
    assert turns


async def test_two_processes_that_archive_at_once_store_each_turn_once(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_letta_setup(letta.base_url, opened, tag) as setup:
        other = Upkeep(setup.registry, opened, setup.sync, holder="worker_2")
        await setup.registry.agent("c1", "extractor")
        setup.take_turns(21)
        remember = setup.registry.server.create_passage
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def slowly(agent_id: str, text: str, tags: Sequence[str]) -> str:
            begun.set()
            await go_on.wait()
            return await remember(agent_id, text, tags)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(setup.registry.server, "create_passage", slowly)
            archiving = asyncio.create_task(setup.upkeep.archive("c1"))
            await begun.wait()
            second = asyncio.create_task(other.archive("c1"))
            await asyncio.wait([second], timeout=2)  # it returns at once if another process has the claim
            go_on.set()
            await asyncio.gather(archiving, second)
        extractor = await setup.registry.agent("c1", "extractor")

    turns = opened.read_now(lambda tx: [each.turn_id for each in tx.blocks.archived("c1")])
    with Letta(base_url=letta.base_url, max_retries=0) as client:
        assert turns_in_letta(client, extractor) == turns


async def test_a_process_that_lost_its_claim_leaves_the_rest_of_the_archiving_to_the_next(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_letta_setup(letta.base_url, opened, tag) as setup:
        await setup.registry.agent("c1", "extractor")
        setup.take_turns(21)
        remember, stored = setup.registry.server.create_passage, []

        async def taken_over(agent_id: str, text: str, tags: Sequence[str]) -> str:
            stored.append(tags)
            opened.write_now(
                lambda tx: tx.unit.connection.execute("UPDATE letta_agents SET holder = 'worker_2'")
            )
            return await remember(agent_id, text, tags)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(setup.registry.server, "create_passage", taken_over)
            patch.setattr("orchestrator.letta.passages.MAX_PASSAGE", 1)
            await setup.upkeep.archive("c1")

    assert len(stored) == 1
    assert len(opened.read_now(lambda tx: tx.letta.planned_passages("c1"))) > 0


async def test_pruning_does_not_remove_what_is_being_created(letta: Address, tag: str, opened: Store) -> None:
    async with a_letta_setup(letta.base_url, opened, tag) as setup:
        await setup.registry.agent("c1", "extractor")
        await setup.registry.agent("c1", "NUTRITION")
        opened.write_now(lambda tx: tx.conversations.create("bob", id="c2"))
        opened.write_now(lambda tx: tx.conversations.create("bob", id="c3"))
        server = setup.registry.server
        make, listed = server.create_agent, server.agents
        made, go_on = asyncio.Event(), asyncio.Event()

        async def made_and_not_yet_noted(recipe: Mapping[str, Any]) -> LettaAgent:
            agent = await make(recipe)
            made.set()
            await go_on.wait()
            return agent

        async def listed_before_another_begins(*tags: str) -> list[LettaAgent]:
            found = await listed(*tags)
            if tags == (tag,):
                await other.agent("c3", "extractor")
            return found

        async with a_registry(letta.base_url, opened, tag, "worker_2") as other:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(server, "create_agent", made_and_not_yet_noted)
                begins = setup.registry.creation("c2", "extractor")
                await made.wait()
                await setup.registry.mark_missing(
                    "c1", "extractor", await setup.registry.agent("c1", "extractor")
                )
                patch.setattr(server, "agents", listed_before_another_begins)
                pruned = await setup.upkeep.prune()
            go_on.set()
            await begins

        assert [each.what.split()[0] for each in pruned] == [
            "agent"
        ]  # the lost extractor, and none of its blocks
        left = {each.conversation_id: each.state for each in await setup.upkeep.inspect()}
        assert left == {"c1": "ok", "c2": "ok", "c3": "ok"}


async def test_ended_conversations_and_orphans_are_pruned_with_their_blocks(
    letta: Address, tag: str, opened: Store
) -> None:
    async with a_letta_setup(letta.base_url, opened, tag) as setup:
        opened.write_now(lambda tx: tx.conversations.create("bob", id="c2"))
        opened.write_now(lambda tx: tx.conversations.create("bob", id="c3"))
        for conversation_id in ("c1", "c2", "c3"):
            await setup.registry.agent(conversation_id, "extractor")
        await setup.registry.server.ensure_identity(f"{tag}:eve", "eve")
        await setup.registry.server.ensure_identity(f"{tag}-other:ann", "ann")
        opened.write_now(lambda tx: tx.conversations.update("c1", status="archived"))
        opened.write_now(lambda tx: tx.letta.forget("c2"))

        result = {(each.state, each.conversation_id) for each in await setup.upkeep.prune()}

        left = await setup.registry.server.agents(tag)
        assert {("over", "c1"), ("orphaned", "c2")} <= result
        assert [sorted(each.tags)[0] for each in left] == ["conversation:c3"]
        assert len(await setup.registry.server.blocks(tag)) == 4
        people = [each.key for each in await setup.registry.server.identities() if each.key.startswith(tag)]
        assert sorted(people) == [f"{tag}-other:ann", f"{tag}:bob"]


async def test_a_person_whose_identity_was_removed_gets_a_new_one(
    letta: Address, tag: str, opened: Store
) -> None:
    async with (
        a_letta_setup(letta.base_url, opened, tag) as setup,
        a_registry(letta.base_url, opened, tag, "worker_2") as other,
    ):
        await other.agent("c1", "extractor")
        opened.write_now(lambda tx: tx.conversations.update("c1", status="archived"))
        await setup.upkeep.run_once()
        opened.write_now(lambda tx: tx.conversations.create("ann", id="c2"))

        with pytest.raises(LettaTrouble):  # it remembers the removed ones, then forgets them
            await other.agent("c2", "extractor")
        made = await other.agent("c2", "extractor")

        assert [each.id for each in await other.server.agents(tag)] == [made]
        assert [each.key for each in await other.server.identities(f"{tag}:ann")] == [f"{tag}:ann"]


@pytest.mark.parametrize("status", ["archived", "deleted"])
async def test_agents_of_ended_conversations_are_removed_in_the_background(
    letta: Address, tag: str, opened: Store, status: str
) -> None:
    async with a_letta_setup(letta.base_url, opened, tag) as setup:
        opened.write_now(lambda tx: tx.conversations.create("bob", id="c2"))
        setup.take_turns(1)
        for conversation_id in ("c1", "c2"):
            await setup.registry.agent(conversation_id, "NUTRITION")
        if status == "archived":
            opened.write_now(lambda tx: tx.conversations.update("c1", status=status))
        else:
            opened.write_now(lambda tx: tx.conversations.delete("c1"))

        await setup.upkeep.run_once()
        await setup.upkeep.update_blocks("c1")  # as when its session is ended

        server = setup.registry.server
        left = [each.tags for each in await server.agents(tag)]
        left += [each.tags for each in await server.blocks(tag)]
        assert len(left) == 2 + 4
        assert all("conversation:c2" in tags for tags in left)
        assert {each.state for each in await setup.upkeep.inspect()} == {"ok"}


@pytest.mark.parametrize("error", [TypeError("a shape"), TimeoutError(), LettaTrouble("http_500")])
async def test_the_background_upkeep_continues_after_any_error(
    letta: Address, tag: str, opened: Store, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    looked = asyncio.Queue[None]()

    async def run_once(*_: object) -> int:
        looked.put_nowait(None)
        raise error

    monkeypatch.setattr("orchestrator.letta.upkeep.INTERVAL_SECONDS", 0.01)
    monkeypatch.setattr(Upkeep, "run_once", run_once)
    async with a_letta_setup(letta.base_url, opened, tag) as setup:
        looking = asyncio.create_task(setup.upkeep.run())
        for _ in range(3):
            await asyncio.wait(
                [again := asyncio.create_task(looked.get()), looking], return_when="FIRST_COMPLETED"
            )
            assert again.done()

        assert not looking.done()
        looking.cancel()


async def test_the_command_reports_and_repairs_differences(
    letta: Address, tag: str, opened: Store, embedded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ends(command: str) -> tuple[int, str]:
        ended = await asyncio.to_thread(run, "letta", command, "--json")
        return ended.exit_code, ended.output

    ours = {
        "LETTA_BASE_URL": letta.base_url,
        "ANAMNESIS_LETTA_TAG": tag,
        "ANAMNESIS_LETTA_MODEL": LETTA_MODEL,
        "ANAMNESIS_LETTA_EMBEDDING": LETTA_EMBEDDING,
        "ANAMNESIS_LETTA_SYNC_SECONDS": "60",
        "ANAMNESIS_DATABASE_URL": embedded,
    }
    for name, value in ours.items():
        monkeypatch.setenv(name, value)
    async with a_letta_setup(letta.base_url, opened, tag) as setup:
        await setup.registry.agent("c1", "extractor")
        setup.take_turns(1)

    codes = [(await ends(command))[0] for command in ("status", "sync", "status", "prune")]

    assert codes == [1, 0, 0, 0]
    result = json.loads((await ends("status"))[1])["found"]
    assert {each["state"] for each in result} == {"ok"}
    assert all(each["id"] for each in result)
    assert result[0]["name"] == f"{tag}-c1-extractor"
    counted, listed = [
        (await asyncio.to_thread(run, "letta", "status", *more)).output for more in ((), ("--all",))
    ]
    assert counted.splitlines() == [f"{len(result)} ok"]
    assert all(each["id"] in listed and each["name"] in listed for each in result)
    monkeypatch.setenv("LETTA_BASE_URL", "")
    assert (await ends("status"))[0] == 2


async def test_the_command_needs_only_the_address_once_a_server_has_used_letta(
    letta: Address, tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        a_letta_orchestrator(letta.base_url, tmp_path, tag) as orchestrator,
        conversing(orchestrator, features=["streaming"]) as peer,
    ):
        await peer.ask("I am having a headache")
        await until_synced(orchestrator.store, peer.conversation_id)
    for name in list(os.environ):
        if name.startswith(("LETTA_", "ANAMNESIS_LETTA_")):
            monkeypatch.delenv(name)

    command = ("--data", str(tmp_path), "letta", "status", "--url", letta.base_url, "--json")
    ended = await asyncio.to_thread(run, *command)

    found = json.loads(ended.output)["found"]
    assert (ended.exit_code, {each["state"] for each in found}) == (0, {"ok"})
    assert {each["name"] for each in found if each["name"]} >= {f"{tag}-{peer.conversation_id}-extractor"}
