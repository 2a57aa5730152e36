"""One connection: the handshake, the client's frames one by one, and the stanzas that it has not seen yet."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from memory_blocks.ports import Ids
from orchestrator.connection.handlers import (
    Arrival,
    ConnectedPerson,
    Consequence,
    ConversationLimits,
    Opened,
    accept,
    find_conversation,
    open_conversation,
)
from orchestrator.connection.screening import Screened, Screening
from orchestrator.errors import (
    ANSWER_DELAYED,
    DATABASE_FILE_LOST,
    FRAME_TOO_LARGE,
    NOT_CONFIGURED,
    OTHER_CONVERSATION,
    RATE_LIMITED,
    SESSION_REPLACED,
    STORAGE_FULL,
    AnamnesisError,
    as_ours,
)
from orchestrator.ops import faults, telemetry
from orchestrator.ops.logs import get_logger
from orchestrator.ports import Transport
from orchestrator.safety.assessment import MessageDecision
from orchestrator.safety.monitor import SafetyMonitor
from orchestrator.store.frame_records import SETTINGS
from orchestrator.store.rows import Conversation
from orchestrator.store.rows import Frame as StoredFrame
from orchestrator.turn.outbox import Outbox, uninterrupted
from orchestrator.turn.queue import TurnQueue
from orchestrator.wire.codec import MAX_FRAME_BYTES, Frame, decode, encode, open_frame, read
from orchestrator.wire.envelope import Envelope, Scalar, error_envelope
from orchestrator.wire.ids import ConversationId, ErrorId, MessageId, SentenceId
from orchestrator.wire.messages import (
    Acknowledgement,
    AssistantMessage,
    AssistantSentence,
    Body,
    Configuration,
    ServerInfo,
    StartAnswer,
    SyncRequest,
    name_of,
)

log = get_logger()

ENDS_THE_CONNECTION: Final = (FRAME_TOO_LARGE, SESSION_REPLACED, RATE_LIMITED)
MINUTE: Final = 60.0
SLOWDOWN_SECONDS: Final = 0.05
MAX_OPENED_ON_LOOP: Final = 32 * 1024
"""Larger frames, in bytes, are opened in a thread."""
ANSWER_FRAMES: Final = (StartAnswer.__name__, AssistantSentence.__name__, AssistantMessage.__name__)


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What all sessions of one process share."""

    outbox: Outbox
    queue: TurnQueue
    ids: Ids
    server_info: Callable[[], ServerInfo]
    """Which brain answers now."""
    limits: ConversationLimits
    monitor: SafetyMonitor
    present: dict[str, set["Session"]] = field(default_factory=dict, init=False)
    """The sessions of each conversation in this process. All but the newest are about to end."""
    on_created: list[Callable[[str], None]] = field(default_factory=list, init=False)
    """Called with the id of each conversation that a connection creates."""


