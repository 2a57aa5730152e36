"""Conversations through real LiveKit rooms, with a client made from the plain SDK and MessagePack."""

import asyncio
import datetime
import hashlib
import traceback
from base64 import b64encode
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Never

import jwt
import pytest
from google.protobuf.message import DecodeError
from livekit import api, rtc
from livekit.api.room_service import RoomService

from agents.models.scripted import ScriptedRecall
from agents.ports import MemoryHit
from orchestrator.client.client import Client
from orchestrator.client.connect import RoomConnection
from orchestrator.errors import AnamnesisError
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.memory.memories import NewMemory
from orchestrator.transports.livekit import LiveKitRoom, wait_for_native_threads
from orchestrator.transports.livekit_server import LiveKitServer
from orchestrator.wire.ids import RandomIds
from tests.contract.conversation import test_bad_frames as bad_frames
from tests.support.orchestrators import ANN, an_orchestrator, everything, messages
from tests.support.protocol_client import (
    ACKNOWLEDGEMENT,
    CONFIGURATION,
    SENTENCE,
    SERVER_INFO,
    START_ANSWER,
    TIMEOUT,
    TRACE,
    USER_MESSAGE,
    Peer,
    conversing,
    envelope,
    new_id,
)
from tests.support.servers.livekit_rooms import (
    SERVER_IDENTITY,
    RoomLine,
    a_room,
    administering,
    over_livekit,
    serving,
    token,
    until_empty,
)
from tools.servers.livekit import Address, new_address, running_livekit
from tools.servers.process import free_port


@pytest.mark.requirement("000-003", "003-015", "003-143", "003-144", "003-145", "003-146", "003-147")
async def test_a_conversation_has_a_room_and_is_answered_in_it(
    embedded: str, tmp_path: Path, livekit: Address
) -> None:
    async with (
        an_orchestrator(embedded).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, livekit) as site,
    ):
        conversation_id, other = await site.begin(), await site.begin()
        listed = await site.server.room.list_rooms(api.ListRoomsRequest(names=[conversation_id, other]))
        assert {room.name for room in listed.rooms} == {conversation_id, other}

        async with site.visiting(conversation_id) as peer:
            replies = await peer.open()  # no id: this room's conversation
            answer = await peer.ask()

        assert [frame.type for frame in replies] == [CONFIGURATION, ACKNOWLEDGEMENT, SERVER_INFO]
        assert replies[0].conversation_id == conversation_id
        assert [frame.type for frame in answer][:2] == [ACKNOWLEDGEMENT, START_ANSWER]
        assert answer[-1].ends_an_answer
        assert [each.message_role for each in await messages(orchestrator, conversation_id)] == [
            "user",
            "assistant",
        ]


@pytest.mark.requirement("000-028")
async def test_the_example_of_two_traces_before_the_sentence_travels_through_a_room(
    embedded: str, tmp_path: Path, livekit: Address
) -> None:
    recall = await two_memories(embedded)
    async with (
        an_orchestrator(embedded, recall=recall).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, livekit) as site,
        site.visiting(await site.begin()) as peer,
    ):
        await peer.open()
        frames = await peer.ask()

    result = [
        (frame.type, frame.body.get("action"), frame.body.get("content"))
        for frame in frames
        if frame.body.get("memoryType") != "memory_block" and frame.type != ACKNOWLEDGEMENT
    ]
    assert result[:3] == [
        (START_ANSWER, None, None),
        (TRACE, "retrieved", "Drinks tea"),
        (TRACE, "retrieved", "Has a cat"),
    ]
    assert {type for type, _, _ in result[3:]} == {SENTENCE}


async def two_memories(url: str) -> ScriptedRecall:
    """Two memories that recall finds."""
    async with an_orchestrator(url).open() as orchestrator:

        def add(tx: Transaction) -> list[MemoryHit]:
            return [
                MemoryHit(
                    tx.memories.add(NewMemory(content=content, user_id=ANN)).id,
                    content,
                    0.9,
                    position=position,
                )
                for position, content in enumerate(("Drinks tea", "Has a cat"), start=1)
            ]

        return ScriptedRecall(*await orchestrator.store.write(add))


