"""A LiveKit room as transports, one for each participant that speaks in it.

Packets are reliable and in order, so a frame that fits is one packet. A larger one is a byte stream on the
same topic; streams end in any order, so each has its place among the packets from the moment it opens. They
are not compressed: a stream that is small enough for one packet would be overtaken by the packets after it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, TypeVar

from livekit import rtc
from livekit.rtc.participant import PublishDataError

from orchestrator.errors import (
    DISCONNECTED,
    FRAME_TOO_LARGE,
    LIVEKIT_UNAVAILABLE,
    RATE_LIMITED,
    STREAM_CUT_SHORT,
    AnamnesisError,
)
from orchestrator.logs import get_logger
from orchestrator.ports import Way

MEBIBYTE: Final = 1 << 20
TOPIC: Final = "anamnesis"
GOODBYE: Final = "anamnesis.goodbye"
"""The topic of an empty packet that ends a connection; unlike a removal, it overtakes no frame."""

SERVER: Final = "anamnesis"
"""The identity of the house in every room."""

PACKET_MOST: Final = 15 * 1024
INBOX_FRAMES: Final = 1024
INBOX_BYTES: Final = 8 * MEBIBYTE
"""How much of one participant waits to be read. LiveKit holds nobody back: beyond it, they are let go."""

FLOODED_SECONDS: Final = 60
STREAM_SECONDS: Final = 60.0
"""How long one frame may take to come, however steadily."""

NAMING_SECONDS: Final = 0.05
"""How long packets without a sender gather before the server is asked again who is there."""

STRANGER_SECONDS: Final = 0.5
RECONNECTING_SECONDS: Final = 3.0
PARTING_SECONDS: Final = 2.0
"""How long after the goodbye a participant may stay: their last frames are still on the way."""

SETTLING_SECONDS: Final = 1.0
"""LiveKit's native threads end later than its calls do. A process waits so long before it ends, or they find
no Python any more and abort it: one time in fourteen without a wait, never with 0.3 s."""

LATE_SECONDS: Final = 5.0
"""How long one waits in the end for those who are still on their way into a room."""

T = TypeVar("T")

log = get_logger()

_late: Final[set[asyncio.Task[None]]] = set()
"""Those who came too late: they are on their way into a room, and leave it as soon as they are there."""


async def all_have_come() -> None:
    """Wait for those who are on their way into a room: the loop that ends before them ends the process."""
    if _late:
        await asyncio.wait(_late, timeout=LATE_SECONDS)


async def settle() -> None:
    """Let LiveKit's threads end before the process does, and those first who are on their way into a room."""
    await all_have_come()
    await asyncio.sleep(SETTLING_SECONDS)


