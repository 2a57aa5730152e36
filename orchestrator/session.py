"""One connection: the handshake, the client's frames one by one, and the stanzas it has not seen yet."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any, Final

from memory_blocks.ports import Ids
from orchestrator import faults, telemetry
from orchestrator.desk import (
    SHORT_REPLY,
    Allowance,
    Arrival,
    Consequence,
    Opened,
    Visitor,
    accept,
    find_conversation,
    open_conversation,
    still_asked,
)
from orchestrator.errors import (
    FRAME_TOO_LARGE,
    NOT_CONFIGURED,
    OTHER_CONVERSATION,
    RATE_LIMITED,
    SESSION_REPLACED,
    STORAGE_FULL,
    AnamnesisError,
    as_ours,
)
from orchestrator.logs import get_logger
from orchestrator.mirror import SETTINGS
from orchestrator.outbox import Outbox, uninterrupted
from orchestrator.ports import Transport
from orchestrator.store.database import Transaction
from orchestrator.store.rows import Conversation
from orchestrator.store.rows import Frame as StoredFrame
from orchestrator.turnstile import Turnstile
from orchestrator.watch import Hearing, Watch
from orchestrator.wire.codec import MOST_IN_FRAME, Frame, decode, encode, open_frame, read
from orchestrator.wire.envelope import Envelope, Scalar, error_envelope
from orchestrator.wire.ids import ConversationId, ErrorId, MessageId, SentenceId
from orchestrator.wire.messages import (
    Acknowledgement,
    AssistantMessage,
    AssistantSentence,
    Body,
    Configuration,
    ControlVariation,
    EarlierMessage,
    ServerInfo,
    StartAnswer,
    SyncRequest,
    UserMessage,
    name_of,
)

log = get_logger()

ENDS_THE_CONNECTION: Final = (FRAME_TOO_LARGE, SESSION_REPLACED, RATE_LIMITED)
MINUTE: Final = 60.0
SLOWED_SECONDS: Final = 0.05
QUICKLY_OPENED: Final = 32 * 1024
MOST_KEPT: Final = 4_000
"""How much of what was asked is kept while nothing is said to it, in characters."""
QUICKLY_HEARD: Final = 4_000
SAID_IN: Final = (b"content", b"newContent")
"""The fields that hold what a person says, as they stand in a packet."""
SPOKEN: Final = (StartAnswer.__name__, AssistantSentence.__name__, AssistantMessage.__name__)
"""The stanzas in which an assistant speaks."""


@dataclass(frozen=True, slots=True)
class Lobby:
    """What every session of a house shares."""

    outbox: Outbox
    turnstile: Turnstile
    ids: Ids
    server_info: Callable[[], ServerInfo]
    """Who answers now."""
    bad_frames_per_minute: int
    allowance: Allowance
    watch: Watch
    present: dict[str, set["Session"]] = field(default_factory=dict)
    """The connections that each conversation has in this process; all but the newest are about to leave."""
    begun: list[Callable[[str], None]] = field(default_factory=list)
    """Who is told of each conversation that begins here, by its id."""


class Session:
    """Serves one connection of one person until either side ends it."""

    def __init__(self, transport: Transport, visitor: Visitor, lobby: Lobby) -> None:
        self.visitor = visitor
        self.conversation_id: str | None = None
        self._transport = transport
        self._lobby = lobby
        self._sending = asyncio.Lock()
        self._following: asyncio.Task[None] | None = None
        self._to_enter: Arrival | None = None
        self._stay = asyncio.timeout(None)
        self._asked: str | None = None
        self._still_asked = ""
        self._told = asyncio.Event()
        self._who: ServerInfo | None = None
        self._words: set[asyncio.Task[None]] = set()
        self._bad: deque[float] = deque(maxlen=lobby.bad_frames_per_minute)

    async def attend(self) -> None:
        """Receive until the peer leaves, or until a newer connection takes the conversation over."""
        try:
            async with self._stay:
                while await self._attend_to_one():
                    pass
        except TimeoutError:
            await self._stop_following()
            await self._tell(AnamnesisError(SESSION_REPLACED))  # no frame of theirs was refused
        finally:
            self._leave()
            await self._stop_following()
            await _cancelled(*self._words)
            await self._transport.close()

    def replaced(self) -> None:
        """A newer connection of the same person has the conversation now: say so, and leave."""
        if self in self._lobby.present.get(self.conversation_id or "", ()) and not self._stay.expired():
            self._stay.reschedule(asyncio.get_running_loop().time())

    def tell_who_answers(self) -> None:
        """Somebody else may answer than when the client was told; then it is told again."""
        now = self._lobby.server_info()
        if self._who is not None and self._who != now:
            self._say_soon(partial(self._introduce, now))

    async def _introduce(self, who: ServerInfo) -> None:
        self._who = who
        await self._send_unnumbered(who.model_copy(update={"conversation_id": self.conversation_id}))

    def _say_soon(self, words: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Send something beside the stanzas, for as long as the connection lasts."""

        async def say() -> None:
            with suppress(AnamnesisError):  # who has left reads it when they come back
                await words()

        task = asyncio.create_task(say())
        self._words.add(task)
        task.add_done_callback(self._words.discard)

    def _leave(self) -> None:
        here = self._lobby.present.get(self.conversation_id or "", set())
        here.discard(self)
        if not here:
            self._lobby.present.pop(self.conversation_id or "", None)

    async def _stop_following(self) -> None:
        if self._following is not None:
            await _cancelled(self._following)

    async def _attend_to_one(self) -> bool:
        """Take the next frame; false when it was the last."""
        frame: Frame | None = None
        packet: bytes | None = None
        try:
            packet = await self._transport.receive()
            if packet is None:
                return False
            frame = await _opened(packet, self._transport.most)
            if self.conversation_id is None:
                _check_first(frame)
            arrival = Arrival(
                read(frame, sender="client"),
                frame.fields["type"],
                packet,
                self.visitor,
                self._lobby.allowance,
                self._lobby.watch,
            )
            telemetry.frame_received(type(arrival.envelope.body).__name__)
            await uninterrupted(self._take(await self._listened(arrival)))
        except Exception as error:
            refusal = as_ours(error)
            if refusal is not error:
                log.error("frame_failed", exc_info=error)
            await self._refuse(refusal, frame, await self._before_anything_else(frame, packet or b""))
            if refusal.problem in ENDS_THE_CONNECTION:
                return False
            return frame is not None or await self._patient()
        return True

    async def _take(self, arrival: Arrival) -> None:
        body = arrival.envelope.body
        if isinstance(body, Configuration) and (
            self.conversation_id is None or arrival.envelope.stanza_id == 0
        ):
            await self._open(self._at_home(arrival))
            return
        if self.conversation_id is None:
            raise AnamnesisError(NOT_CONFIGURED)
        if arrival.envelope.conversation_id != self.conversation_id and (
            arrival.envelope.conversation_id or not isinstance(body, Configuration)
        ):
            raise AnamnesisError(OTHER_CONVERSATION)
        if self._to_enter is not None:
            await self._enter(self._to_enter)
        consequence: Consequence = await self._lobby.outbox.commit(
            self.conversation_id, lambda page: accept(page, arrival), step="accept"
        )
        if consequence.configured:
            conversation_id = self.conversation_id
            conversation = await self._lobby.outbox.store.read(
                lambda tx: tx.conversations.get(conversation_id)
            )
            if conversation is not None:
                await self._tell_settings(conversation, arrival.envelope.stanza_id)
        if consequence.to_stop is not None:
            self._lobby.turnstile.stop(self.conversation_id, consequence.to_stop)
        if consequence.to_answer:
            self._lobby.turnstile.nudge(self.conversation_id)
        elif not isinstance(body, SyncRequest):
            self._told.set()  # it was answered before

    def _at_home(self, arrival: Arrival) -> Arrival:
        """The same for the conversation that this connection belongs to, if it does to one already."""
        home, named = self.conversation_id or self.visitor.conversation_id, arrival.envelope.conversation_id
        if home is None or named == home:
            return arrival
        if named:
            raise AnamnesisError(OTHER_CONVERSATION)
        return replace(arrival, envelope=arrival.envelope._replace(conversation_id=ConversationId(home)))

    async def _open(self, arrival: Arrival) -> None:
        """Begin. Where there is no room to write, one may still read, and enters once there is."""
        try:
            opened = await self._enter(arrival)
        except AnamnesisError as error:
            if error.problem is not STORAGE_FULL or not arrival.envelope.conversation_id:
                raise
            self._to_enter = arrival
            opened = await self._lobby.outbox.store.read(lambda tx: find_conversation(tx, arrival))
        conversation = opened.conversation
        self.conversation_id = conversation.id
        log.info("conversation_opened", conversation_id=conversation.id, seen=opened.seen)
        if not arrival.envelope.conversation_id:
            for tell in self._lobby.begun:
                tell(conversation.id)
        self._asked = await self._lobby.outbox.store.read(
            partial(_last_asked, conversation.id, self._lobby.watch)
        )
        await self._stop_following()  # one may begin anew on the same connection
        await self._tell_settings(conversation, arrival.envelope.stanza_id)
        await self._introduce(self._lobby.server_info())
        self._following = asyncio.create_task(self._follow(conversation.id, opened.seen))
        self._lobby.turnstile.nudge(conversation.id)

    async def _enter(self, arrival: Arrival) -> Opened:
        """Take the conversation over from any other connection it has; the house's watch tells that one."""
        opened: Opened = await self._lobby.outbox.store.write(lambda tx: open_conversation(tx, arrival))
        faults.point("after_open_commit")
        self._to_enter, self.conversation_id = None, opened.conversation.id
        self._lobby.present.setdefault(opened.conversation.id, set()).add(self)
        return opened

    async def _follow(self, conversation_id: str, seen: int) -> None:
        """Send every stored stanza after `seen`: what was missed, then what comes."""
        try:
            async with aclosing(self._lobby.outbox.follow(conversation_id, seen)) as stanzas:
                async for stanza in stanzas:
                    faults.point("before_send")
                    await self._send(stanza.payload)
                    self._take_note(stanza)
                    faults.point("after_send")
                    telemetry.frame_sent(name_of(stanza.type))
        except AnamnesisError as error:
            log.error("following_failed", conversation_id=conversation_id, error=error.problem.name)
            await self._transport.close()  # the client comes back and is told what it missed

    async def _tell_settings(self, conversation: Conversation, stanza_id: int) -> None:
        """The settings in force and where both counts stand, then that the Configuration has arrived."""
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
                success=self._to_enter is None,
            )
        )

    async def _listened(self, arrival: Arrival) -> Arrival:
        """The same with what was heard in it; who is in danger is told so soon, whatever the store does."""
        body = arrival.envelope.body
        said, synced = _spoken(body), {}
        if isinstance(body, SyncRequest):
            synced = await self._heard_in_each(body)
            heard = reduce(Hearing.raised_by, synced.values(), Hearing())
        elif said:
            heard = await self._heard(said, None if isinstance(body, ControlVariation) else self._asked)
            nothing_said = len(said) <= SHORT_REPLY and self._lobby.watch.says_nothing(said)
            self._still_asked = f"{self._asked[-MOST_KEPT:]}\n" if nothing_said and self._asked else ""
        else:
            return arrival
        if heard.is_danger:
            self._told.clear()
            self._say_soon(partial(self._warn, heard, getattr(body, "id", None)))
        return replace(arrival, heard=heard, synced=synced)

    async def _heard_in_each(self, body: SyncRequest) -> dict[str, Hearing]:
        """What the rules hear in the earlier messages of a person; long ones beside the loop."""
        listen = partial(_in_each, body, self._asked, self._lobby.watch)
        length = sum(len(each.contents) for each in body.messages if isinstance(each, EarlierMessage))
        return listen() if length <= QUICKLY_HEARD else await asyncio.to_thread(listen)

    async def _heard(self, said: str, asked: str | None) -> Hearing:
        """What the rules hear; a long text beside the loop, so that nobody else waits."""
        watch = self._lobby.watch
        if len(said) <= QUICKLY_HEARD:
            return watch.hear(said, asked)
        return await asyncio.to_thread(watch.hear, said, asked)

    async def _warn(self, heard: Hearing, message_id: str | None) -> None:
        """Say the first words without a number, where those that are stored take their time."""
        watch = self._lobby.watch
        with suppress(TimeoutError):
            async with asyncio.timeout(watch.patience):
                await self._told.wait()
                return
        sentence = AssistantSentence(
            id=SentenceId(self._lobby.ids.new("sent_")),
            conversation_id=ConversationId(self.conversation_id or ""),
            previous_id=MessageId(message_id or self._lobby.ids.new("msg_")),
            sequence=1,
            text=watch.words(heard, 0)[0],
            is_final=False,
        )
        await self._send_unnumbered(sentence, heard.meta)

    def _take_note(self, stanza: StoredFrame) -> None:
        """Remember what was asked last, and that a person in danger has read the first words."""
        if name_of(stanza.type) not in SPOKEN:
            return
        envelope = decode(stanza.payload, sender="server", most=MOST_IN_FRAME)
        match envelope.body:
            case StartAnswer():
                self._asked = self._still_asked
            case AssistantSentence(text=text):
                self._asked = (self._asked or "") + text
            case AssistantMessage(content=content):
                self._asked = self._still_asked + content
        if "safety" in (envelope.meta or {}):
            self._told.set()

    async def _before_anything_else(self, frame: Frame | None, packet: bytes) -> str:
        """What the person must read though their message was not kept: it will get no answer."""
        said = _told_in(frame) if frame else packet.decode("utf-8", "ignore")
        watch = self._lobby.watch
        if said and (heard := await self._heard(said, self._asked)).is_danger:
            self._told.set()
            return watch.words(heard, 0)[0]
        return f"{watch.wording.error} " if _may_speak(frame, packet) else ""

    async def _refuse(self, error: AnamnesisError, frame: Frame | None = None, safety: str = "") -> None:
        telemetry.frame_refused(error.problem)
        log.info(
            "frame_refused",
            conversation_id=self.conversation_id,
            error=error.problem.name,
            stanza=frame.stanza_id if frame else None,
        )
        await self._tell(error, frame, safety)

    async def _tell(self, error: AnamnesisError, frame: Frame | None = None, safety: str = "") -> None:
        await self._send(
            encode(
                error_envelope(
                    error,
                    error_id=ErrorId(self._lobby.ids.new("err_")),
                    conversation_id=ConversationId(self.conversation_id or ""),
                    originating_id=frame.message_id if frame else None,
                    safety=safety,
                )
            )
        )

    async def _patient(self) -> bool:
        """Whether a peer whose frames cannot be opened may go on: it is slowed down, and at last not."""
        now = asyncio.get_running_loop().time()
        self._bad.append(now)
        most = self._bad.maxlen or 0
        if len(self._bad) < most or now - self._bad[0] > MINUTE:
            if len(self._bad) > most // 2:
                await asyncio.sleep(SLOWED_SECONDS)
            return True
        await self._refuse(AnamnesisError(RATE_LIMITED, seconds=int(MINUTE)))
        return False

    async def _send_unnumbered(self, body: Body, meta: Mapping[str, Scalar] | None = None) -> None:
        telemetry.frame_sent(type(body).__name__)
        await self._send(encode(Envelope(0, body.conversation_id, body, meta)))

    async def _send(self, packet: bytes) -> None:
        async with self._sending:
            await self._transport.send(packet)


