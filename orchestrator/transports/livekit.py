"""A LiveKit room as transports, one for each participant.

Packets are reliable and ordered, so a frame that fits is sent as one packet. A larger frame is a byte stream
on the same topic. Streams may end in any order, so each takes its place in the order of frames when it opens.
Streams are not compressed: packets sent later would overtake a stream that compression makes small enough for
one packet.
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
from orchestrator.ops.logs import get_logger
from orchestrator.ports import TransportKind

MEBIBYTE: Final = 1 << 20
TOPIC: Final = "anamnesis"
GOODBYE: Final = "anamnesis.goodbye"
"""The topic of an empty packet that ends a connection. Unlike a removal, it arrives after earlier frames."""

SERVER: Final = "anamnesis"
"""The identity of our server in every room."""

MAX_PACKET_BYTES: Final = 15 * 1024
INBOX_FRAMES: Final = 1024
INBOX_BYTES: Final = 8 * MEBIBYTE
"""How much of one participant may wait to be read. LiveKit has no back pressure, so one who exceeds it is
disconnected."""

RETRY_AFTER_SECONDS: Final = 60
STREAM_SECONDS: Final = 60.0
"""How long one frame may take to arrive."""

SENDER_LOOKUP_SECONDS: Final = 0.05
"""The pause between two requests to the server about who sent the packets without a sender."""

PRESENCE_CHECK_SECONDS: Final = 0.5
RECONNECTING_SECONDS: Final = 3.0
LEAVING_SECONDS: Final = 2.0
"""How long a participant may stay after the goodbye, while their last frames arrive."""

NATIVE_THREADS_SECONDS: Final = 1.0
"""How long a process waits before it ends. LiveKit's native threads end later than its calls, and abort the
process if Python is gone by then: measured once in 14 runs without a wait, never with 0.3 s."""

LATE_JOIN_SECONDS: Final = 5.0
"""How long a closing process waits for joins that are still under way."""

T = TypeVar("T")

log = get_logger()

_late_joins: Final[set[asyncio.Task[None]]] = set()
"""Joins that timed out or were cancelled. Each leaves its room as soon as it has joined."""


async def wait_for_late_joins() -> None:
    """Wait for joins under way; LiveKit aborts the process if the event loop ends before them."""
    if _late_joins:
        await asyncio.wait(_late_joins, timeout=LATE_JOIN_SECONDS)


async def wait_for_native_threads() -> None:
    """Wait until LiveKit's threads have ended. Call it before the process ends."""
    await wait_for_late_joins()
    await asyncio.sleep(NATIVE_THREADS_SECONDS)


