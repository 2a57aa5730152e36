"""Requests besides messages: notes, commentaries, memories, earlier messages, results of tools."""

from datetime import UTC, datetime
from typing import Any

import pytest

from agents.models.scripted import ScriptedRecall
from agents.ports import MemoryHit
from orchestrator.connection import handlers
from orchestrator.orchestrator import Orchestrator
from orchestrator.remember.changing import MemoryChanges
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.memory.memories import NewMemory
from orchestrator.store.rows import Memory, Note, ToolUse
from orchestrator.wire import codec
from tests.support.orchestrators import ANN, BOB, an_orchestrator, everything, messages, meta, rows
from tests.support.protocol_client import (
    ACKNOWLEDGEMENT,
    COMMENTARY,
    MEMORY,
    NOTE,
    NOTED,
    REMEMBERED,
    SYNC,
    SYNCED,
    TOOL_RESULT,
    TRACE,
    Frame,
    Peer,
    conversing,
    new_id,
)
from tests.support.stores import on_both_databases


async def notes(orchestrator: Orchestrator, peer: Peer) -> list[Note]:
    return await orchestrator.store.read(lambda tx: tx.notes.of_conversation(peer.conversation_id))


async def a_message_elsewhere(orchestrator: Orchestrator, person: str = ANN) -> str:
    async with conversing(orchestrator, person) as other:
        message_id = await other.say()
        await other.answer()
        return message_id


