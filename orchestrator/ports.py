"""The protocols this package needs from others."""

from typing import Literal, Protocol, TypeAlias

TransportKind: TypeAlias = Literal["websocket", "livekit", "in_process"]
"""The ways to carry frames, as a label of metrics."""


class Transport(Protocol):
    """A connection that carries whole frames in order in both directions."""

    @property
    def kind(self) -> TransportKind:
        """What carries the frames."""

    @property
    def max_frame_bytes(self) -> int:
        """The size of the largest frame it carries."""

    async def receive(self) -> bytes | None:
        """The peer's next frame, or None once the peer has left.

        Raises our error for a frame that is too large or not binary. If the connection is still open, the
        next call returns the next frame. (It is a method, because an iterator ends when it raises.)
        """

    async def send(self, packet: bytes) -> None:
        """Send one frame; waits while the peer is slow, and does nothing once the peer has left."""

    async def close(self) -> None:
        """Close the connection. Closing twice is allowed."""
