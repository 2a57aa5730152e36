"""The frames of a conversation, recorded again in an empty database, give its tables."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any

import pytest

from agents.errors import BrainFailed
from agents.models.scripted import ScriptedBrain
from agents.ports import Embedded, MemoryHit, Recalled
from orchestrator.orchestrator import Orchestrator
from orchestrator.store.engine.statements import names_of
from orchestrator.store.frame_records import created_memory_id
from orchestrator.store.rows import Frame, metadata
from orchestrator.wire.ids import ConversationId, MessageId, NoteId, SentenceId, ToolUseId
from orchestrator.wire.messages import AudioChunk, Body, Commentary, ToolUseRequest
from tests.support.orchestrators import a_store, an_orchestrator
from tests.support.projection import NOT_IN_FRAMES, project, tables
from tests.support.protocol_client import (
    AUDIO,
    COMMENTARY,
    CONFIGURATION,
    MEMORY,
    NOTE,
    SENTENCE,
    STOP,
    SYNC,
    TOOL_RESULT,
    USER_MESSAGE,
    VARIATION,
    Peer,
    conversing,
    visiting,
)
from tests.support.stores import DATABASES, empty_store

NEVER = asyncio.Event
PLAIN, CUT, FAILS = (
    ("One. ", "Two."),
    ("So far. ", "And more. ", "And", NEVER),
    ("Well. ", BrainFailed("scripted", "speak")),
)


class Finding:
    """A recall that finds what the person asked to be remembered."""

    memory_id = ""

    async def search(
        self,
        query: Embedded,
        person_id: str,
        conversation_id: str,
        watched: Sequence[str] = (),
        zone: tzinfo = UTC,
    ) -> Recalled:
        if not self.memory_id:
            return Recalled()
        hit = MemoryHit(self.memory_id, "Likes tea.", 0.75, "profile", ("tea",), position=1, role="primary")
        return Recalled((hit,))


async def talk(address: str) -> str:
    """Hold a conversation with everything that is stored in the tables. Returns its id."""
    script = [PLAIN, PLAIN, CUT, PLAIN, PLAIN, FAILS, PLAIN, FAILS, PLAIN]
    answers = [[NEVER() if step is NEVER else step for step in answer] for answer in script]
    brain, recall = ScriptedBrain(answers=answers), Finding()  # type: ignore[arg-type]
    async with an_orchestrator(address, brain, recall=recall).open() as orchestrator:
        async with conversing(orchestrator, device="phone", meta={"client": "test", "retries": 2}) as peer:
            await remember(peer, recall)
            message_id = await peer.say("I have a headache")
            sentence = (await peer.answer())[-1].body
            again = {"id": message_id, "content": "I have a headache", "meta": {"again": True}}
            await peer.request(USER_MESSAGE, **again)
            await remark(peer, message_id)
            await vary(peer, sentence["previousId"])
            await fail(peer)
            await sync(peer, message_id)
            await send_sound(peer, orchestrator, sentence["id"])
            await use_tools(peer, orchestrator, message_id)
            conversation_id = peer.conversation_id
        async with visiting(orchestrator) as peer:
            await peer.open(conversation_id, stanza=0, device="desk", meta={"not": "kept"})
            await peer.ask("Anything else?", meta={"messaging.trace_id": "abc", "messaging.span_id": "def"})
    return conversation_id


async def remember(peer: Peer, recall: Finding) -> None:
    """Create memories, change them in every way, and repeat requests; recall then finds one of them."""
    draft = {"content": "Likes tea.", "category": "profile", "pinned": True, "rating": 3}
    for number in (1, 2):
        confirmed = await ask_for(peer, MEMORY, id=f"req_{number}", action="create", memory=draft)
    recall.memory_id = created_memory_id(peer.conversation_id, "req_1")
    await peer.request(MEMORY, id="req_1", action="create", memory=draft)
    changed = {"memoryId": recall.memory_id, "memory": {"content": "Likes green tea.", "rating": 5}}
    await ask_for(peer, MEMORY, id="req_3", action="update", **changed)
    unpinned = {"memoryId": recall.memory_id, "memory": {"pinned": False}}
    await ask_for(peer, MEMORY, id="req_4", action="pin", **unpinned)
    for request, action in (("req_5", "archive"), ("req_6", "delete")):
        await ask_for(peer, MEMORY, id=request, action=action, memoryId=confirmed)


async def ask_for(peer: Peer, type: int, **fields: Any) -> str:
    """Request a change of a memory, and receive the confirmation and the trace. Returns the memory's id."""
    confirmation = await peer.request(type, **fields)
    assert confirmation.body["success"]
    await peer.next()
    return str(confirmation.body["memoryId"])


async def remark(peer: Peer, message_id: str) -> None:
    """Create notes and commentaries on a message and on the conversation, change, delete and repeat them."""
    kept = {"id": "note_1", "content": "Ask my doctor", "category": "todo", "messageId": message_id}
    for action in ("create", "create", "update"):
        await peer.request(NOTE, **kept, action=action)
    for action in ("create", "delete", "create"):
        await peer.request(NOTE, id="note_2", content="Never mind", action=action)
    for _ in range(2):
        await peer.request(
            COMMENTARY, id="note_3", content="Helpful", commentaryType="praise", meta={"by": "me"}
        )


