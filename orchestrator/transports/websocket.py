"""A WebSocket as a transport: a binary message is a frame. A peer that stops reading is disconnected."""

import asyncio
from collections.abc import Callable
from typing import Final

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from orchestrator.errors import FRAME_TOO_LARGE, TEXT_FRAME, AnamnesisError
from orchestrator.ports import TransportKind

MEBIBYTE: Final = 1 << 20
NORMAL, TOO_BIG, FAILED = 1000, 1009, 1011
"""Close codes of RFC 6455."""

ABORT: Final = "anamnesis.abort"
"""The ASGI extension of our server that gives us a connection's `abort`.

A close in ASGI waits for the peer, which may not be reading.
"""

CLAIMED: Final = "anamnesis.claimed"
"""The key for the size of a too large frame in an event of our server, which ASGI does not have."""


class WebSocketTransport:
    """An accepted WebSocket. `timeout` is how many seconds a peer may leave frames unread."""

    def __init__(self, websocket: WebSocket, *, max_frame_bytes: int = MEBIBYTE, timeout: float = 20) -> None:
        self._websocket, self._max_frame_bytes, self._timeout = websocket, max_frame_bytes, timeout
        self._abort: Callable[[], None] = (
            websocket.scope["extensions"].get(ABORT, {}).get("now", lambda: None)
        )
        self._sending = asyncio.Lock()
        self._close_code = NORMAL

    @property
    def kind(self) -> TransportKind:
        """What carries the frames."""
        return "websocket"

    @property
    def max_frame_bytes(self) -> int:
        """The size of the largest frame it carries."""
        return self._max_frame_bytes

    async def receive(self) -> bytes | None:
        """The peer's next frame, or None once the peer has left.

        Raises for a text message, and the connection stays open. It also raises for a frame that is too
        large; the error can then still be sent, and the next call closes the connection with 1009.
        """
        if self._close_code != NORMAL:
            await self.close()
        if self._has_ended():
            return None
        event = await self._websocket.receive()
        if CLAIMED in event:
            raise self._too_large(event[CLAIMED])
        match event:
            case {"type": "websocket.receive", "bytes": bytes(frame)}:
                if len(frame) <= self._max_frame_bytes:
                    return frame
                raise self._too_large(len(frame))
            case {"type": "websocket.receive"}:
                raise AnamnesisError(TEXT_FRAME)
        return None

    async def send(self, packet: bytes) -> None:
        """Send one frame, in the order of the calls; waits while the peer is slow."""
        await self._send_event({"type": "websocket.send", "bytes": packet})

    async def close(self, code: int | None = None) -> None:
        """Close the connection; abort it if the peer does not answer in time."""
        await self._send_event({"type": "websocket.close", "code": code or self._close_code})
        asyncio.get_running_loop().call_later(self._timeout, self._abort)

    def _too_large(self, size: int) -> AnamnesisError:
        self._close_code = TOO_BIG
        return AnamnesisError(FRAME_TOO_LARGE, size=size, most=self._max_frame_bytes)

    def _has_ended(self) -> bool:
        states = (self._websocket.client_state, self._websocket.application_state)
        return WebSocketState.DISCONNECTED in states

    async def _send_event(self, event: dict[str, object]) -> None:
        async with self._sending:
            if self._has_ended():
                return
            try:
                async with asyncio.timeout(self._timeout):
                    await self._websocket.send(event)
            except TimeoutError:
                self._abort()
            except (WebSocketDisconnect, RuntimeError):
                # The server noticed the end first. It raises RuntimeError if it closed the connection itself.
                self._websocket.application_state = WebSocketState.DISCONNECTED
