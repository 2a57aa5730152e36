"""MemoryTraces through a LiveKit room, against a bare `publish_data` of the same bytes; rooms and outages."""

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

from orchestrator import logs
from orchestrator.house import House
from orchestrator.rooms import Rooms
from orchestrator.settings import load
from orchestrator.store import migrations
from orchestrator.transports.livekit import SERVER, TOPIC, LiveKitRoom, settle
from orchestrator.transports.livekit_server import LiveKitServer
from orchestrator.wiring import build_house
from tests.faults.outages import house_dies, livekit_dies
from tools.servers.livekit import Address, running_livekit

ACTIONS = 500
FRAMES = 2 * ACTIONS
"""Each is answered with a confirmation and a trace."""
PACED = 200
ROOMS = (10, 50, 100)
QUIET_AFTER_SECONDS = 10
CONFIGURATION, MEMORY_ACTION = 12, 24


class Guest:
    """A participant with the plain SDK, who notes when each numbered frame came."""

    def __init__(self) -> None:
        self.room = rtc.Room()
        self.came: list[float] = []
        self.packets: list[bytes] = []
        self.opened = asyncio.Event()
        self.changed = asyncio.Event()
        self.room.on("data_received", self._hear)

    def _hear(self, packet: rtc.DataPacket) -> None:
        if packet.topic != TOPIC:
            return
        now, frame = perf_counter(), msgpack.unpackb(packet.data)
        if frame["stanzaId"] < 0:
            self.came.append(now)
            self.packets.append(packet.data)
        elif frame["type"] == CONFIGURATION:
            self.opened.set()
        self.changed.set()

    async def until(self, count: int) -> None:
        """Wait for that many frames."""
        while len(self.came) < count:
            self.changed.clear()
            await self.changed.wait()

    async def send(self, stanza: int, type: int, conversation_id: str, **body: Any) -> None:
        """One frame, as a byte stream."""
        frame = {"stanzaId": stanza, "conversationId": conversation_id, "type": type}
        packed = msgpack.packb({**frame, "body": {"conversationId": conversation_id, **body}})
        me = self.room.local_participant
        await me.send_bytes(packed, topic=TOPIC, destination_identities=[SERVER], compress=False)


async def _open(guest: Guest, conversation_id: str, seen: int) -> None:
    guest.opened.clear()
    while not guest.opened.is_set():
        await guest.send(0, CONFIGURATION, conversation_id, lastSequenceSeen=seen)
        await asyncio.wait([asyncio.create_task(guest.opened.wait())], timeout=1)


async def _ours(house: House, rooms: Rooms) -> tuple[list[float], float, list[bytes]]:
    """How long each trace took from stored to received; how many frames a second in a replay; their bytes."""
    conversation_id = await rooms.create("bench")
    admitted = await rooms.admit("bench", conversation_id)
    guest = Guest()
    await guest.room.connect(admitted.url, admitted.token)
    await _open(guest, conversation_id, 0)
    stored = _note_writes(house)
    took = []
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
        await guest.until(2 * number)
        if number <= PACED:
            took.append(guest.came[-1] - stored[-1])
    packets = guest.packets[:FRAMES]
    guest.came.clear()
    started = perf_counter()
    await _open(guest, conversation_id, 0)
    await guest.until(FRAMES)
    rate = FRAMES / (guest.came[-1] - started)
    await guest.room.disconnect()
    return took, rate, packets


def _note_writes(house: House) -> list[float]:
    """When each write has been stored from now on."""
    stored: list[float] = []
    write: Callable[..., Awaitable[Any]] = house.store.write

    async def noted(work: Any) -> Any:
        result = await write(work)
        stored.append(perf_counter())
        return result

    house.store.write = noted  # type: ignore[method-assign]
    return stored


