"""Missed stanzas are replayed from the store, byte for byte; answers of other processes are followed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agents.models.scripted import REPLY, ScriptedBrain
from orchestrator import orchestrator as orchestrator_module
from orchestrator.ops.clock import SystemClock
from orchestrator.orchestrator import Orchestrator
from orchestrator.transports.in_process import pair
from orchestrator.turn import outbox
from tests.support.orchestrators import BOB, an_orchestrator, history, message, over_websockets, turn
from tests.support.protocol_client import (
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
from tests.support.stores import on_both_databases


def halting() -> tuple[asyncio.Event, list[Any]]:
    """An answer that says its first sentence, then waits for the event before the others."""
    hold = asyncio.Event()
    return hold, ["One. ", "Two. ", "Thr", hold, "ee."]


def packets(frames: list[Frame]) -> list[bytes]:
    return [frame.packet for frame in frames]


def texts(frames: list[Frame]) -> list[str]:
    return [frame.body["text"] for frame in frames if frame.type == SENTENCE]


@pytest.mark.requirement("003-148", "003-151", "003-152", "003-153")
@on_both_databases
async def test_another_orchestrator_over_the_same_store_replays_byte_for_byte(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        sent = await peer.ask()
        sent.append(await peer.request(NOTE, id=new_id("note_"), content="hm", action="create"))
        sent += await peer.ask("It is an 8")

    for seen in (0, 4, len(sent) - 1):
        async with an_orchestrator(address).open() as orchestrator, visiting(orchestrator) as again:
            await again.open(peer.conversation_id, stanza=0, lastSequenceSeen=seen)
            frames = [await again.next() for _ in sent[seen:]]

            assert packets(frames) == packets(sent)[seen:]
            sent.append(await again.request(STOP))  # new stanzas come after the replay


async def test_a_client_that_reconnects_during_an_answer_gets_its_beginning_and_then_the_rest(
    address: str,
) -> None:
    hold, answer = halting()
    async with an_orchestrator(address, ScriptedBrain(answers=[answer])).open() as orchestrator:
        async with conversing(orchestrator) as peer:
            await peer.say()
            received = await peer.until_type(SENTENCE)

        for seen in (0, 2, len(received)):
            async with visiting(orchestrator) as again:
                await again.open(peer.conversation_id, stanza=0, lastSequenceSeen=seen)
                frames = [await again.next() for _ in received[seen:]]
                assert packets(frames) == packets(received)[seen:]
                if seen == len(received):
                    hold.set()
                    frames += await again.answer()

        assert texts(received + frames) == ["One. ", "Two. ", "Three."]


async def test_a_client_that_reads_slowly_and_a_long_replay_miss_nothing(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "BATCH", 5)  # a longer replay reads the store again
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        for _ in range(4):
            await peer.say("hello")
        frames: list[Frame] = []
        while sum(frame.ends_an_answer for frame in frames) < 4:
            frames.append(await peer.next())

        async with visiting(orchestrator) as again:
            await again.open(peer.conversation_id, stanza=0, lastSequenceSeen=0)
            assert [(await again.next()).packet for _ in frames] == packets(frames)


# --- one live connection per conversation -------------------------------------------------------------------


@asynccontextmanager
async def two_orchestrators(
    address: str, *brains: ScriptedBrain, **settings: Any
) -> AsyncIterator[tuple[Orchestrator, Orchestrator]]:
    """Two orchestrators over one store, like two processes."""
    first, second = (brains or (ScriptedBrain(), ScriptedBrain()))[:2]
    async with (
        an_orchestrator(address, first, **settings).open() as here,
        an_orchestrator(address, second, **settings).open() as there,
    ):
        yield here, there


async def replaced(peer: Peer) -> None:
    """The connection gets SESSION_REPLACED once and is then closed."""
    sent = await peer.next()
    assert (sent.stanza, sent.code, sent.body["recoverable"]) == (0, 202, False)
    assert "elsewhere" in sent.body["message"]
    assert await peer.gone()


@pytest.mark.parametrize("apart", [False, True], ids=["in one orchestrator", "in two orchestrators"])
async def test_a_newer_connection_takes_over_and_the_older_one_gets_an_error_and_is_closed(
    address: str, apart: bool
) -> None:
    async with two_orchestrators(address) as (here, there), conversing(here) as older:
        await older.ask()
        async with visiting(there if apart else here) as newer:
            await newer.open(older.conversation_id, stanza=0)
            await replaced(older)

            await newer.ask("It is an 8")
            async with visiting(here) as newest:
                await newest.open(older.conversation_id, stanza=0)
                await replaced(newer)
                await newest.ask("And now?")


async def test_an_older_connection_that_writes_after_the_takeover_is_refused(address: str) -> None:
    async with (
        two_orchestrators(address) as (here, there),
        conversing(here) as older,
        visiting(there) as newer,
    ):
        await newer.open(older.conversation_id, stanza=0)
        await older.send(USER_MESSAGE, id=new_id(), content="hello")
        await replaced(older)
        assert (await newer.ask())[0].body[
            "acknowledgedStanzaId"
        ] == 2  # the refused frame did not use the number


async def test_a_newer_connection_does_not_wait_for_an_older_one_that_reads_nothing(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator:
        client, server = pair(depth=3)
        serving = asyncio.create_task(orchestrator.serve(server, "ann"))
        unread = Peer(client)
        await unread.open()
        await unread.say()
        await unread.next()  # the rest of the answer fills the connection

        async with visiting(orchestrator) as newer:
            await newer.open(unread.conversation_id, stanza=0, lastSequenceSeen=0)
            await newer.answer()
            await newer.ask("It is an 8")
        await client.close()
        await serving


async def test_another_person_cannot_take_a_conversation_over(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        async with visiting(orchestrator, BOB) as other:
            await other.line.send(envelope(0, 12, peer.conversation_id, {}))
            assert (await other.next()).code == 201

        assert (await peer.ask())[-1].body["isFinal"]


# --- an answer that runs in another orchestrator ------------------------------------------------------------


async def test_an_answer_that_runs_in_one_orchestrator_is_followed_in_another(address: str) -> None:
    hold, answer = halting()
    brains = ScriptedBrain(answers=[answer]), ScriptedBrain()
    async with two_orchestrators(address, *brains) as (here, there):
        async with conversing(here) as peer:
            await peer.say()
            received = await peer.until_type(SENTENCE)
        async with visiting(there) as moved:
            await moved.open(peer.conversation_id, stanza=0, lastSequenceSeen=2)
            beginning = await moved.until_type(SENTENCE)
            hold.set()
            frames = beginning + await moved.answer()
            assert packets(beginning) == packets(received)[2:]
            assert texts(frames) == ["One. ", "Two. ", "Three."]

            await moved.ask("It is an 8")
        assert sum(len(brain.briefs) for brain in brains) == 2


async def test_a_message_to_one_orchestrator_waits_for_the_answer_that_runs_in_the_other(
    address: str,
) -> None:
    hold, answer = halting()
    brains = ScriptedBrain(answers=[answer]), ScriptedBrain()
    async with two_orchestrators(address, *brains) as (here, there), conversing(here) as peer:
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


async def test_an_answer_is_stopped_from_another_orchestrator(address: str) -> None:
    brains = ScriptedBrain(answers=[halting()[1]]), ScriptedBrain()
    async with (
        two_orchestrators(address, *brains, lease_seconds=4) as (here, there),
        conversing(here) as peer,
    ):
        await peer.say()
        await peer.until_type(SENTENCE)
        async with visiting(there) as moved:
            await moved.open(peer.conversation_id, stanza=0)
            assert (await moved.request(STOP)).body["success"]

            assert (await moved.answer())[-1].meta == {"stopped": True}


class LateClock(SystemClock):
    """A clock so far ahead that every lease of other processes has expired."""

    def now(self) -> datetime:
        return super().now() + timedelta(hours=1)


@on_both_databases
async def test_an_orchestrator_that_lost_its_lease_sends_nothing_more_and_its_sentences_stay(
    address: str,
) -> None:
    hold, answer = halting()
    stalled = ScriptedBrain(answers=[answer])
    async with an_orchestrator(address, stalled).open() as here, conversing(here) as peer:
        message_id = await peer.say()
        answer_id = (await peer.until_type(SENTENCE))[-1].body["previousId"]

        async with an_orchestrator(address, clock=LateClock()).open() as there, visiting(there) as moved:
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


async def test_an_answer_that_another_orchestrator_left_without_a_sentence_is_continued(address: str) -> None:
    stalled = ScriptedBrain(answers=[(asyncio.Event(),)])
    async with an_orchestrator(address, stalled).open() as here, conversing(here) as peer:
        message_id = await peer.say()
        started = (await peer.until_type(START_ANSWER))[-1]

        async with an_orchestrator(address, clock=LateClock()).open() as there, visiting(there) as moved:
            await moved.open(peer.conversation_id, stanza=0, lastSequenceSeen=-started.stanza)
            frames = await moved.answer()
            spoken = [frame for frame in frames if frame.type == SENTENCE]

            assert START_ANSWER not in [frame.type for frame in frames]
            assert {frame.body["previousId"] for frame in spoken} == {started.body["id"]}
            assert "".join(frame.body["text"] for frame in spoken) == "".join(REPLY)
            ended = await turn(there, message_id)
            assert (ended.state, ended.answer_id, ended.attempts) == ("completed", started.body["id"], 2)
            (remembered,) = (await history(there, peer.conversation_id)).turns
            assert remembered.agent_response is not None
            assert remembered.agent_response.response_id == started.body["id"]


async def test_a_continued_answer_stays_a_stream_for_a_client_that_now_wants_whole_messages(
    address: str,
) -> None:
    stalled = ScriptedBrain(answers=[(asyncio.Event(),)])
    async with an_orchestrator(address, stalled).open() as here, conversing(here) as peer:
        await peer.say()
        started = (await peer.until_type(START_ANSWER))[-1]

        async with an_orchestrator(address, clock=LateClock()).open() as there, visiting(there) as moved:
            await moved.open(peer.conversation_id, stanza=0, lastSequenceSeen=-started.stanza, features=[])
            last = (await moved.answer())[-1]

            assert (last.type, last.body["previousId"]) == (SENTENCE, started.body["id"])


async def test_an_answer_that_a_closing_orchestrator_cuts_off_fails_and_can_be_regenerated(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orchestrator_module, "GRACE_SECONDS", 0.01)
    brain = ScriptedBrain(answers=[halting()[1]])
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        message_id = await peer.say()
        await peer.until_type(SENTENCE)

    async with an_orchestrator(address).open() as orchestrator, visiting(orchestrator) as again:
        lease = await orchestrator.store.read(lambda tx: tx.leases.get(peer.conversation_id))
        assert lease is not None
        assert lease.expires_at <= SystemClock().now()  # the next worker need not wait
        await again.open(peer.conversation_id, stanza=0, lastSequenceSeen=peer.seen)
        error = (await again.answer())[-1]
        assert (error.code, error.body["originatingId"]) == (501, message_id)

        await again.send(
            VARIATION, mode="continue", targetId=(await turn(orchestrator, message_id)).answer_id
        )
        assert (await again.answer())[-1].body["isFinal"]


# --- over a real WebSocket ----------------------------------------------------------------------------------


async def test_a_conversation_over_a_websocket_is_the_same(address: str, tmp_path: Path) -> None:
    async with (
        an_orchestrator(address).open() as orchestrator,
        over_websockets(orchestrator, tmp_path) as opening,
    ):
        async with opening() as socket:
            peer = Peer(WebSocketLine(socket))
            await peer.open()
            sent = await peer.ask()
        async with opening() as socket:
            again = Peer(WebSocketLine(socket))
            await again.open(peer.conversation_id, stanza=0, lastSequenceSeen=3)
            assert [(await again.next()).packet for _ in sent[3:]] == packets(sent)[3:]
            await again.ask("It is an 8")


async def test_a_websocket_refuses_text_and_closes_after_a_frame_that_is_too_large(
    address: str, tmp_path: Path
) -> None:
    async with (
        an_orchestrator(address).open() as orchestrator,
        over_websockets(orchestrator, tmp_path) as opening,
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
        an_orchestrator(address).open() as orchestrator,
        over_websockets(orchestrator, tmp_path) as opening,
        opening() as first,
        opening() as second,
    ):
        older, newer = Peer(WebSocketLine(first)), Peer(WebSocketLine(second))
        await older.open()
        await newer.open(older.conversation_id, stanza=0)

        await replaced(older)
        assert first.close_code == 1000
        await newer.ask()
