"""Participants of LiveKit rooms made with the plain SDK, without our code."""

import asyncio
import datetime
import json
import os
import secrets
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from livekit import api, rtc

from orchestrator.api.app import AppOptions, create_app
from orchestrator.api.authentication import Authentication
from orchestrator.api.server import listening
from orchestrator.connection.rooms import Rooms
from orchestrator.orchestrator import Orchestrator
from orchestrator.transports.livekit_server import LiveKitServer
from orchestrator.wire.ids import PersonId
from tests.faults.modified_servers import served
from tests.support.protocol_client import TIMEOUT, Peer
from tools.servers.livekit import Address
from tools.setup.toolchain import CHECKOUT

TOPIC = SERVER_IDENTITY = "anamnesis"
FITS = 15 * 1024
ACTIVE = api.ParticipantInfo.State.ACTIVE


def token(address: Address, room: str, identity: str, minutes: float = 5, **grants: Any) -> str:
    """A token for that room, made with the server's secret."""
    may = {"can_publish": False, "can_subscribe": False, "can_publish_data": True} | grants
    return (
        api.AccessToken(address.api_key, address.api_secret)
        .with_identity(identity)
        .with_ttl(datetime.timedelta(minutes=minutes))
        .with_grants(api.VideoGrants(room_join=True, room=room, **may))
        .to_jwt()
    )


@asynccontextmanager
async def administering(address: Address) -> AsyncIterator[api.LiveKitAPI]:
    """The server's own API."""
    url = address.url.replace("ws", "http", 1)
    async with api.LiveKitAPI(url, address.api_key, address.api_secret) as server:
        yield server


@asynccontextmanager
async def a_room(address: Address) -> AsyncIterator[str]:
    """The name of a new room, which is deleted afterwards."""
    name = f"room-{secrets.token_hex(6)}"
    async with administering(address) as server:
        await server.room.create_room(api.CreateRoomRequest(name=name))
        try:
            yield name
        finally:
            with suppress(api.ServerError):
                await server.room.delete_room(api.DeleteRoomRequest(room=name))


async def until_empty(server: api.LiveKitAPI, room: str) -> None:
    """Wait until a room is empty: LiveKit lists participants for a moment after they left."""
    async with asyncio.timeout(TIMEOUT):
        asked = api.ListParticipantsRequest(room=room)
        while (await server.room.list_participants(asked)).participants:  # noqa: ASYNC110 - nothing tells us
            await asyncio.sleep(0.05)


class RoomLine:
    """The client's end of a connection through a room."""

    def __init__(self, *, packets: bool = False) -> None:
        self.room = rtc.Room()
        self.packets = packets
        self.left: asyncio.Event = asyncio.Event()
        self.reason: int | None = None
        self._frames: asyncio.Queue[bytes | asyncio.Task[bytes] | None] = asyncio.Queue()
        self.room.on("data_received", self._on_packet)
        self.room.on("disconnected", self._on_end)
        self.room.register_byte_stream_handler(TOPIC, self._on_stream)

    async def join(self, url: str, token: str) -> "RoomLine":
        """Join the room."""
        once = rtc.RtcConfiguration(continual_gathering_policy=rtc.ContinualGatheringPolicy.GATHER_ONCE)
        await self.room.connect(url, token, rtc.RoomOptions(rtc_config=once))
        return self

    async def send(self, packet: bytes) -> None:
        me = self.room.local_participant
        if self.packets and len(packet) <= FITS:
            await me.publish_data(packet, topic=TOPIC, destination_identities=[SERVER_IDENTITY])
        else:
            await me.send_bytes(packet, topic=TOPIC, destination_identities=[SERVER_IDENTITY], compress=False)

    async def receive(self) -> bytes | None:
        if self.left.is_set() and self._frames.empty():
            return None
        frame = await self._frames.get()
        return await frame if isinstance(frame, asyncio.Task) else frame

    async def close(self) -> None:
        await self.room.disconnect()

    def _on_packet(self, packet: rtc.DataPacket) -> None:
        if packet.topic == TOPIC:
            self._frames.put_nowait(packet.data)

    def _on_stream(self, reader: rtc.ByteStreamReader, _: str) -> None:
        self._frames.put_nowait(asyncio.create_task(_whole(reader)))

    def _on_end(self, reason: int) -> None:
        self.reason = reason
        self.left.set()
        self._frames.put_nowait(None)