class LiveKitRoom:
    """A room that this process is in. Each participant that sends something gets a transport for `on_peer`.

    LiveKit reports a participant that publishes no track up to three seconds late. Until then their packets
    have no sender, like packets sent by its API. Such a packet is held until `identities` has returned who is
    in the room. If exactly one of them was unknown when the packet came, it is from that one; otherwise it is
    refused. Byte streams name their sender at once, so a client sends only streams: `streams_only`.

    Frames sent while LiveKit reconnects may be lost. With `end_on_reconnect`, as in a client, every transport
    then ends, and the client requests what it missed through a new one; without it, as in the server, clients
    are asked to connect again. With `end_on_reconnect`, a transport also ends when its inbox is full.
    """

    def __init__(
        self,
        identities: Callable[[], Awaitable[Collection[str]]],
        *,
        on_peer: Callable[["LiveKitTransport"], None] | None = None,
        remove: Callable[[str], Awaitable[None]] | None = None,
        send_slots: asyncio.Semaphore | None = None,
        end_on_reconnect: bool = False,
        streams_only: bool = False,
        timeout: float = 20,
    ) -> None:
        self.ended = asyncio.Event()
        self._identities, self._held = identities, deque[_Received]()
        self._sender_lookup: asyncio.Task[None] | None = None
        self._on_peer, self._remove, self._send_slots = on_peer, remove, send_slots or asyncio.Semaphore()
        self._end_on_reconnect, self._streams_only, self._timeout = end_on_reconnect, streams_only, timeout
        self._peers: dict[str, LiveKitTransport] = {}
        self._leaving: set[str] = set()
        self._sending = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._room = rtc.Room()
        self._room.on("data_received", self._on_packet)
        self._room.on("participant_disconnected", self._on_left)
        self._room.on("disconnected", self._on_end)
        self._room.on("reconnected", self._end_all if end_on_reconnect else self._on_reconnected)
        if end_on_reconnect:
            self._room.on("reconnecting", self._on_reconnecting)
        self._room.register_byte_stream_handler(TOPIC, self._on_stream)

    @property
    def sdk(self) -> rtc.Room:
        """The room object of LiveKit's SDK."""
        return self._room

    async def join(self, url: str, token: str) -> "LiveKitRoom":
        """Join the room. LiveKit's own error contains the token, so it is replaced by ours.

        A join that times out or is cancelled is not aborted, because the native side would end the process
        when it finishes with nobody waiting. It continues in the background, and then leaves the room.
        """
        # With any other policy, each room keeps thirty sockets open.
        gather_once = rtc.ContinualGatheringPolicy.GATHER_ONCE
        options = rtc.RoomOptions(
            auto_subscribe=False,
            rtc_config=rtc.RtcConfiguration(continual_gathering_policy=gather_once),
            data_stream=rtc.DataStreamOptions(max_payload_byte_length=2 * MEBIBYTE),
        )
        connecting = asyncio.create_task(self._room.connect(url, token, options))
        in_time = False
        try:
            async with asyncio.timeout(self._timeout):
                await asyncio.shield(connecting)
            in_time = True
            return self
        except (rtc.ConnectError, TimeoutError):
            pass
        finally:
            if not in_time:
                self.ended.set()
                late = asyncio.create_task(self._leave_after(connecting))
                _late_joins.add(late)
                late.add_done_callback(_late_joins.discard)
        raise AnamnesisError(LIVEKIT_UNAVAILABLE)

    async def _leave_after(self, connecting: asyncio.Task[None]) -> None:
        with suppress(rtc.ConnectError):
            await connecting
            await self._room.disconnect()

    async def leave(self) -> None:
        """Leave the room and end every transport."""
        self._on_end()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timeout):
                await self._room.disconnect()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def peer(self, identity: str) -> "LiveKitTransport":
        """The transport of that participant; a new one if there is none or it has ended."""
        found = self._peers.get(identity)
        if found is None or found.ended:
            found = self._peers[identity] = LiveKitTransport(
                self, identity, self._timeout, end_on_reconnect=self._end_on_reconnect
            )
            if identity not in self._room.remote_participants:
                self.spawn(self._end_when_gone(found))
            if self._on_peer is not None:
                self._on_peer(found)
        return found

    async def send(self, identity: str, packet: bytes, topic: str = TOPIC) -> None:
        """Send to that participant only. One at a time per room, because the SDK is slower with several."""
        to = [identity]  # an empty list would mean everybody
        async with self._sending, self._send_slots:
            try:
                async with asyncio.timeout(self._timeout):
                    if topic == GOODBYE or (len(packet) <= MAX_PACKET_BYTES and not self._streams_only):
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

    async def ask_to_reconnect(self, identities: Iterable[str]) -> None:
        """Tell these participants that their connection has ended, so that they connect again."""
        for identity in identities:
            with suppress(AnamnesisError):
                await self.send(identity, b"", GOODBYE)

    def disconnect(self, identity: str) -> None:
        """Send a goodbye and ignore further frames; remove the participant if they do not leave."""
        if not self.ended.is_set():
            self.spawn(self._disconnect(identity))

    async def _disconnect(self, identity: str) -> None:
        self._leaving.add(identity)
        try:
            with suppress(AnamnesisError):
                await self.send(identity, b"", GOODBYE)
            await asyncio.sleep(LEAVING_SECONDS)
            if self._remove is not None:
                with suppress(AnamnesisError):
                    await self._remove(identity)
        finally:
            self._leaving.discard(identity)

    def spawn(self, work: Coroutine[None, None, T]) -> asyncio.Task[T]:
        """Run something in the background while we are in the room."""
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
            self._dispatch(_Received(sender, packet.topic, packet.data, known))

    def _on_stream(self, reader: rtc.ByteStreamReader, sender: str) -> None:
        if self.ended.is_set():
            reader.close()
        else:
            self._dispatch(_Received(sender, TOPIC, reader))

    def _dispatch(self, received: "_Received") -> None:
        """Deliver a frame, or hold it if its sender is unknown or a held frame may be of the same sender."""
        if received.sender and not any(each.may_be_from(received.sender) for each in self._held):
            self._deliver(received)
            return
        waiting = [each for each in self._held if each.sender == received.sender]
        if any(each.frame is None for each in waiting):
            received.drop()
            return
        if len(waiting) >= INBOX_FRAMES or sum(each.size for each in waiting) + received.size > INBOX_BYTES:
            received.drop()
            received = replace(received, topic=TOPIC, frame=None)
        self._held.append(received)
        if self._sender_lookup is None or self._sender_lookup.done():
            self._sender_lookup = self.spawn(self._find_senders())

    async def _find_senders(self) -> None:
        """Ask LiveKit who is in the room, then deliver the frames that were waiting when we asked."""
        while count := len(self._held):
            present = set(self._peers)
            with suppress(AnamnesisError):
                present.update(await self._identities())
            for _ in range(count):
                received = self._held.popleft()
                sender = received.sender or self._only_newcomer(present, received.known)
                self._deliver(replace(received, sender=sender))
            await asyncio.sleep(SENDER_LOOKUP_SECONDS)

    def _only_newcomer(self, present: Collection[str], known: Collection[str]) -> str:
        """The participant who joined since the packet came, if exactly one did; else an empty string."""
        newcomers = {*present} - {*known, self._room.local_participant.identity}
        return newcomers.pop() if len(newcomers) == 1 else ""

    def _deliver(self, received: "_Received") -> None:
        if not received.sender:
            received.drop()
            log.warning("packet_refused", conversation_id=self._room.name, size=received.size)
        elif received.topic == GOODBYE:
            self._end_transport(received.sender)
        elif received.sender in self._leaving:
            received.drop()
        else:
            self.peer(received.sender).put(received.frame)

    def _on_left(self, participant: rtc.RemoteParticipant) -> None:
        self._end_transport(participant.identity)

    async def _end_when_gone(self, peer: "LiveKitTransport") -> None:
        """Poll until an unreported participant has left, because LiveKit will not report that either."""
        while not peer.ended and peer.identity not in self._room.remote_participants:
            await asyncio.sleep(PRESENCE_CHECK_SECONDS)
            with suppress(AnamnesisError):
                if peer.identity not in await self._identities():
                    peer.end()

    def _end_transport(self, identity: str) -> None:
        if (peer := self._peers.pop(identity, None)) is not None:
            peer.end()

    def _on_end(self, *_: object) -> None:
        self.ended.set()
        self._end_all()

    def _on_reconnecting(self) -> None:
        self.spawn(self._stop_reconnecting())

    async def _stop_reconnecting(self) -> None:
        """End the room early: LiveKit tries for half a minute, but joining with a new token is faster."""
        await asyncio.sleep(RECONNECTING_SECONDS)
        if self._room.connection_state == rtc.ConnectionState.CONN_RECONNECTING:
            self._on_end()

    def _on_reconnected(self) -> None:
        self.spawn(self.ask_to_reconnect(tuple(self._peers)))

    def _end_all(self) -> None:
        for identity in tuple(self._peers):
            self._end_transport(identity)


