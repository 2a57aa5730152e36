"""LiveKit reconnects, fails and restarts in the middle of an answer; the client has every stanza once."""

import asyncio
import signal
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest
from livekit import api, rtc

from agents.models.scripted import ScriptedBrain
from orchestrator.client.client import Client
from orchestrator.client.connect import RoomConnection
from orchestrator.wire.ids import RandomIds
from tests.faults.deployment import Deployment
from tests.faults.network.outages import (
    TIMEOUT,
    TRACES,
    Received,
    a_client,
    listen,
    livekit_dies,
    many_memories,
    orchestrator_dies,
    sdk_of,
    stored,
)
from tests.support.orchestrators import an_orchestrator, messages
from tests.support.servers.livekit_rooms import SERVER_IDENTITY, administering, over_livekit
from tools.servers.livekit import Address, new_address, running_livekit
from tools.servers.process import free_port

SCENARIOS = {
    "signal_resume": rtc.SimulateScenarioKind.SIMULATE_SIGNAL_RECONNECT,
    "full_reconnect": rtc.SimulateScenarioKind.SIMULATE_FULL_RECONNECT,
    "migration": rtc.SimulateScenarioKind.SIMULATE_MIGRATION,
    "node_failure": rtc.SimulateScenarioKind.SIMULATE_NODE_FAILURE,
}


LEASE_SECONDS = 10.0
"""So long that a living process keeps its turn on a busy machine. The turn of a dead one is taken at once."""


def assert_all_was_received(received: Received, numbers: list[int], traces: int = TRACES) -> None:
    """Assert that every stored stanza was received once, in order."""
    assert received.traces >= traces
    assert received.numbers == numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.requirement("003-148", "003-149", "003-151", "003-152", "003-153", "003-154")
async def test_a_side_that_reconnects_in_the_middle_of_an_answer_misses_nothing(
    embedded: str, tmp_path: Path, livekit: Address, scenario: str, side: str
) -> None:
    go_on = asyncio.Event()
    brain = ScriptedBrain(answers=[["One. ", go_on, "Two. ", "Three."]])
    async with (
        an_orchestrator(embedded, brain, recall=await many_memories(embedded)).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, livekit) as site,
        a_client(str(site.http.base_url), site.key, await site.begin()) as (client, call),
        asyncio.timeout(TIMEOUT),
        asyncio.TaskGroup() as group,
    ):
        received = Received()
        listening = group.create_task(listen(client, received))
        await received.half.wait()
        sdk = sdk_of(call) if side == "client" else site.rooms.joined[client.conversation_id].sdk
        await sdk.simulate_scenario(SCENARIOS[scenario])
        go_on.set()
        await listening

        assert_all_was_received(received, await stored(orchestrator.store, client.conversation_id))


@pytest.mark.requirement("003-151", "003-153")
async def test_a_livekit_server_that_is_killed_and_started_again_costs_no_stanza(
    embedded: str, tmp_path: Path
) -> None:
    assert_all_was_received(*await livekit_dies(embedded, tmp_path))


async def test_a_room_is_made_again_after_livekit_has_restarted(embedded: str, tmp_path: Path) -> None:
    """LiveKit forgets its rooms. No token is asked for, so that only the orchestrator can have made it."""
    address = new_address()
    with ExitStack() as servers:
        servers.enter_context(running_livekit(address))
        async with (
            an_orchestrator(embedded).open() as orchestrator,
            over_livekit(orchestrator, tmp_path, address) as site,
            asyncio.timeout(TIMEOUT),
        ):
            room = await site.begin()
            admitted = await site.rooms.admit("ann", room)
            sdk = rtc.Room()
            await sdk.connect(admitted.url, admitted.token)
            while room not in site.rooms.joined:  # noqa: ASYNC110  LiveKit sends no event to the test
                await asyncio.sleep(0.1)
            await sdk.disconnect()
            servers.close()
            servers.enter_context(running_livekit(address))
            async with administering(address) as server:
                listed: list[str] = []
                while room not in listed:
                    await asyncio.sleep(0.1)
                    found = await server.room.list_rooms(api.ListRoomsRequest())
                    listed = [each.name for each in found.rooms]

    assert room in listed


