"""MemoryTraces through a LiveKit room, compared with a bare `publish_data`; idle rooms; outages."""

import asyncio
import secrets
import tempfile
from collections.abc import Awaitable, Callable
from io import StringIO
from pathlib import Path
from resource import RUSAGE_SELF, getpagesize, getrusage
from statistics import quantiles
from time import perf_counter
from typing import Any

import msgpack
from livekit import rtc

from orchestrator.connection.rooms import Rooms
from orchestrator.ops import logs
from orchestrator.orchestrator import Orchestrator
from orchestrator.settings import load
from orchestrator.store import migrations
from orchestrator.transports.livekit import SERVER, TOPIC, LiveKitRoom, wait_for_native_threads
from orchestrator.transports.livekit_server import LiveKitServer
from orchestrator.wiring import build_orchestrator
from tests.faults.network.outages import livekit_dies, orchestrator_dies
from tools.servers.livekit import Address, running_livekit

ACTIONS = 500
FRAMES = 2 * ACTIONS
"""Each action is answered with a confirmation and a trace."""
PACED = 200
ROOMS = (10, 50, 100)
QUIET_AFTER_SECONDS = 10
CONFIGURATION, MEMORY_ACTION = 12, 24


class Guest:
    """A participant with the plain SDK, which records when each numbered frame arrived."""

    def __init__(self) -> None:
        self.room = rtc.Room()
        self.arrivals: list[float] = []
        self.packets: list[bytes] = []
        self.opened = asyncio.Event()
        self.changed = asyncio.Event()
        self.room.on("data_received", self._receive)

    def _receive(self, packet: rtc.DataPacket) -> None:
        if packet.topic != TOPIC:
            return
        now, frame = perf_counter(), msgpack.unpackb(packet.data)
        if frame["stanzaId"] < 0:
            self.arrivals.append(now)
            self.packets.append(packet.data)
        elif frame["type"] == CONFIGURATION:
            self.opened.set()
        self.changed.set()

    async def wait_for(self, count: int) -> None:
        """Wait until `count` frames have arrived."""
        while len(self.arrivals) < count:
            self.changed.clear()
            await self.changed.wait()

    async def send(self, stanza: int, type: int, conversation_id: str, **body: Any) -> None:
        """Send one frame as a byte stream."""
        frame = {"stanzaId": stanza, "conversationId": conversation_id, "type": type}
        packed = msgpack.packb({**frame, "body": {"conversationId": conversation_id, **body}})
        me = self.room.local_participant
        await me.send_bytes(packed, topic=TOPIC, destination_identities=[SERVER], compress=False)


async def _open(guest: Guest, conversation_id: str, seen: int) -> None:
    guest.opened.clear()
    while not guest.opened.is_set():
        await guest.send(0, CONFIGURATION, conversation_id, lastSequenceSeen=seen)
        await asyncio.wait([asyncio.create_task(guest.opened.wait())], timeout=1)


async def _ours(orchestrator: Orchestrator, rooms: Rooms) -> tuple[list[float], float, list[bytes]]:
    """Seconds of each trace from stored to received, frames per second of a replay, and the frames' bytes."""
    conversation_id = await rooms.create("bench")
    admitted = await rooms.admit("bench", conversation_id)
    guest = Guest()
    await guest.room.connect(admitted.url, admitted.token)
    await _open(guest, conversation_id, 0)
    stored = _record_writes(orchestrator)
    seconds = []
    for number in range(1, ACTIONS + 1):
        stored.clear()
        await guest.send(
            number,
            MEMORY_ACTION,
            conversation_id,
            id=f"note_{number}",
            action="create",
            memory={"content": f"Fact {number} of a life, " * 8, "category": "fact", "pinned": False},
        )
        await guest.wait_for(2 * number)
        if number <= PACED:
            seconds.append(guest.arrivals[-1] - stored[-1])
    packets = guest.packets[:FRAMES]
    guest.arrivals.clear()
    started = perf_counter()
    await _open(guest, conversation_id, 0)
    await guest.wait_for(FRAMES)
    rate = FRAMES / (guest.arrivals[-1] - started)
    await guest.room.disconnect()
    return seconds, rate, packets


def _record_writes(orchestrator: Orchestrator) -> list[float]:
    """A list that gets the time of each write after its commit."""
    stored: list[float] = []
    write: Callable[..., Awaitable[Any]] = orchestrator.store.write

    async def recorded(work: Any) -> Any:
        result = await write(work)
        stored.append(perf_counter())
        return result

    orchestrator.store.write = recorded  # type: ignore[method-assign]
    return stored


