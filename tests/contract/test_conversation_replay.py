"""What was missed is told again from the store, byte for byte; what runs elsewhere is followed live."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agents.brains.scripted import ScriptedBrain
from orchestrator import house as house_module
from orchestrator import outbox
from orchestrator.clock import SystemClock
from orchestrator.house import House
from orchestrator.transports.in_process import pair
from tests.houses import BOB, a_house, history, message, over_websockets, turn
from tests.peers import (
    ERROR,
    NOTE,
    SENTENCE,
    START_ANSWER,
    STOP,
    USER_MESSAGE,
    VARIATION,
    Frame,
    Peer,
    WebSocketLine,
    conversing,
    envelope,
    new_id,
    visiting,
)


def halting() -> tuple[asyncio.Event, list[Any]]:
    """An answer that says its first sentence, then waits for the event before it says the others."""
    hold = asyncio.Event()
    return hold, ["One. ", "Two. ", "Thr", hold, "ee."]


def packets(frames: list[Frame]) -> list[bytes]:
    return [frame.packet for frame in frames]


def texts(frames: list[Frame]) -> list[str]:
    return [frame.body["text"] for frame in frames if frame.type == SENTENCE]


@pytest.mark.requirement("003-148", "003-151", "003-152", "003-153")
async def test_another_house_over_the_same_store_tells_again_byte_for_byte(address: str) -> None:
    async with a_house(address).open() as house, conversing(house) as peer:
        told = await peer.ask()
        told.append(await peer.request(NOTE, id=new_id("note_"), content="hm", action="create"))
        told += await peer.ask("It is an 8")

    for seen in (0, 4, len(told) - 1):
        async with a_house(address).open() as house, visiting(house) as again:
            await again.open(peer.conversation_id, stanza=0, lastSequenceSeen=seen)
            frames = [await again.next() for _ in told[seen:]]

            assert packets(frames) == packets(told)[seen:]
            told.append(await again.request(STOP))  # and after that comes what is new


async def test_who_comes_back_in_the_middle_of_an_answer_hears_the_beginning_and_then_the_rest(
    address: str,
) -> None:
    hold, answer = halting()
    async with a_house(address, ScriptedBrain(answers=[answer])).open() as house:
        async with conversing(house) as peer:
            await peer.say()
            heard = await peer.until_type(SENTENCE)

        for seen in (0, 2, len(heard)):
            async with visiting(house) as again:
                await again.open(peer.conversation_id, stanza=0, lastSequenceSeen=seen)
                frames = [await again.next() for _ in heard[seen:]]
                assert packets(frames) == packets(heard)[seen:]
                if seen == len(heard):
                    hold.set()
                    frames += await again.answer()

        assert texts(heard + frames) == ["One. ", "Two. ", "Three."]


async def test_a_client_that_reads_slowly_and_a_long_replay_miss_nothing(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "BATCH", 5)  # more than that and the store is asked again
    async with a_house(address).open() as house, conversing(house) as peer:
        for _ in range(4):
            await peer.say("hello")
        frames: list[Frame] = []
        while sum(frame.ends_an_answer for frame in frames) < 4:
            frames.append(await peer.next())

        async with visiting(house) as again:
            await again.open(peer.conversation_id, stanza=0, lastSequenceSeen=0)
            assert [(await again.next()).packet for _ in frames] == packets(frames)


# --- one live connection per conversation -------------------------------------------------------------------


@asynccontextmanager
async def two_houses(
    address: str, *brains: ScriptedBrain, **settings: Any
) -> AsyncIterator[tuple[House, House]]:
    """Two houses over one store, as two processes would be."""
    first, second = (brains or (ScriptedBrain(), ScriptedBrain()))[:2]
    async with (
        a_house(address, first, **settings).open() as here,
        a_house(address, second, **settings).open() as there,
    ):
        yield here, there


async def replaced(peer: Peer) -> None:
    """The connection is told that another one took over, once, and then closed."""
    told = await peer.next()
    assert (told.stanza, told.code, told.body["recoverable"]) == (0, 202, False)
    assert "elsewhere" in told.body["message"]
    assert await peer.gone()


@pytest.mark.parametrize("apart", [False, True], ids=["in one house", "in two houses"])
async def test_a_newer_connection_takes_over_and_the_older_one_is_told_and_closed(
    address: str, apart: bool
) -> None:
    async with two_houses(address) as (here, there), conversing(here) as older:
        await older.ask()
        async with visiting(there if apart else here) as newer:
            await newer.open(older.conversation_id, stanza=0)
            await replaced(older)

            await newer.ask("It is an 8")
            async with visiting(here) as newest:
                await newest.open(older.conversation_id, stanza=0)
                await replaced(newer)
                await newest.ask("And now?")


async def test_an_older_connection_that_writes_before_it_knows_is_refused(address: str) -> None:
    async with (
        two_houses(address) as (here, there),
        conversing(here) as older,
        visiting(there) as newer,
    ):
        await newer.open(older.conversation_id, stanza=0)
        await older.send(USER_MESSAGE, id=new_id(), content="hello")
        await replaced(older)
        assert (await newer.ask())[0].body["acknowledgedStanzaId"] == 2  # the number was free


async def test_a_newer_connection_does_not_wait_for_an_older_one_that_reads_nothing(address: str) -> None:
    async with a_house(address).open() as house:
        client, server = pair(depth=3)
        attending = asyncio.create_task(house.attend(server, "ann"))
        deaf = Peer(client)
        await deaf.open()
        await deaf.say()
        await deaf.next()  # the rest of the answer fills the connection

        async with visiting(house) as newer:
            await newer.open(deaf.conversation_id, stanza=0, lastSequenceSeen=0)
            await newer.answer()
            await newer.ask("It is an 8")
        await client.close()
        await attending


async def test_another_person_cannot_take_a_conversation_over(address: str) -> None:
    async with a_house(address).open() as house, conversing(house) as peer:
        async with visiting(house, BOB) as other:
            await other.line.send(envelope(0, 12, peer.conversation_id, {}))
            assert (await other.next()).code == 201

        assert (await peer.ask())[-1].body["isFinal"]


# --- an answer that runs in another house -------------------------------------------------------------------


async def test_an_answer_that_runs_in_one_house_is_followed_in_another(address: str) -> None:
    hold, answer = halting()
    brains = ScriptedBrain(answers=[answer]), ScriptedBrain()
    async with two_houses(address, *brains) as (here, there):
        async with conversing(here) as peer:
            await peer.say()
            heard = await peer.until_type(SENTENCE)
        async with visiting(there) as moved:
            await moved.open(peer.conversation_id, stanza=0, lastSequenceSeen=2)
            beginning = await moved.until_type(SENTENCE)
            hold.set()
            frames = beginning + await moved.answer()
            assert packets(beginning) == packets(heard)[2:]
            assert texts(frames) == ["One. ", "Two. ", "Three."]

            await moved.ask("It is an 8")
        assert sum(len(brain.briefs) for brain in brains) == 2


async def test_a_message_to_one_house_waits_for_the_answer_that_runs_in_the_other(address: str) -> None:
    hold, answer = halting()
    brains = ScriptedBrain(answers=[answer]), ScriptedBrain()
    async with two_houses(address, *brains) as (here, there), conversing(here) as peer:
        first = await peer.say("One")
        await peer.until_type(SENTENCE)
        async with visiting(there) as moved:
            await moved.open(peer.conversation_id, stanza=0)
            second = await moved.say("Two")
            assert (await moved.next()).body["success"]
            assert [(await turn(there, each)).state for each in (first, second)] == ["in_progress", "pending"]
            hold.set()
            await moved.answer()
            begun = (await moved.until_type(START_ANSWER))[-1]
            assert begun.body["previousId"] == second
            await moved.answer()


async def test_an_answer_is_stopped_from_another_house(address: str) -> None:
    brains = ScriptedBrain(answers=[halting()[1]]), ScriptedBrain()
    async with two_houses(address, *brains, lease_seconds=4) as (here, there), conversing(here) as peer:
        await peer.say()
        await peer.until_type(SENTENCE)
        async with visiting(there) as moved:
            await moved.open(peer.conversation_id, stanza=0)
            assert (await moved.request(STOP)).body["success"]

            assert (await moved.answer())[-1].meta == {"stopped": True}


class LateClock(SystemClock):
    """A clock for which every lease of the others has long expired."""

    def now(self) -> datetime:
        return super().now() + timedelta(hours=1)


async def test_a_house_that_lost_its_lease_says_nothing_more_and_what_it_said_is_remembered(
    address: str,
) -> None:
    hold, answer = halting()
    stalled = ScriptedBrain(answers=[answer])
    async with a_house(address, stalled).open() as here, conversing(here) as peer:
        message_id = await peer.say()
        answer_id = (await peer.until_type(SENTENCE))[-1].body["previousId"]

        async with a_house(address, clock=LateClock()).open() as there, visiting(there) as moved:
            await moved.open(peer.conversation_id, stanza=0)
            error = (await moved.answer())[-1]
            hold.set()

            assert (error.type, error.code, error.body["originatingId"]) == (ERROR, 501, message_id)
            assert (error.meta, error.body["recoverable"]) == ({"error": "interrupted"}, True)
            cut = await message(there, answer_id)
            assert (cut.contents, cut.completion_status) == ("One. ", "failed")
            (remembered,) = (await history(there, peer.conversation_id)).turns
            assert (remembered.error, remembered.agent_response) != (None, None)
            assert remembered.agent_response is not None
            assert remembered.agent_response.content == "One. "
            assert remembered.agent_response.response_id == answer_id


async def test_an_answer_that_a_closing_house_cuts_off_is_told_so_and_can_be_asked_for_again(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(house_module, "GRACE_SECONDS", 0.01)
    brain = ScriptedBrain(answers=[halting()[1]])
    async with a_house(address, brain).open() as house, conversing(house) as peer:
        message_id = await peer.say()
        await peer.until_type(SENTENCE)

    async with a_house(address).open() as house, visiting(house) as again:
        lease = await house.store.read(lambda tx: tx.leases.get(peer.conversation_id))
        assert lease is not None
        assert lease.expires_at <= SystemClock().now()  # nobody has to wait for it
        await again.open(peer.conversation_id, stanza=0, lastSequenceSeen=peer.seen)
        error = (await again.answer())[-1]
        assert (error.code, error.body["originatingId"]) == (501, message_id)

        await again.send(VARIATION, mode="continue", targetId=(await turn(house, message_id)).answer_id)
        assert (await again.answer())[-1].body["isFinal"]


# --- over a real WebSocket ----------------------------------------------------------------------------------


async def test_a_conversation_over_a_websocket_is_the_same(address: str, tmp_path: Path) -> None:
    async with a_house(address).open() as house, over_websockets(house, tmp_path) as opening:
        async with opening() as socket:
            peer = Peer(WebSocketLine(socket))
            await peer.open()
            told = await peer.ask()
        async with opening() as socket:
            again = Peer(WebSocketLine(socket))
            await again.open(peer.conversation_id, stanza=0, lastSequenceSeen=3)
            assert [(await again.next()).packet for _ in told[3:]] == packets(told)[3:]
            await again.ask("It is an 8")


async def test_a_websocket_refuses_text_and_closes_after_what_is_too_large(
    address: str, tmp_path: Path
) -> None:
    async with (
        a_house(address).open() as house,
        over_websockets(house, tmp_path) as opening,
        opening() as socket,
    ):
        peer = Peer(WebSocketLine(socket))
        await peer.open()
        await socket.send("hello")
        assert (await peer.next()).code == 101
        await peer.ask()

        await socket.send(b"\xc0" * (1024 * 1024 + 1))
        assert (await peer.next()).code == 103
        assert await peer.gone()
        assert socket.close_code == 1009


async def test_a_newer_websocket_takes_over(address: str, tmp_path: Path) -> None:
    async with (
        a_house(address).open() as house,
        over_websockets(house, tmp_path) as opening,
        opening() as first,
        opening() as second,
    ):
        older, newer = Peer(WebSocketLine(first)), Peer(WebSocketLine(second))
        await older.open()
        await newer.open(older.conversation_id, stanza=0)

        await replaced(older)
        assert first.close_code == 1000
        await newer.ask()
