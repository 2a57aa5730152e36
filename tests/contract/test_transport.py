"""What every transport must do. To test another one, add it to `WAYS`."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass

import pytest
from livekit import api, rtc
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.types import Message
from starlette.websockets import WebSocket
from websockets.asyncio.client import connect

from orchestrator.api.server import listening
from orchestrator.errors import (
    FRAME_TOO_LARGE,
    LIVEKIT_UNAVAILABLE,
    RATE_LIMITED,
    STREAM_CUT_SHORT,
    TEXT_FRAME,
    AnamnesisError,
)
from orchestrator.ports import Transport
from orchestrator.transports import in_process
from orchestrator.transports.livekit import (
    GOODBYE,
    INBOX_BYTES,
    INBOX_FRAMES,
    SERVER,
    LiveKitRoom,
    LiveKitTransport,
    wait_for_native_threads,
)
from orchestrator.transports.websocket import WebSocketTransport
from tests.support.protocol_client import Line, WebSocketLine
from tests.support.servers.livekit_rooms import RoomLine, a_room, administering, token, until_empty
from tools.servers.livekit import Address, livekit_process, new_address

KIBIBYTE, MEBIBYTE = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Connection:
    """A transport under test, and its peer, which is reached without our code."""

    transport: Transport
    peer: Line


@asynccontextmanager
async def in_one_process(_: pytest.FixtureRequest) -> AsyncIterator[Connection]:
    client, server = in_process.pair()
    yield Connection(server, client)


@dataclass(frozen=True)
class WebSocketConnection(Connection):
    """A connection whose peer can also be asked how it ended."""

    transport: WebSocketTransport
    peer: WebSocketLine


@asynccontextmanager
async def over_a_websocket(read_timeout: float = 60) -> AsyncIterator[WebSocketConnection]:
    accepted: asyncio.Queue[WebSocketTransport] = asyncio.Queue()
    finished = asyncio.Event()

    async def meet(websocket: WebSocket) -> None:
        await websocket.accept()
        accepted.put_nowait(WebSocketTransport(websocket, timeout=read_timeout))
        await finished.wait()

    async with (
        listening(Starlette(routes=[WebSocketRoute("/", meet)])) as server,
        connect(f"ws://127.0.0.1:{server.port}/", compression=None) as socket,
    ):
        transport = await accepted.get()
        try:
            yield WebSocketConnection(transport, WebSocketLine(socket))
        finally:
            await transport.close()
            finished.set()


class Participant:
    """A peer in the same room, made with LiveKit's own SDK."""

    def __init__(self, line: RoomLine, orchestrator: LiveKitRoom) -> None:
        self.line, self.orchestrator = line, orchestrator
        self.send, self.receive = line.send, line.receive

    async def close(self) -> None:
        """Leave after everything that was sent has arrived: LiveKit drops what is still on the way."""
        heard: asyncio.Queue[str] = asyncio.Queue()
        self.orchestrator.sdk.on("data_received", lambda packet: heard.put_nowait(packet.topic))
        await self.line.room.local_participant.publish_data(b"", topic="last")
        while await heard.get() != "last":
            pass
        await self.line.close()


@dataclass(frozen=True)
class RoomConnection(Connection):
    """A connection through a room, whose participants can be asked for more."""

    transport: LiveKitTransport
    peer: Participant
    room: LiveKitRoom


@asynccontextmanager
async def in_a_room(address: Address, *, packets: bool = False) -> AsyncIterator[RoomConnection]:
    async with a_room(address) as name, administering(address) as server:

        async def remove(identity: str) -> None:
            await server.room.remove_participant(api.RoomParticipantIdentity(room=name, identity=identity))

        async def there() -> list[str]:
            listed = await server.room.list_participants(api.ListParticipantsRequest(room=name))
            return [each.identity for each in listed.participants]

        async with joined(address, name, SERVER, LiveKitRoom(there, remove=remove)) as orchestrator:
            line = await RoomLine(packets=packets).join(address.url, token(address, name, "user:ann"))
            await until_heard(orchestrator, line)
            try:
                yield RoomConnection(
                    orchestrator.peer("user:ann"), Participant(line, orchestrator), orchestrator
                )
            finally:
                await line.close()


@asynccontextmanager
async def joined(address: Address, name: str, identity: str, room: LiveKitRoom) -> AsyncIterator[LiveKitRoom]:
    await room.join(address.url, token(address, name, identity))
    try:
        yield room
    finally:
        await room.leave()