@pytest.mark.requirement("003-144")
async def test_a_token_is_for_one_room_for_minutes_and_for_data_only(
    embedded: str, tmp_path: Path, livekit: Address
) -> None:
    async with (
        an_orchestrator(embedded).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, livekit) as site,
    ):
        conversation_id = await site.begin()

        one, two = [await site.admission(conversation_id) for _ in range(2)]

        assert one["identity"] != two["identity"]
        assert (one["room"], one["topic"], one["url"]) == (conversation_id, "anamnesis", livekit.url)
        claims = jwt.decode(one["token"], livekit.api_secret, algorithms=["HS256"])
        assert claims["sub"] == one["identity"]
        assert claims["video"] == {
            "roomJoin": True,
            "room": conversation_id,
            "canPublish": False,
            "canSubscribe": False,
            "canPublishData": True,
        }
        lifetime = claims["exp"] - claims["nbf"]
        assert lifetime == 300
        (room,) = (await site.server.room.list_rooms(api.ListRoomsRequest(names=[conversation_id]))).rooms
        assert min(room.empty_timeout, room.departure_timeout) > lifetime + 60  # a minute late is in time
        assert one["expiresAt"].endswith("Z")


@pytest.mark.parametrize("room", ["another-room", None], ids=["of another name", "not written"])
@pytest.mark.requirement("003-004")
async def test_the_room_is_the_one_stored_with_the_conversation(
    embedded: str, tmp_path: Path, livekit: Address, room: str | None
) -> None:
    async with (
        an_orchestrator(embedded).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, livekit) as site,
    ):
        conversation_id = await site.begin()
        await orchestrator.store.write(
            lambda tx: tx.conversations.update(conversation_id, livekit_room_name=room)
        )
        admitted = await site.admission(conversation_id)
        line = await RoomLine().join(admitted["url"], admitted["token"])

        await site.until(admitted["room"], lambda there: SERVER_IDENTITY in there)
        peer = Peer(line)
        await peer.open()

        await line.close()
        assert admitted["room"] == (room or conversation_id)
        assert peer.conversation_id == conversation_id


@pytest.mark.requirement("003-015")
async def test_a_conversation_that_began_elsewhere_has_a_room_too(
    embedded: str, tmp_path: Path, livekit: Address
) -> None:
    async with (
        an_orchestrator(embedded).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, livekit) as site,
    ):
        async with conversing(orchestrator) as peer:
            await peer.ask()

        asked = api.ListRoomsRequest(names=[peer.conversation_id])
        async with asyncio.timeout(TIMEOUT):
            while not (await site.server.room.list_rooms(asked)).rooms:  # noqa: ASYNC110 - nothing tells us
                await asyncio.sleep(0.05)

        async with site.visiting(peer.conversation_id) as again:
            await again.open(lastSequenceSeen=0)
            assert [await again.next() for _ in range(peer.seen)][-1].ends_an_answer


async def test_an_error_of_livekit_contains_no_token_and_health_reports_it(
    embedded: str, tmp_path: Path
) -> None:
    gone = new_address()
    async with (
        an_orchestrator(embedded).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, gone) as site,
    ):
        before, begun = await everything(orchestrator), await site.http.post("/v1/conversations")
        secret = token(gone, "room", "user:ann")
        with pytest.raises(AnamnesisError) as refused:
            await LiveKitRoom(no_one).join(gone.url, secret)

        assert (begun.status_code, begun.json()["type"]) == (503, "/problems/livekit_unavailable")
        assert await everything(orchestrator) == before
        assert secret not in "".join(traceback.format_exception(refused.value))
        assert refused.value.__context__ is None
        server = LiveKitServer(gone.url, gone.api_key, gone.api_secret)
        orchestrator.include("livekit", server.answers)
        assert (await orchestrator.health()).parts["livekit"] == "down: livekit_unavailable"
        await server.close()


async def test_a_cancelled_join_leaves_the_room_once_it_has_joined(livekit: Address) -> None:
    async with a_room(livekit) as name, administering(livekit) as server:
        room = LiveKitRoom(no_one, timeout=0.001)
        with pytest.raises(AnamnesisError):
            await room.join(livekit.url, token(livekit, name, SERVER_IDENTITY))

        await wait_for_native_threads()

        assert room.sdk.local_participant.identity == SERVER_IDENTITY  # it was in the room
        assert room.sdk.connection_state == rtc.ConnectionState.CONN_DISCONNECTED
        await until_empty(server, name)