class LiveKitRoom:
    """A room that we are in. Each participant we hear gets a transport; `on_peer` is told of a new one.

    LiveKit says late, up to three seconds, that somebody has come who publishes no track. Until then their
    packets have no sender, just as those that its API sends. Such a packet is held until the server has said,
    asked with `there`, who is in the room: if that is exactly one whom we had not heard of, it is theirs.
    Otherwise it is refused. Byte streams name their sender at once, so a client sends nothing but those:
    `streams_only`.

    What is sent while LiveKit reconnects may be lost. With `renewing` every transport ends then, so that a
    client asks again through another one what it missed; without, the house tells its clients to do so.
    A transport also ends then when more waits in it than may: what is left out is asked for again.
    """

    def __init__(
        self,
        there: Callable[[], Awaitable[Collection[str]]],
        *,
        on_peer: Callable[["LiveKitTransport"], None] | None = None,
        remove: Callable[[str], Awaitable[None]] | None = None,
        gate: asyncio.Semaphore | None = None,
        renewing: bool = False,
        streams_only: bool = False,
        most: int = MEBIBYTE,
        patience: float = 20,
    ) -> None:
        self.ended = asyncio.Event()
        self._there, self._unnamed = there, deque[_Heard]()
        self._naming: asyncio.Task[None] | None = None
        self._on_peer, self._remove, self._gate = on_peer, remove, gate or asyncio.Semaphore()
        self._renewing, self._streams_only = renewing, streams_only
        self._most, self._patience = most, patience
        self._peers: dict[str, LiveKitTransport] = {}
        self._parting: set[str] = set()
        self._sending = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._room = rtc.Room()
        self._room.on("data_received", self._on_packet)
        self._room.on("participant_disconnected", self._on_left)
        self._room.on("disconnected", self._on_end)
        self._room.on("reconnected", self._end_all if renewing else self._start_over)
        if renewing:
            self._room.on("reconnecting", self._on_reconnecting)
        self._room.register_byte_stream_handler(TOPIC, self._on_stream)

    @property
    def sdk(self) -> rtc.Room:
        """The room as LiveKit's SDK has it."""
        return self._room

    async def join(self, url: str, token: str) -> "LiveKitRoom":
        """Go in. LiveKit's own error holds the token, so it is not passed on.

        Whoever waits no longer leaves the native side to itself: it ends the process if nobody is there to
        take it up once it has come in. So it is left to finish, and leaves then.
        """
        gather_once = rtc.ContinualGatheringPolicy.GATHER_ONCE  # or each room keeps thirty sockets open
        options = rtc.RoomOptions(
            auto_subscribe=False,
            rtc_config=rtc.RtcConfiguration(continual_gathering_policy=gather_once),
            data_stream=rtc.DataStreamOptions(max_payload_byte_length=2 * self._most),
        )
        connecting = asyncio.create_task(self._room.connect(url, token, options))
        in_time = False
        try:
            async with asyncio.timeout(self._patience):
                await asyncio.shield(connecting)
            in_time = True
            return self
        except (rtc.ConnectError, TimeoutError):
            pass
        finally:
            if not in_time:
                self.ended.set()
                late = asyncio.create_task(self._withdraw(connecting))
                _late.add(late)
                late.add_done_callback(_late.discard)
        raise AnamnesisError(LIVEKIT_UNAVAILABLE)

    async def _withdraw(self, connecting: asyncio.Task[None]) -> None:
        with suppress(rtc.ConnectError):
            await connecting
            await self._room.disconnect()

    async def leave(self) -> None:
        """Go out, and end every transport."""
        self._on_end()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                await self._room.disconnect()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def peer(self, identity: str) -> "LiveKitTransport":
        """The transport of that participant; a new one if there is none or it has ended."""
        found = self._peers.get(identity)
        if found is None or found.ended:
            found = self._peers[identity] = LiveKitTransport(
                self, identity, self._most, self._patience, renewing=self._renewing
            )
            if identity not in self._room.remote_participants:
                self.spawn(self._look_after(found))
            if self._on_peer is not None:
                self._on_peer(found)
        return found

    async def send(self, identity: str, packet: bytes, topic: str = TOPIC) -> None:
        """Send to that participant alone. One at a time per room: the SDK slows down when asked for more."""
        to = [identity]  # an empty list would mean everybody
        async with self._sending, self._gate:
            try:
                async with asyncio.timeout(self._patience):
                    if topic == GOODBYE or (len(packet) <= PACKET_MOST and not self._streams_only):
                        await self._room.local_participant.publish_data(
                            packet, topic=topic, destination_identities=to
                        )
                    else:
                        await self._room.local_participant.send_bytes(
                            packet, topic=topic, destination_identities=to, compress=False
                        )
                    return
            except (PublishDataError, rtc.StreamError, TimeoutError):
                pass
        raise AnamnesisError(DISCONNECTED)

    async def start_over(self, identities: Iterable[str]) -> None:
        """Tell participants who were here before that their connection is over; they begin another one."""
        for identity in identities:
            with suppress(AnamnesisError):
                await self.send(identity, b"", GOODBYE)

    def let_go(self, identity: str) -> None:
        """Say goodbye, and listen no more; whoever has not left after a while is removed."""
        if not self.ended.is_set():
            self.spawn(self._part_with(identity))

    async def _part_with(self, identity: str) -> None:
        self._parting.add(identity)
        try:
            with suppress(AnamnesisError):
                await self.send(identity, b"", GOODBYE)
            await asyncio.sleep(PARTING_SECONDS)
            if self._remove is not None:
                with suppress(AnamnesisError):
                    await self._remove(identity)
        finally:
            self._parting.discard(identity)

    def spawn(self, work: Coroutine[None, None, T]) -> asyncio.Task[T]:
        """Do something beside, for as long as we are in the room."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _on_packet(self, packet: rtc.DataPacket) -> None:
        if self.ended.is_set():
            return
        if packet.topic in (TOPIC, GOODBYE) and packet.kind == rtc.DataPacketKind.KIND_RELIABLE:
            sender = packet.participant.identity if packet.participant else ""
            known = frozenset() if sender else frozenset(self._room.remote_participants)
            self._sort(_Heard(sender, packet.topic, packet.data, known))

    def _on_stream(self, reader: rtc.ByteStreamReader, sender: str) -> None:
        if self.ended.is_set():
            reader.close()
        else:
            self._sort(_Heard(sender, TOPIC, reader))

    def _sort(self, heard: "_Heard") -> None:
        """Hand it to its sender's transport; behind one that is held and may be theirs, in their order."""
        if heard.sender and not any(each.may_be_from(heard.sender) for each in self._unnamed):
            self._hand_out(heard)
            return
        waiting = [each for each in self._unnamed if each.sender == heard.sender]
        if any(each.frame is None for each in waiting):
            heard.drop()
            return
        if len(waiting) >= INBOX_FRAMES or sum(each.size for each in waiting) + heard.size > INBOX_BYTES:
            heard.drop()
            heard = replace(heard, topic=TOPIC, frame=None)
        self._unnamed.append(heard)
        if self._naming is None or self._naming.done():
            self._naming = self.spawn(self._name())

    async def _name(self) -> None:
        """Find out who sent what is held. Who is there now says nothing of what comes from now on."""
        while count := len(self._unnamed):
            there = set(self._peers)
            with suppress(AnamnesisError):
                there.update(await self._there())
            for _ in range(count):
                heard = self._unnamed.popleft()
                self._hand_out(replace(heard, sender=heard.sender or self._only_stranger(there, heard.known)))
            await asyncio.sleep(NAMING_SECONDS)

    def _only_stranger(self, there: Collection[str], known: Collection[str]) -> str:
        """The one in the room whom LiveKit had not told us of when it gave us the packet, if there is one."""
        strangers = {*there} - {*known, self._room.local_participant.identity}
        return strangers.pop() if len(strangers) == 1 else ""

    def _hand_out(self, heard: "_Heard") -> None:
        if not heard.sender:
            heard.drop()
            log.warning("packet_refused", conversation_id=self._room.name, size=heard.size)
        elif heard.topic == GOODBYE:
            self._part_from(heard.sender)
        elif heard.sender in self._parting:
            heard.drop()
        else:
            self.peer(heard.sender).hear(heard.frame)

    def _on_left(self, participant: rtc.RemoteParticipant) -> None:
        self._part_from(participant.identity)

    async def _look_after(self, peer: "LiveKitTransport") -> None:
        """Of somebody who leaves before LiveKit has said that they came, it never says that they left."""
        while not peer.ended and peer.identity not in self._room.remote_participants:
            await asyncio.sleep(STRANGER_SECONDS)
            with suppress(AnamnesisError):
                if peer.identity not in await self._there():
                    peer.end()

    def _part_from(self, identity: str) -> None:
        if (peer := self._peers.pop(identity, None)) is not None:
            peer.end()

    def _on_end(self, *_: object) -> None:
        self.ended.set()
        self._end_all()

    def _on_reconnecting(self) -> None:
        self.spawn(self._give_up_reconnecting())

    async def _give_up_reconnecting(self) -> None:
        """LiveKit tries for half a minute; coming in again with another token is sooner done."""
        await asyncio.sleep(RECONNECTING_SECONDS)
        if self._room.connection_state == rtc.ConnectionState.CONN_RECONNECTING:
            self._on_end()

    def _start_over(self) -> None:
        self.spawn(self.start_over(tuple(self._peers)))

    def _end_all(self) -> None:
        for identity in tuple(self._peers):
            self._part_from(identity)


