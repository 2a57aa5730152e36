"""The client's side of the protocol on one connection: the handshake, and nothing twice or missed."""

from collections.abc import AsyncGenerator

from pydantic import ValidationError

from memory_blocks.ports import Ids
from orchestrator.errors import DISCONNECTED, REFUSED, AnamnesisError
from orchestrator.ports import Transport
from orchestrator.wire.codec import decode, encode
from orchestrator.wire.envelope import Envelope
from orchestrator.wire.ids import ConversationId, MessageId
from orchestrator.wire.messages import (
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


class Client:
    """Speaks as one person. `seen` is the last server stanza received: keep it, and nothing is lost."""

    def __init__(self, transport: Transport, ids: Ids) -> None:
        self.conversation_id = ConversationId("")
        self.seen = 0
        self._transport = transport
        self._ids = ids
        self._count = 0

    async def open(
        self, conversation_id: str | None = None, *, seen: int | None = None
    ) -> AsyncGenerator[Envelope[Body], None]:
        """Enter a conversation, or begin one; gives what the server says until it has let us in.

        `seen` is the last stanza received earlier; the server then sends again whatever came after it.
        """
        named = ConversationId(conversation_id or "")
        asking = Configuration(conversation_id=named, last_sequence_seen=seen)
        await self._transport.send(encode(Envelope(0 if conversation_id else 1, named, asking)))
        while True:
            envelope = await self.receive()
            yield envelope
            match envelope.body:
                case Configuration() as settings:
                    self.conversation_id = settings.conversation_id
                    self._count = settings.last_client_stanza or 0
                    self.seen = -(settings.last_server_stanza or 0) if seen is None else seen
                case ServerInfo():
                    return
                case ErrorMessage() as refused:
                    raise AnamnesisError(REFUSED, message=refused.message)

    async def say(self, content: str) -> MessageId:
        """Send a message, and tell under which id."""
        message_id = MessageId(self._ids.new("msg_"))
        try:
            message = UserMessage(id=message_id, conversation_id=self.conversation_id, content=content)
        except ValidationError as error:
            refused = refusal(error)
        else:
            await self._send(message)
            return message_id
        raise refused  # out here: pydantic's error holds what was typed

    async def stop(self) -> None:
        """Ask for no more of the answer under way."""
        await self._send(ControlStop(conversation_id=self.conversation_id))

    async def answer_to(self, message_id: MessageId) -> AsyncGenerator[Envelope[Body], None]:
        """Everything the server says until the answer to that message has ended, in one way or another."""
        answer_id = None
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

    async def close(self) -> None:
        """Leave. Answers under way go on, and can be fetched later."""
        await self._transport.close()

    async def _send(self, body: Body) -> None:
        packet = encode(Envelope(self._count + 1, self.conversation_id, body))
        self._count += 1
        await self._transport.send(packet)

    async def receive(self) -> Envelope[Body]:
        """The next new envelope. A number that was seen is passed over; after a gap, one connects again."""
        while (packet := await self._transport.receive()) is not None:
            envelope = decode(packet, sender="server", most=self._transport.most)
            number = -envelope.stanza_id
            if number > self.seen + 1:
                break
            if number == 0 or number > self.seen:
                self.seen = max(self.seen, number)
                return envelope
        raise AnamnesisError(DISCONNECTED)
