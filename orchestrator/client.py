"""The client's side of the protocol: the handshake, and nothing twice or missed, whatever the line does."""

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
"""How long one waits for the answer to a Configuration before one asks again: in a room, it may be lost."""

QUIET_SECONDS: Final = 5.0
"""How long nothing may come while an answer is awaited before one asks whether something was lost."""

LONGEST_WAIT_SECONDS: Final = 5.0


class Client:
    """Speaks as one person. `seen` is the last server stanza received: keep it, and nothing is lost.

    `keep` is told of it, with the conversation's id, whenever a stanza was handled and the next is asked for.

    With `dial`, a line that has ended is opened anew, for as long as it takes, and the server asked for what
    came after `seen`; what it has not acknowledged is sent again. So it is when a number was left out, or
    when nothing comes for a while.
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
        self._asking: Configuration | None = None
        self._unacknowledged: dict[int, UserMessage] = {}
        self._awaiting = False
        self._ended = False

    async def open(
        self, conversation_id: str | None = None, *, seen: int | None = None
    ) -> AsyncGenerator[Envelope[Body], None]:
        """Enter a conversation, or begin one; gives what the server says until it has let us in.

        `seen` is the last stanza received earlier; the server then sends again whatever came after it, which
        is given as well.
        """
        named = ConversationId(conversation_id or "")
        asking = Configuration(conversation_id=named, last_sequence_seen=seen)
        if conversation_id:
            self.conversation_id, self.seen = named, seen or 0
            await self._ask(asking)
        else:
            await self._transport.send(encode(Envelope(1, named, asking)))
        said_there = 0
        while True:
            envelope = await self.receive()
            yield envelope
            match envelope.body:
                case Configuration() as settings:
                    self.conversation_id = settings.conversation_id
                    said_there = -(settings.last_server_stanza or 0)
                    if seen is None:
                        self.seen = said_there
                case ServerInfo():
                    break
                case ErrorMessage() as refused:
                    raise AnamnesisError(REFUSED, message=refused.message)
        self._awaiting = True
        try:
            while self.seen < said_there:
                yield await self.receive()
        finally:
            self._awaiting = False

    async def say(self, content: str) -> MessageId:
        """Send a message, and tell under which id."""
        message_id = MessageId(self._ids.new("msg_"))
        try:
            message = UserMessage(id=message_id, conversation_id=self.conversation_id, content=content)
        except ValidationError as error:
            refused = refusal(error)
        else:
            number = await self._send(message)
            self._unacknowledged[number] = message
            return message_id
        raise refused  # out here: pydantic's error holds what was typed

    async def stop(self) -> None:
        """Ask for no more of the answer under way."""
        await self._send(ControlStop(conversation_id=self.conversation_id))

    async def answer_to(self, message_id: MessageId) -> AsyncGenerator[Envelope[Body], None]:
        """Everything the server says until the answer to that message has ended, in one way or another."""
        answer_id = None
        self._awaiting = True
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
            self._awaiting = False

    async def close(self) -> None:
        """Leave. Answers under way go on, and can be fetched later."""
        self._keep_seen()
        await self._transport.close()

    async def receive(self) -> Envelope[Body]:
        """The next new envelope. A number that was seen is passed over; after a gap, the server is asked."""
        self._keep_seen()
        while True:
            packet = await self._next_packet()
            envelope = decode(packet, sender="server", most=self._transport.most)
            number = -envelope.stanza_id
            if number > self.seen + 1:
                if self._asking is None:
                    await self._ask_again()
                continue
            if number == 0 or number > self.seen:
                self.seen = max(self.seen, number)
                if self._dial is not None and (envelope.meta or {}).get("error") == NOT_CONFIGURED.name:
                    await self._ask_again()  # the server has ended the connection, and we had not noticed
                    continue
                await self._take_note(envelope.body)
                return envelope

    def _keep_seen(self) -> None:
        if self._keep is not None and self.conversation_id and self.seen != self._kept:
            self._keep(self.conversation_id, self.seen)
            self._kept = self.seen

    async def _take_note(self, body: Body) -> None:
        match body:
            case Configuration(last_client_stanza=int(count)):
                self._asking, self._count = None, count
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
                async with asyncio.timeout(self._patience()):
                    packet = await self._transport.receive()
            except TimeoutError:
                await self._ask_again()
                continue
            if packet is not None:
                return packet
            if self._dial is None or self._ended or not self.conversation_id:
                raise AnamnesisError(DISCONNECTED)
            await self._redial(self._dial)

    def _patience(self) -> float | None:
        if self._dial is None:
            return None
        if self._asking is not None:
            return ANSWER_SECONDS
        return QUIET_SECONDS if self._unacknowledged or self._awaiting else None

    async def _redial(self, dial: Callable[[], Awaitable[Transport]]) -> None:
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
        await self._ask_again()

    async def _ask_again(self) -> None:
        """Ask for everything after the last stanza seen, as when one enters anew."""
        await self._ask(
            self._asking or Configuration(conversation_id=self.conversation_id, last_sequence_seen=self.seen)
        )

    async def _ask(self, asking: Configuration) -> None:
        self._asking = asking
        await self._transport.send(encode(Envelope(0, self.conversation_id, asking)))

    async def _send(self, body: Body) -> int:
        packet = encode(Envelope(self._count + 1, self.conversation_id, body))
        self._count += 1
        await self._transport.send(packet)
        return self._count
