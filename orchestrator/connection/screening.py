"""Checks what a person writes on one connection for danger, before any of it is stored."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Final

from orchestrator.errors import AnamnesisError
from orchestrator.safety.assessment import Assessment, MessageDecision
from orchestrator.safety.context import MessageContext
from orchestrator.safety.monitor import SafetyMonitor
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.wire.codec import Frame
from orchestrator.wire.messages import Body, ControlVariation, EarlierMessage, SyncRequest, UserMessage

TEXT_FIELDS: Final = (b"content", b"newContent")
"""The names of the fields that hold what a person writes, as they appear in a packet."""


@dataclass(frozen=True, slots=True)
class Screened:
    """What is done about the safety of one frame. A frame in which the person says nothing is calm."""

    decision: MessageDecision = field(default_factory=MessageDecision)
    synced: Mapping[str, MessageDecision] = field(default_factory=dict)
    """The decisions about the messages of a SyncRequest, by the client's own ids; calm ones are left out."""
    error_prefix: str = ""
    """What an ErrorMessage about the frame begins with: the person gets no other answer to it."""


class Screening:
    """Asks the safety monitor about each frame of one connection.

    The context of a message is read from the store. While the store does not answer, the last known context
    is used, so that a person in danger does not wait for it.
    """

    def __init__(self, monitor: SafetyMonitor, store: Store) -> None:
        self._monitor, self._store = monitor, store
        self._context = MessageContext()
        self._reads: set[asyncio.Task[MessageContext]] = set()

    def refresh(self, conversation_id: str) -> None:
        """Read the context of the person's next message in the background."""
        self._start_read(conversation_id)

    async def screen(self, conversation_id: str | None, body: Body) -> Screened:
        """Check what the person says in a frame."""
        check: Callable[[MessageContext], Screened]
        match body:
            case UserMessage(content=text) | ControlVariation(new_content=str(text)):
                check = partial(self._check_text, text)
            case SyncRequest():
                check = partial(self._check_sync, body)
            case _:
                return Screened()
        if conversation_id is None:
            return await asyncio.to_thread(check, self._context)
        reading = self._start_read(conversation_id, is_edit=isinstance(body, ControlVariation))
        await asyncio.wait([reading], timeout=self._monitor.store_wait_seconds)
        if not reading.done():
            screened = await asyncio.to_thread(check, self._context)
            if screened.decision.is_danger:
                return screened
        return await asyncio.to_thread(check, await reading)

    async def screen_unread(self, frame: Frame | None, packet: bytes) -> Screened:
        """Check a frame that could not be read, as far as its text can be found."""
        text = _text_in(frame) if frame else packet.decode("utf-8", "ignore")
        may_have_text = _may_have_text(frame, packet)
        if not text and not may_have_text:
            return Screened()
        screened = await asyncio.to_thread(self._check_text, text, self._context)
        return screened if screened.decision.is_danger or may_have_text else Screened()

    async def close(self) -> None:
        """Cancel the reads that still run."""
        reads = tuple(self._reads)
        for read in reads:
            read.cancel()
        await asyncio.gather(*reads, return_exceptions=True)

    def _start_read(self, conversation_id: str, *, is_edit: bool = False) -> asyncio.Task[MessageContext]:
        def read(tx: Transaction) -> MessageContext:
            return self._monitor.read_context(tx, conversation_id, is_edit=is_edit)

        async def read_or_last_known() -> MessageContext:
            try:
                context = await self._store.read(read)
            except AnamnesisError:
                return self._context
            if not is_edit:
                self._context = context
            return context

        reading = asyncio.create_task(read_or_last_known())
        self._reads.add(reading)
        reading.add_done_callback(self._reads.discard)
        return reading

    def _check_text(self, text: str, context: MessageContext) -> Screened:
        decision = self._monitor.message_received(text, context)
        return Screened(decision, error_prefix=decision.error_prefix)

    def _check_sync(self, body: SyncRequest, context: MessageContext) -> Screened:
        """Check each earlier message of the person, with what the assistant said before it."""
        question, found = context.question, dict[str, MessageDecision]()
        for each in body.messages:
            if not isinstance(each, EarlierMessage):
                continue
            if each.role != "user":
                question = each.contents
                continue
            decision = self._monitor.message_received(
                each.contents, MessageContext(question), by_rules_only=True
            )
            if decision.assessment != Assessment():
                found.setdefault(each.local_id, decision)
        gravest = reduce(MessageDecision.graver_of, found.values(), MessageDecision())
        return Screened(gravest, found)


def _may_have_text(frame: Frame | None, packet: bytes) -> bool:
    """Whether the person seems to say something in a frame that could not be opened or read."""
    if frame is None:
        return any(name in packet for name in TEXT_FIELDS)
    body, kind = frame.fields.get("body"), frame.fields.get("type")
    is_edit = kind == ControlVariation.TYPE and type(body) is dict and "newContent" in body
    return is_edit or kind == UserMessage.TYPE


def _text_in(frame: Frame) -> str:
    """What the person seems to say in a frame that could not be read."""
    body = frame.fields.get("body")
    if type(body) is not dict or frame.fields.get("type") not in (UserMessage.TYPE, ControlVariation.TYPE):
        return ""
    text = body.get("content", body.get("newContent"))
    return text if type(text) is str else ""