async def until_heard(orchestrator: LiveKitRoom, line: RoomLine) -> None:
    """Send until the participant receives something: LiveKit drops packets to one that is not ready."""
    heard = asyncio.Event()
    line.room.once("data_received", lambda _: heard.set())
    while not heard.is_set():
        await orchestrator.send("user:ann", b"are you there?", "test")
        with suppress(TimeoutError):
            await asyncio.wait_for(heard.wait(), 0.2)


def over_a_fresh_websocket(_: pytest.FixtureRequest) -> AbstractAsyncContextManager[Connection]:
    return over_a_websocket()


def over_livekit(request: pytest.FixtureRequest) -> AbstractAsyncContextManager[Connection]:
    return in_a_room(request.getfixturevalue("livekit"))


def over_livekit_in_packets(request: pytest.FixtureRequest) -> AbstractAsyncContextManager[Connection]:
    return in_a_room(request.getfixturevalue("livekit"), packets=True)


Way = Callable[[pytest.FixtureRequest], AbstractAsyncContextManager[Connection]]
HOLDING_BACK: dict[str, Way] = {"in_process": in_one_process, "websocket": over_a_fresh_websocket}
WAYS: dict[str, Way] = HOLDING_BACK | {"livekit": over_livekit, "packets": over_livekit_in_packets}


@pytest.fixture(params=WAYS)
async def connection(request: pytest.FixtureRequest) -> AsyncIterator[Connection]:
    async with WAYS[request.param](request) as connection:
        yield connection


@pytest.fixture(params=HOLDING_BACK)
async def narrow(request: pytest.FixtureRequest) -> AsyncIterator[Connection]:
    """A connection whose sender waits if the other end does not read. LiveKit buffers instead."""
    async with HOLDING_BACK[request.param](request) as connection:
        yield connection


async def send_all(send: Callable[[bytes], Awaitable[None]], frames: Iterable[bytes]) -> None:
    for frame in frames:
        await send(frame)


async def receive_all(receive: Callable[[], Awaitable[bytes | None]], count: int) -> list[bytes | None]:
    return [await receive() for _ in range(count)]


async def send_until_held_back(send: Callable[[bytes], Awaitable[None]], frames: Sequence[bytes]) -> int:
    """Send the frames repeatedly, up to a gibibyte. Returns how many were sent until sending blocked."""
    most = MEBIBYTE * KIBIBYTE // len(frames[0])
    for sent in range(most):
        try:
            await asyncio.wait_for(send(frames[sent % len(frames)]), 0.3)
        except TimeoutError:
            return sent
    return most


async def test_a_frame_arrives_whole_both_ways(connection: Connection) -> None:
    question, answer = bytes(range(256)) * 200, b"\x00\xff" * 30_000

    await connection.peer.send(question)
    await connection.transport.send(answer)

    assert await connection.transport.receive() == question
    assert await connection.peer.receive() == answer


async def test_an_empty_frame_is_a_frame_and_not_the_end(connection: Connection) -> None:
    await connection.peer.send(b"")
    await connection.transport.send(b"")

    assert await connection.transport.receive() == b""
    assert await connection.peer.receive() == b""


async def test_frames_keep_their_order_while_both_sides_send(connection: Connection) -> None:
    questions = [b"question %d" % number * 50 for number in range(500)]
    answers = [b"answer %d" % number * 50 for number in range(500)]

    async with asyncio.TaskGroup() as group:
        group.create_task(send_all(connection.peer.send, questions))
        group.create_task(send_all(connection.transport.send, answers))
        heard = group.create_task(receive_all(connection.transport.receive, 500))
        seen = group.create_task(receive_all(connection.peer.receive, 500))

    assert heard.result() == questions
    assert seen.result() == answers


async def test_sends_from_several_tasks_go_out_in_the_order_of_the_calls(connection: Connection) -> None:
    frames = [b"%d" % number * KIBIBYTE for number in range(200)]

    async with asyncio.TaskGroup() as group:
        for frame in frames:
            group.create_task(connection.transport.send(frame))
        seen = group.create_task(receive_all(connection.peer.receive, 200))

    assert seen.result() == frames


