"""The order of a client's frames: a repeated frame is not handled twice, and a refused one is not counted."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agents.models.scripted import ScriptedBrain
from orchestrator.orchestrator import Orchestrator
from orchestrator.store.engine.database import Transaction
from tests.support.orchestrators import BOB, a_store, an_orchestrator, everything, messages, rows, turn
from tests.support.protocol_client import (
    ACKNOWLEDGEMENT,
    AUDIO,
    COMMENTARY,
    CONFIGURATION,
    ERROR,
    MEMORY,
    NOTE,
    START_ANSWER,
    STOP,
    SYNC,
    TOOL_RESULT,
    USER_MESSAGE,
    VARIATION,
    Peer,
    conversing,
    envelope,
    new_id,
)
from tests.support.stores import on_both_databases

EARLIER = {"localId": "l1", "role": "user", "contents": "hi", "createdAt": "2024-01-15T10:30:00.000Z"}


async def test_numbers_may_be_skipped_but_never_go_back(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        for stanza in (5, 6, 100):
            await peer.send(NOTE, stanza=stanza, id=new_id("note_"), content="hm", action="create")
            assert (await peer.next()).body["success"]
        before = await everything(orchestrator)

        for stanza in (100, 99, 50, 7, 5, 1, 0, -1, -100):
            await peer.send(NOTE, stanza=stanza, id=new_id("note_"), content="hm", action="create")
            refused = await peer.next()
            assert (refused.stanza, refused.code) == (0, 101)

        assert await everything(orchestrator) == before


async def a_tool_is_asked_for(orchestrator: Orchestrator, peer: Peer) -> str:
    def ask(tx: Transaction) -> str:
        last = tx.messages.last(peer.conversation_id)
        assert last is not None
        return tx.tools.request(peer.conversation_id, last.id, "calendar", {}).id

    return await orchestrator.store.write(ask)


async def the_answer(orchestrator: Orchestrator, peer: Peer) -> str:
    (last,) = (await messages(orchestrator, peer.conversation_id))[-1:]
    return last.id


Prepared = Callable[[Orchestrator, Peer], Awaitable[dict[str, Any]]]


async def a_message(orchestrator: Orchestrator, peer: Peer) -> dict[str, Any]:
    return {"id": new_id(), "content": "It is an 8"}


async def a_variation(orchestrator: Orchestrator, peer: Peer) -> dict[str, Any]:
    return {"targetId": await the_answer(orchestrator, peer), "mode": "regenerate"}


async def a_remark(orchestrator: Orchestrator, peer: Peer) -> dict[str, Any]:
    return {"id": new_id("note_"), "content": "hm", "commentaryType": "aside"}


async def a_deleted_note(orchestrator: Orchestrator, peer: Peer) -> dict[str, Any]:
    return {"id": new_id("note_"), "content": "", "action": "delete"}


async def a_memory(orchestrator: Orchestrator, peer: Peer) -> dict[str, Any]:
    return {"id": new_id("req_"), "action": "create", "memory": {"content": "Drinks tea"}}


async def a_sync(orchestrator: Orchestrator, peer: Peer) -> dict[str, Any]:
    return {"messages": [EARLIER, {**EARLIER, "localId": "l2", "role": "nobody"}]}


async def a_tool_result(orchestrator: Orchestrator, peer: Peer) -> dict[str, Any]:
    return {"id": new_id("res_"), "requestId": await a_tool_is_asked_for(orchestrator, peer), "success": True}


async def nothing_to_stop(orchestrator: Orchestrator, peer: Peer) -> dict[str, Any]:
    return {}


@pytest.mark.parametrize(
    ("type", "prepare"),
    [
        (USER_MESSAGE, a_message),
        (STOP, nothing_to_stop),
        (VARIATION, a_variation),
        (COMMENTARY, a_remark),
        (NOTE, a_deleted_note),
        (MEMORY, a_memory),
        (SYNC, a_sync),
        (TOOL_RESULT, a_tool_result),
    ],
    ids=["message", "stop", "variation", "remark", "note", "memory", "sync", "tool result"],
)
async def test_a_repeated_frame_gets_its_answer_again_and_changes_nothing(
    address: str, type: int, prepare: Prepared
) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask()
        packet = await peer.send(type, **await prepare(orchestrator, peer))
        first = await peer.next()
        if type in (USER_MESSAGE, VARIATION):
            await peer.answer()
        elif type == MEMORY:
            await peer.next()  # the trace
        before = await everything(orchestrator)

        await peer.line.send(packet)
        again = await peer.next()

        assert (again.type, again.body) == (first.type, first.body)
        assert again.stanza < first.stanza
        after = await everything(orchestrator)
        assert {name for name in after if after[name] != before[name]} == {"frames", "counts"}
        await peer.ask("And now something else")


async def test_a_repeated_configuration_gets_both_counts_again(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        packet = await peer.send(CONFIGURATION, device="phone")
        result = [await peer.next(), await peer.next()]
        before = await everything(orchestrator)

        await peer.line.send(packet)
        again = [await peer.next(), await peer.next()]

        assert [frame.packet for frame in again] == [frame.packet for frame in result]
        assert await everything(orchestrator) == before


async def test_a_frame_without_an_answer_is_stored_and_gets_none_when_repeated(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        mine = peer.conversation_id
        packets = [
            await peer.send(ACKNOWLEDGEMENT, acknowledgedStanzaId=-1, success=True),
            await peer.send(
                ERROR,
                id="err_1",
                code=305,
                message="no camera",
                severity=1,
                recoverable=True,
                originatingId="x",
            ),
            await peer.send(AUDIO, format="opus", durationMs=20, data=b"\x01\x02", trackSid="TR_1"),
            await peer.send(4, format="opus", duration=40),
        ]
        for packet in packets:
            await peer.line.send(packet)
        assert (await peer.request(AUDIO, format="opus", durationMs=20, sentenceId="sent_1")).code == 203
        note = await peer.request(NOTE, id=new_id("note_"), content="hm", action="create")

        assert note.stanza == -1
        kept = await orchestrator.store.read(lambda tx: tx.frames.in_order(mine))
        assert [frame.payload for frame in kept[1:5]] == packets
        assert [frame.type for frame in kept[1:5]] == [ACKNOWLEDGEMENT, ERROR, AUDIO, 4]
        columns = "audio_type, audio_format, duration_ms, livekit_track_sid"
        sounds = await rows(orchestrator, f"SELECT {columns} FROM alicia_audio ORDER BY duration_ms")  # noqa: S608
        assert sounds == [("input", "opus", 20, "TR_1"), ("input", "opus", 40, None)]


async def test_a_refused_frame_leaves_its_number_free(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        before = await everything(orchestrator)
        await peer.send(USER_MESSAGE, stanza=2, id=new_id(), content="hello", previousId="msg_unknown")
        assert (await peer.next()).code == 105
        await peer.send(99, stanza=2)
        assert (await peer.next()).code == 102
        assert await everything(orchestrator) == before

        await peer.send(USER_MESSAGE, stanza=2, id=new_id(), content="hello")
        assert (await peer.answer())[0].body["acknowledgedStanzaId"] == 2


@pytest.mark.requirement("003-031")
@on_both_databases
async def test_a_message_is_on_disk_before_it_is_acknowledged(address: str) -> None:
    hold = asyncio.Event()
    outside = a_store(address)
    async with (
        an_orchestrator(address, ScriptedBrain(enrichments=[hold])).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        message_id = await peer.say("I am having a headache")
        acknowledged = await peer.next()

        stored = outside.read_now(lambda tx: tx.messages.get(message_id))
        assert (acknowledged.type, acknowledged.body["acknowledgedStanzaId"]) == (ACKNOWLEDGEMENT, peer.sent)
        assert stored is not None
        assert (stored.message_role, stored.contents) == ("user", "I am having a headache")
        assert (stored.completion_status, stored.previous_id) == ("completed", None)
        hold.set()
        await peer.answer()
    outside.close_now()


async def test_a_known_message_under_a_new_number_is_acknowledged_and_not_answered_again(
    address: str,
) -> None:
    brain = ScriptedBrain()
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        message_id = await peer.say("I am having a headache")
        await peer.answer()

        again = await peer.request(USER_MESSAGE, id=message_id, content="I am having a headache")

        assert (again.type, again.body["acknowledgedStanzaId"]) == (ACKNOWLEDGEMENT, peer.sent)
        assert (again.body["success"], len(brain.briefs)) == (True, 1)
        note = await peer.request(NOTE, id=new_id("note_"), content="hm", action="create")
        assert note.stanza == again.stanza - 1  # no stanza in between
        assert len(await messages(orchestrator, peer.conversation_id)) == 2


async def test_an_id_cannot_be_used_for_another_message(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator:
        async with conversing(orchestrator) as other, conversing(orchestrator, BOB) as foreign:
            of_other, of_foreign = await other.say("hello"), await foreign.say("hello")
            await other.answer()
            await foreign.answer()
        async with conversing(orchestrator) as peer:
            mine = await peer.say("hello")
            answer = (await peer.answer())[1].body["id"]
            said = "I understand. How severe is it on a scale of 1 to 10?"
            before = await everything(orchestrator)

            for used, content in (
                (mine, "Hello"),
                (of_other, "hello"),
                (of_foreign, "hello"),
                (answer, said),
            ):
                refused = await peer.request(USER_MESSAGE, id=used, content=content)
                assert (refused.code, refused.body["originatingId"]) == (105, used)

            assert await everything(orchestrator) == before


@pytest.mark.requirement("003-020", "003-031")
async def test_a_message_follows_the_one_it_names_or_else_the_last_one(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        first, second, third = new_id(), new_id(), new_id()
        answers = [
            (await peer.ask("One", id=first))[1],
            (await peer.ask("Two", id=second))[1],
            (await peer.ask("Three", id=third, previousId=first))[1],
        ]

        chain = [(each.id, each.previous_id) for each in await messages(orchestrator, peer.conversation_id)]
        assert chain == [
            (first, None),
            (answers[0].body["id"], first),
            (second, answers[0].body["id"]),
            (answers[1].body["id"], second),
            (third, first),
            (answers[2].body["id"], third),
        ]


async def test_a_message_cannot_follow_one_of_another_conversation_or_one_that_does_not_exist(
    address: str,
) -> None:
    async with an_orchestrator(address).open() as orchestrator:
        async with conversing(orchestrator) as other:
            foreign = await other.say()
            await other.answer()
        async with conversing(orchestrator) as peer:
            before = await everything(orchestrator)
            for previous in (foreign, "msg_unknown"):
                refused = await peer.request(USER_MESSAGE, id=new_id(), content="hello", previousId=previous)
                assert refused.code == 105
            assert await everything(orchestrator) == before


async def test_messages_that_arrive_during_an_answer_wait_and_are_answered_in_order(address: str) -> None:
    hold = asyncio.Event()
    brain = ScriptedBrain(enrichments=[hold])
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        said = [await peer.say(content) for content in ("One", "Two", "Three")]
        acknowledged = await peer.until(lambda frame: frame.body.get("acknowledgedStanzaId") == peer.sent)
        states = [(await turn(orchestrator, message_id)).state for message_id in said]
        hold.set()
        frames = [*acknowledged]
        for _ in said:
            frames += await peer.answer()

        assert len([frame for frame in acknowledged if frame.type == ACKNOWLEDGEMENT]) == 3
        assert (states[1:], brain.messages) == (["pending", "pending"], ["One", "Two", "Three"])
        assert [frame.body["previousId"] for frame in frames if frame.type == START_ANSWER] == said
        assert [(await turn(orchestrator, message_id)).number for message_id in said] == [1, 2, 3]


async def test_a_frame_for_another_conversation_of_the_same_person_is_refused(
    address: str,
) -> None:
    async with an_orchestrator(address).open() as orchestrator:
        async with conversing(orchestrator) as other:
            await other.ask()
        async with conversing(orchestrator) as peer:
            before = await everything(orchestrator)
            frame = {"id": new_id(), "content": "hello"}
            await peer.line.send(envelope(2, USER_MESSAGE, other.conversation_id, frame))
            assert (await peer.next()).code == 202
            assert await everything(orchestrator) == before
            await peer.ask()


async def test_a_busy_server_refuses_messages_of_all_conversations_until_one_is_answered(
    address: str,
) -> None:
    hold = asyncio.Event()
    brain = ScriptedBrain(enrichments=[hold, hold])
    async with (
        an_orchestrator(address, brain, waiting_everywhere=2).open() as orchestrator,
        conversing(orchestrator) as first,
        conversing(orchestrator, "bob") as second,
        conversing(orchestrator, "carl") as third,
    ):
        for peer in (first, second):
            await peer.say()
            await peer.until_type(START_ANSWER)
        before = await everything(orchestrator)

        message_id = await third.say("Is anybody there?")
        refused = (await third.until_type(ERROR))[-1]
        assert (refused.stanza, refused.code, refused.meta["error"]) == (0, 504, "server_busy")
        assert (refused.body["recoverable"], refused.body["originatingId"]) == (True, message_id)
        assert await everything(orchestrator) == before

        hold.set()
        await first.answer()
        await second.answer()
        await third.ask("Is anybody there?")


async def test_a_message_above_the_waiting_limit_is_refused_and_can_be_sent_again(address: str) -> None:
    hold = asyncio.Event()
    brain = ScriptedBrain(enrichments=[hold])
    async with (
        an_orchestrator(address, brain, waiting=3).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.say()
        await peer.until_type(START_ANSWER)
        for _ in range(2):
            await peer.say()
            await peer.until_type(ACKNOWLEDGEMENT)
        before = await everything(orchestrator)

        message_id = await peer.say("One more")
        refused = (await peer.until_type(ERROR))[-1]
        assert (refused.stanza, refused.code, refused.meta["error"]) == (0, 504, "overloaded")
        assert (refused.body["recoverable"], refused.body["originatingId"]) == (True, message_id)
        assert await everything(orchestrator) == before
        note = await peer.request(NOTE, id=new_id("note_"), content="Still here", action="create")
        assert note.body["success"]  # the limit counts only messages

        hold.set()
        for _ in range(3):
            await peer.answer()
        answered = await peer.ask("One more", id=message_id)
        assert answered[0].body["success"]
        assert answered[-1].body["isFinal"]
