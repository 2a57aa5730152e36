"""Letta refuses, is busy, or its answers are lost: no block is lost with them, or written twice."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from agents.models.requests import EXTRACTOR
from memory_blocks.errors import MirrorUnavailable
from memory_blocks.models import Label
from memory_blocks.trace import digest
from orchestrator.errors import AnamnesisError, LettaTrouble
from orchestrator.letta.server import LettaServer
from orchestrator.store.engine.database import Store
from tests.faults.http_proxy import Fault, HttpProxy, before
from tests.support.servers.letta_helpers import HandEdited, a_mirror, a_registry
from tests.unit.memory_blocks.ledger.test_ledger import CONVERSATION, LedgerWorld
from tools.servers.letta import Address

pytestmark = pytest.mark.timeout(600)

HERE = CONVERSATION.id
WRITES = r"PATCH /v1/blocks/"
READS = r"GET /v1/agents/[^/]+/core-memory/blocks"


@asynccontextmanager
async def a_way(
    letta: Address, store: Store, tag: str, seconds: float = 10.0
) -> AsyncIterator[tuple[HttpProxy, HandEdited]]:
    """A mirror with an unreliable connection to Letta; one call may take `seconds`."""
    async with (
        before(letta.base_url) as proxy,
        a_mirror(proxy.url, store, tag, HERE, by_hand=letta.base_url, seconds=seconds) as mirror,
    ):
        yield proxy, mirror


def journal(store: Store) -> dict[str, tuple[str | None, str | None]]:
    rows = store.read_now(lambda tx: tx.letta.blocks(HERE))
    return {label: (row.digest, row.intent) for label, row in rows.items()}


def all_stand(mirror: HandEdited, world: LedgerWorld) -> bool:
    stored = world.store.load(HERE)
    return all(digest(mirror.text(HERE, label)) == block.digest for label, block in stored.items())


@pytest.mark.parametrize(
    "faults",
    [
        (Fault(500), Fault(503)),
        (Fault(429, {"retry-after": "0.2"}),),
        (Fault(409), Fault(409)),
        (Fault(lost=True), Fault(lost=True)),
    ],
    ids=["F3", "F5", "F6", "F4"],
)
async def test_a_temporary_failure_is_retried_and_every_block_is_written(
    letta: Address, tag: str, opened: Store, faults: tuple[Fault, ...]
) -> None:
    world = LedgerWorld()
    async with a_way(letta, opened, tag) as (proxy, mirror):
        await mirror.put(HERE, world.take_turn().stored)
        proxy.script(WRITES, *faults)
        proxy.script(READS, Fault(500), Fault(503))

        await mirror.put(HERE, world.take_turn().stored)

        assert all_stand(mirror, world)
        assert {intent for _, intent in journal(opened).values()} == {None}


@pytest.mark.parametrize("told_as", ["seconds", "date"])
async def test_a_long_retry_after_is_not_waited_for(
    letta: Address, tag: str, opened: Store, told_as: str
) -> None:  # F5
    later = "3600" if told_as == "seconds" else format_datetime(datetime.now(UTC) + timedelta(hours=1), True)
    async with before(letta.base_url) as proxy, a_registry(proxy.url, opened, tag) as registry:
        made = await registry.agent("c1", EXTRACTOR)
        proxy.script(READS, *[Fault(429, {"retry-after": later})] * 3)

        with pytest.raises(LettaTrouble) as result:
            await registry.server.agent_blocks(made)

        assert 3_000 < (result.value.retry_after or 0) < 4_000
        assert proxy.count(READS) == 1


async def test_only_what_changed_is_written(letta: Address, tag: str, opened: Store) -> None:
    world = LedgerWorld()
    async with a_way(letta, opened, tag) as (proxy, mirror):
        await mirror.put(HERE, world.take_turn().stored)
        shown = world.take_turn().stored
        await mirror.put(HERE, shown)
        text = f"{shown[Label.CONTEXT_SUMMARY].text}\nMore."
        changed = replace(shown[Label.CONTEXT_SUMMARY], text=text, digest=digest(text), revision=3)
        writes = proxy.count(WRITES)

        await mirror.put(HERE, {**shown, Label.CONTEXT_SUMMARY: changed})
        await mirror.put(HERE, {**shown, Label.CONTEXT_SUMMARY: changed})

        assert proxy.count(WRITES) - writes == 1
        assert mirror.text(HERE, Label.CONTEXT_SUMMARY) == text


async def test_blocks_are_written_in_parallel(
    letta: Address, tag: str, opened: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_of_them, write, world = asyncio.Barrier(len(Label)), LettaServer.write_block, LedgerWorld()

    async def met(server: LettaServer, block_id: str, value: str, metadata: Mapping[str, Any]) -> None:
        async with asyncio.timeout(60):
            await all_of_them.wait()
        await write(server, block_id, value, metadata)

    monkeypatch.setattr(LettaServer, "write_block", met)
    async with a_way(letta, opened, tag) as (_, mirror):
        await mirror.put(HERE, world.take_turn().stored)

        assert all_stand(mirror, world)


async def test_a_write_whose_response_was_lost_is_checked_and_not_repeated(
    letta: Address, tag: str, opened: Store
) -> None:
    world = LedgerWorld()
    async with a_way(letta, opened, tag) as (proxy, mirror):
        await mirror.put(HERE, world.take_turn().stored)
        before_it = proxy.count(WRITES)
        proxy.script(WRITES, Fault(lost=True))

        await mirror.put(HERE, world.take_turn().stored)

        assert proxy.count(WRITES) - before_it == len(Label)
        assert all_stand(mirror, world)


async def test_a_write_whose_response_is_too_slow_is_given_up_checked_and_not_repeated(
    letta: Address, tag: str, opened: Store
) -> None:  # F4
    world = LedgerWorld()
    async with a_way(letta, opened, tag) as (_, mirror):
        await mirror.put(HERE, world.take_turn().stored)
    async with a_way(letta, opened, tag, seconds=3.0) as (proxy, mirror):
        proxy.script(WRITES, Fault(drip=0.5))

        await mirror.put(HERE, world.take_turn().stored)

        assert proxy.count(WRITES) == len(Label)
        assert proxy.count(r"GET /v1/blocks/") >= 1
        assert all_stand(mirror, world)


async def test_a_failed_write_stays_intended_and_is_done_by_the_next_process(
    letta: Address, tag: str, opened: Store
) -> None:
    world = LedgerWorld()
    async with a_way(letta, opened, tag) as (proxy, mirror):
        await mirror.put(HERE, world.take_turn().stored)
        stored = world.take_turn().stored
        proxy.script(WRITES, *[Fault(500)] * 12)
        with pytest.raises(MirrorUnavailable):
            await mirror.put(HERE, stored)
        left = journal(opened)
    async with a_mirror(letta.base_url, opened, tag, HERE) as mirror:
        changed = await mirror.foreign_changes(HERE)
        await mirror.put(HERE, stored)

        assert all(intent is not None for _, intent in left.values())
        assert not changed
        assert all_stand(mirror, world)
        assert {intent for _, intent in journal(opened).values()} == {None}


async def test_a_write_that_a_dead_process_did_not_record_is_recognised(
    letta: Address, tag: str, opened: Store
) -> None:
    world = LedgerWorld()
    async with a_way(letta, opened, tag) as (proxy, mirror):
        stored = world.take_turn().stored
        await mirror.put(HERE, stored)
        opened.write_now(
            lambda tx: tx.letta.record_intent(
                HERE, {label.value: block.digest for label, block in stored.items()}
            )
        )
        writes = proxy.count(WRITES)

        assert not await mirror.foreign_changes(HERE)
        assert not await mirror.put(HERE, stored)
        assert proxy.count(WRITES) == writes
        assert {intent for _, intent in journal(opened).values()} == {None}


async def test_an_intent_is_closed_if_letta_has_the_text_already(
    letta: Address, tag: str, opened: Store
) -> None:
    world = LedgerWorld()
    async with a_way(letta, opened, tag) as (_, mirror):
        stored = world.take_turn().stored
        await mirror.put(HERE, stored)
        opened.write_now(lambda tx: tx.letta.record_intent(HERE, {Label.CONTEXT_SUMMARY.value: "0" * 64}))

        await mirror.foreign_changes(HERE)
        await mirror.put(HERE, stored)

        assert journal(opened) == {label.value: (block.digest, None) for label, block in stored.items()}
        assert all_stand(mirror, world)


async def test_a_request_that_hangs_is_given_up_after_the_timeout(
    letta: Address, tag: str, opened: Store
) -> None:
    world = LedgerWorld()
    async with a_way(letta, opened, tag) as (proxy, mirror):
        await mirror.put(HERE, world.take_turn().stored)
        proxy.script(WRITES, Fault(hang=True))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await mirror.put(HERE, world.take_turn().stored)

        await mirror.put(HERE, world.store.load(HERE))

        assert all_stand(mirror, world)


async def test_an_agent_whose_creation_got_no_response_is_created_once(
    letta: Address, tag: str, opened: Store
) -> None:
    async with before(letta.base_url) as proxy, a_registry(proxy.url, opened, tag) as registry:
        proxy.script(r"POST /v1/agents/", Fault(lost=True))
        with pytest.raises(AnamnesisError):
            await registry.agent("c1", EXTRACTOR)

        made = await registry.agent("c1", EXTRACTOR)

        assert [each.id for each in await registry.server.agents(tag)] == [made]
        assert len(await registry.server.blocks(tag)) == len(Label)