async def test_an_orchestrator_whose_join_timed_out_joins_again(
    embedded: str, tmp_path: Path, livekit: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeouts = iter([0.001])

    def impatient_at_first(*arguments: Any, **options: Any) -> LiveKitRoom:
        return LiveKitRoom(*arguments, **options, timeout=next(timeouts, TIMEOUT))

    monkeypatch.setattr("orchestrator.connection.rooms.LiveKitRoom", impatient_at_first)
    monkeypatch.setattr("orchestrator.transports.livekit.LiveKitRoom._leave_after", finishing)
    monkeypatch.setattr("orchestrator.transports.livekit.LATE_JOIN_SECONDS", TIMEOUT)
    async with (
        an_orchestrator(embedded).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, livekit) as site,
        site.visiting(await site.begin()) as peer,
        asyncio.timeout(TIMEOUT),
    ):
        while not site.rooms.joined:  # noqa: ASYNC110 - nothing tells us; who came too late does not listen
            await asyncio.sleep(0.05)

        await peer.open()
        assert (await peer.ask())[-1].ends_an_answer


async def finishing(_: LiveKitRoom, connecting: asyncio.Task[None]) -> None:
    """Join late and stay, like a participant whose departure was not reported."""
    await connecting


async def no_one() -> set[str]:
    """Nobody is in the room."""
    return set()


async def test_only_the_owner_gets_a_token(embedded: str, tmp_path: Path, livekit: Address) -> None:
    async with (
        an_orchestrator(embedded).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, livekit) as anns,
        over_livekit(orchestrator, tmp_path, livekit, person="bob") as bobs,
    ):
        conversation_id = await anns.begin()
        before = await everything(orchestrator)

        foreign = await bobs.http.post(f"/v1/conversations/{conversation_id}/token")
        unknown = await bobs.http.post("/v1/conversations/conv_nobodys/token")
        nobodys = await bobs.http.post("/v1/conversations", headers={"Authorization": "Bearer wrong"})

        assert (foreign.status_code, unknown.status_code, nobodys.status_code) == (404, 404, 401)
        assert foreign.json() == unknown.json()
        assert await everything(orchestrator) == before


async def test_the_page_may_connect_to_livekit_and_to_nothing_else(
    embedded: str, tmp_path: Path, livekit: Address
) -> None:
    async with (
        an_orchestrator(embedded).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, livekit) as site,
    ):
        policy = (await site.http.get("/health")).headers["content-security-policy"]

    (allowed,) = [part.split()[1:] for part in policy.split(";") if part.split()[0] == "connect-src"]
    here = site.http.base_url.netloc.decode()
    there = [livekit.url, livekit.url.replace("ws", "http", 1)]
    assert allowed == ["'self'", f"ws://{here}", f"wss://{here}", *there]


async def test_expired_forged_and_foreign_tokens_open_no_room(
    embedded: str, tmp_path: Path, livekit: Address
) -> None:
    async with (
        an_orchestrator(embedded).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, livekit) as site,
    ):
        room, other = await site.begin(), await site.begin()
        thief = Address(livekit.url, livekit.api_key, "another secret, long enough to sign with")

        for bad in (
            token(livekit, room, "user:late", minutes=-5),
            token(thief, room, "user:thief"),
            token(livekit, "no-such-room", "user:lost"),
        ):
            with pytest.raises(rtc.ConnectError):
                await RoomLine().join(livekit.url, bad)

        assert await site.identities(room) == await site.identities(other) == set()


async def test_the_newer_connection_wins_and_the_older_gets_an_error_and_is_removed(
    embedded: str, tmp_path: Path, livekit: Address
) -> None:
    async with (
        an_orchestrator(embedded).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, livekit) as site,
    ):
        conversation_id = await site.begin()
        async with site.visiting(conversation_id) as older, site.visiting(conversation_id) as newer:
            await older.open()
            await newer.open()

            assert (await older.next()).code == 202
            assert await older.gone()
            assert isinstance(older.line, RoomLine)
            assert older.line.reason == rtc.DisconnectReason.PARTICIPANT_REMOVED
            assert (await newer.ask())[-1].ends_an_answer


async def test_in_a_room_no_other_conversation_can_be_opened(
    embedded: str, tmp_path: Path, livekit: Address
) -> None:
    async with (
        an_orchestrator(embedded).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, livekit) as site,
    ):
        mine, other = await site.begin(), await site.begin()
        async with site.visiting(mine) as peer:
            before = await everything(orchestrator)
            peer.conversation_id = other
            await peer.send(CONFIGURATION)
            peer.conversation_id = ""
            refused = await peer.next()

            assert (refused.code, refused.meta["error"]) == (202, "other_conversation")
            assert await everything(orchestrator) == before
            await peer.open()


