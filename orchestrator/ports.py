"""Every place where the house touches the world."""

from typing import Literal, Protocol, TypeAlias

Way: TypeAlias = Literal["websocket", "livekit", "in_process"]
"""How frames can travel."""


class Transport(Protocol):
    """Carries frames both ways, whole and in order. LiveKit, a WebSocket and an in-process pair all can."""

    @property
    def way(self) -> Way:
        """Which of the ways it is, for whoever counts them."""
        ...

    @property
    def most(self) -> int:
        """The largest frame it carries, in bytes."""
        ...

    async def receive(self) -> bytes | None:
        """The peer's next frame, or None once the peer has left.

        A frame it cannot carry (too large, not binary) is raised as our error; where the connection lives on,
        the next call gives the next frame. An iterator could not go on after raising.
        """
        ...

    async def send(self, packet: bytes) -> None:
        """Hand one frame to the peer; waits while the peer is slow; does nothing once the peer has left."""
        ...

    async def close(self) -> None:
        """Say goodbye to the peer. Closing twice is fine."""
        ...