class Session:
    """Serves one connection of one person until either side ends it."""

    def __init__(self, transport: Transport, person: ConnectedPerson, context: SessionContext) -> None:
        self.person = person
        self.conversation_id: str | None = None
        self._transport, self._context = transport, context
        self._screening = Screening(context.monitor, context.outbox.store)
        self._sending = asyncio.Lock()
        self._following: asyncio.Task[None] | None = None
        self._not_entered: Arrival | None = None
        """The first Configuration, while the disk is too full to store that this connection has opened it."""
        self._replaced = asyncio.timeout(None)
        self._safety_sent = asyncio.Event()
        """Set when a person in danger has got the first sentence, or will get no answer."""
        self._server_info: ServerInfo | None = None
        self._reported_delays: set[str] = set()
        self._error_prefixes: dict[str, str] = {}
        """What an ErrorMessage about a message in danger begins with, by the id of the message."""
        self._replayed_until = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._bad_frames = _BadFrames(context.limits.bad_frames_per_minute)

    async def serve(self) -> None:
        """Receive frames until the client leaves, or until a newer connection takes the conversation over."""
        try:
            async with self._replaced:
                while await self._handle_next():
                    pass
        except TimeoutError:
            await self._stop_following()
            await self._send_error(AnamnesisError(SESSION_REPLACED))  # not counted as a refused frame
        finally:
            self._leave()
            await self._stop_following()
            await _cancel(*self._tasks)
            await self._screening.close()
            await self._transport.close()

    def replaced(self) -> None:
        """End the session: a newer connection of the same person has the conversation now."""
        if self in self._context.present.get(self.conversation_id or "", ()) and not self._replaced.expired():
            self._replaced.reschedule(asyncio.get_running_loop().time())

    def update_server_info(self) -> None:
        """Send ServerInfo again if another brain answers now."""
        now = self._context.server_info()
        if self._server_info is not None and self._server_info != now:
            self._start(partial(self._send_server_info, now))

    def report_delay(self, message_id: str, cause: AnamnesisError) -> None:
        """Tell the client, once per message, that the store cannot be written and the answer has to wait."""
        if message_id in self._reported_delays:
            return
        self._reported_delays.add(message_id)
        is_lost = cause.problem is DATABASE_FILE_LOST  # then no answer will come
        delayed = cause if is_lost else AnamnesisError(ANSWER_DELAYED, rule=cause.problem.name)
        prefix = self._error_prefixes.get(message_id, self._context.monitor.error_prefix)
        self._start(partial(self._send_error, delayed, message_id, prefix))

    def _start(self, send: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Send something outside the numbered sequence, in a task that ends with the session."""

        async def run() -> None:
            with suppress(AnamnesisError):  # the client has left
                await send()

        task = asyncio.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _leave(self) -> None:
        sessions = self._context.present.get(self.conversation_id or "", set())
        sessions.discard(self)
        if not sessions:
            self._context.present.pop(self.conversation_id or "", None)

    async def _stop_following(self) -> None:
        if self._following is not None:
            await _cancel(self._following)

    # --- frames of the client -------------------------------------------------------------------------------

    async def _handle_next(self) -> bool:
        """Handle the next frame; returns False if it was the last."""
        frame: Frame | None = None
        packet: bytes | None = None
        screened: Screened | None = None
        try:
            packet = await self._transport.receive()
            if packet is None:
                return False
            frame = await _open(packet, self._transport.max_frame_bytes)
            if self.conversation_id is None:
                _check_first(frame)
            envelope = read(frame, sender="client")
            telemetry.frame_received(type(envelope.body).__name__)
            screened = await self._screening.screen(self.conversation_id, envelope.body)
            if screened.decision.is_danger:
                self._safety_sent.clear()
                message_id = getattr(envelope.body, "id", None)
                self._start(partial(self._send_first_sentence, screened.decision, message_id))
            arrival = Arrival(
                envelope, frame.fields["type"], packet, self.person, screened.decision, screened.synced
            )
            await uninterrupted(self._handle(arrival))
        except Exception as error:
            refusal = as_ours(error)
            if refusal is not error:
                log.error("frame_failed", exc_info=error)
            screened = screened or await self._screening.screen_unread(frame, packet or b"")
            await self._refuse(refusal, frame, screened)
            if refusal.problem in ENDS_THE_CONNECTION:
                return False
            if frame is None and await self._bad_frames.are_too_many():
                await self._refuse(AnamnesisError(RATE_LIMITED, seconds=int(MINUTE)))
                return False
        return True

    async def _handle(self, arrival: Arrival) -> None:
        envelope, body = arrival.envelope, arrival.envelope.body
        if isinstance(body, Configuration) and (self.conversation_id is None or envelope.stanza_id == 0):
            await self._open(self._in_own_conversation(arrival))
            return
        if self.conversation_id is None:
            raise AnamnesisError(NOT_CONFIGURED)
        if envelope.conversation_id != self.conversation_id and (
            envelope.conversation_id or not isinstance(body, Configuration)
        ):
            raise AnamnesisError(OTHER_CONVERSATION)
        if self._not_entered is not None:
            await self._enter(self._not_entered)
        consequence: Consequence = await self._context.outbox.commit(
            self.conversation_id,
            lambda write: accept(write, arrival, self._context.limits),
            step="accept",
        )
        if consequence.configured:
            conversation_id = self.conversation_id
            conversation = await self._context.outbox.store.read(
                lambda tx: tx.conversations.get(conversation_id)
            )
            if conversation is not None:
                await self._send_settings(conversation, envelope.stanza_id)
        if consequence.to_stop is not None:
            self._context.queue.stop(self.conversation_id, consequence.to_stop)
        if consequence.to_answer is not None:
            if arrival.safety.is_danger:
                self._error_prefixes[consequence.to_answer] = arrival.safety.error_prefix
            self._context.queue.nudge(self.conversation_id)
        elif not isinstance(body, SyncRequest):
            self._safety_sent.set()  # the frame was answered before, so no first sentence is due

    def _in_own_conversation(self, arrival: Arrival) -> Arrival:
        """The Configuration with the id of the conversation that this connection belongs to, if any."""
        own, named = self.conversation_id or self.person.conversation_id, arrival.envelope.conversation_id
        if own is None or named == own:
            return arrival
        if named:
            raise AnamnesisError(OTHER_CONVERSATION)
        return replace(arrival, envelope=arrival.envelope._replace(conversation_id=ConversationId(own)))

    async def _refuse(
        self, error: AnamnesisError, frame: Frame | None = None, screened: Screened | None = None
    ) -> None:
        telemetry.frame_refused(error.problem)
        log.info(
            "frame_refused",
            conversation_id=self.conversation_id,
            error=error.problem.name,
            stanza=frame.stanza_id if frame else None,
        )
        prefix = screened.error_prefix if screened else ""
        if prefix and screened and screened.decision.is_danger:
            self._safety_sent.set()
        await self._send_error(error, frame.message_id if frame else None, prefix)

    # --- opening a conversation -----------------------------------------------------------------------------

    async def _open(self, arrival: Arrival) -> None:
        """Open a conversation. If the disk is full, the client can read it, and write once there is room."""
        try:
            opened = await self._enter(arrival)
        except AnamnesisError as error:
            if error.problem is not STORAGE_FULL or not arrival.envelope.conversation_id:
                raise
            self._not_entered = arrival
            opened = await self._context.outbox.store.read(lambda tx: find_conversation(tx, arrival))
        conversation = opened.conversation
        self.conversation_id = conversation.id
        log.info("conversation_opened", conversation_id=conversation.id, seen=opened.seen)
        if not arrival.envelope.conversation_id:
            for call in self._context.on_created:
                call(conversation.id)
        self._screening.refresh(conversation.id)
        await self._stop_following()  # the client may open it again on the same connection
        await self._send_settings(conversation, arrival.envelope.stanza_id)
        await self._send_server_info(self._context.server_info())
        self._replayed_until = -conversation.last_server_stanza_id
        self._following = asyncio.create_task(self._follow(conversation.id, opened.seen))
        self._context.queue.nudge(conversation.id)

    async def _enter(self, arrival: Arrival) -> Opened:
        """Take the conversation over from its other connection; the orchestrator then ends that session."""
        opened: Opened = await self._context.outbox.store.write(lambda tx: open_conversation(tx, arrival))
        faults.point("after_open_commit")
        self._not_entered, self.conversation_id = None, opened.conversation.id
        self._context.present.setdefault(opened.conversation.id, set()).add(self)
        return opened

    # --- frames to the client -------------------------------------------------------------------------------

    async def _follow(self, conversation_id: str, seen: int) -> None:
        """Send every stored stanza after number `seen`: those that were missed, then new ones."""
        try:
            async with aclosing(self._context.outbox.follow(conversation_id, seen)) as stanzas:
                async for stanza in stanzas:
                    faults.point("before_send")
                    await self._send(stanza.payload)
                    self._note_sent(conversation_id, stanza)
                    faults.point("after_send")
                    telemetry.frame_sent(name_of(stanza.type))
        except AnamnesisError as error:
            log.error("following_failed", conversation_id=conversation_id, error=error.problem.name)
            await self._transport.close()  # the client reconnects and gets what it missed

    def _note_sent(self, conversation_id: str, stanza: StoredFrame) -> None:
        """Note that a first safety sentence was sent, or that an answer, perhaps a question, has ended."""
        if name_of(stanza.type) not in ANSWER_FRAMES:
            return
        envelope = decode(stanza.payload, sender="server", max_bytes=MAX_FRAME_BYTES)
        if "safety" in (envelope.meta or {}):
            self._safety_sent.set()
        is_last = isinstance(envelope.body, AssistantMessage) or getattr(envelope.body, "is_final", False)
        if is_last and -stanza.stanza_id > self._replayed_until:
            self._screening.refresh(conversation_id)

    async def _send_first_sentence(self, decision: MessageDecision, message_id: str | None) -> None:
        """Send the first safety sentence outside the sequence, if the store takes too long to send it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._context.monitor.store_wait_seconds):
                await self._safety_sent.wait()
                return
        sentence = AssistantSentence(
            id=SentenceId(self._context.ids.new("sent_")),
            conversation_id=ConversationId(self.conversation_id or ""),
            previous_id=MessageId(message_id or self._context.ids.new("msg_")),
            sequence=1,
            text=decision.first_sentence,
            is_final=False,
        )
        await self._send_unnumbered(sentence, decision.assessment.meta)

    async def _send_settings(self, conversation: Conversation, stanza_id: int) -> None:
        """Send the settings in force and both stanza counts, then acknowledge the Configuration."""
        settings: dict[str, Any] = {name: conversation.preferences.get(name) for name in SETTINGS}
        settings["features"] = tuple(settings["features"]) if settings["features"] is not None else None
        await self._send_unnumbered(
            Configuration(
                conversation_id=ConversationId(conversation.id),
                last_client_stanza=conversation.last_client_stanza_id,
                last_server_stanza=conversation.last_server_stanza_id,
                **settings,
            )
        )
        await self._send_unnumbered(
            Acknowledgement(
                conversation_id=ConversationId(conversation.id),
                acknowledged_stanza_id=stanza_id,
                success=self._not_entered is None,
            )
        )

    async def _send_server_info(self, info: ServerInfo) -> None:
        self._server_info = info
        await self._send_unnumbered(info.model_copy(update={"conversation_id": self.conversation_id}))

    async def _send_error(
        self, error: AnamnesisError, message_id: str | None = None, safety: str = ""
    ) -> None:
        envelope = error_envelope(
            error,
            error_id=ErrorId(self._context.ids.new("err_")),
            conversation_id=ConversationId(self.conversation_id or ""),
            originating_id=message_id,
            safety=safety,
        )
        await self._send(encode(envelope))

    async def _send_unnumbered(self, body: Body, meta: Mapping[str, Scalar] | None = None) -> None:
        telemetry.frame_sent(type(body).__name__)
        await self._send(encode(Envelope(0, body.conversation_id, body, meta)))

    async def _send(self, packet: bytes) -> None:
        async with self._sending:
            await self._transport.send(packet)


class _BadFrames:
    """Counts the frames of a client that could not be opened."""

    def __init__(self, per_minute: int) -> None:
        self._times: deque[float] = deque(maxlen=per_minute)
        self._per_minute = per_minute

    async def are_too_many(self) -> bool:
        """Count one more. A client that sends many is slowed down first."""
        now = asyncio.get_running_loop().time()
        self._times.append(now)
        if len(self._times) == self._per_minute and now - self._times[0] <= MINUTE:
            return True
        if len(self._times) > self._per_minute // 2:
            await asyncio.sleep(SLOWDOWN_SECONDS)
        return False


async def _open(packet: bytes, max_bytes: int) -> Frame:
    """Open a frame; a large one in a thread, because it may hold a million tiny items."""
    if len(packet) <= MAX_OPENED_ON_LOOP:
        return open_frame(packet, max_bytes=max_bytes)
    return await asyncio.to_thread(open_frame, packet, max_bytes=max_bytes)


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    """Cancel these tasks, and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _check_first(frame: Frame) -> None:
    """Refuse any frame but Configuration as the first one, even of a type that does not exist."""
    number = frame.fields.get("type")
    if type(number) is int and number != Configuration.TYPE:
        raise AnamnesisError(NOT_CONFIGURED)