class LiveKitTransport:
    """The connection to one participant of a room: to a client, or to the server if this is a client."""

    def __init__(self, room: LiveKitRoom, identity: str, timeout: float, *, end_on_reconnect: bool) -> None:
        self.identity = identity
        self.ended = False
        self._room, self._timeout, self._end_on_reconnect = room, timeout, end_on_reconnect
        self._inbox: deque[bytes | asyncio.Task[bytes] | AnamnesisError] = deque()
        self._inbox_bytes = 0
        self._overflowed = False
        self._changed = asyncio.Event()
        self._sending = asyncio.Lock()

    @property
    def kind(self) -> TransportKind:
        """What carries the frames."""
        return "livekit"

    @property
    def max_frame_bytes(self) -> int:
        """The size of the largest frame it carries."""
        return MEBIBYTE

    async def receive(self) -> bytes | None:
        """The next frame, or None once the participant has left. Raises for a frame that is too large."""
        while not self._inbox:
            if self.ended:
                return None
            self._changed.clear()
            await self._changed.wait()
        frame = self._inbox[0]
        if isinstance(frame, asyncio.Task):
            await asyncio.wait([frame])
            if not self._inbox:  # closed in the meantime
                return None
            if frame.cancelled():
                self._inbox.popleft()
                return None
        self._inbox.popleft()
        if isinstance(frame, AnamnesisError):
            raise frame
        if self._end_on_reconnect and isinstance(frame, asyncio.Task) and frame.exception() is not None:
            self.end()
            self._inbox.clear()
            return None
        whole = frame.result() if isinstance(frame, asyncio.Task) else frame
        self._inbox_bytes -= len(whole)
        if len(whole) > MEBIBYTE:
            raise AnamnesisError(FRAME_TOO_LARGE, size=len(whole), most=MEBIBYTE)
        return whole

    async def send(self, packet: bytes) -> None:
        """Send one frame, in the order of the calls; waits while the connection is slow."""
        async with self._sending:
            if self.ended:
                return
            try:
                await self._room.send(self.identity, packet)
            except AnamnesisError:
                self.end()
                self._room.disconnect(self.identity)  # they connect again and request what they missed

    async def close(self) -> None:
        """End the connection: the participant leaves, or is removed."""
        async with self._sending:
            if not self.ended:
                self.end()
                self._room.disconnect(self.identity)
            self._inbox.clear()
            self._changed.set()

    def put(self, frame: "_Frame") -> None:
        """Put a frame into the inbox.

        If the inbox is full, the server answers with an error and disconnects the participant; in a client,
        the transport ends after the frames that are in the inbox.
        """
        size = len(frame) if isinstance(frame, bytes) else 0
        if self.ended or self._overflowed:
            _drop(frame)
        elif frame is None or self._inbox_bytes + size > INBOX_BYTES or len(self._inbox) >= INBOX_FRAMES:
            _drop(frame)
            self._overflow()
        elif isinstance(frame, bytes):
            self._inbox.append(frame)
            self._inbox_bytes += size
        else:
            self._inbox.append(self._room.spawn(self._read(frame)))
        self._changed.set()

    def _overflow(self) -> None:
        log.warning("inbox_full", frames=len(self._inbox), bytes=self._inbox_bytes)
        if self._end_on_reconnect:
            self.end()
        else:
            self._inbox.append(AnamnesisError(RATE_LIMITED, seconds=RETRY_AFTER_SECONDS))
            self._overflowed = True

    async def _read(self, reader: rtc.ByteStreamReader) -> bytes:
        """Read a whole stream; raises if it is too large, too slow, or if the inbox is full."""
        frame, whole = bytearray(), False
        try:
            async with asyncio.timeout(STREAM_SECONDS):
                while (size := max(reader.info.size or 0, len(frame))) <= MEBIBYTE:
                    async with asyncio.timeout(self._timeout):
                        chunk = await anext(reader)
                    frame += chunk
                    self._inbox_bytes += len(chunk)
                    if self._inbox_bytes > INBOX_BYTES and not self._overflowed:
                        self._overflow()
                    if self._overflowed or self._inbox_bytes > INBOX_BYTES:
                        raise AnamnesisError(RATE_LIMITED, seconds=RETRY_AFTER_SECONDS)
            raise AnamnesisError(FRAME_TOO_LARGE, size=size, most=MEBIBYTE)
        except StopAsyncIteration:
            whole = True
            return bytes(frame)
        except (rtc.StreamError, TimeoutError):
            pass
        finally:
            if not whole:
                self._inbox_bytes -= len(frame)
            reader.close()
        raise AnamnesisError(STREAM_CUT_SHORT)

    def end(self) -> None:
        """Accept no more frames; those in the inbox can still be read."""
        self.ended = True
        self._changed.set()


_Frame: TypeAlias = bytes | rtc.ByteStreamReader | None
"""A frame, a stream that is still arriving, or None for a frame that did not fit."""


@dataclass(frozen=True, slots=True)
class _Received:
    """A frame and its sender. If the sender is unknown, it is none of the `known` participants."""

    sender: str
    topic: str
    frame: _Frame
    known: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """How many bytes it occupies. A stream occupies none, since it is not read while it is held."""
        return len(self.frame) if isinstance(self.frame, bytes) else 0

    def may_be_from(self, sender: str) -> bool:
        """Whether that participant may have sent it."""
        return sender == self.sender if self.sender else sender not in self.known

    def drop(self) -> None:
        """Discard it unread."""
        _drop(self.frame)


def _drop(frame: _Frame) -> None:
    if isinstance(frame, rtc.ByteStreamReader):
        frame.close()
