"""LiveKit reconnects, fails and restarts in the middle of an answer; the client has every stanza once."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from livekit import rtc

from agents.brains.scripted import ScriptedBrain, ScriptedRecall
from agents.ports import MemoryHit
from orchestrator.calls import RoomCall
from orchestrator.client import Client
from orchestrator.house import House
from orchestrator.store.database import Transaction
from orchestrator.wire.ids import RandomIds
from orchestrator.wire.messages import MemoryTrace
from tests.houses import ANN, a_house, a_store
from tests.rooms import Site, over_livekit, serving
from tools.servers.keeper import free_port
from tools.servers.livekit import Address, new_address, running_livekit

TRACES = 200
PATIENCE = 100.0

SCENARIOS = {
    "signal_resume": rtc.SimulateScenarioKind.SIMULATE_SIGNAL_RECONNECT,
    "full_reconnect": rtc.SimulateScenarioKind.SIMULATE_FULL_RECONNECT,
    "migration": rtc.SimulateScenarioKind.SIMULATE_MIGRATION,
    "node_failure": rtc.SimulateScenarioKind.SIMULATE_NODE_FAILURE,
}


async def many_memories(url: str) -> ScriptedRecall:
    """As many memories to find as the answer shall have traces."""
    async with a_house(url).open() as house:

        def add(tx: Transaction) -> list[MemoryHit]:
            return [
                MemoryHit(tx.memories.add(f"Fact {number}", user_id=ANN).id, f"Fact {number}", 0.5)
                for number in range(TRACES)
            ]

        return ScriptedRecall(*await house.store.write(add))


@asynccontextmanager
async def a_client(site: Site, conversation_id: str) -> AsyncIterator[tuple[Client, RoomCall]]:
    """A client as `anamnesis chat --livekit` is one, in the conversation."""
    call = RoomCall(str(site.http.base_url), site.key, conversation_id)
    client = Client(await call(), RandomIds(), dial=call)
    async for _ in client.open(conversation_id, seen=0):
        pass
    try:
        yield client, call
    finally:
        await call.hang_up()


def sdk_of(call: RoomCall) -> rtc.Room:
    """The room that a client is in, as LiveKit's SDK has it."""
    assert call.room is not None
    return call.room.sdk


@dataclass
class Told:
    """What a client was told: the numbers of the stanzas in the order in which they came."""

    numbers: list[int] = field(default_factory=list)
    traces: int = 0
    half: asyncio.Event = field(default_factory=asyncio.Event)


async def listen(client: Client, told: Told) -> None:
    """Ask, and take note of the answer to its end."""
    message_id = await client.say("Tell me everything")
    async for said in client.answer_to(message_id):
        if said.stanza_id:
            told.numbers.append(-said.stanza_id)
        told.traces += isinstance(said.body, MemoryTrace)
        if told.traces == TRACES // 2:
            told.half.set()


async def assert_all_was_told(house: House, client: Client, told: Told) -> None:
    """Every stanza, once, in order."""
    frames = await house.store.read(lambda tx: tx.frames.after(client.conversation_id, 0, limit=10_000))
    assert told.traces >= TRACES
    assert told.numbers == [-frame.stanza_id for frame in frames] == list(range(1, len(frames) + 1))


@pytest.mark.parametrize("side", ["client", "house"])
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.requirement("003-148", "003-149", "003-151", "003-152", "003-153", "003-154")
async def test_who_reconnects_in_the_middle_of_an_answer_misses_nothing(
    embedded: str, tmp_path: Path, livekit: Address, scenario: str, side: str
) -> None:
    go_on = asyncio.Event()
    brain = ScriptedBrain(answers=[["One. ", go_on, "Two. ", "Three."]])
    async with (
        a_house(embedded, brain, recall=await many_memories(embedded)).open() as house,
        over_livekit(house, tmp_path, livekit) as site,
        a_client(site, await site.begin()) as (client, call),
        asyncio.timeout(PATIENCE),
        asyncio.TaskGroup() as group,
    ):
        told = Told()
        listening = group.create_task(listen(client, told))
        await told.half.wait()
        sdk = sdk_of(call) if side == "client" else site.rooms.joined[client.conversation_id].sdk
        await sdk.simulate_scenario(SCENARIOS[scenario])
        go_on.set()
        await listening

        await assert_all_was_told(house, client, told)


async def test_a_livekit_server_that_is_killed_and_started_again_costs_no_stanza(
    embedded: str, tmp_path: Path
) -> None:
    go_on, address = asyncio.Event(), new_address()
    brain = ScriptedBrain(answers=[["One. ", go_on, "Two. ", "Three."]])
    with ExitStack() as servers:
        servers.enter_context(running_livekit(address))
        async with (
            a_house(embedded, brain, recall=await many_memories(embedded)).open() as house,
            over_livekit(house, tmp_path, address) as site,
            a_client(site, await site.begin()) as (client, _),
            asyncio.timeout(PATIENCE),
            asyncio.TaskGroup() as group,
        ):
            told = Told()
            listening = group.create_task(listen(client, told))
            await told.half.wait()
            servers.close()
            servers.enter_context(running_livekit(address))
            go_on.set()
            await listening

            await assert_all_was_told(house, client, told)


async def test_a_house_that_leaves_its_rooms_and_another_that_comes_cost_no_stanza(
    embedded: str, tmp_path: Path, livekit: Address
) -> None:
    recall = await many_memories(embedded)
    port = free_port()
    async with AsyncExitStack() as houses:
        house = await houses.enter_async_context(a_house(embedded, recall=recall).open())
        async with over_livekit(house, tmp_path, livekit, port=port) as site:
            call = RoomCall(str(site.http.base_url), site.key, await site.begin())
            client = Client(await call(), RandomIds(), dial=call)
            async for _ in client.open(call.conversation_id, seen=0):
                pass
            told = Told()
            listening = asyncio.create_task(listen(client, told))
            await told.half.wait()
        async with over_livekit(house, tmp_path, livekit, port=port), asyncio.timeout(PATIENCE):
            await listening

        await call.hang_up()
        await assert_all_was_told(house, client, told)


async def test_a_server_that_is_killed_in_the_middle_of_an_answer_and_started_again_costs_no_stanza(
    tmp_path: Path, livekit: Address
) -> None:
    port, told = free_port(), Told()
    async with serving(tmp_path, livekit, port=port, fault="after_send:6") as (door, killed):
        call = RoomCall(door["url"], door["key"])
        client = Client(await call(), RandomIds(), dial=call)
        async for _ in client.open(call.conversation_id, seen=0):
            pass
        listening = asyncio.create_task(listen(client, told))
        assert await killed.wait() == -signal.SIGKILL
    async with serving(tmp_path, livekit, port=port), asyncio.timeout(PATIENCE):
        await listening
        await listen(client, told)
        await call.hang_up()

    store = a_store(f"sqlite:///{tmp_path / 'anamnesis.db'}")
    frames = await store.read(lambda tx: tx.frames.after(client.conversation_id, 0, limit=1_000))
    await store.close()
    assert told.numbers == [-frame.stanza_id for frame in frames] == list(range(1, len(frames) + 1))
