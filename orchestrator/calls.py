"""How a client reaches a house elsewhere: by its WebSocket, or through the LiveKit room of a conversation."""

import asyncio
import json
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from orchestrator.errors import NOT_NOW, REFUSED, SERVER_UNREACHABLE, AnamnesisError
from orchestrator.ports import Transport, Way

if TYPE_CHECKING:
    from orchestrator.transports.livekit import LiveKitRoom

MEBIBYTE: Final = 1 << 20
PATIENCE_SECONDS: Final = 10.0


class WebSocketCall:
    """Opens WebSockets to a server, one after the other."""

    def __init__(self, server: str, key: str) -> None:
        self._address = f"{server.rstrip('/').replace('http', 'ws', 1)}/v1/ws"
        self._header = {"Authorization": f"Bearer {key}"}

    async def __call__(self) -> Transport:
        """Another connection."""
        try:
            return _WebSocketEnd(
                await connect(self._address, additional_headers=self._header, max_size=MEBIBYTE)
            )
        except InvalidStatus as error:
            refused = _refusal(error.response.body or b"")
        except (OSError, TimeoutError, WebSocketException):
            refused = AnamnesisError(SERVER_UNREACHABLE)
        raise refused

    async def hang_up(self) -> None:
        """Nothing is left open."""


class RoomCall:
    """Comes into the room of a conversation, stays there while it can, and comes again with another token."""

    def __init__(self, server: str, key: str, conversation_id: str | None = None) -> None:
        self._server, self._key, self._conversation_id = server, key, conversation_id
        self.room: LiveKitRoom | None = None
        self._left: list[asyncio.Task[None]] = []

    @property
    def conversation_id(self) -> str | None:
        """The conversation, once there is one."""
        return self._conversation_id

    async def __call__(self) -> Transport:
        """The line to the house in the room: where we are in it still, another one through the same room."""
        from orchestrator.transports.livekit import SERVER, LiveKitRoom

        if self.room is None or self.room.ended.is_set():
            if self._conversation_id is None:
                self._conversation_id = str((await self._post("/v1/conversations"))["id"])
            admitted = await self._post(f"/v1/conversations/{self._conversation_id}/token")
            if self.room is not None:
                self._left.append(asyncio.create_task(self.room.leave()))
            room = LiveKitRoom(_only_the_house, renewing=True, streams_only=True)
            self.room = await room.join(str(admitted["url"]), str(admitted["token"]))
        return self.room.peer(SERVER)

    async def hang_up(self) -> None:
        """Leave the room, and let LiveKit's threads end before the process does."""
        from orchestrator.transports.livekit import settle

        await asyncio.gather(*self._left)
        if self.room is not None:
            await self.room.leave()
        await settle()

    async def _post(self, path: str) -> dict[str, Any]:
        return await asyncio.to_thread(_post, self._server, path, self._key)


async def _only_the_house() -> set[str]:
    """Whose packets can have no name: a client is sent some by the house alone."""
    from orchestrator.transports.livekit import SERVER

    return {SERVER}


class _WebSocketEnd:
    """The client's end of a WebSocket."""

    way: Way = "websocket"
    most = MEBIBYTE

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def receive(self) -> bytes | None:
        try:
            return await self._socket.recv(decode=False)
        except ConnectionClosed:
            return None

    async def send(self, packet: bytes) -> None:
        with suppress(ConnectionClosed):
            await self._socket.send(packet)

    async def close(self) -> None:
        await self._socket.close()


def _post(server: str, path: str, key: str) -> dict[str, Any]:
    parts = urlsplit(server)
    connection_to = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = connection_to(parts.hostname or "", parts.port, timeout=PATIENCE_SECONDS)
    try:
        connection.request("POST", parts.path.rstrip("/") + path, headers={"Authorization": f"Bearer {key}"})
        answer = connection.getresponse()
        status, body = answer.status, answer.read(MEBIBYTE)
    except (OSError, HTTPException):
        refused = AnamnesisError(SERVER_UNREACHABLE)
    else:
        if status < 300:
            with suppress(ValueError):
                given: dict[str, Any] = json.loads(body)
                return given
        refused = _refusal(body)
    finally:
        connection.close()
    raise refused


def _refusal(body: bytes | bytearray) -> AnamnesisError:
    """What the server said about why not; where it is not one of ours, that it is not reached."""
    try:
        problem = json.loads(body)
        detail, status, passes = str(problem["detail"]), int(problem["status"]), bool(problem["recoverable"])
    except (ValueError, KeyError, TypeError):
        return AnamnesisError(SERVER_UNREACHABLE)
    return AnamnesisError(NOT_NOW if status >= 500 and passes else REFUSED, message=detail)