async def test_a_later_send_does_not_overtake_those_that_wait(narrow: Connection) -> None:
    frames = [bytes([number]) * 256 * KIBIBYTE for number in range(100)]

    async with asyncio.TaskGroup() as group:
        for frame in frames:
            group.create_task(narrow.transport.send(frame))
        seen = [await narrow.peer.receive()]
        rest = group.create_task(receive_all(narrow.peer.receive, 100))
        await narrow.transport.send(b"last")

    assert [*seen, *rest.result()] == [*frames, b"last"]


async def test_it_ends_when_the_peer_leaves(connection: Connection) -> None:
    waiting = asyncio.create_task(connection.transport.receive())

    await connection.peer.close()

    assert await waiting is None
    assert await connection.transport.receive() is None


async def test_frames_sent_before_the_peer_left_still_arrive(connection: Connection) -> None:
    await send_all(connection.peer.send, [b"one", b"two"])
    await connection.peer.close()

    heard = await receive_all(connection.transport.receive, 3)

    assert heard == [b"one", b"two", None]


async def test_sending_to_a_peer_that_has_left_does_nothing(connection: Connection) -> None:
    await connection.peer.close()
    assert await connection.transport.receive() is None

    await send_all(connection.transport.send, [b"too late"] * 100)

    assert await connection.transport.receive() is None


async def test_the_peer_is_disconnected_after_the_last_frame(connection: Connection) -> None:
    await connection.transport.send(b"the last word")
    await connection.transport.close()

    assert await connection.peer.receive() == b"the last word"
    assert await connection.peer.receive() is None


async def test_closing_twice_is_allowed_and_ends_a_waiting_receive(connection: Connection) -> None:
    waiting = asyncio.create_task(connection.transport.receive())
    await asyncio.sleep(0)

    await connection.transport.close()
    await connection.transport.close()

    assert await waiting is None


async def test_after_closing_nothing_more_is_sent_or_received(connection: Connection) -> None:
    await connection.peer.send(b"not heard")
    await connection.transport.close()

    await connection.transport.send(b"not sent")

    assert await connection.transport.receive() is None
    assert await connection.peer.receive() is None


async def test_a_slow_peer_makes_the_sender_wait_and_loses_nothing(narrow: Connection) -> None:
    frames = [bytes([number]) * 256 * KIBIBYTE for number in range(4)]

    sent = await send_until_held_back(narrow.transport.send, frames)

    assert sent * len(frames[0]) <= 64 * MEBIBYTE
    async with asyncio.TaskGroup() as group:
        group.create_task(narrow.transport.send(b"and on it goes"))
        seen = group.create_task(receive_all(narrow.peer.receive, sent + 1))
    assert seen.result() == [*(frames[number % 4] for number in range(sent)), b"and on it goes"]


async def test_an_unread_transport_makes_the_peer_wait(narrow: Connection) -> None:
    frame = bytes(256 * KIBIBYTE)

    sent = await send_until_held_back(narrow.peer.send, [frame])

    assert sent * len(frame) <= 64 * MEBIBYTE
    assert await receive_all(narrow.transport.receive, sent) == [frame] * sent


async def test_a_frame_of_the_maximum_size_passes(connection: Connection) -> None:
    largest = b"x" * connection.transport.max_frame_bytes

    await connection.peer.send(largest)

    assert await connection.transport.receive() == largest


async def test_a_frame_above_the_maximum_size_is_refused(connection: Connection) -> None:
    await connection.peer.send(b"x" * (connection.transport.max_frame_bytes + 1))

    with pytest.raises(AnamnesisError) as refused:
        await connection.transport.receive()

    assert refused.value.problem is FRAME_TOO_LARGE
    assert dict(refused.value.facts) == {
        "size": connection.transport.max_frame_bytes + 1,
        "most": connection.transport.max_frame_bytes,
    }


async def test_after_a_refused_frame_the_error_can_still_be_sent(connection: Connection) -> None:
    await connection.peer.send(b"x" * (connection.transport.max_frame_bytes + 1))
    with pytest.raises(AnamnesisError):
        await connection.transport.receive()

    await connection.transport.send(b"too large")

    assert await connection.peer.receive() == b"too large"


async def test_in_process_the_next_frame_after_a_refused_one_is_received() -> None:
    client, server = in_process.pair(max_frame_bytes=10)
    await send_all(client.send, [b"x" * 11, b"fits"])

    with pytest.raises(AnamnesisError):
        await server.receive()

    assert await server.receive() == b"fits"