async def test_only_participants_with_our_tokens_are_heard(
    embedded: str, tmp_path: Path, livekit: Address
) -> None:
    async with (
        an_orchestrator(embedded).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, livekit) as site,
    ):
        conversation_id = await site.begin()
        async with site.visiting(conversation_id) as peer:
            await peer.open()
            before = await everything(orchestrator)
            intruder = Peer(await RoomLine().join(livekit.url, token(livekit, conversation_id, "intruder")))
            intruder.conversation_id = conversation_id
            await intruder.send(CONFIGURATION, stanza=0)
            await intruder.say("not from Ann")
            await site.server.room.send_data(
                api.SendDataRequest(
                    room=conversation_id,
                    data=envelope(9, USER_MESSAGE, conversation_id, {"id": new_id(), "content": "API"}),
                    kind=api.DataPacket.Kind.RELIABLE,
                    destination_identities=[SERVER_IDENTITY],
                    topic="anamnesis",
                )
            )
            refused = await peer.request(USER_MESSAGE, stanza=peer.sent, id=new_id(), content="again")

            await intruder.line.close()
            assert refused.code == 101  # what Ann sends afterwards is received, with the next number
            assert await everything(orchestrator) == before


async def test_a_frame_that_is_too_large_is_refused_and_ends_the_connection(
    embedded: str, tmp_path: Path, livekit: Address
) -> None:
    async with (
        an_orchestrator(embedded).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, livekit) as site,
        site.visiting(await site.begin()) as peer,
    ):
        await peer.open()
        before = await everything(orchestrator)
        await peer.line.send(bytes(1 << 21))

        assert (await peer.next()).code == 103
        assert await peer.gone()
        assert await everything(orchestrator) == before


async def test_bad_frames_in_a_room_are_refused_with_their_code_and_store_nothing(
    embedded: str, tmp_path: Path, livekit: Address
) -> None:
    async with (
        an_orchestrator(embedded, bad_frames_per_minute=10_000).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, livekit) as site,
    ):
        await orchestrator.store.write(lambda tx: tx.conversations.create(ANN, id=bad_frames.HERE))
        async with site.visiting(bad_frames.HERE) as peer:
            await bad_frames.in_this_conversation(peer)
            before = await everything(orchestrator)
            for code, packets in bad_frames.BAD.items():
                for name, packet in packets.items():
                    await peer.line.send(packet)
                    refused = await peer.next()

                    assert (refused.stanza, refused.code) == (0, code), name
                    assert "CANARY" not in str(refused), name

            assert await everything(orchestrator) == before
            await peer.line.send(bad_frames.WHOLE)
            assert (await peer.answer())[0].body["acknowledgedStanzaId"] == 2


async def test_packets_are_accepted_from_the_first_moment(
    embedded: str, tmp_path: Path, livekit: Address
) -> None:
    async with (
        an_orchestrator(embedded).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, livekit) as site,
        site.visiting(await site.begin(), packets=True) as peer,
    ):
        await peer.open()
        assert (await peer.ask())[-1].ends_an_answer


async def test_a_long_message_is_sent_as_a_stream(embedded: str, tmp_path: Path, livekit: Address) -> None:
    async with (
        an_orchestrator(embedded).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, livekit) as site,
        site.visiting(await site.begin()) as peer,
    ):
        await peer.open()
        said = "I am having a headache. " * 2_000
        await peer.ask(said)

        assert (await messages(orchestrator, peer.conversation_id))[0].contents == said


async def test_the_orchestrator_is_in_a_room_only_while_a_client_is(
    embedded: str, tmp_path: Path, livekit: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.connection.rooms.LINGER_SECONDS", 0.1)
    async with (
        an_orchestrator(embedded).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, livekit) as site,
    ):
        conversation_id = await site.begin()
        assert await site.identities(conversation_id) == set()
        async with site.visiting(conversation_id):
            pass

        await site.until(conversation_id, lambda there: not there)

        async with site.visiting(conversation_id) as peer:
            await peer.open()