@dataclass(frozen=True)
class Site:
    """An orchestrator with rooms on a real LiveKit server, and a person's HTTP client for it."""

    rooms: Rooms
    http: httpx.AsyncClient
    key: str
    address: Address
    server: api.LiveKitAPI

    async def begin(self) -> str:
        """Create a conversation. Returns its id."""
        begun = await self.http.post("/v1/conversations")
        assert begun.status_code == 201, begun.text
        return str(begun.json()["id"])

    async def admission(self, conversation_id: str) -> dict[str, str]:
        """The address and the token for its room."""
        admitted = await self.http.post(f"/v1/conversations/{conversation_id}/token")
        assert admitted.status_code == 200, admitted.text
        given: dict[str, str] = admitted.json()
        return given

    async def identities(self, room: str) -> set[str]:
        """The identities in a room, as the server lists them."""
        try:
            listed = await self.server.room.list_participants(api.ListParticipantsRequest(room=room))
        except api.ServerError:
            return set()
        return {each.identity for each in listed.participants if each.state == ACTIVE}

    async def until(self, room: str, holds: Callable[[set[str]], bool]) -> None:
        """Wait until a condition holds for the identities in the room."""
        async with asyncio.timeout(TIMEOUT):
            while not holds(await self.identities(room)):  # noqa: ASYNC110 - nothing tells us when
                await asyncio.sleep(0.05)

    @asynccontextmanager
    async def visiting(self, conversation_id: str, *, packets: bool = False) -> AsyncIterator[Peer]:
        """A client in the room of a conversation, once the server has joined, too."""
        admitted = await self.admission(conversation_id)
        line = await RoomLine(packets=packets).join(admitted["url"], admitted["token"])
        try:
            await self.until(conversation_id, lambda there: {SERVER_IDENTITY, admitted["identity"]} <= there)
            yield Peer(line)
        finally:
            await line.close()


@asynccontextmanager
async def over_livekit(
    orchestrator: Orchestrator,
    folder: Path,
    address: Address,
    *,
    person: str = "ann",
    poll_seconds: float = 0.5,
    port: int = 0,
    page: Path | None = None,
) -> AsyncIterator[Site]:
    """An orchestrator with rooms on that server, and its HTTP API for `person`, with the page in a folder."""
    authentication = Authentication(folder, session_seconds=3600)
    key = authentication.keys.of(PersonId(person))
    rooms = Rooms(
        LiveKitServer(address.url, address.api_key, address.api_secret),
        orchestrator.store,
        orchestrator.serve,
        holder=orchestrator.holder,
        is_gone=orchestrator.is_gone,
        poll_seconds=poll_seconds,
    )
    orchestrator.on_created(rooms.prepare)
    app = create_app(orchestrator, authentication, AppOptions(console=page), rooms=rooms)
    async with (
        rooms.open(),
        listening(app, port=port) as http,
        httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{http.port}", headers={"Authorization": f"Bearer {key}"}
        ) as client,
        administering(address) as server,
    ):
        yield Site(rooms, client, key, address, server)


@asynccontextmanager
async def serving(
    data: Path,
    address: Address,
    *,
    port: int = 0,
    fault: str = "",
    database_url: str = "",
    change: str = "",
    log: Path | None = None,
) -> AsyncIterator[tuple[dict[str, str], asyncio.subprocess.Process]]:
    """`anamnesis serve` with that LiveKit server in its own process, and the facts that it prints.

    `change` is a name of tests.faults.modified_servers. The log goes to the file `log`, if one is given.
    """
    environment = {
        **os.environ,
        "ANAMNESIS_FAULT": fault,
        "ANAMNESIS_DATABASE_URL": database_url,
        **address.environment,
    }
    with log.open("wb") if log else nullcontext() as stderr:
        server = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-c",
                served(change),
                "--data",
                str(data),
                "serve",
                "--json",
                "--port",
                f"{port}",
            ),
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            env=environment,
            cwd=CHECKOUT,
        )
    assert server.stdout is not None
    try:
        yield json.loads(await server.stdout.readline()), server
    finally:
        if server.returncode is None:
            server.terminate()
        await server.wait()


async def _whole(reader: rtc.ByteStreamReader) -> bytes:
    return b"".join([chunk async for chunk in reader])