async def vary(peer: Peer, answer_id: str) -> None:
    """Request an answer again; stop the next one, continue it, and edit its message."""
    await peer.send(VARIATION, targetId=answer_id, mode="regenerate", meta={"why": "too short"})
    await peer.answer()
    message_id = await peer.say("It hurts here")
    await peer.until_type(SENTENCE)
    await peer.send(STOP, reason="enough", meta={"stopped by": "thumb"})
    stopped = (await peer.answer())[-1].body["previousId"]
    await peer.send(VARIATION, targetId=stopped, mode="continue")
    await peer.answer()
    await peer.send(VARIATION, targetId=message_id, mode="edit", newContent="It hurts there")
    await peer.answer()


async def fail(peer: Peer) -> None:
    """Let an answer fail in the middle; then, without streaming, let one succeed and one fail."""
    await peer.ask("Why?")
    await peer.send(CONFIGURATION, features=["reasoning"], meta={"changed": None})
    await peer.next()
    await peer.next()
    await peer.ask("And now?")
    await peer.ask("And then?")
    await peer.send(CONFIGURATION, features=["streaming"])
    await peer.next()
    await peer.next()


async def sync(peer: Peer, message_id: str) -> None:
    """Synchronise earlier messages: in order, after a stored one, one that is refused; then all again."""
    at = "2024-01-15T10:30:00.000Z"
    earlier = [
        {"localId": "l1", "role": "user", "contents": "Before", "createdAt": at, "previousId": message_id},
        {"localId": "l2", "role": "assistant", "contents": "Yes", "createdAt": at, "previousId": "l1"},
        {"localId": "l3", "role": "robot", "contents": "No", "createdAt": at},
    ]
    for _ in range(2):
        await peer.request(SYNC, messages=earlier)


async def send_sound(peer: Peer, orchestrator: Orchestrator, sentence_id: str) -> None:
    """Send a recording of the person, and store the audio of a sentence of the answer."""
    await peer.send(AUDIO, format="audio/opus", durationMs=20, data=b"\x00\x01", trackSid="TR_1")
    spoken = AudioChunk(
        conversation_id=ConversationId(peer.conversation_id),
        sentence_id=SentenceId(sentence_id),
        format="audio/opus",
        duration_ms=30,
        data=b"\x02",
    )
    await say(peer, orchestrator, spoken)


async def use_tools(peer: Peer, orchestrator: Orchestrator, message_id: str) -> None:
    """Let the client run two tools, one of which fails; then let the server send a commentary."""
    here = ConversationId(peer.conversation_id)
    for tool_id in ("tool_1", "tool_2"):
        request = ToolUseRequest(
            id=ToolUseId(tool_id),
            conversation_id=here,
            message_id=MessageId(message_id),
            tool_name="calendar",
            parameters={"day": 1},
            execution="client",
        )
        await say(peer, orchestrator, request)
    worked = {"requestId": "tool_1", "success": True, "result": {"free": [10.5, None]}}
    failed = {"requestId": "tool_2", "success": False, "errorMessage": "No calendar"}
    await peer.request(TOOL_RESULT, id="res_1", **worked, meta={"took": 1.5})
    await peer.request(TOOL_RESULT, id="res_2", **failed)
    await say(peer, orchestrator, Commentary(id=NoteId("note_4"), conversation_id=here, content="Two days"))


async def say(peer: Peer, orchestrator: Orchestrator, body: Body) -> None:
    """Let the server send a message outside a turn."""
    await orchestrator._outbox.commit(peer.conversation_id, lambda page: page.say(body), step="test")
    await peer.next()


@pytest.fixture
async def conversation(address: str) -> tuple[list[Frame], dict[str, Any]]:
    """The frames of a conversation and its tables."""
    conversation_id = await talk(address)
    store = a_store(address)
    try:
        frames = store.read_now(lambda tx: tx.frames.in_order(conversation_id))
        return frames, store.read_now(lambda tx: tables(frames, tx))
    finally:
        store.close_now()


@pytest.mark.requirement("003-001", "003-166")
@pytest.mark.parametrize("kind", DATABASES)
def test_the_frames_of_a_conversation_give_its_tables(
    kind: str,
    conversation: tuple[list[Frame], dict[str, Any]],
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    frames, said = conversation
    (tmp_path / "again").mkdir()
    with empty_store(kind, request, tmp_path / "again") as url:
        store = a_store(url)

        store.write_now(lambda tx: project(frames, tx))
        projected = store.read_now(lambda tx: tables(frames, tx))
        store.close_now()

    assert set(projected) == {name for name in metadata.tables if name.startswith("alicia_")}
    for name, rows in said.items():
        assert rows, f"nothing in {name} to compare"
        assert projected[name] == rows


async def test_a_conversation_started_without_a_stanza_number_is_rebuilt_except_for_its_creation_time(
    address: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    async with an_orchestrator(address).open() as orchestrator, visiting(orchestrator) as peer:
        await peer.open(stanza=0, device="phone")
        await peer.ask()
        frames = await orchestrator.store.read(lambda tx: tx.frames.in_order(peer.conversation_id))
        said = await orchestrator.store.read(lambda tx: tables(frames, tx))
    (tmp_path / "again").mkdir()
    with empty_store("sqlite", request, tmp_path / "again") as url:
        store = a_store(url)

        store.write_now(lambda tx: project(frames, tx))
        projected = store.read_now(lambda tx: tables(frames, tx))
        store.close_now()

    assert projected == said
    [conversation] = said["alicia_conversations"]
    assert (conversation["user_id"], "created_at" in conversation) == ("ann", False)


def test_the_columns_that_no_frame_contains_exist_in_the_tables() -> None:
    for kind, names in NOT_IN_FRAMES.items():
        assert names <= set(names_of(kind))
