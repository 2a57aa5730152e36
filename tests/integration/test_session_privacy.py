"""What a person writes is in no log line, no error and no metric, on success and on failure."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import msgpack
import pytest

from agents.errors import BrainFailed
from agents.models.scripted import ScriptedBrain
from agents.ports import Brain
from memory_blocks.limits import DEFAULTS
from orchestrator.errors import STORAGE_FULL, AnamnesisError
from orchestrator.ops import logs, telemetry
from orchestrator.orchestrator import Orchestrator
from tests.support.orchestrators import BOB, an_orchestrator, local_brain
from tests.support.protocol_client import (
    ASSISTANT_MESSAGE,
    COMMENTARY,
    CONFIGURATION,
    ERROR,
    MEMORY,
    NOTE,
    SENTENCE,
    STOP,
    SYNC,
    SYNCED,
    TOOL_RESULT,
    TRACE,
    USER_MESSAGE,
    VARIATION,
    Peer,
    conversing,
    envelope,
    new_id,
    opened,
    visiting,
)

CANARY = "CANARY my elbow hurts and nobody may know"
WORD = "CANARYelbowhurts"
SAYS_IT_BACK = (ASSISTANT_MESSAGE, SENTENCE, TRACE, CONFIGURATION)
"""The frames that may contain a person's words."""


@dataclass
class Overheard:
    """Everything that was logged or sent. Only some frames may contain a person's words."""

    log: io.StringIO = field(default_factory=io.StringIO)
    frames: list[bytes] = field(default_factory=list)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]

    def leaks(self) -> list[str]:
        """The places that contain a person's words but must not."""
        numbers, _ = telemetry.exposition()
        result = [frame for frame in map(opened, self.frames) if frame.type not in SAYS_IT_BACK]
        places = {
            "log": self.log.getvalue(),
            "numbers": numbers.decode(),
            **{f"frame {frame.stanza} of type {frame.type}": str(frame) for frame in result},
        }
        return [place for place, text in places.items() if "CANARY" in text or "elbow" in text]


@pytest.fixture
def overheard() -> Iterator[Overheard]:
    heard = Overheard()
    logs.configure("debug", "json", heard.log, strict=True)
    yield heard
    logs.configure()


@asynccontextmanager
async def listened_to(
    orchestrator: Orchestrator, overheard: Overheard, **settings: Any
) -> AsyncIterator[Peer]:
    """A conversation that records every frame of the server."""
    async with visiting(orchestrator) as peer:
        receive = peer.line.receive

        async def keep() -> bytes | None:
            packet = await receive()
            overheard.frames += [packet] if packet else []
            return packet

        peer.line.receive = keep  # type: ignore[method-assign]
        await peer.open(**settings)
        yield peer


@pytest.mark.parametrize("content", [CANARY, WORD])
async def test_nothing_of_a_successful_conversation_is_logged(
    embedded: str, overheard: Overheard, content: str
) -> None:
    async with (
        an_orchestrator(embedded, local_brain()).open() as orchestrator,
        listened_to(orchestrator, overheard, device=content, clientVersion=content) as peer,
    ):
        message_id = await peer.say(content, meta={"mood": content, content: 1})
        answer = (await peer.answer())[1].body["id"]
        note, request = new_id("note_"), new_id("req_")
        earlier = {"localId": "l1", "role": "user", "contents": content, "createdAt": 0}
        for type, fields in (
            (NOTE, {"id": note, "content": content, "category": content, "action": "create"}),
            (NOTE, {"id": note, "content": content, "action": "delete"}),
            (COMMENTARY, {"id": new_id("note_"), "content": content, "commentaryType": content}),
            (SYNC, {"messages": [earlier, {**earlier, "localId": "l2", "role": content}]}),
            (
                MEMORY,
                {"id": request, "action": "create", "memory": {"content": content, "category": content}},
            ),
            (STOP, {"reason": content}),
            (CONFIGURATION, {"preferredLanguage": content}),
        ):
            await peer.send(type, **fields)
        await peer.until_type(CONFIGURATION)
        await peer.next()
        await peer.send(VARIATION, mode="regenerate", targetId=answer)
        await peer.answer()
        await peer.send(VARIATION, mode="edit", targetId=message_id, newContent=content + " now")
        await peer.answer()

    assert overheard.leaks() == []
    assert {opened(frame).type for frame in overheard.frames} >= {SENTENCE, TRACE, SYNCED}
    assert {line["event"] for line in overheard.lines()} >= {"conversation_opened", "turn_ended"}


@pytest.mark.parametrize("part", ["enrichments", "intents", "answers"])
@pytest.mark.parametrize("kind", [RuntimeError, ValueError, KeyError, BrainFailed])
async def test_nothing_of_a_failed_turn_is_logged(
    embedded: str, overheard: Overheard, part: str, kind: type[Exception]
) -> None:
    error = BrainFailed("scripted", part) if kind is BrainFailed else kind(CANARY)
    error.__cause__ = ValueError(CANARY)
    script: dict[str, Any] = {part: [(error,) if part == "answers" else error]}
    async with (
        an_orchestrator(embedded, ScriptedBrain(**script)).open() as orchestrator,
        listened_to(orchestrator, overheard) as peer,
    ):
        assert (await peer.ask(CANARY))[-1].type == ERROR
        await peer.ask(CANARY)

    assert overheard.leaks() == []
    assert kind is BrainFailed or any(line["event"] == "turn_failed" for line in overheard.lines())


