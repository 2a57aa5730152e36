"""Two ends of a connection inside one process, for tests and for embedding in another program."""

import asyncio
from collections import deque
from typing import Final

from orchestrator.errors import FRAME_TOO_LARGE, AnamnesisError
from orchestrator.ports import Way

MEBIBYTE: Final = 1 << 20


def pair(most: int = MEBIBYTE, depth: int = 32) -> tuple["End", "End"]:
    """The client's end and the server's: what one sends, the other receives.

    `depth` frames wait in each direction before the sender does.
    """
    to_server, to_client = _Lane(depth), _Lane(depth)
    return End(to_client, to_server, most), End(to_server, to_client, most)


class End:
    """One end of the pair. What was sent before the other end closed can still be received."""

    def __init__(self, inbound: "_Lane", outbound: "_Lane", most: int) -> None:
        self._inbound, self._outbound, self._most = inbound, outbound, most
        self._sending = asyncio.Lock()

    @property
    def way(self) -> Way:
        """Which of the ways it is, for whoever counts them."""
        return "in_process"

    @property
    def most(self) -> int:
        """The largest frame it carries, in bytes."""
        return self._most

    async def receive(self) -> bytes | None:
        """The peer's next frame, or None once either end closed. After one too large, the next may fit."""
        frame = await self._inbound.take()
        if frame is not None and len(frame) > self._most:
            raise AnamnesisError(FRAME_TOO_LARGE, size=len(frame), most=self._most)
        return frame

    async def send(self, packet: bytes) -> None:
        """Hand one frame to the peer, in the order of the calls; waits while too many lie there unread."""
        async with self._sending:
            await self._outbound.put(packet)

    async def close(self) -> None:
        """Leave: the peer still gets what was sent, this end gets nothing more."""
        await self._outbound.end()
        await self._inbound.end(forget=True)


class _Lane:
    """One direction: a short queue that can end."""

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

    async def end(self, *, forget: bool = False) -> None:
        async with self._changed:
            self._ended = True
            if forget:
                self._frames.clear()
            self._changed.notify_all()