# --- notes --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("003-095", "003-086", "003-087", "003-088", "003-089", "003-090", "003-091")
async def test_a_note_is_stored_for_a_message_or_for_the_conversation(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        message_id = await peer.say()
        await peer.answer()
        on_message, on_all = new_id("note_"), new_id("note_")

        first = await peer.request(
            NOTE, id=on_message, content="Ask again", messageId=message_id, category="todo", action="create"
        )
        second = await peer.request(NOTE, id=on_all, content="Went well", action="create")

        assert (first.type, first.stanza < 0) == (NOTED, True)
        assert first.body == {
            "conversationId": peer.conversation_id,
            "requestId": on_message,
            "noteId": on_message,
            "messageId": message_id,
            "success": True,
        }
        assert second.body["success"]
        kept = [
            (each.id, each.content, each.message_id, each.created_by, each.meta)
            for each in await notes(orchestrator, peer)
        ]
        assert sorted(kept) == sorted(
            [
                (on_message, "Ask again", message_id, ANN, {"category": "todo"}),
                (on_all, "Went well", None, ANN, None),
            ]
        )


async def test_a_note_is_changed_and_deleted_and_each_request_may_be_repeated(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        note = new_id("note_")
        for action, content in (
            ("create", "Went well"),
            ("create", "Went well"),
            ("update", "Went very well"),
            ("update", "Went very well"),
            ("create", "Went well"),
        ):
            confirmed = await peer.request(NOTE, id=note, content=content, action=action)
            assert (confirmed.type, confirmed.body["requestId"], confirmed.body["success"]) == (
                NOTED,
                note,
                True,
            )
        assert [each.content for each in await notes(orchestrator, peer)] == ["Went very well"]

        for _ in range(2):
            assert (await peer.request(NOTE, id=note, content="", action="delete")).body["success"]
            assert await notes(orchestrator, peer) == []
        assert not (await peer.request(NOTE, id=note, content="Hm", action="update")).body["success"]
        again = await peer.request(NOTE, id=note, content="Went very well", action="create")
        assert again.body["success"]
        assert await notes(orchestrator, peer) == []  # a repeated create does not undo the delete


async def test_a_note_that_does_not_exist_cannot_be_changed(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        for action in ("update", "delete"):
            confirmed = await peer.request(NOTE, id="note_none", content="Hm", action=action)
            assert (confirmed.type, confirmed.body["success"]) == (NOTED, False)
        assert await notes(orchestrator, peer) == []


async def test_the_id_of_a_note_is_used_once_and_its_message_is_of_this_conversation(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator:
        elsewhere = await a_message_elsewhere(orchestrator)
        async with conversing(orchestrator, BOB) as foreign:
            foreign_note, deleted_note = new_id("note_"), new_id("note_")
            await foreign.request(NOTE, id=foreign_note, content="Mine", action="create")
            await foreign.request(NOTE, id=deleted_note, content="Mine", action="create")
            await foreign.request(NOTE, id=deleted_note, content="", action="delete")
        async with conversing(orchestrator) as peer:
            mine = new_id("note_")
            await peer.request(NOTE, id=mine, content="Mine", action="create")
            before = await everything(orchestrator)

            for type, fields in (
                (NOTE, {"id": mine, "content": "Other", "action": "create"}),
                (NOTE, {"id": foreign_note, "content": "Mine", "action": "create"}),
                (NOTE, {"id": foreign_note, "content": "Taken over", "action": "update"}),
                (NOTE, {"id": foreign_note, "content": "", "action": "delete"}),
                (NOTE, {"id": deleted_note, "content": "Mine", "action": "create"}),
                (NOTE, {"id": new_id("note_"), "content": "Hm", "action": "create", "messageId": elsewhere}),
                (NOTE, {"id": new_id("note_"), "content": "Hm", "action": "create", "messageId": "msg_none"}),
                (COMMENTARY, {"id": foreign_note, "content": "Mine"}),
                (COMMENTARY, {"id": deleted_note, "content": "Mine"}),
                (COMMENTARY, {"id": new_id("note_"), "content": "Hm", "messageId": elsewhere}),
            ):
                refused = await peer.request(type, **fields)
                assert (refused.stanza, refused.code) == (0, 105), fields
            assert await everything(orchestrator) == before


async def test_a_commentary_is_acknowledged_and_stored_among_the_notes(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        message_id = await peer.say()
        await peer.answer()
        remark = {
            "id": new_id("note_"),
            "content": "Good question",
            "messageId": message_id,
            "commentaryType": "praise",
        }

        for _ in range(2):  # the second time under another number
            acknowledged = await peer.request(COMMENTARY, **remark)
            assert (acknowledged.type, acknowledged.body["acknowledgedStanzaId"]) == (
                ACKNOWLEDGEMENT,
                peer.sent,
            )

        (kept,) = await notes(orchestrator, peer)
        assert (kept.content, kept.message_id, kept.created_by) == ("Good question", message_id, ANN)
        assert kept.meta == {"commentaryType": "praise"}


# --- memories -----------------------------------------------------------------------------------------------


async def memory(orchestrator: Orchestrator, memory_id: str) -> Memory | None:
    return await orchestrator.store.read(lambda tx: tx.memories.get(memory_id))


async def act(peer: Peer, action: str, memory_id: str | None = None, **fields: Any) -> Frame:
    """Request a change of a memory; returns the confirmation, which its trace follows."""
    named = {} if memory_id is None else {"memoryId": memory_id}
    request = fields.pop("id", None) or new_id("req_")
    confirmed = await peer.request(MEMORY, id=request, action=action, **named, **fields)
    if confirmed.type == REMEMBERED:
        assert (confirmed.body["requestId"], confirmed.body["action"]) == (request, action)
        assert confirmed.body["success"]
    return confirmed


@pytest.mark.requirement("000-016", "000-017", "000-031", "003-065", "003-066", "003-060", "003-061")
@on_both_databases
async def test_a_person_creates_changes_pins_rates_archives_and_deletes_a_memory_and_each_is_traced(
    address: str,
) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        message_id = await peer.say()
        await peer.answer()
        draft = {"content": "Drinks tea", "category": "habits", "pinned": True}
        memory_id = (await act(peer, "create", memory=draft)).body["memoryId"]
        traces = [await peer.next()]
        made = await memory(orchestrator, memory_id)
        assert made is not None
        assert (made.content, made.tags, made.pinned) == ("Drinks tea", ("habits",), True)
        assert (made.user_id, made.created_by, made.archived) == (ANN, ANN, False)

        for action, fields, name, expected in (
            ("update", {"memory": {"content": "Drinks green tea"}}, "content", "Drinks green tea"),
            ("update", {"memory": {"rating": 4}}, "user_rating", 4),
            ("update", {"memory": {"category": "drinks"}}, "tags", ("drinks",)),
            ("pin", {"memory": {"pinned": False}}, "pinned", False),
            ("pin", {}, "pinned", True),
            ("archive", {}, "archived", True),
        ):
            await act(peer, action, memory_id, **fields)
            traces.append(await peer.next())
            changed = await memory(orchestrator, memory_id)
            assert getattr(changed, name) == expected
            assert changed is not None
            assert "green" in changed.content
        await act(peer, "delete", memory_id)
        traces.append(await peer.next())
        assert await memory(orchestrator, memory_id) is None

        assert {trace.type for trace in traces} == {TRACE}
        assert [trace.body["action"] for trace in traces] == ["stored", *["updated"] * 7]
        assert {trace.body["memoryId"] for trace in traces} == {memory_id}
        assert all(trace.body["metadata"]["background"] for trace in traces)
        last = (await messages(orchestrator, peer.conversation_id))[-1].id
        assert {trace.body["previousId"] for trace in traces} == {last} != {message_id}
        kept = await orchestrator.store.read(lambda tx: tx.traces.of_memory(memory_id))
        assert sorted(row.id for row in kept) == sorted(trace.body["id"] for trace in traces)


@on_both_databases
async def test_a_deletion_on_the_wire_takes_along_what_was_derived_and_can_be_undone(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        memory_id = (await act(peer, "create", memory={"content": "Drinks tea"})).body["memoryId"]
        await peer.next()
        made_of: dict[str, Any] = {"members": [memory_id]}
        new = NewMemory(content="Habits: tea", user_id=ANN, id="mem_sum", source_info=made_of)
        await orchestrator.store.write(lambda tx: tx.memories.add(new))
        await act(peer, "delete", memory_id)
        traced = [(await peer.next()).body["memoryId"] for _ in range(2)]
        gone = [await memory(orchestrator, each) for each in (memory_id, "mem_sum")]
        await orchestrator.store.write(lambda tx: MemoryChanges(tx, ANN, ANN).undo())

        assert traced == [memory_id, "mem_sum"]
        assert gone == [None, None]
        assert await memory(orchestrator, memory_id) is not None
        assert await memory(orchestrator, "mem_sum") is not None


@pytest.mark.parametrize("fields", [{"rating": 4}, {"content": "Drinks coffee"}, {"pinned": True}])
async def test_an_update_on_the_wire_can_be_undone(address: str, fields: dict[str, Any]) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        memory_id = (await act(peer, "create", memory={"content": "Drinks tea"})).body["memoryId"]
        await peer.next()
        before = await memory(orchestrator, memory_id)
        await act(peer, "update", memory_id, memory=fields)
        await orchestrator.store.write(lambda tx: MemoryChanges(tx, ANN, ANN).undo())
        after = await memory(orchestrator, memory_id)

        assert before is not None
        assert after is not None
        assert (after.content, after.user_rating, after.pinned) == (
            before.content,
            before.user_rating,
            before.pinned,
        )


@pytest.mark.requirement("000-019")
async def test_a_trace_shows_a_long_term_memory_up_to_the_limit(embedded: str) -> None:
    async def remember(peer: Peer, content: str) -> Frame:
        await act(peer, "create", memory={"content": content})
        return await peer.next()

    recall = ScriptedRecall(MemoryHit("mem_1", "Drinks green tea", 0.5, position=1))
    async with (
        an_orchestrator(embedded, recall=recall, trace_content_characters=10).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await orchestrator.store.write(
            lambda tx: tx.memories.add(
                NewMemory(content="Drinks green tea", user_id=ANN, id="mem_1")
            )  # a trace needs its row
        )
        traces = [await remember(peer, "Drinks green tea"), await remember(peer, "Drinks tea")]
        traces += [frame for frame in await peer.ask() if frame.body.get("memoryId") == "mem_1"]

    shown = [(frame.body["content"], frame.body["metadata"].get("truncated")) for frame in traces]
    assert shown[:2] == [("Drinks gre", True), ("Drinks tea", None)]
    assert shown[2:] == [("Drinks gre", True)]


async def test_a_repeated_request_is_confirmed_again_and_changes_and_traces_nothing(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        request = new_id("req_")
        first = await act(peer, "create", id=request, memory={"content": "Drinks tea"})
        assert "previousId" not in (await peer.next()).body  # there is no message yet
        again = await act(peer, "create", id=request, memory={"content": "Drinks tea"})
        memory_id = first.body["memoryId"]
        await act(peer, "delete", memory_id)
        await peer.next()
        gone = [
            await act(peer, "delete", memory_id),
            await act(peer, "create", id=request, memory={"content": "Drinks tea"}),
        ]
        note = await peer.request(NOTE, id=new_id("note_"), content="hm", action="create")

        assert again.body == first.body
        assert note.stanza == gone[-1].stanza - 1  # no trace in between
        assert await memory(orchestrator, memory_id) is None
        assert await rows(orchestrator, "SELECT count(*) FROM alicia_memory_used") == [(2,)]


async def test_a_memory_that_is_not_the_persons_or_is_a_block_cannot_be_changed(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator:
        async with conversing(orchestrator, BOB) as foreign:
            bobs = (await act(foreign, "create", memory={"content": "Mine"})).body["memoryId"]
        async with conversing(orchestrator) as peer:
            traces = [frame for frame in await peer.ask() if frame.type == TRACE]
            block = traces[0].body["memoryId"]
            request = new_id("req_")
            gone = (await act(peer, "create", id=request, memory={"content": "Tea"})).body["memoryId"]
            await peer.next()
            await act(peer, "delete", gone)
            await peer.next()
            before = await everything(orchestrator)

            for action in ("update", "pin", "archive", "delete"):
                draft = {"memory": {"content": "Taken over"}}
                assert (await act(peer, action, bobs, **draft)).code == 105
                assert (await act(peer, action, "mem_none", **draft)).code == 105
                assert (await act(peer, action, block, **draft)).code == 203
                if action != "delete":
                    assert (await act(peer, action, gone, **draft)).code == 105
                assert (await act(peer, action)).code == 104
            assert (await act(peer, "create")).code == 104
            assert (await act(peer, "create", memory={"pinned": True})).code == 104
            assert (await act(peer, "create", id=request, memory={"content": "Coffee"})).code == 105
            assert (await act(peer, "update", gone, memory={"rating": 6})).code == 105
            assert await everything(orchestrator) == before
            await peer.ask("And now?")


async def test_a_change_of_a_memory_is_made_once_however_often_it_is_requested(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        tea = (await act(peer, "create", memory={"content": "Drinks tea"})).body["memoryId"]
        await peer.next()
        second, third = new_id("req_"), new_id("req_")
        confirmed = await act(peer, "update", tea, id=second, memory={"content": "Drinks coffee"})
        await peer.next()
        await act(peer, "update", tea, id=third, memory={"content": "Drinks water"})
        await peer.next()

        again = await act(peer, "update", tea, id=second, memory={"content": "Drinks coffee"})

        assert again.body == confirmed.body
        assert (await act(peer, "delete", tea, id=second)).code == 105
        now = await memory(orchestrator, tea)
        assert now is not None
        assert now.content == "Drinks water"


REQUESTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "create": ({"content": "Drinks water"}, {"content": "Drinks coffee"}),
    "create, in another drawer": (
        {"content": "Drinks water"},
        {"content": "Drinks water", "category": "habits"},
    ),
    "update": ({"content": "Drinks water"}, {"content": "Drinks coffee"}),
    "update, rated": ({"rating": 2}, {"rating": 3}),
    "pin": ({"pinned": True}, {"pinned": False}),
    "archive": ({}, {"pinned": True}),
    "delete": ({}, {"rating": 1}),
}
"""A request, and a different one under the same id."""


@pytest.mark.parametrize("kind", REQUESTS)
async def test_a_different_request_under_the_same_id_is_refused(address: str, kind: str) -> None:
    asked, other = REQUESTS[kind]
    action = kind.partition(",")[0]
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        tea, juice = [
            (await act(peer, "create", memory={"content": content}), await peer.next())[0].body["memoryId"]
            for content in ("Drinks tea", "Drinks juice")
        ]
        named, request = (None if action == "create" else tea), new_id("req_")
        confirmed = await act(peer, action, named, id=request, memory=asked)
        await peer.next()
        before = await everything(orchestrator)

        refused = [
            await act(peer, action, named, id=request, memory=other),
            await act(peer, "pin" if action == "archive" else "archive", tea, id=request, memory=asked),
            await act(peer, action, juice, id=request, memory=asked),
        ]

        assert [(frame.stanza, frame.code) for frame in refused] == [(0, 105)] * 3
        assert await everything(orchestrator) == before
        assert (await act(peer, action, named, id=request, memory=asked)).body == confirmed.body


async def test_a_repeated_request_is_compared_with_the_first_request_not_with_the_present_row(
    address: str,
) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        request = new_id("req_")
        made = await act(peer, "create", id=request, memory={"content": "Drinks tea"})
        await peer.next()
        await act(peer, "update", made.body["memoryId"], memory={"content": "Drinks coffee"})
        await peer.next()

        again = await act(peer, "create", id=request, memory={"content": "Drinks tea"})
        never_asked = await act(peer, "create", id=request, memory={"content": "Drinks coffee"})

        assert again.body == made.body
        assert never_asked.code == 105
        now = await memory(orchestrator, made.body["memoryId"])
        assert now is not None
        assert now.content == "Drinks coffee"


async def test_a_commentary_that_was_changed_since_may_be_repeated(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        remark = {"id": new_id("note_"), "content": "Good question"}
        await peer.request(COMMENTARY, **remark)
        await peer.request(NOTE, id=remark["id"], content="Good answer", action="update")

        again = await peer.request(COMMENTARY, **remark)

        assert (again.type, again.body["success"]) == (ACKNOWLEDGEMENT, True)
        assert [note.content for note in await notes(orchestrator, peer)] == ["Good answer"]
        assert (await peer.request(COMMENTARY, id=remark["id"], content="Bad question")).code == 105


async def test_a_request_is_found_by_its_id_without_reading_earlier_ones(
    embedded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[bytes] = []

    def decode(packet: bytes, **given: Any) -> Any:
        opened.append(packet)
        return codec.decode(packet, **given)

    async with an_orchestrator(embedded).open() as orchestrator, conversing(orchestrator) as peer:
        tea = (await act(peer, "create", memory={"content": "Drinks tea"})).body["memoryId"]
        await peer.next()
        for number in range(5):
            await act(peer, "pin", tea, id=f"req_{number}")
            await peer.next()
            await peer.request(NOTE, id=f"note_{number}", content="Hm", action="create")
        await peer.request(NOTE, id="note_4", content="Well", action="update")
        monkeypatch.setattr(handlers, "decode", decode)

        await act(peer, "pin", tea)
        await peer.next()
        await peer.request(NOTE, id=new_id("note_"), content="Hm", action="create")
        assert not opened
        await act(peer, "pin", tea, id="req_4")
        await peer.request(NOTE, id="note_4", content="Hm", action="create")
        assert len(opened) == 2


async def test_a_memory_has_the_id_the_server_gives_it(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        confirmed = await act(peer, "create", "mem_wished", memory={"content": "Drinks tea"})
        await peer.next()

        assert confirmed.body["memoryId"] != "mem_wished"
        made = await memory(orchestrator, confirmed.body["memoryId"])
        assert made is not None
        assert made.content == "Drinks tea"


# --- earlier messages ---------------------------------------------------------------------------------------


def earlier(local_id: str, role: str = "user", contents: Any = "hello", **fields: Any) -> dict[str, Any]:
    return {
        "localId": local_id,
        "role": role,
        "contents": contents,
        "createdAt": "2024-01-15T10:30:00.250Z",
        **fields,
    }


@pytest.mark.requirement("003-023", "003-024", "003-025", "003-026")
async def test_earlier_messages_are_stored_in_their_order_and_not_answered(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask("First")
        items = [
            earlier("l1", contents="I slept badly"),
            earlier("l2", "assistant", "Since when?", previousId="l1"),
            earlier("l3", "system", "offline", createdAt=1705314600250),
        ]

        response = await peer.request(SYNC, messages=items)

        assert response.type == SYNCED
        said = response.body["syncedMessages"]
        assert [(each["localId"], each["status"]) for each in said] == [
            ("l1", "synced"),
            ("l2", "synced"),
            ("l3", "synced"),
        ]
        kept = (await messages(orchestrator, peer.conversation_id))[2:]
        assert [each.id for each in kept] == [each["serverId"] for each in said]
        assert [(each.message_role, each.contents, each.local_id) for each in kept] == [
            ("user", "I slept badly", "l1"),
            ("assistant", "Since when?", "l2"),
            ("system", "offline", "l3"),
        ]
        assert [each.sequence_number for each in kept] == [3, 4, 5]
        assert kept[1].previous_id == kept[0].id
        moment = datetime(2024, 1, 15, 10, 30, 0, 250_000, tzinfo=UTC)
        assert {each.created_at for each in kept} == {moment}
        assert {(each.sync_status, each.server_id == each.id) for each in kept} == {("synced", True)}
        assert all(each.synced_at for each in kept)
        assert datetime.fromisoformat(response.body["syncedAt"]).tzinfo is not None

        note = await peer.request(NOTE, id=new_id("note_"), content="hm", action="create")
        assert note.stanza == response.stanza - 1  # nothing was answered
        assert await rows(orchestrator, "SELECT count(*) FROM turns") == [(1,)]
        question = await peer.say("It is an 8")
        await peer.answer()
        chain = {each.id: each.previous_id for each in await messages(orchestrator, peer.conversation_id)}
        assert chain[question] == kept[-1].id


async def test_a_bad_item_is_a_conflict_and_the_others_are_stored(address: str) -> None:
    bad = {
        "nul": earlier("nul", contents="a\0b"),
        "role": earlier("role", role="doctor"),
        "empty": earlier("empty", contents=""),
        "blank": earlier("blank", contents=" \n"),
        "number": earlier("number", contents=5),
        "time": earlier("time", createdAt="yesterday"),
        "untimed": {"localId": "untimed", "role": "user", "contents": "hello"},
    }
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        response = await peer.request(
            SYNC, messages=[earlier("good"), *bad.values(), earlier("good too"), earlier("better")]
        )
        assert response.code == 105  # an id with a space is invalid, so the item cannot be named
        response = await peer.request(SYNC, messages=[earlier("good"), *bad.values(), earlier("better")])

        said = {each["localId"]: each for each in response.body["syncedMessages"]}
        assert list(said) == ["good", *bad, "better"]
        for local_id in bad:
            assert said[local_id]["status"] == "conflict"
            assert said[local_id]["conflict"]
            assert "serverId" not in said[local_id]
        assert "doctor" not in said["role"]["conflict"]
        kept = [each.local_id for each in await messages(orchestrator, peer.conversation_id)]
        assert kept == ["good", "better"]


async def test_an_earlier_message_that_follows_one_of_another_conversation_is_a_conflict(
    address: str,
) -> None:
    async with an_orchestrator(address).open() as orchestrator:
        foreign = await a_message_elsewhere(orchestrator, BOB)
        mine = await a_message_elsewhere(orchestrator)
        async with conversing(orchestrator) as peer:
            here = await peer.say()
            await peer.answer()
            items = [
                earlier("foreign", previousId=foreign),
                earlier("mine", previousId=mine),
                earlier("unknown", previousId="msg_none"),
                earlier("here", previousId=here),
                earlier("blank", contents=" "),
                earlier("after", previousId="blank"),
            ]

            said = (await peer.request(SYNC, messages=items)).body["syncedMessages"]

            assert {each["localId"]: each["status"] for each in said} == {
                "foreign": "conflict",
                "mine": "conflict",
                "unknown": "conflict",
                "here": "synced",
                "blank": "conflict",
                "after": "synced",
            }
            assert {each["conflict"] for each in said[:3]} == {
                "`previousId`: must be a message of this conversation."
            }
            kept = {
                each.local_id: each.previous_id
                for each in await messages(orchestrator, peer.conversation_id)
                if each.local_id
            }
            assert kept == {"here": here, "after": said[3]["serverId"]}


async def test_a_repeated_sync_gives_the_same_ids_and_another_text_under_one_is_a_conflict(
    address: str,
) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        items = [earlier("l1"), earlier("l2", "assistant")]
        first = (await peer.request(SYNC, messages=items)).body["syncedMessages"]

        again = (await peer.request(SYNC, messages=[*items, earlier("l3")])).body["syncedMessages"]
        other = (
            await peer.request(
                SYNC, messages=[earlier("l1", contents="Hello"), earlier("l2"), earlier("l4"), earlier("l4")]
            )
        ).body["syncedMessages"]

        assert again[:2] == first
        assert [each["status"] for each in other] == ["conflict", "conflict", "synced", "synced"]
        assert other[2]["serverId"] == other[3]["serverId"]
        kept = [(each.local_id, each.contents) for each in await messages(orchestrator, peer.conversation_id)]
        assert kept == [("l1", "hello"), ("l2", "hello"), ("l3", "hello"), ("l4", "hello")]


async def test_the_same_local_id_in_two_conversations_are_two_messages(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator:
        ids = set()
        for person in (ANN, ANN, BOB):
            async with conversing(orchestrator, person) as peer:
                response = await peer.request(SYNC, messages=[earlier("l1")])
                ids.add(response.body["syncedMessages"][0]["serverId"])
                assert (await peer.request(SYNC, messages=[])).body["syncedMessages"] == []
        assert len(ids) == 3


# --- a tool's results ---------------------------------------------------------------------------------------


async def tool_use(orchestrator: Orchestrator, peer: Peer) -> str:
    """A tool call that waits for its result."""

    def ask(tx: Transaction) -> str:
        last = tx.messages.last(peer.conversation_id)
        assert last is not None
        return tx.tools.request(peer.conversation_id, last.id, "calendar", {"day": "Monday"}).id

    return await orchestrator.store.write(ask)


@pytest.mark.requirement("003-109", "003-110", "003-111", "003-163")
async def test_the_result_of_a_tool_is_stored_with_its_request(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask()
        worked, failed, unnamed = [await tool_use(orchestrator, peer) for _ in range(3)]
        result = {"free": ["10:00", 14.5], "more": None}

        for fields in (
            {"id": new_id("res_"), "requestId": worked, "success": True, "result": result},
            {"id": new_id("res_"), "requestId": failed, "success": False, "errorMessage": "no calendar"},
            {"id": unnamed, "success": False, "errorCode": "E42"},  # as older clients name the request
        ):
            acknowledged = await peer.request(TOOL_RESULT, **fields)
            assert (acknowledged.type, acknowledged.body["success"]) == (ACKNOWLEDGEMENT, True)

        uses = await orchestrator.store.read(lambda tx: tx.tools.of_conversation(peer.conversation_id))
        by_id: dict[str, ToolUse] = {use.id: use for use in uses}
        assert (by_id[worked].status, by_id[worked].tool_result) == ("success", result)
        assert (by_id[failed].status, by_id[failed].error_message) == ("error", "no calendar")
        assert (by_id[unnamed].status, by_id[unnamed].error_message) == ("error", "E42")
        assert all(use.completed_at and use.completed_at >= use.created_at for use in uses)


async def test_a_result_without_an_open_request_is_refused(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator:
        async with conversing(orchestrator) as other:
            await other.ask()
            elsewhere = await tool_use(orchestrator, other)
        async with conversing(orchestrator) as peer:
            await peer.ask()
            done = await tool_use(orchestrator, peer)
            await peer.request(TOOL_RESULT, id=new_id("res_"), requestId=done, success=True)
            before = await everything(orchestrator)

            for request in ("tool_none", elsewhere, done):
                refused = await peer.request(TOOL_RESULT, id=new_id("res_"), requestId=request, success=True)
                assert (refused.stanza, refused.code) == (0, 301)
            assert await everything(orchestrator) == before


async def test_meta_of_a_result_is_about_its_request(address: str) -> None:
    async with an_orchestrator(address).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask()
        use = await tool_use(orchestrator, peer)

        await peer.request(TOOL_RESULT, id=new_id("res_"), requestId=use, success=True, meta={"ms": 12})

        assert await meta(orchestrator, use) == {"ms": "12"}