async def _opened(packet: bytes, most: int) -> Frame:
    """A large frame can hold a million tiny things: it is opened beside the loop, and nobody else waits."""
    if len(packet) <= QUICKLY_OPENED:
        return open_frame(packet, most=most)
    return await asyncio.to_thread(open_frame, packet, most=most)


async def _cancelled(*tasks: asyncio.Task[None]) -> None:
    """End these, and wait until they have."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _last_asked(conversation_id: str, watch: Watch, tx: Transaction) -> str | None:
    return still_asked(tx, tx.messages.last(conversation_id), watch)


def _in_each(body: SyncRequest, asked: str | None, watch: Watch) -> dict[str, Hearing]:
    """What is heard in each earlier message of a person, after what the assistant said before it.

    Only what is to be kept is there, by the client's own id of the message.
    """
    found: dict[str, Hearing] = {}
    for each in body.messages:
        if not isinstance(each, EarlierMessage):
            continue
        if each.role != "user":
            asked = each.contents
        elif (heard := watch.hear(each.contents, asked)) != Hearing():
            found.setdefault(each.local_id, heard)
    return found


def _spoken(body: Body) -> str:
    """What the person says in a frame: now, or instead of what they said."""
    match body:
        case UserMessage(content=said):
            return said
        case ControlVariation(new_content=str(said)):
            return said
    return ""


def _may_speak(frame: Frame | None, packet: bytes) -> bool:
    """Whether the person seems to say something in a frame, be it one that nobody could open or read."""
    if frame is None:
        return any(name in packet for name in SAID_IN)
    body = frame.fields.get("body")
    varies = frame.fields.get("type") == ControlVariation.TYPE and type(body) is dict and "newContent" in body
    return varies or frame.fields.get("type") == UserMessage.TYPE


def _told_in(frame: Frame) -> str:
    """What the person seems to say in a frame that was not understood, or not kept."""
    body = frame.fields.get("body")
    if type(body) is not dict or frame.fields.get("type") not in (UserMessage.TYPE, ControlVariation.TYPE):
        return ""
    said = body.get("content", body.get("newContent"))
    return said if type(said) is str else ""


def _check_first(frame: Frame) -> None:
    """Whatever another type holds, and whether or not there is such a type: it does not come first."""
    number = frame.fields.get("type")
    if type(number) is int and number != Configuration.TYPE:
        raise AnamnesisError(NOT_CONFIGURED)