async def test_a_server_that_is_stopped_while_it_is_in_rooms_ends_cleanly(
    tmp_path: Path, livekit: Address
) -> None:
    log = tmp_path / "log"
    async with serving(tmp_path, livekit, log=log) as (door, server), AsyncExitStack() as calls:
        for _ in range(3):
            call = RoomConnection(door["url"], door["key"])
            calls.push_async_callback(call.close)
            client = Client(await call(), RandomIds(), dial=call)
            async for _ in client.open(call.conversation_id, seen=0):
                pass
            await client.say("I am having a headache")
        server.terminate()
        async with asyncio.timeout(TIMEOUT):
            code = await server.wait()

    said = log.read_text()
    assert code == 0
    assert said.count('"event": "room_joined"') == 3
    for sign in ("terminate called", "Fatal Python error", "Traceback", "Aborted"):
        assert sign not in said


async def test_after_a_webhook_the_orchestrator_joins_at_once(embedded: str, tmp_path: Path) -> None:
    address, port = new_address(), free_port()
    hook = f"http://127.0.0.1:{port}/v1/livekit/webhook"
    with running_livekit(address, [hook]):
        async with (
            an_orchestrator(embedded).open() as orchestrator,
            over_livekit(orchestrator, tmp_path, address, poll_seconds=3600, port=port) as site,
        ):
            conversation_id = await site.begin()
            line = await RoomLine().join(address.url, token(address, conversation_id, "user:told"))

            await site.until(conversation_id, lambda there: SERVER_IDENTITY in there)

            await line.close()


async def test_a_client_that_waits_in_a_room_when_the_orchestrator_starts_is_found_at_once(
    embedded: str, tmp_path: Path, livekit: Address
) -> None:
    async with an_orchestrator(embedded).open() as orchestrator:
        async with over_livekit(orchestrator, tmp_path, livekit) as before:
            conversation_id = await before.begin()
        line = await RoomLine().join(livekit.url, token(livekit, conversation_id, "user:waiting"))
        async with over_livekit(orchestrator, tmp_path, livekit, poll_seconds=3600) as site:
            await site.until(conversation_id, lambda there: SERVER_IDENTITY in there)
        await line.close()


@pytest.mark.parametrize("flaw", ["a page of a proxy", "a bug"])
async def test_polling_of_rooms_continues_after_an_error(
    embedded: str, tmp_path: Path, livekit: Address, monkeypatch: pytest.MonkeyPatch, flaw: str
) -> None:
    looks = 0

    async def answer_wrongly(*_: Any, **__: Any) -> Never:
        nonlocal looks
        looks += 1
        raise DecodeError if flaw == "a page of a proxy" else RuntimeError

    async with (
        an_orchestrator(embedded).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, livekit, poll_seconds=0.05) as site,
        asyncio.timeout(TIMEOUT),
    ):
        conversation_id = await site.begin()
        with monkeypatch.context() as failing:
            place = RoomService if flaw == "a page of a proxy" else LiveKitServer
            failing.setattr(place, "list_rooms" if place is RoomService else "rooms", answer_wrongly)
            while looks < 2:  # noqa: ASYNC110 - nothing tells us
                await asyncio.sleep(0.05)
        line = await RoomLine().join(livekit.url, token(livekit, conversation_id, "user:waiting"))

        await site.until(conversation_id, lambda there: SERVER_IDENTITY in there)

        await line.close()


@pytest.mark.parametrize("flaw", ["none", "unsigned", "body", "secret", "expired"])
async def test_only_a_webhook_signed_by_livekit_is_accepted(
    embedded: str, tmp_path: Path, livekit: Address, flaw: str
) -> None:
    body = b'{"event": "participant_joined", "room": {"name": "somewhere"}}'
    claims = {
        "iss": livekit.api_key,
        "exp": datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=-1 if flaw == "expired" else 1),
        "sha256": b64encode(hashlib.sha256(body).digest()).decode(),
    }
    secret = livekit.api_secret if flaw != "secret" else "another secret, long enough to sign with"
    signed = jwt.encode(claims, secret, algorithm="HS256")
    async with (
        an_orchestrator(embedded).open() as orchestrator,
        over_livekit(orchestrator, tmp_path, livekit) as site,
    ):
        answer = await site.http.post(
            "/v1/livekit/webhook",
            content=body + (b" " if flaw == "body" else b""),
            headers={"Authorization": "" if flaw == "unsigned" else signed},
        )

    assert answer.status_code == (204 if flaw == "none" else 401)
