"""A client written from docs/protocol.md with plain MessagePack, without our code."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

import msgpack
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from orchestrator.orchestrator import Orchestrator
from orchestrator.transports.in_process import pair

ERROR, USER_MESSAGE, ASSISTANT_MESSAGE, TOOL_RESULT, ACKNOWLEDGEMENT = 1, 2, 3, 7, 8
AUDIO, STOP, VARIATION, CONFIGURATION, START_ANSWER, TRACE, COMMENTARY, SENTENCE = (
    10,
    10,
    11,
    12,
    13,
    14,
    15,
    16,
)
REASONING, TOOL_REQUEST = 5, 6
SYNC, SYNCED, NOTE, NOTED, MEMORY, REMEMBERED, SERVER_INFO = 17, 18, 22, 23, 24, 25, 26

TIMEOUT = 30.0
_ids = count(1)


@dataclass(frozen=True)
class Frame:
    """A decoded frame of the server, and its bytes."""

    stanza: int
    type: int
    conversation_id: str
    meta: dict[str, Any]
    body: dict[str, Any]
    packet: bytes

    @property
    def code(self) -> int | None:
        """The error code, if the frame is an error."""
        return self.body["code"] if self.type == ERROR else None

    @property
    def ends_an_answer(self) -> bool:
        """Whether this is the last frame of an answer."""
        return (
            self.type == ASSISTANT_MESSAGE
            or (self.type == SENTENCE and self.body["isFinal"])
            or (self.type == ERROR and self.stanza < 0)
        )


class Line(Protocol):
    """The client's end of a connection."""

    async def send(self, packet: bytes) -> None: ...

    async def receive(self) -> bytes | None: ...

    async def close(self) -> None: ...


class WebSocketLine:
    """The client's end of a WebSocket."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def send(self, packet: bytes) -> None:
        await self.socket.send(packet)

    async def receive(self) -> bytes | None:
        try:
            return await self.socket.recv(decode=False)
        except ConnectionClosed:
            return None

    async def close(self) -> None:
        await self.socket.close()


def new_id(prefix: str = "msg_") -> str:
    """An id that no other test has used."""
    return f"{prefix}of-a-test-{next(_ids)}"


def envelope(
    stanza: int, type: int, conversation_id: str, body: dict[str, Any], meta: dict[str, Any] | None = None
) -> bytes:
    """A frame as any MessagePack library writes it."""
    fields: dict[str, Any] = {
        "stanzaId": stanza,
        "conversationId": conversation_id,
        "type": type,
        "body": {"conversationId": conversation_id, **body},
    }
    if meta is not None:
        fields["meta"] = meta
    packed: bytes = msgpack.packb(fields)
    return packed


def opened(packet: bytes) -> Frame:
    """Decode a frame of the server. It must have exactly the fields that the protocol names."""
    fields = msgpack.unpackb(packet)
    assert set(fields) - {"meta"} == {"stanzaId", "conversationId", "type", "body"}
    return Frame(
        fields["stanzaId"],
        fields["type"],
        fields["conversationId"],
        fields.get("meta", {}),
        fields["body"],
        packet,
    )


class Peer:
    """One connection of a client. It numbers its stanzas and checks the numbers of the server's."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.conversation_id = ""
        self.sent = 0
        self.seen = 0

    async def open(
        self, conversation_id: str = "", *, stanza: int | None = None, meta: Any = None, **settings: Any
    ) -> list[Frame]:
        """Do the handshake, and continue with the stanza counts that the server reports."""
        self.conversation_id = conversation_id
        await self.send(CONFIGURATION, stanza=stanza, meta=meta, **settings)
        replies = []
        for type in (CONFIGURATION, ACKNOWLEDGEMENT, SERVER_INFO):
            replies.append(await self.next())
            assert replies[-1].type == type, replies[-1]
        result = replies[0].body
        self.sent = result["lastClientStanza"]
        self.seen = settings.get("lastSequenceSeen", -result["lastServerStanza"])
        return replies

    async def send(
        self, type: int, /, *, stanza: int | None = None, meta: dict[str, Any] | None = None, **body: Any
    ) -> bytes:
        """Send one frame, by default with the next number. Returns its bytes, to send it again."""
        if stanza is None:
            self.sent = stanza = self.sent + 1
        packet = envelope(stanza, type, self.conversation_id, body, meta)
        await self.line.send(packet)
        return packet

    async def next(self) -> Frame:
        """Receive the next frame. Its number must follow the last one: nothing is lost or repeated."""
        async with asyncio.timeout(TIMEOUT):
            packet = await self.line.receive()
        assert packet is not None, "the server has closed the connection"
        frame = opened(packet)
        if frame.stanza:
            assert frame.stanza == -(self.seen + 1), "a stanza was left out, or comes twice"
            self.seen += 1
        self.conversation_id = self.conversation_id or frame.conversation_id
        assert frame.conversation_id == frame.body["conversationId"] == self.conversation_id
        return frame

    async def until(self, is_last: Callable[[Frame], bool]) -> list[Frame]:
        """Receive frames up to the first that matches, inclusive."""
        frames = [await self.next()]
        while not is_last(frames[-1]):
            frames.append(await self.next())
        return frames

    async def until_type(self, type: int) -> list[Frame]:
        """Receive frames up to the first of that type."""
        return await self.until(lambda frame: frame.type == type)

    async def say(self, content: str = "I am having a headache", **fields: Any) -> str:
        """Send a message of the person. Returns its id."""
        message_id: str = fields.pop("id", None) or new_id()
        await self.send(USER_MESSAGE, id=message_id, content=content, **fields)
        return message_id

    async def answer(self) -> list[Frame]:
        """Receive everything up to the end of the next answer."""
        return await self.until(lambda frame: frame.ends_an_answer)

    async def ask(self, content: str = "I am having a headache", **fields: Any) -> list[Frame]:
        """Send a message and receive the whole answer. Returns the frames from the acknowledgement on."""
        await self.say(content, **fields)
        return await self.answer()

    async def request(self, type: int, /, **fields: Any) -> Frame:
        """Send one frame and return the next received one."""
        await self.send(type, **fields)
        return await self.next()

    async def gone(self) -> bool:
        """Whether the server closes the connection without another frame."""
        async with asyncio.timeout(TIMEOUT):
            return await self.line.receive() is None


@asynccontextmanager
async def visiting(orchestrator: Orchestrator, person: str = "ann") -> AsyncIterator[Peer]:
    """A client that is connected to an orchestrator in this process, as `person`."""
    client, server = pair()
    serving = asyncio.create_task(orchestrator.serve(server, person))
    try:
        yield Peer(client)
    finally:
        await client.close()
        await serving


@asynccontextmanager
async def conversing(orchestrator: Orchestrator, person: str = "ann", **settings: Any) -> AsyncIterator[Peer]:
    """A client with its own conversation, after the handshake."""
    async with visiting(orchestrator, person) as peer:
        await peer.open(**settings)
        yield peer