async def test_a_websocket_is_closed_with_1009_after_a_frame_too_large() -> None:
    async with over_a_websocket() as connection:
        await send_all(connection.peer.send, [b"x" * (MEBIBYTE + 1), b"not heard"])
        with pytest.raises(AnamnesisError):
            await connection.transport.receive()
        await connection.transport.send(b"why")

        assert await connection.transport.receive() is None
        assert await receive_all(connection.peer.receive, 2) == [b"why", None]
        assert connection.peer.socket.close_code == 1009


async def test_a_far_too_large_frame_is_skipped_and_the_websocket_sends_the_error() -> None:
    async with over_a_websocket() as connection:
        sending = asyncio.create_task(connection.peer.send(bytes(50 * MEBIBYTE)))

        with pytest.raises(AnamnesisError) as refused:
            await connection.transport.receive()
        await connection.transport.send(b"why")

        assert refused.value.facts["size"] == 50 * MEBIBYTE
        assert await connection.transport.receive() is None
        await sending
        assert await receive_all(connection.peer.receive, 2) == [b"why", None]
        assert connection.peer.socket.close_code == 1009


async def test_a_frame_with_a_too_large_length_is_refused_before_it_arrives() -> None:
    async with over_a_websocket() as connection:
        await connection.peer.send(b"before")
        connection.peer.socket.transport.write(b"\x82\xff" + (1 << 62).to_bytes(8) + b"mask" + b"a beginning")

        assert await connection.transport.receive() == b"before"
        with pytest.raises(AnamnesisError) as refused:
            await connection.transport.receive()
        await connection.transport.send(b"why")

        assert dict(refused.value.facts) == {"size": 1 << 62, "most": MEBIBYTE}
        assert await connection.transport.receive() is None
        assert await connection.peer.receive() == b"why"
        connection.peer.socket.transport.abort()  # a closing frame would be read as data


@pytest.mark.parametrize("size", [500, 100_000, 3 * MEBIBYTE], ids=str)
async def test_an_endless_fragmented_message_is_refused(size: int) -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield bytes(MEBIBYTE)
        while not refusal.done():
            yield bytes(size)
            await asyncio.sleep(0)

    async with over_a_websocket() as connection:
        refusal = asyncio.create_task(connection.transport.receive())
        sending = asyncio.create_task(connection.peer.socket.send(parts()))

        with pytest.raises(AnamnesisError) as refused:
            await refusal
        await connection.transport.send(b"why")

        assert refused.value.problem is FRAME_TOO_LARGE
        assert await connection.transport.receive() is None
        assert await connection.peer.receive() == b"why"
        await asyncio.wait([sending])
        sending.exception()


async def test_a_fragmented_message_arrives_whole() -> None:
    async with over_a_websocket() as connection:
        words = [word for number in range(5_000) for word in (b"%d " % number, b"")]

        await connection.peer.socket.send(words)

        assert await connection.transport.receive() == b"".join(words)


async def test_a_text_frame_is_refused_and_the_websocket_stays_open() -> None:
    async with over_a_websocket() as connection:
        await connection.peer.socket.send("text")
        await connection.peer.send(b"bytes")

        with pytest.raises(AnamnesisError) as refused:
            await connection.transport.receive()

        assert refused.value.problem is TEXT_FRAME
        assert await connection.transport.receive() == b"bytes"


async def test_on_a_blocked_websocket_the_next_send_waits_for_the_others() -> None:
    out: list[object] = []
    open_again = asyncio.Event()

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        await open_again.wait()
        out.append(message.get("bytes"))

    websocket = WebSocket({"type": "websocket", "headers": [], "extensions": {}}, receive, send)
    open_again.set()
    await websocket.accept()
    open_again.clear()
    transport = WebSocketTransport(websocket)

    async with asyncio.TaskGroup() as group:
        for frame in (b"one", b"two"):
            group.create_task(transport.send(frame))
        await asyncio.sleep(0)
        open_again.set()
        await transport.send(b"three")

    assert out == [None, b"one", b"two", b"three"]


async def test_a_websocket_peer_that_never_reads_is_disconnected() -> None:
    async with over_a_websocket(read_timeout=0.2) as connection:
        frame = bytes(256 * KIBIBYTE)

        async with asyncio.TaskGroup() as group:
            ended = group.create_task(connection.transport.receive())
            group.create_task(send_all(connection.transport.send, [frame] * 4_000))

        assert ended.result() is None
        connection.peer.socket.transport.abort()


