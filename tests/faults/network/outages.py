"""Kills a server during an answer with many traces, and records what the client receives and when."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import monotonic

from livekit import rtc

from agents.models.scripted import ScriptedBrain, ScriptedRecall
from agents.ports import MemoryHit
from orchestrator.client.client import Client
from orchestrator.client.connect import RoomConnection
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.repositories.memory.memories import NewMemory
from orchestrator.wire.ids import RandomIds
from orchestrator.wire.messages import MemoryTrace
from tests.support.orchestrators import ANN, a_store, an_orchestrator
from tests.support.servers.livekit_rooms import over_livekit, serving
from tools.servers.livekit import Address, new_address, running_livekit
from tools.servers.process import free_port

TRACES = 200
TIMEOUT = 100.0


@dataclass
class Received:
    """What a client received: the numbers of the stanzas in the order of arrival, and the times."""

    numbers: list[int] = field(default_factory=list)
    came: list[float] = field(default_factory=list)
    traces: int = 0
    half: asyncio.Event = field(default_factory=asyncio.Event)
    cut: float = 0.0
    """When the server died."""
    up: float = 0.0
    """When its successor was ready."""

    @property
    def silence(self) -> float:
        """The longest time without a stanza since the server died; a few may still have been on their way."""
        after = [self.cut, *(moment for moment in self.came if moment > self.cut)]
        return max((later - earlier for earlier, later in pairwise(after)), default=0.0)


async def listen(client: Client, received: Received) -> None:
    """Send a message, and record its whole answer."""
    message_id = await client.say("Tell me everything")
    async for said in client.answer_to(message_id):
        if said.stanza_id:
            received.numbers.append(-said.stanza_id)
            received.came.append(monotonic())
        received.traces += isinstance(said.body, MemoryTrace)
        if received.traces == TRACES // 2:
            received.half.set()


@asynccontextmanager
async def a_client(
    server: str, key: str, conversation_id: str | None = None
) -> AsyncIterator[tuple[Client, RoomConnection]]:
    """A client like `anamnesis chat --livekit`, in that conversation or in a new one."""
    call = RoomConnection(server, key, conversation_id)
    client = Client(await call(), RandomIds(), dial=call)
    async for _ in client.open(call.conversation_id, seen=0):
        pass
    try:
        yield client, call
    finally:
        await call.close()


def sdk_of(call: RoomConnection) -> rtc.Room:
    """The LiveKit SDK's object of a client's room."""
    assert call.room is not None
    return call.room.sdk


async def many_memories(url: str) -> ScriptedRecall:
    """As many memories as the answer shall have traces."""
    async with an_orchestrator(url).open() as orchestrator:

        def add(tx: Transaction) -> list[MemoryHit]:
            return [
                MemoryHit(
                    tx.memories.add(NewMemory(content=f"Fact {number}", user_id=ANN)).id,
                    f"Fact {number}",
                    0.5,
                )
                for number in range(TRACES)
            ]

        return ScriptedRecall(*await orchestrator.store.write(add))


async def stored(store: Store, conversation_id: str) -> list[int]:
    """The numbers of all server stanzas of that conversation, in order."""
    frames = await store.read(lambda tx: tx.frames.after(conversation_id, 0, limit=10_000))
    return [-frame.stanza_id for frame in frames]


async def livekit_dies(url: str, folder: Path) -> tuple[Received, list[int]]:
    """Kill LiveKit in the middle of an answer and restart it. Returns what was received and stored."""
    go_on, address, received = asyncio.Event(), new_address(), Received()
    brain = ScriptedBrain(answers=[["One. ", go_on, "Two. ", "Three."]])
    with ExitStack() as servers:
        servers.enter_context(running_livekit(address))
        async with (
            an_orchestrator(url, brain, recall=await many_memories(url)).open() as orchestrator,
            over_livekit(orchestrator, folder, address) as site,
            a_client(str(site.http.base_url), site.key, await site.begin()) as (client, _),
            asyncio.timeout(TIMEOUT),
            asyncio.TaskGroup() as group,
        ):
            listening = group.create_task(listen(client, received))
            await received.half.wait()
            servers.close()
            received.cut = monotonic()
            servers.enter_context(running_livekit(address))
            received.up = monotonic()
            go_on.set()
            await listening
            return received, await stored(orchestrator.store, client.conversation_id)


async def orchestrator_dies(folder: Path, address: Address) -> tuple[Received, list[int]]:
    """Kill `anamnesis serve` in the middle of an answer, restart it, and send another message."""
    port, received = free_port(), Received()
    start = partial(serving, folder, address, port=port, change="recalling_much", log=folder / "log")
    async with start(fault=f"after_send:{TRACES // 2}") as (door, killed):
        call = RoomConnection(door["url"], door["key"])
        client = Client(await call(), RandomIds(), dial=call)
        async for _ in client.open(call.conversation_id, seen=0):
            pass
        listening = asyncio.create_task(listen(client, received))
        assert await killed.wait() == -signal.SIGKILL
        received.cut = monotonic()
    async with start(), asyncio.timeout(TIMEOUT):
        received.up = monotonic()
        await listening
        await listen(client, received)
        await call.close()
    store = a_store(f"sqlite:///{folder / 'anamnesis.db'}")
    try:
        return received, await stored(store, client.conversation_id)
    finally:
        await store.close()
