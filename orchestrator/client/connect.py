"""Connects to a running server: through its WebSocket, or through the LiveKit room of a conversation."""

import asyncio
import json
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from orchestrator.errors import NOT_NOW, REFUSED, SERVER_UNREACHABLE, AnamnesisError
from orchestrator.ports import Transport, TransportKind

if TYPE_CHECKING:
    from orchestrator.transports.livekit import LiveKitRoom

MEBIBYTE: Final = 1 << 20
REQUEST_SECONDS: Final = 10.0


class WebSocketConnection:
    """Opens WebSockets to a server; each call opens a new one."""

    def __init__(self, server: str, key: str) -> None:
        self._address = f"{server.rstrip('/').replace('http', 'ws', 1)}/v1/ws"
        self._header = {"Authorization": f"Bearer {key}"}

    async def __call__(self) -> Transport:
        """Open a WebSocket."""
        try:
            return _WebSocketEnd(
                await connect(self._address, additional_headers=self._header, max_size=MEBIBYTE)
            )
        except InvalidStatus as error:
            refused = _refusal(error.response.body or b"")
        except (OSError, TimeoutError, WebSocketException):
            refused = AnamnesisError(SERVER_UNREACHABLE)
        raise refused

    async def close(self) -> None:
        """Nothing to do: the client closes its WebSocket itself."""


class RoomConnection:
    """Joins the LiveKit room of a conversation. Joins again, with a new token, after it has lost the room."""

    def __init__(self, server: str, key: str, conversation_id: str | None = None) -> None:
        self._server, self._key, self._conversation_id = server, key, conversation_id
        self.room: LiveKitRoom | None = None
        self._leaving: list[asyncio.Task[None]] = []

    @property
    def conversation_id(self) -> str | None:
        """The id of the conversation; None before the first call if none was given."""
        return self._conversation_id

    async def __call__(self) -> Transport:
        """Return a transport to the server, through the room that is joined already, or after joining it."""
        from orchestrator.transports.livekit import SERVER, LiveKitRoom

        if self.room is None or self.room.ended.is_set():
            if self._conversation_id is None:
                self._conversation_id = str((await self._post("/v1/conversations"))["id"])
            admission = await self._post(f"/v1/conversations/{self._conversation_id}/token")
            if self.room is not None:
                self._leaving.append(asyncio.create_task(self.room.leave()))
            room = LiveKitRoom(_senders_without_a_name, end_on_reconnect=True, streams_only=True)
            self.room = await room.join(str(admission["url"]), str(admission["token"]))
        return self.room.peer(SERVER)

    async def close(self) -> None:
        """Leave the room and wait for LiveKit's threads, which must end before the process does."""
        from orchestrator.transports.livekit import wait_for_native_threads

        await asyncio.gather(*self._leaving)
        if self.room is not None:
            await self.room.leave()
        await wait_for_native_threads()

    async def _post(self, path: str) -> dict[str, Any]:
        return await asyncio.to_thread(_post, self._server, path, self._key)


async def _senders_without_a_name() -> set[str]:
    """Only the server sends packets to a client, so a packet without a sender is the server's."""
    from orchestrator.transports.livekit import SERVER

    return {SERVER}


class _WebSocketEnd:
    """The client's end of a WebSocket, as a transport."""

    kind: TransportKind = "websocket"
    max_frame_bytes = MEBIBYTE

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
    connection = connection_to(parts.hostname or "", parts.port, timeout=REQUEST_SECONDS)
    try:
        connection.request("POST", parts.path.rstrip("/") + path, headers={"Authorization": f"Bearer {key}"})
        response = connection.getresponse()
        status, body = response.status, response.read(MEBIBYTE)
    except (OSError, HTTPException):
        refused = AnamnesisError(SERVER_UNREACHABLE)
    else:
        if status < 300:
            with suppress(ValueError):
                result: dict[str, Any] = json.loads(body)
                return result
        refused = _refusal(body)
    finally:
        connection.close()
    raise refused


def _refusal(body: bytes | bytearray) -> AnamnesisError:
    """The error for a problem response. A response that is no problem of ours counts as unreachable."""
    try:
        problem = json.loads(body)
        detail, status = str(problem["detail"]), int(problem["status"])
        can_retry = status >= 500 and bool(problem["recoverable"])
    except (ValueError, KeyError, TypeError):
        return AnamnesisError(SERVER_UNREACHABLE)
    return AnamnesisError(NOT_NOW if can_retry else REFUSED, message=detail)
