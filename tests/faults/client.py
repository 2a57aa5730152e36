"""A client written from docs/protocol.md alone, on plain websockets and msgpack.

It records every stanza and every acknowledgement. It repeats a frame that was not acknowledged, with the same
number and the same bytes.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

import msgpack
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage

TIMEOUT: Final = 30.0
"""Seconds to wait for a frame that must come. After that, the frame counts as lost."""


class Type(IntEnum):
    """The message types that this client sends or understands."""

    ERROR = 1
    USER_MESSAGE = 2
    ASSISTANT_MESSAGE = 3
    ACKNOWLEDGEMENT = 8
    CONTROL_STOP = 10
    CONFIGURATION = 12
    START_ANSWER = 13
    MEMORY_TRACE = 14
    COMMENTARY = 15
    SENTENCE = 16
    MEMORY_ACTION = 24


class Cut(Exception):
    """The connection is broken."""


@dataclass(frozen=True)
class Frame:
    """One decoded envelope of the server, and its bytes."""

    packet: bytes
    stanza: int
    type: int
    conversation_id: str
    body: dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """A message that the client sent, and its stanza number."""

    stanza: int
    text: str


@dataclass
class Client:
    """One person's client. It survives broken connections and killed servers."""

    repeats: bool = False
    """Whether it sends every message twice."""
    insists: bool = False
    """Whether it repeats a refused message at once."""
    features: list[str] | None = None
    conversation_id: str = ""
    asked: dict[str, Asked] = field(default_factory=dict)
    """The messages that were sent, by id."""
    ends: dict[str, list[str]] = field(default_factory=dict)
    """The end of each answer to a message: `completed` or `failed`. There should be one."""
    seen: list[bytes] = field(default_factory=list)
    """Every numbered stanza. The n-th must have the number -n; anything else is added to `problems`."""
    acknowledged: dict[int, bool] = field(default_factory=dict)
    """For each stanza of the client, whether the server acknowledged or refused it."""
    refused: list[tuple[int, str | None]] = field(default_factory=list)
    """The code of each refusal, and the id of the refused message."""
    problems: list[str] = field(default_factory=list)
    _answers: dict[str, str] = field(default_factory=dict)
    _waiting: dict[int, bytes] = field(default_factory=dict)
    _stanza: int = 0
    _sent_there: int | None = None
    _websocket: ClientConnection | None = None

    # --- the connection -------------------------------------------------------------------------------------

    async def connect(self, address: str, key: str) -> None:
        """Connect, request the missed stanzas, and repeat the frames that were not acknowledged."""
        header = {"Authorization": f"Bearer {key}"}
        try:
            self._websocket = await connect(
                address, additional_headers=header, compression=None, max_queue=None
            )
        except (OSError, EOFError, InvalidHandshake, InvalidMessage):
            raise Cut from None
        body: dict[str, Any] = {"conversationId": self.conversation_id, "lastSequenceSeen": len(self.seen)}
        if self.features is not None:
            body["features"] = self.features
        # The number is 1 on every connection. The server accepts the first frame whatever its number; with a
        # higher one, the repeated frames would have numbers below the server's count.
        await self._send(_packed(1, self.conversation_id, Type.CONFIGURATION, body))
        self._stanza = self._stanza or 1
        self._sent_there, before = None, len(self.refused)
        await self.until(lambda: self._sent_there is not None or len(self.refused) > before)
        if self._sent_there is None:
            raise Cut
        await self.send_again()

    def cut(self) -> None:
        """Break the connection without a closing handshake."""
        assert self._websocket is not None
        self._websocket.transport.abort()

    async def close(self) -> None:
        """Close the connection with a closing handshake."""
        if self._websocket is not None:
            await self._websocket.close()

    # --- sending --------------------------------------------------------------------------------------------

    async def ask(self, text: str) -> str:
        """Send a message and wait for the end of its answer."""
        return await self.answered(await self.say(text))

    async def say(self, text: str) -> str:
        """Send a message. Returns its id."""
        message_id = f"msg_of_a_client_{len(self.asked) + 1}_{self.conversation_id}"
        self.asked[message_id] = Asked(self._stanza + 1, text)
        await self.send(Type.USER_MESSAGE, id=message_id, content=text)
        return message_id

    async def answered(self, message_id: str) -> str:
        """Wait for the end of the answer to a message: `completed` or `failed`."""
        await self.until(lambda: message_id in self.ends)
        return self.ends[message_id][-1]

    async def send(self, kind: Type, meta: dict[str, Any] | None = None, **body: Any) -> int:
        """Send a frame with the next number and keep it until it is acknowledged. Returns the number."""
        self._stanza += 1
        packet = _packed(self._stanza, self.conversation_id, kind, body, meta)
        self._waiting[self._stanza] = packet
        for _ in range(2 if self.repeats else 1):
            await self._send(packet)
        return self._stanza

    async def send_again(self) -> None:
        """Repeat the frames that were not acknowledged."""
        for packet in list(self._waiting.values()):
            await self._send(packet)

    async def _send(self, packet: bytes) -> None:
        assert self._websocket is not None
        try:
            await self._websocket.send(packet)
        except ConnectionClosed:
            raise Cut from None

    # --- receiving ------------------------------------------------------------------------------------------

    async def until(self, happened: Callable[[], bool]) -> None:
        """Receive until the condition holds; repeat messages that were refused for now."""
        while not happened():
            before = len(self.refused)
            await self.receive()
            if self.insists and self.refused[before:]:
                await self.send_again()

    async def catch_up(self) -> None:
        """Receive what the server had sent when this connection was opened."""
        await self.until(lambda: len(self.seen) >= (self._sent_there or 0))

    async def receive(self) -> Frame:
        """Receive the next frame and record it."""
        assert self._websocket is not None
        try:
            async with asyncio.timeout(TIMEOUT):
                packet = await self._websocket.recv(decode=False)
        except ConnectionClosed:
            raise Cut from None
        frame = _unpacked(packet)
        self._note(frame)
        return frame

    def _note(self, frame: Frame) -> None:
        self.conversation_id = self.conversation_id or frame.conversation_id
        if frame.conversation_id != self.conversation_id:
            self.problems.append(f"stanza {frame.stanza} is of another conversation")
        if frame.stanza == 0:
            pass
        elif -frame.stanza == len(self.seen) + 1:
            self.seen.append(frame.packet)
        else:
            self.problems.append(f"stanza {frame.stanza} came after {-len(self.seen)}")
            return
        body = frame.body
        match frame.type:
            case Type.CONFIGURATION:
                self._sent_there = -body["lastServerStanza"]
            case Type.ACKNOWLEDGEMENT:
                self.acknowledged[body["acknowledgedStanzaId"]] = body["success"]
                self._waiting.pop(body["acknowledgedStanzaId"], None)
            case Type.START_ANSWER:
                if body["previousId"] in self._answers.values():
                    self.problems.append(f"the answer to {body['previousId']} began twice")
                self._answers[body["id"]] = body["previousId"]
            case Type.SENTENCE if body["isFinal"]:
                self._note_end(self._answers.get(body["previousId"], "unknown"), "completed")
            case Type.ASSISTANT_MESSAGE:
                self._note_end(body["previousId"], "completed")
            case Type.ERROR if frame.stanza == 0:
                self.refused.append((body["code"], body.get("originatingId")))
            case Type.ERROR:
                self._note_end(body["originatingId"], "failed")

    def _note_end(self, message_id: str, how: str) -> None:
        self.ends.setdefault(message_id, []).append(how)

    def has_seen(self, kind: Type) -> bool:
        """Whether a stanza of that type was received."""
        return any(_unpacked(packet).type == kind for packet in self.seen)

    @property
    def acknowledged_ids(self) -> list[str]:
        """The ids of the messages that were acknowledged."""
        return [id for id, asked in self.asked.items() if self.acknowledged.get(asked.stanza)]


def _packed(
    stanza: int, conversation_id: str, kind: Type, body: dict[str, Any], meta: dict[str, Any] | None = None
) -> bytes:
    envelope: dict[str, Any] = {
        "stanzaId": stanza,
        "conversationId": conversation_id,
        "type": int(kind),
        "body": {"conversationId": conversation_id} | body,
    }
    packed: bytes = msgpack.packb(envelope | ({"meta": meta} if meta else {}))
    return packed


def _unpacked(packet: bytes) -> Frame:
    fields = msgpack.unpackb(packet)
    return Frame(packet, fields["stanzaId"], fields["type"], fields["conversationId"], fields["body"])