async def _bare(server: LiveKitServer, packets: list[bytes]) -> tuple[list[float], float]:
    """Send the same bytes from one participant to another, without our code."""
    room = f"bench-{secrets.token_hex(6)}"
    await server.create_room(room)
    sender, guest = rtc.Room(), Guest()
    await sender.connect(server.url, server.token_for_client(room, "sender", 60))
    await guest.room.connect(server.url, server.token_for_client(room, "guest", 60))
    await asyncio.sleep(2)  # until both are ready to send and to receive
    seconds: list[float] = []
    for packet in packets[:PACED]:
        started = perf_counter()
        await sender.local_participant.publish_data(packet, topic=TOPIC, destination_identities=["guest"])
        await guest.wait_for(len(seconds) + 1)
        seconds.append(guest.arrivals[-1] - started)
    guest.arrivals.clear()
    started = perf_counter()
    for packet in packets:
        await sender.local_participant.publish_data(packet, topic=TOPIC, destination_identities=["guest"])
    await guest.wait_for(len(packets))
    rate = len(packets) / (guest.arrivals[-1] - started)
    await sender.disconnect()
    await guest.room.disconnect()
    return seconds, rate


async def _rooms(address: Address) -> None:
    """Memory and processor time of idle rooms, after joining them."""

    async def nobody() -> set[str]:
        return set()

    server = LiveKitServer(address.url, address.api_key, address.api_secret)
    inside: list[LiveKitRoom] = []
    for count in ROOMS:
        while len(inside) < count:
            name = f"bench-{secrets.token_hex(6)}"
            await server.create_room(name)
            room = LiveKitRoom(nobody)
            inside.append(await room.join(server.url, server.token_for_orchestrator(name, "bench")))
        await asyncio.sleep(QUIET_AFTER_SECONDS)
        before, started = getrusage(RUSAGE_SELF), perf_counter()
        await asyncio.sleep(5)
        used, seconds = getrusage(RUSAGE_SELF), perf_counter() - started
        cpu = (used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime) / seconds
        print(f"  in {count:3} idle rooms: {_megabytes():.0f} MB, {cpu:.0%} of a core")
    await asyncio.gather(*(room.leave() for room in inside))
    await server.close()


def _megabytes() -> float:
    """The memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * getpagesize() / 1e6


async def _outages(address: Address, folder: Path) -> None:
    """How long a client waits when a server dies in the middle of an answer with 200 traces."""
    url = f"sqlite:///{folder / 'outage.db'}"
    migrations.upgrade(url)
    deaths = {
        "LiveKit": await livekit_dies(url, folder),
        "our server": await orchestrator_dies(folder, address),
    }
    for died, (received, stored) in deaths.items():
        result = "every stanza once, in order" if received.numbers == stored else "STANZAS LOST"
        print(
            f"  {died} killed and started again: {received.silence:.1f} s until the next stanza,"
            f" of which {received.up - received.cut:.1f} s until it was up; {result}"
        )


def _print_times(what: str, seconds: list[float], rate: float) -> None:
    hundredths = quantiles(seconds, n=100)
    print(f"  {what}: p50 {hundredths[49] * 1e3:.1f} ms, p99 {hundredths[98] * 1e3:.1f} ms, {rate:.0f}/s")


async def _measure(address: Address, folder: Path) -> None:
    await _rooms(address)
    settings = load(given={"data.dir": folder}, environment={})
    async with build_orchestrator(settings).open() as orchestrator:
        server = LiveKitServer(address.url, address.api_key, address.api_secret)
        rooms = Rooms(
            server,
            orchestrator.store,
            orchestrator.serve,
            holder="bench",
            is_gone=lambda _: False,
            poll_seconds=1,
        )
        async with rooms.open():
            seconds, rate, packets = await _ours(orchestrator, rooms)
            bare_seconds, bare_rate = await _bare(server, packets)
            _print_times("bare publish_data         ", bare_seconds, bare_rate)
            _print_times("ours, stored to received  ", seconds, rate)
            print(f"  ours is {rate / bare_rate:.2f} of bare in throughput (goal: at least 0.7)")
    await _outages(address, folder)
    await wait_for_native_threads()


def main() -> None:
    """Measure and print."""
    logs.configure("error", stream=StringIO())  # LiveKit is killed on purpose
    with tempfile.TemporaryDirectory() as folder, running_livekit() as address:
        asyncio.run(_measure(address, Path(folder)))