async def test_replacing_the_orchestrator_in_a_room_costs_no_stanza(
    embedded: str, tmp_path: Path, livekit: Address
) -> None:
    recall = await many_memories(embedded)
    port = free_port()
    async with AsyncExitStack() as orchestrators:
        orchestrator = await orchestrators.enter_async_context(
            an_orchestrator(embedded, recall=recall).open()
        )
        async with over_livekit(orchestrator, tmp_path, livekit, port=port) as site:
            call = RoomConnection(str(site.http.base_url), site.key, await site.begin())
            client = Client(await call(), RandomIds(), dial=call)
            async for _ in client.open(call.conversation_id, seen=0):
                pass
            received = Received()
            listening = asyncio.create_task(listen(client, received))
            await received.half.wait()
        async with over_livekit(orchestrator, tmp_path, livekit, port=port), asyncio.timeout(TIMEOUT):
            await listening

        await call.close()
        assert_all_was_received(received, await stored(orchestrator.store, client.conversation_id))


@pytest.mark.requirement("003-151", "003-152", "003-153")
async def test_a_server_that_is_killed_in_the_middle_of_an_answer_and_started_again_costs_no_stanza(
    tmp_path: Path, livekit: Address
) -> None:
    assert_all_was_received(*await orchestrator_dies(tmp_path, livekit))


@pytest.mark.requirement("003-143", "003-146", "003-152", "003-153")
async def test_of_two_servers_one_is_in_a_room_and_after_its_death_the_other_joins(
    livekit: Address, postgres_deployment: Deployment
) -> None:
    received = Received()
    postgres_deployment.livekit, postgres_deployment.lease_seconds = livekit, LEASE_SECONDS
    dying = await postgres_deployment.start("recalling_much", "dies_on_demand")
    async with a_client(dying.url, dying.key) as (client, _), asyncio.timeout(TIMEOUT):
        other = await postgres_deployment.start("recalling_much")
        await listen(client, received)
        first = await orchestrator_in(livekit, client.conversation_id)
        dying.signal(signal.SIGUSR1)  # only now: a client that reconnects is sent some stanzas again
        while not dying.output.at_eof():
            await listen(client, received)
        await listen(client, received)
        second = await orchestrator_in(livekit, client.conversation_id)
    other.signal(signal.SIGTERM)

    assert first != second
    assert (await dying.ended(), await other.ended()) == (-signal.SIGKILL, 0)
    store = postgres_deployment.open_store()
    try:
        kept = store.read_now(lambda tx: tx.messages.in_order(client.conversation_id))
        numbers = await stored(store, client.conversation_id)
    finally:
        store.close_now()
    roles = [each.message_role for each in kept]
    assert roles == ["user", "assistant"] * (len(roles) // 2)
    assert kept[-1].completion_status == "completed"
    assert_all_was_received(received, numbers)


async def orchestrator_in(address: Address, room: str) -> str:
    """The process that is in a room as the server. There must be exactly one."""
    async with administering(address) as server:
        there = await server.room.list_participants(api.ListParticipantsRequest(room=room))
    (holder,) = [each.metadata for each in there.participants if each.identity == SERVER_IDENTITY]
    return holder


async def test_of_two_servers_that_join_at_once_one_stays_and_each_question_is_answered_once(
    embedded: str, tmp_path: Path, livekit: Address
) -> None:
    async with (
        an_orchestrator(embedded).open() as orchestrator,
        an_orchestrator(embedded).open() as twin,
        over_livekit(orchestrator, tmp_path, livekit, poll_seconds=0.05) as site,
        over_livekit(twin, tmp_path, livekit, poll_seconds=0.05) as other,
        a_client(str(site.http.base_url), site.key, await site.begin()) as (client, _),
        asyncio.timeout(TIMEOUT),
    ):
        room, received = client.conversation_id, Received()
        for _ in range(3):
            await listen(client, received)
        while sum(room in each.rooms.joined for each in (site, other)) != 1:  # noqa: ASYNC110
            await asyncio.sleep(0.05)

        assert_all_was_received(received, await stored(orchestrator.store, room), traces=3)
        assert [each.message_role for each in await messages(orchestrator, room)] == ["user", "assistant"] * 3