async def test_nothing_of_a_turn_that_is_cut_short_is_logged(
    embedded: str, overheard: Overheard, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut: dict[str, tuple[Brain, dict[str, Any]]] = {
        "timed out": (ScriptedBrain(answers=[(asyncio.Event(),)]), {"deadline_seconds": 0.05}),
        "too large": (
            ScriptedBrain(),
            {"limits": replace(DEFAULTS, conversation_history_limit=100, rotation_enabled=False)},
        ),
    }
    for brain, settings in cut.values():
        async with (
            an_orchestrator(embedded, brain, **settings).open() as orchestrator,
            listened_to(orchestrator, overheard) as peer,
        ):
            assert (await peer.ask(CANARY))[-1].type == ERROR

    async with an_orchestrator(embedded).open() as orchestrator, listened_to(orchestrator, overheard) as peer:

        async def fails(*_: Any, **__: Any) -> Any:
            raise AnamnesisError(STORAGE_FULL) from RuntimeError(CANARY)

        async def breaks(*_: Any, **__: Any) -> Any:
            raise RuntimeError(CANARY)

        for commit, code in ((fails, 503), (breaks, 501)):
            with monkeypatch.context() as patched:
                patched.setattr(orchestrator._outbox, "commit", commit)
                assert (await peer.request(USER_MESSAGE, id=new_id(), content=CANARY)).code == code

    assert overheard.leaks() == []
    assert {"frame_failed", "blocks_not_written"} <= {line["event"] for line in overheard.lines()}


async def test_nothing_of_a_refused_frame_is_logged(embedded: str, overheard: Overheard) -> None:
    async with an_orchestrator(embedded).open() as orchestrator:
        async with conversing(orchestrator, BOB) as other:
            foreign = await other.say(CANARY)
            await other.answer()
        async with listened_to(orchestrator, overheard) as peer:
            mine = await peer.say(CANARY)
            await peer.answer()
            here, stanza = peer.conversation_id, peer.sent + 1
            good = {"conversationId": here, "id": "msg_1", "content": CANARY}
            bodies: list[tuple[int, Any]] = [
                (USER_MESSAGE, {**good, "id": mine, "content": CANARY + "!"}),
                (USER_MESSAGE, {**good, "id": foreign}),
                (USER_MESSAGE, {**good, "previousId": foreign}),
                (USER_MESSAGE, {**good, "content": CANARY + "\0"}),
                (USER_MESSAGE, {**good, "content": {CANARY: CANARY}}),
                (USER_MESSAGE, {**good, "content": CANARY * 10_000}),
                (USER_MESSAGE, {**good, "id": CANARY}),
                (USER_MESSAGE, {**good, "timestamp": CANARY}),
                (USER_MESSAGE, {**good, "conversationId": CANARY}),
                (USER_MESSAGE, CANARY),
                (VARIATION, {**good, "targetId": "msg_2", "mode": CANARY}),
                (VARIATION, {**good, "targetId": "msg_2", "mode": "edit", "newContent": CANARY}),
                (NOTE, {**good, "action": CANARY}),
                (MEMORY, {**good, "action": "update", "memoryId": "mem_1", "memory": {"content": CANARY}}),
                (MEMORY, {**good, "action": "create", "memory": {"rating": CANARY}}),
                (TOOL_RESULT, {**good, "requestId": "tool_1", "success": False, "errorMessage": CANARY}),
                (SYNC, {**good, "messages": CANARY}),
                (SYNC, {**good, "messages": [{"localId": CANARY}]}),
                (STOP, {**good, "stopType": CANARY}),
                (CONFIGURATION, {**good, "features": CANARY}),
                (TRACE, good),
                (99, good),
            ]
            for type, body in bodies:
                fields = {"stanzaId": stanza, "conversationId": here, "type": type, "body": body}
                await peer.line.send(msgpack.packb(fields))
                assert (await peer.next()).type == ERROR, (type, body)
            for packet in (
                CANARY.encode(),
                msgpack.packb(CANARY),
                envelope(stanza, USER_MESSAGE, here, good)[:-3],
                envelope(stanza, USER_MESSAGE, here, good, {"a": [CANARY]}),
                envelope(stanza, USER_MESSAGE, here, good) + CANARY.encode(),
                msgpack.packb({"stanzaId": CANARY, "conversationId": CANARY, "type": 2, "body": good}),
            ):
                await peer.line.send(packet)
                assert (await peer.next()).type == ERROR
            sync = {"messages": [{"localId": "l1", "role": CANARY, "contents": CANARY, "createdAt": CANARY}]}
            assert (await peer.request(SYNC, **sync)).type == SYNCED

    assert overheard.leaks() == []
    refused = [line for line in overheard.lines() if line["event"] == "frame_refused"]
    assert len(refused) == len(bodies) + 6


async def test_a_leak_would_be_detected(embedded: str, overheard: Overheard) -> None:
    async with an_orchestrator(embedded).open() as orchestrator, listened_to(orchestrator, overheard) as peer:
        await peer.ask(CANARY)
        overheard.frames.append(envelope(-1, ERROR, "conv_1", {"message": CANARY}))
        logs.get_logger().info("said", message_id=WORD)

    assert set(overheard.leaks()) == {"log", "frame -1 of type 1"}