async def _bare(server: LiveKitServer, packets: list[bytes]) -> tuple[list[float], float]:
    """The same bytes from one participant to another, with nothing of ours between."""
    room = f"bench-{secrets.token_hex(6)}"
    await server.create_room(room)
    sender, guest = rtc.Room(), Guest()
    await sender.connect(server.url, server.token_for_client(room, "sender", 60))
    await guest.room.connect(server.url, server.token_for_client(room, "guest", 60))
    await asyncio.sleep(2)  # until both are ready to send and to receive
    took: list[float] = []
    for packet in packets[:PACED]:
        started = perf_counter()
        await sender.local_participant.publish_data(packet, topic=TOPIC, destination_identities=["guest"])
        await guest.until(len(took) + 1)
        took.append(guest.came[-1] - started)
    guest.came.clear()
    started = perf_counter()
    for packet in packets:
        await sender.local_participant.publish_data(packet, topic=TOPIC, destination_identities=["guest"])
    await guest.until(len(packets))
    rate = len(packets) / (guest.came[-1] - started)
    await sender.disconnect()
    await guest.room.disconnect()
    return took, rate


async def _rooms(address: Address) -> None:
    """What it costs to be in rooms in which nothing happens, once the coming in is over."""

    async def nobody() -> set[str]:
        return set()

    server = LiveKitServer(address.url, address.api_key, address.api_secret)
    inside: list[LiveKitRoom] = []
    for most in ROOMS:
        while len(inside) < most:
            name = f"bench-{secrets.token_hex(6)}"
            await server.create_room(name)
            room = LiveKitRoom(nobody)
            inside.append(await room.join(server.url, server.token_for_house(name, "bench")))
        await asyncio.sleep(QUIET_AFTER_SECONDS)
        before, started = getrusage(RUSAGE_SELF), perf_counter()
        await asyncio.sleep(5)
        used, seconds = getrusage(RUSAGE_SELF), perf_counter() - started
        cpu = (used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime) / seconds
        print(f"  in {most:3} idle rooms: {_megabytes():.0f} MB, {cpu:.0%} of a core")
    await asyncio.gather(*(room.leave() for room in inside))
    await server.close()


def _megabytes() -> float:
    """What this process holds in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * getpagesize() / 1e6


async def _outages(address: Address, folder: Path) -> None:
    """How long a client hears nothing when a server dies in the middle of an answer with 200 traces."""
    url = f"sqlite:///{folder / 'outage.db'}"
    migrations.upgrade(url)
    deaths = {"LiveKit": await livekit_dies(url, folder), "our server": await house_dies(folder, address)}
    for died, (told, stored) in deaths.items():
        sound = "every stanza once, in order" if told.numbers == stored else "STANZAS LOST"
        print(
            f"  {died} killed and started again: {told.silence:.1f} s until the next stanza,"
            f" of which {told.up - told.cut:.1f} s until it was up; {sound}"
        )


def _told(what: str, took: list[float], rate: float) -> None:
    hundredths = quantiles(took, n=100)
    print(f"  {what}: p50 {hundredths[49] * 1e3:.1f} ms, p99 {hundredths[98] * 1e3:.1f} ms, {rate:.0f}/s")


async def _measure(address: Address, folder: Path) -> None:
    await _rooms(address)
    settings = load(given={"data.dir": folder}, environment={})
    async with build_house(settings).open() as house:
        server = LiveKitServer(address.url, address.api_key, address.api_secret)
        rooms = Rooms(
            server, house.store, house.attend, holder="bench", is_gone=lambda _: False, look_seconds=1
        )
        async with rooms.open():
            took, rate, packets = await _ours(house, rooms)
            bare_took, bare_rate = await _bare(server, packets)
            _told("bare publish_data         ", bare_took, bare_rate)
            _told("ours, stored to received  ", took, rate)
            print(f"  ours is {rate / bare_rate:.2f} of bare in throughput (goal: at least 0.7)")
    await _outages(address, folder)
    await settle()


def main() -> None:
    """Measure, and print."""
    logs.configure("error", stream=StringIO())  # that LiveKit is gone is meant here
    with tempfile.TemporaryDirectory() as folder, running_livekit() as address:
        asyncio.run(_measure(address, Path(folder)))
