"""The client's side of the protocol: every stanza is received exactly once, even if the connection breaks."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

from pydantic import ValidationError

from memory_blocks.ports import Ids
from orchestrator.errors import (
    DISCONNECTED,
    LIVEKIT_UNAVAILABLE,
    NOT_CONFIGURED,
    NOT_NOW,
    REFUSED,
    SERVER_UNREACHABLE,
    AnamnesisError,
)
from orchestrator.ports import Transport
from orchestrator.wire.codec import decode, encode
from orchestrator.wire.envelope import Envelope
from orchestrator.wire.ids import ConversationId, MessageId
from orchestrator.wire.messages import (
    Acknowledgement,
    AssistantMessage,
    AssistantSentence,
    Body,
    Configuration,
    ControlStop,
    ErrorMessage,
    ServerInfo,
    StartAnswer,
    UserMessage,
)
from orchestrator.wire.rules import refusal

ANSWER_SECONDS: Final = 1.0
"""How long to wait for the answer to a Configuration before sending it again: a room may lose it."""

QUIET_SECONDS: Final = 5.0
"""How long the server may be silent during an answer before the client asks for lost stanzas."""

LONGEST_WAIT_SECONDS: Final = 5.0
"""The longest pause between two attempts to connect."""


class Client:
    """One conversation of one person. `seen` is the last server stanza received.

    `keep` is called with the conversation's id and `seen` after each stanza was handled. Pass that number to
    `open` later, and the server sends what came after it.

    With `dial`, the client reconnects when the connection ends, for as long as it takes. It then asks for
    everything after `seen` and sends again what was not acknowledged. It does the same after a gap in the
    numbers, and when the server is silent for too long.
    """

    def __init__(
        self,
        transport: Transport,
        ids: Ids,
        *,
        dial: Callable[[], Awaitable[Transport]] | None = None,
        keep: Callable[[str, int], None] | None = None,
    ) -> None:
        self.conversation_id = ConversationId("")
        self.seen = 0
        self._transport = transport
        self._dial = dial
        self._keep = keep
        self._kept: int | None = None
        self._ids = ids
        self._count = 0
        self._pending: Configuration | None = None
        self._unacknowledged: dict[int, UserMessage] = {}
        self._expects_answer = False
        self._ended = False

    async def open(
        self, conversation_id: str | None = None, *, seen: int | None = None
    ) -> AsyncGenerator[Envelope[Body], None]:
        """Open a conversation, or start one; gives what the server sends until it is open.

        `seen` is the last stanza received earlier. The stanzas after it, which the server sends again, are
        given, too.
        """
        named = ConversationId(conversation_id or "")
        configuration = Configuration(conversation_id=named, last_sequence_seen=seen)
        if conversation_id:
            self.conversation_id, self.seen = named, seen or 0
            await self._configure(configuration)
        else:
            await self._transport.send(encode(Envelope(1, named, configuration)))
        last_stanza = 0
        while True:
            envelope = await self.receive()
            yield envelope
            match envelope.body:
                case Configuration() as answer:
                    self.conversation_id = answer.conversation_id
                    last_stanza = -(answer.last_server_stanza or 0)
                    if seen is None:
                        self.seen = last_stanza
                case ServerInfo():
                    break
                case ErrorMessage() as refused:
                    raise AnamnesisError(REFUSED, message=refused.message)
        self._expects_answer = True
        try:
            while self.seen < last_stanza:
                yield await self.receive()
        finally:
            self._expects_answer = False

    async def say(self, content: str) -> MessageId:
        """Send a message and return its id."""
        message_id = MessageId(self._ids.new("msg_"))
        try:
            message = UserMessage(id=message_id, conversation_id=self.conversation_id, content=content)
        except ValidationError as error:
            refused = refusal(error)
        else:
            number = await self._send(message)
            self._unacknowledged[number] = message
            return message_id
        raise refused  # outside the handler: pydantic's error holds the message

    async def stop(self) -> None:
        """Stop the running answer."""
        await self._send(ControlStop(conversation_id=self.conversation_id))

    async def answer_to(self, message_id: MessageId) -> AsyncGenerator[Envelope[Body], None]:
        """Give what the server sends until the answer to that message has ended or failed."""
        answer_id = None
        self._expects_answer = True
        try:
            while True:
                envelope = await self.receive()
                yield envelope
                match envelope.body:
                    case StartAnswer(id=started, previous_id=asked) if asked == message_id:
                        answer_id = started
                    case AssistantSentence(previous_id=answer, is_final=True) if answer == answer_id:
                        return
                    case AssistantMessage(previous_id=asked) if asked == message_id:
                        return
                    case ErrorMessage(originating_id=asked) if asked == message_id:
                        return
        finally:
            self._expects_answer = False

    async def close(self) -> None:
        """Disconnect. A running answer continues on the server and can be received later."""
        self._keep_seen()
        await self._transport.close()

    async def receive(self) -> Envelope[Body]:
        """Return the next new envelope. Skips known numbers; after a gap, asks for the missing ones."""
        self._keep_seen()
        while True:
            packet = await self._next_packet()
            envelope = decode(packet, sender="server", max_bytes=self._transport.max_frame_bytes)
            number = -envelope.stanza_id
            if number > self.seen + 1:
                if self._pending is None:
                    await self._resume()
                continue
            if number == 0 or number > self.seen:
                self.seen = max(self.seen, number)
                if self._dial is not None and (envelope.meta or {}).get("error") == NOT_CONFIGURED.name:
                    await self._resume()  # the server ended the connection, which this side did not notice
                    continue
                await self._handle(envelope.body)
                return envelope

    def _keep_seen(self) -> None:
        if self._keep is not None and self.conversation_id and self.seen != self._kept:
            self._keep(self.conversation_id, self.seen)
            self._kept = self.seen

    async def _handle(self, body: Body) -> None:
        match body:
            case Configuration(last_client_stanza=int(count)):
                self._pending, self._count = None, count
                unacknowledged, self._unacknowledged = self._unacknowledged, {}
                for message in unacknowledged.values():
                    self._unacknowledged[await self._send(message)] = message
            case Acknowledgement(acknowledged_stanza_id=number):
                self._unacknowledged.pop(number, None)
            case ErrorMessage(originating_id=message_id, recoverable=recoverable):
                self._ended = self._ended or not recoverable
                for number, message in tuple(self._unacknowledged.items()):
                    if message.id == message_id:
                        del self._unacknowledged[number]

    async def _next_packet(self) -> bytes:
        while True:
            try:
                async with asyncio.timeout(self._receive_seconds()):
                    packet = await self._transport.receive()
            except TimeoutError:
                await self._resume()
                continue
            if packet is not None:
                return packet
            if self._dial is None or self._ended or not self.conversation_id:
                raise AnamnesisError(DISCONNECTED)
            await self._reconnect(self._dial)

    def _receive_seconds(self) -> float | None:
        if self._dial is None:
            return None
        if self._pending is not None:
            return ANSWER_SECONDS
        return QUIET_SECONDS if self._unacknowledged or self._expects_answer else None

    async def _reconnect(self, dial: Callable[[], Awaitable[Transport]]) -> None:
        wait = 0.1
        while True:
            try:
                self._transport = await dial()
                break
            except AnamnesisError as error:
                if error.problem not in (SERVER_UNREACHABLE, LIVEKIT_UNAVAILABLE, NOT_NOW):
                    raise
            await asyncio.sleep(wait)
            wait = min(LONGEST_WAIT_SECONDS, wait * 2)
        await self._resume()

    async def _resume(self) -> None:
        """Open the conversation again, and so ask for everything after the last stanza received."""
        await self._configure(
            self._pending or Configuration(conversation_id=self.conversation_id, last_sequence_seen=self.seen)
        )

    async def _configure(self, configuration: Configuration) -> None:
        """Send a Configuration; it is pending until the server answers it."""
        self._pending = configuration
        await self._transport.send(encode(Envelope(0, self.conversation_id, configuration)))

    async def _send(self, body: Body) -> int:
        packet = encode(Envelope(self._count + 1, self.conversation_id, body))
        self._count += 1
        await self._transport.send(packet)
        return self._count