class LiveKitTransport:
    """One participant of a room, as the house hears and answers them; or the house, as a client does."""

    def __init__(
        self, room: LiveKitRoom, identity: str, most: int, patience: float, *, renewing: bool
    ) -> None:
        self.identity = identity
        self.ended = False
        self._room, self._most, self._patience, self._renewing = room, most, patience, renewing
        self._inbox: deque[bytes | asyncio.Task[bytes] | AnamnesisError] = deque()
        self._held = 0
        self._flooded = False
        self._changed = asyncio.Event()
        self._sending = asyncio.Lock()

    @property
    def way(self) -> Way:
        """Which of the ways it is, for whoever counts them."""
        return "livekit"

    @property
    def most(self) -> int:
        """The largest frame it carries, in bytes."""
        return self._most

    async def receive(self) -> bytes | None:
        """The participant's next frame, or None once they left. After one too large, the next may fit."""
        while not self._inbox:
            if self.ended:
                return None
            self._changed.clear()
            await self._changed.wait()
        frame = self._inbox[0]
        if isinstance(frame, asyncio.Task):
            await asyncio.wait([frame])
            if not self._inbox:  # closed meanwhile
                return None
            if frame.cancelled():
                self._inbox.popleft()
                return None
        self._inbox.popleft()
        if isinstance(frame, AnamnesisError):
            raise frame
        if self._renewing and isinstance(frame, asyncio.Task) and frame.exception() is not None:
            self.end()
            self._inbox.clear()
            return None
        whole = frame.result() if isinstance(frame, asyncio.Task) else frame
        self._held -= len(whole)
        if len(whole) > self._most:
            raise AnamnesisError(FRAME_TOO_LARGE, size=len(whole), most=self._most)
        return whole

    async def send(self, packet: bytes) -> None:
        """Hand one frame to the participant, in the order of the calls; waits while the link is slow."""
        async with self._sending:
            if self.ended:
                return
            try:
                await self._room.send(self.identity, packet)
            except AnamnesisError:
                self.end()
                self._room.let_go(self.identity)  # they come back, and are told what they missed

    async def close(self) -> None:
        """Say goodbye: the participant leaves, or is removed."""
        async with self._sending:
            if not self.ended:
                self.end()
                self._room.let_go(self.identity)
            self._inbox.clear()
            self._changed.set()

    def hear(self, frame: "_Frame") -> None:
        """Put a frame into the inbox; where there is no room for it, they are told so and let go.

        A client that is slow blames nobody: what is in its inbox is the last it reads here.
        """
        size = len(frame) if isinstance(frame, bytes) else 0
        if self.ended or self._flooded:
            _drop(frame)
        elif frame is None or self._held + size > INBOX_BYTES or len(self._inbox) >= INBOX_FRAMES:
            _drop(frame)
            self._overflow()
        elif isinstance(frame, bytes):
            self._inbox.append(frame)
            self._held += size
        else:
            self._inbox.append(self._room.spawn(self._read(frame)))
        self._changed.set()

    def _overflow(self) -> None:
        log.warning("inbox_full", frames=len(self._inbox), bytes=self._held)
        if self._renewing:
            self.end()
        else:
            self._inbox.append(AnamnesisError(RATE_LIMITED, seconds=FLOODED_SECONDS))
            self._flooded = True

    async def _read(self, reader: rtc.ByteStreamReader) -> bytes:
        """The whole stream, if there is room for it, it is not too large, and it goes on coming."""
        frame, whole = bytearray(), False
        try:
            async with asyncio.timeout(STREAM_SECONDS):
                while (size := max(reader.info.size or 0, len(frame))) <= self._most:
                    async with asyncio.timeout(self._patience):
                        chunk = await anext(reader)
                    frame += chunk
                    self._held += len(chunk)
                    if self._held > INBOX_BYTES and not self._flooded:
                        self._overflow()
                    if self._flooded or self._held > INBOX_BYTES:
                        raise AnamnesisError(RATE_LIMITED, seconds=FLOODED_SECONDS)
            raise AnamnesisError(FRAME_TOO_LARGE, size=size, most=self._most)
        except StopAsyncIteration:
            whole = True
            return bytes(frame)
        except (rtc.StreamError, TimeoutError):
            pass
        finally:
            if not whole:
                self._held -= len(frame)
            reader.close()
        raise AnamnesisError(STREAM_CUT_SHORT)

    def end(self) -> None:
        """Nothing more comes; what is in the inbox can still be read."""
        self.ended = True
        self._changed.set()


_Frame: TypeAlias = bytes | rtc.ByteStreamReader | None
"""A frame; or one that is still coming; or none, where there was no room to hold it."""


@dataclass(frozen=True, slots=True)
class _Heard:
    """A frame; who sent it, if that is known, else who surely did not."""

    sender: str
    topic: str
    frame: _Frame
    known: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """How many bytes are held with it; of a stream, none are taken before it has its place."""
        return len(self.frame) if isinstance(self.frame, bytes) else 0

    def may_be_from(self, sender: str) -> bool:
        """Whether that participant sent it, as far as is known."""
        return sender == self.sender if self.sender else sender not in self.known

    def drop(self) -> None:
        """Let it go unread."""
        _drop(self.frame)


def _drop(frame: _Frame) -> None:
    if isinstance(frame, rtc.ByteStreamReader):
        frame.close()
