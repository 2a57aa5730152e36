"""Two ends of a connection inside one process, for tests and for embedding in another program."""

import asyncio
from collections import deque
from typing import Final

from orchestrator.errors import FRAME_TOO_LARGE, AnamnesisError
from orchestrator.ports import TransportKind

MEBIBYTE: Final = 1 << 20


def pair(max_frame_bytes: int = MEBIBYTE, depth: int = 32) -> tuple["End", "End"]:
    """The client's end and the server's end: what one sends, the other receives.

    A sender waits while `depth` frames are unread.
    """
    to_server, to_client = _Queue(depth), _Queue(depth)
    return End(to_client, to_server, max_frame_bytes), End(to_server, to_client, max_frame_bytes)


class End:
    """One end of the pair. Frames sent before the other end closed can still be received."""

    def __init__(self, inbound: "_Queue", outbound: "_Queue", max_frame_bytes: int) -> None:
        self._inbound, self._outbound, self._max_frame_bytes = inbound, outbound, max_frame_bytes
        self._sending = asyncio.Lock()

    @property
    def kind(self) -> TransportKind:
        """What carries the frames."""
        return "in_process"

    @property
    def max_frame_bytes(self) -> int:
        """The size of the largest frame it carries."""
        return self._max_frame_bytes

    async def receive(self) -> bytes | None:
        """The next frame, or None once either end is closed. Raises for a frame that is too large."""
        frame = await self._inbound.take()
        if frame is not None and len(frame) > self._max_frame_bytes:
            raise AnamnesisError(FRAME_TOO_LARGE, size=len(frame), most=self._max_frame_bytes)
        return frame

    async def send(self, packet: bytes) -> None:
        """Send one frame, in the order of the calls; waits while too many are unread."""
        async with self._sending:
            await self._outbound.put(packet)

    async def close(self) -> None:
        """Close this end. The peer still receives what was sent; this end receives nothing more."""
        await self._outbound.end()
        await self._inbound.end(discard=True)


class _Queue:
    """One direction: a bounded queue that can end."""

    def __init__(self, depth: int) -> None:
        self._frames: deque[bytes] = deque()
        self._depth = depth
        self._ended = False
        self._changed = asyncio.Condition()

    async def put(self, frame: bytes) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._ended or len(self._frames) < self._depth)
            if not self._ended:
                self._frames.append(frame)
                self._changed.notify_all()

    async def take(self) -> bytes | None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._ended or len(self._frames) > 0)
            if not self._frames:
                return None
            self._changed.notify_all()
            return self._frames.popleft()

    async def end(self, *, discard: bool = False) -> None:
        async with self._changed:
            self._ended = True
            if discard:
                self._frames.clear()
            self._changed.notify_all()
