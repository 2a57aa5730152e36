"""One WebSocket as a transport: a binary frame is an envelope, and a peer that stops reading is let go."""

import asyncio
from collections.abc import Callable
from typing import Final

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from orchestrator.errors import FRAME_TOO_LARGE, TEXT_FRAME, AnamnesisError
from orchestrator.ports import Way

MEBIBYTE: Final = 1 << 20
NORMAL, TOO_BIG, FAILED = 1000, 1009, 1011
"""Why a WebSocket is closed, as RFC 6455 numbers it."""

ABORT: Final = "anamnesis.abort"
"""The extension by which our server lends a connection's `abort`.

ASGI can only close politely, and a polite close waits for a peer that does not read.
"""

CLAIMED: Final = "anamnesis.claimed"
"""In an event of our server: how many bytes a frame claims that it skips. ASGI would only tell of its end."""


class WebSocketTransport:
    """A WebSocket that was accepted. `patience` is how many seconds a peer may leave its frames unread."""

    def __init__(self, websocket: WebSocket, *, most: int = MEBIBYTE, patience: float = 20) -> None:
        self._websocket, self._most, self._patience = websocket, most, patience
        self._abort: Callable[[], None] = (
            websocket.scope["extensions"].get(ABORT, {}).get("now", lambda: None)
        )
        self._sending = asyncio.Lock()
        self._goodbye = NORMAL

    @property
    def way(self) -> Way:
        """Which of the ways it is, for whoever counts them."""
        return "websocket"

    @property
    def most(self) -> int:
        """The largest frame it carries, in bytes."""
        return self._most

    async def receive(self) -> bytes | None:
        """The peer's next frame, or None once the peer has left.

        A text frame is refused and the connection lives. After a frame too large it does not: there is time
        to send the error, and the next call closes with 1009.
        """
        if self._goodbye != NORMAL:
            await self.close()
        if self._has_ended():
            return None
        event = await self._websocket.receive()
        if CLAIMED in event:
            raise self._too_large(event[CLAIMED])
        match event:
            case {"type": "websocket.receive", "bytes": bytes(frame)}:
                if len(frame) <= self._most:
                    return frame
                raise self._too_large(len(frame))
            case {"type": "websocket.receive"}:
                raise AnamnesisError(TEXT_FRAME)
        return None

    async def send(self, packet: bytes) -> None:
        """Hand one frame to the peer, in the order of the calls; waits while the peer is slow."""
        await self._tell({"type": "websocket.send", "bytes": packet})

    async def close(self, code: int | None = None) -> None:
        """Say goodbye to the peer, and do not wait long for its answer."""
        await self._tell({"type": "websocket.close", "code": code or self._goodbye})
        asyncio.get_running_loop().call_later(self._patience, self._abort)

    def _too_large(self, size: int) -> AnamnesisError:
        self._goodbye = TOO_BIG
        return AnamnesisError(FRAME_TOO_LARGE, size=size, most=self._most)

    def _has_ended(self) -> bool:
        states = (self._websocket.client_state, self._websocket.application_state)
        return WebSocketState.DISCONNECTED in states

    async def _tell(self, event: dict[str, object]) -> None:
        async with self._sending:
            if self._has_ended():
                return
            try:
                async with asyncio.timeout(self._patience):
                    await self._websocket.send(event)
            except TimeoutError:
                self._abort()
            except (WebSocketDisconnect, RuntimeError):
                # The server saw the end first; RuntimeError says that it closed the connection itself.
                self._websocket.application_state = WebSocketState.DISCONNECTED
