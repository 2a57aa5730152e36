"""The order of a client's frames: what was taken once is not taken twice, and what was refused never was."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agents.brains.scripted import ScriptedBrain
from orchestrator.house import House
from orchestrator.store.database import Transaction
from tests.houses import BOB, a_house, a_store, everything, messages, rows, turn
from tests.peers import (
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

EARLIER = {"localId": "l1", "role": "user", "contents": "hi", "createdAt": "2024-01-15T10:30:00.000Z"}


async def test_numbers_may_be_left_out_but_never_go_back(address: str) -> None:
    async with a_house(address).open() as house, conversing(house) as peer:
        for stanza in (5, 6, 100):
            await peer.send(NOTE, stanza=stanza, id=new_id("note_"), content="hm", action="create")
            assert (await peer.next()).body["success"]
        before = await everything(house)

        for stanza in (100, 99, 50, 7, 5, 1, 0, -1, -100):
            await peer.send(NOTE, stanza=stanza, id=new_id("note_"), content="hm", action="create")
            refused = await peer.next()
            assert (refused.stanza, refused.code) == (0, 101)

        assert await everything(house) == before


async def a_tool_is_asked_for(house: House, peer: Peer) -> str:
    def ask(tx: Transaction) -> str:
        last = tx.messages.last(peer.conversation_id)
        assert last is not None
        return tx.tools.request(peer.conversation_id, last.id, "calendar", {}).id

    return await house.store.write(ask)


async def the_answer(house: House, peer: Peer) -> str:
    (last,) = (await messages(house, peer.conversation_id))[-1:]
    return last.id


Prepared = Callable[[House, Peer], Awaitable[dict[str, Any]]]


async def a_message(house: House, peer: Peer) -> dict[str, Any]:
    return {"id": new_id(), "content": "It is an 8"}


async def a_variation(house: House, peer: Peer) -> dict[str, Any]:
    return {"targetId": await the_answer(house, peer), "mode": "regenerate"}


async def a_remark(house: House, peer: Peer) -> dict[str, Any]:
    return {"id": new_id("note_"), "content": "hm", "commentaryType": "aside"}


async def a_deleted_note(house: House, peer: Peer) -> dict[str, Any]:
    return {"id": new_id("note_"), "content": "", "action": "delete"}


async def a_memory(house: House, peer: Peer) -> dict[str, Any]:
    return {"id": new_id("req_"), "action": "create", "memory": {"content": "Drinks tea"}}


async def a_sync(house: House, peer: Peer) -> dict[str, Any]:
    return {"messages": [EARLIER, {**EARLIER, "localId": "l2", "role": "nobody"}]}


async def a_tool_result(house: House, peer: Peer) -> dict[str, Any]:
    return {"id": new_id("res_"), "requestId": await a_tool_is_asked_for(house, peer), "success": True}


async def nothing_to_stop(house: House, peer: Peer) -> dict[str, Any]:
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
async def test_the_same_frame_again_gets_the_answer_it_got_and_does_nothing(
    address: str, type: int, prepare: Prepared
) -> None:
    async with a_house(address).open() as house, conversing(house) as peer:
        await peer.ask()
        packet = await peer.send(type, **await prepare(house, peer))
        first = await peer.next()
        if type in (USER_MESSAGE, VARIATION):
            await peer.answer()
        elif type == MEMORY:
            await peer.next()  # the trace
        before = await everything(house)

        await peer.line.send(packet)
        again = await peer.next()

        assert (again.type, again.body) == (first.type, first.body)
        assert again.stanza < first.stanza
        after = await everything(house)
        assert {name for name in after if after[name] != before[name]} == {"frames", "counts"}
        await peer.ask("And now something else")


async def test_the_same_configuration_again_tells_where_both_sides_stand(address: str) -> None:
    async with a_house(address).open() as house, conversing(house) as peer:
        packet = await peer.send(CONFIGURATION, device="phone")
        told = [await peer.next(), await peer.next()]
        before = await everything(house)

        await peer.line.send(packet)
        again = [await peer.next(), await peer.next()]

        assert [frame.packet for frame in again] == [frame.packet for frame in told]
        assert await everything(house) == before


async def test_what_asks_for_nothing_is_kept_and_gets_no_answer_the_second_time_neither(address: str) -> None:
    async with a_house(address).open() as house, conversing(house) as peer:
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
        kept = await house.store.read(lambda tx: tx.frames.in_order(mine))
        assert [frame.payload for frame in kept[1:5]] == packets
        assert [frame.type for frame in kept[1:5]] == [ACKNOWLEDGEMENT, ERROR, AUDIO, 4]
        columns = "audio_type, audio_format, duration_ms, livekit_track_sid"
        sounds = await rows(house, f"SELECT {columns} FROM alicia_audio ORDER BY duration_ms")  # noqa: S608
        assert sounds == [("input", "opus", 20, "TR_1"), ("input", "opus", 40, None)]


async def test_a_refused_frame_leaves_its_number_free(address: str) -> None:
    async with a_house(address).open() as house, conversing(house) as peer:
        before = await everything(house)
        await peer.send(USER_MESSAGE, stanza=2, id=new_id(), content="hello", previousId="msg_unknown")
        assert (await peer.next()).code == 105
        await peer.send(99, stanza=2)
        assert (await peer.next()).code == 102
        assert await everything(house) == before

        await peer.send(USER_MESSAGE, stanza=2, id=new_id(), content="hello")
        assert (await peer.answer())[0].body["acknowledgedStanzaId"] == 2


@pytest.mark.requirement("003-031")
async def test_a_message_is_on_disk_before_it_is_acknowledged(address: str) -> None:
    hold = asyncio.Event()
    outside = a_store(address)
    async with (
        a_house(address, ScriptedBrain(enrichments=[hold])).open() as house,
        conversing(house) as peer,
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
    async with a_house(address, brain).open() as house, conversing(house) as peer:
        message_id = await peer.say("I am having a headache")
        await peer.answer()

        again = await peer.request(USER_MESSAGE, id=message_id, content="I am having a headache")

        assert (again.type, again.body["acknowledgedStanzaId"]) == (ACKNOWLEDGEMENT, peer.sent)
        assert (again.body["success"], len(brain.briefs)) == (True, 1)
        note = await peer.request(NOTE, id=new_id("note_"), content="hm", action="create")
        assert note.stanza == again.stanza - 1  # nothing came in between
        assert len(await messages(house, peer.conversation_id)) == 2


async def test_an_id_is_not_used_for_anything_else(address: str) -> None:
    async with a_house(address).open() as house:
        async with conversing(house) as other, conversing(house, BOB) as foreign:
            of_other, of_foreign = await other.say("hello"), await foreign.say("hello")
            await other.answer()
            await foreign.answer()
        async with conversing(house) as peer:
            mine = await peer.say("hello")
            answer = (await peer.answer())[1].body["id"]
            said = "I understand. How severe is it on a scale of 1 to 10?"
            before = await everything(house)

            for used, content in (
                (mine, "Hello"),
                (of_other, "hello"),
                (of_foreign, "hello"),
                (answer, said),
            ):
                refused = await peer.request(USER_MESSAGE, id=used, content=content)
                assert (refused.code, refused.body["originatingId"]) == (105, used)

            assert await everything(house) == before


@pytest.mark.requirement("003-020", "003-031")
async def test_a_message_follows_the_one_it_names_or_else_the_last_one(address: str) -> None:
    async with a_house(address).open() as house, conversing(house) as peer:
        first, second, third = new_id(), new_id(), new_id()
        answers = [
            (await peer.ask("One", id=first))[1],
            (await peer.ask("Two", id=second))[1],
            (await peer.ask("Three", id=third, previousId=first))[1],
        ]

        chain = [(each.id, each.previous_id) for each in await messages(house, peer.conversation_id)]
        assert chain == [
            (first, None),
            (answers[0].body["id"], first),
            (second, answers[0].body["id"]),
            (answers[1].body["id"], second),
            (third, first),
            (answers[2].body["id"], third),
        ]


async def test_a_message_cannot_follow_one_of_another_conversation_or_of_none(address: str) -> None:
    async with a_house(address).open() as house:
        async with conversing(house) as other:
            foreign = await other.say()
            await other.answer()
        async with conversing(house) as peer:
            before = await everything(house)
            for previous in (foreign, "msg_unknown"):
                refused = await peer.request(USER_MESSAGE, id=new_id(), content="hello", previousId=previous)
                assert refused.code == 105
            assert await everything(house) == before


async def test_messages_that_come_while_an_answer_runs_wait_and_are_answered_in_order(address: str) -> None:
    hold = asyncio.Event()
    brain = ScriptedBrain(enrichments=[hold])
    async with a_house(address, brain).open() as house, conversing(house) as peer:
        said = [await peer.say(content) for content in ("One", "Two", "Three")]
        acknowledged = await peer.until(lambda frame: frame.body.get("acknowledgedStanzaId") == peer.sent)
        states = [(await turn(house, message_id)).state for message_id in said]
        hold.set()
        frames = [*acknowledged]
        for _ in said:
            frames += await peer.answer()

        assert len([frame for frame in acknowledged if frame.type == ACKNOWLEDGEMENT]) == 3
        assert (states[1:], brain.heard) == (["pending", "pending"], ["One", "Two", "Three"])
        assert [frame.body["previousId"] for frame in frames if frame.type == START_ANSWER] == said
        assert [(await turn(house, message_id)).number for message_id in said] == [1, 2, 3]


async def test_a_frame_for_another_conversation_is_refused_even_if_it_is_the_same_persons(
    address: str,
) -> None:
    async with a_house(address).open() as house:
        async with conversing(house) as other:
            await other.ask()
        async with conversing(house) as peer:
            before = await everything(house)
            frame = {"id": new_id(), "content": "hello"}
            await peer.line.send(envelope(2, USER_MESSAGE, other.conversation_id, frame))
            assert (await peer.next()).code == 202
            assert await everything(house) == before
            await peer.ask()


async def test_a_message_beyond_those_that_may_wait_is_refused_and_can_be_sent_again(address: str) -> None:
    hold = asyncio.Event()
    brain = ScriptedBrain(enrichments=[hold])
    async with (
        a_house(address, brain, waiting=3).open() as house,
        conversing(house) as peer,
    ):
        await peer.say()
        await peer.until_type(START_ANSWER)
        for _ in range(2):
            await peer.say()
            await peer.until_type(ACKNOWLEDGEMENT)
        before = await everything(house)

        message_id = await peer.say("One more")
        refused = (await peer.until_type(ERROR))[-1]
        assert (refused.stanza, refused.code, refused.meta["error"]) == (0, 504, "overloaded")
        assert (refused.body["recoverable"], refused.body["originatingId"]) == (True, message_id)
        assert await everything(house) == before
        note = await peer.request(NOTE, id=new_id("note_"), content="Still here", action="create")
        assert note.body["success"]  # only messages wait

        hold.set()
        for _ in range(3):
            await peer.answer()
        answered = await peer.ask("One more", id=message_id)
        assert answered[0].body["success"]
        assert answered[-1].body["isFinal"]