async def test_a_websocket_whose_peer_vanishes_ends() -> None:
    async with over_a_websocket() as connection:
        connection.peer.socket.transport.abort()

        assert await connection.transport.receive() is None
        await connection.transport.send(b"to nobody")


async def test_in_a_room_streams_keep_their_order_and_so_do_packets(livekit: Address) -> None:
    """A packet may overtake a stream within LiveKit's SDK; a client that sees the gap asks for a replay."""
    frames = [bytes([number]) * (40 * KIBIBYTE if number % 3 else 100) for number in range(30)]

    async with in_a_room(livekit) as connection, asyncio.TaskGroup() as group:
        group.create_task(send_all(connection.peer.send, frames))
        group.create_task(send_all(connection.transport.send, frames))
        heard = group.create_task(receive_all(connection.transport.receive, 30))
        seen = group.create_task(receive_all(connection.peer.receive, 30))

    assert heard.result() == frames
    for size in (100, 40 * KIBIBYTE):
        assert [each for each in seen.result() if each and len(each) == size] == [
            each for each in frames if len(each) == size
        ]


@pytest.mark.parametrize("size", [8 * KIBIBYTE, 256 * KIBIBYTE], ids=["packets", "streams"])
async def test_a_stopped_livekit_makes_the_sender_wait_and_loses_nothing(size: int) -> None:
    frames, address = [bytes([number % 251]) * size for number in range(5 * MEBIBYTE // size)], new_address()
    sent = 0

    async def send_counted(connection: Connection) -> None:
        nonlocal sent
        for frame in frames:
            await connection.transport.send(frame)
            sent += 1

    with livekit_process(address) as livekit:
        async with in_a_room(address) as connection, asyncio.TaskGroup() as group:
            livekit.send_signal(signal.SIGSTOP)
            group.create_task(send_counted(connection))
            before = -1
            while before < sent:
                before = sent
                await asyncio.sleep(0.5)
            held_back_at = sent * size
            livekit.send_signal(signal.SIGCONT)
            seen = await receive_all(connection.peer.receive, len(frames))

    assert held_back_at <= 3 * MEBIBYTE
    assert seen == frames


async def test_a_join_that_times_out_is_reported_and_a_late_join_leaves_the_room() -> None:
    address = new_address()
    with livekit_process(address) as livekit:
        async with a_room(address) as name, administering(address) as server:

            async def there() -> list[str]:
                listed = await server.room.list_participants(api.ListParticipantsRequest(room=name))
                return [each.identity for each in listed.participants]

            livekit.send_signal(signal.SIGSTOP)
            with pytest.raises(AnamnesisError) as refused:
                await LiveKitRoom(there, timeout=0.3).join(address.url, token(address, name, SERVER))
            livekit.send_signal(signal.SIGCONT)
            await (
                wait_for_native_threads()
            )  # without the wait for the late join, LiveKit's native code would end the process here

            assert refused.value.problem is LIVEKIT_UNAVAILABLE
            await until_empty(server, name)


async def test_a_participant_that_sends_too_many_frames_gets_an_error(livekit: Address) -> None:
    async with in_a_room(livekit) as connection:
        for _ in range(INBOX_FRAMES + 2):
            connection.transport.put(b"x")
        heard = await receive_all(connection.transport.receive, INBOX_FRAMES)
        connection.transport.put(b"the rest is not heard")

        with pytest.raises(AnamnesisError) as refused:
            await connection.transport.receive()
        await connection.transport.close()

        assert heard == [b"x"] * INBOX_FRAMES
        assert refused.value.problem is RATE_LIMITED
        assert await connection.transport.receive() is None


async def test_a_participant_that_sends_too_many_bytes_gets_an_error(livekit: Address) -> None:
    frame = bytes(MEBIBYTE)
    async with in_a_room(livekit) as connection:
        for _ in range(INBOX_BYTES // MEBIBYTE + 1):
            connection.transport.put(frame)

        assert await receive_all(connection.transport.receive, INBOX_BYTES // MEBIBYTE) == [frame] * 8
        with pytest.raises(AnamnesisError) as refused:
            await connection.transport.receive()
        assert refused.value.problem is RATE_LIMITED


async def test_streams_without_a_size_are_counted_as_they_arrive(
    livekit: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.transports.livekit.INBOX_BYTES", 25 * KIBIBYTE)
    async with in_a_room(livekit) as connection, asyncio.timeout(60):
        me = connection.peer.line.room.local_participant
        writer = await me.stream_bytes("long", topic="anamnesis", destination_identities=[SERVER])
        for _ in range(3):
            await writer.write(bytes(10 * KIBIBYTE))
        await writer.aclose()

        with pytest.raises(AnamnesisError) as refused:
            await connection.transport.receive()
        assert refused.value.problem is RATE_LIMITED


async def test_a_flood_without_a_sender_costs_one_request_and_its_sender_gets_an_error(
    livekit: Address,
) -> None:
    asked, met = 0, asyncio.Queue[LiveKitTransport]()

    async def there() -> list[str]:
        nonlocal asked
        asked += 1
        return [SERVER, "user:ann"]

    async with (
        a_room(livekit) as name,
        joined(livekit, name, SERVER, LiveKitRoom(there, on_peer=met.put_nowait)) as room,
        asyncio.timeout(60),
    ):
        for _ in range(INBOX_FRAMES + 500):
            room.sdk.emit(
                "data_received", rtc.DataPacket(b"x", rtc.DataPacketKind.KIND_RELIABLE, None, "anamnesis")
            )
        transport = await met.get()

        assert await receive_all(transport.receive, INBOX_FRAMES) == [b"x"] * INBOX_FRAMES
        with pytest.raises(AnamnesisError) as refused:
            await transport.receive()
        assert refused.value.problem is RATE_LIMITED
        assert asked <= 2  # a second time, because the transport closes it, too


async def test_after_a_reconnect_the_orchestrator_asks_its_peers_to_connect_again(
    livekit: Address,
) -> None:
    found = asyncio.Event()
    async with in_a_room(livekit) as connection, asyncio.timeout(60):
        line = connection.peer.line.room
        line.on("data_received", lambda packet: found.set() if packet.topic == GOODBYE else None)

        connection.room.sdk.emit("reconnected")

        await found.wait()


async def test_after_a_reconnect_a_client_continues_with_another_transport(livekit: Address) -> None:
    async with (
        a_room(livekit) as name,
        joined(livekit, name, "user:ann", LiveKitRoom(the_orchestrator, end_on_reconnect=True)) as room,
        asyncio.timeout(60),
    ):
        before = room.peer(SERVER)

        room.sdk.emit("reconnected")

        assert await before.receive() is None
        assert room.peer(SERVER) is not before
        assert not room.ended.is_set()


async def test_in_a_room_one_send_is_under_way_at_a_time(
    livekit: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way = most = 0

    async def publish(*_: object, **__: object) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1

    async with (
        a_room(livekit) as name,
        joined(livekit, name, SERVER, LiveKitRoom(nobody, send_slots=asyncio.Semaphore(4))) as room,
    ):
        monkeypatch.setattr(rtc.LocalParticipant, "publish_data", publish)
        await asyncio.gather(*(room.send(f"user:{number}", b"x") for number in range(8)))

    assert most == 1


async def test_a_slow_client_reads_what_has_arrived_and_requests_the_rest(livekit: Address) -> None:
    async with (
        a_room(livekit) as name,
        joined(livekit, name, "user:ann", LiveKitRoom(nobody, end_on_reconnect=True)) as room,
    ):
        before = room.peer(SERVER)
        for _ in range(INBOX_FRAMES + 2):
            before.put(b"x")

        heard = await receive_all(before.receive, INBOX_FRAMES + 1)

        assert heard == [*[b"x"] * INBOX_FRAMES, None]
        assert room.peer(SERVER) is not before


async def nobody() -> list[str]:
    return []


async def the_orchestrator() -> list[str]:
    return [SERVER]


async def test_a_broken_stream_is_refused_and_the_next_frame_is_received(livekit: Address) -> None:
    async with in_a_room(livekit) as connection:
        me = connection.peer.line.room.local_participant
        writer = await me.stream_bytes("cut", topic="anamnesis", destination_identities=[SERVER])
        await writer.write(b"a beginning")
        await writer.aclose(reason="no more")
        await connection.peer.send(b"whole")

        with pytest.raises(AnamnesisError) as refused:
            await connection.transport.receive()

        assert refused.value.problem is STREAM_CUT_SHORT
        assert await connection.transport.receive() == b"whole"
