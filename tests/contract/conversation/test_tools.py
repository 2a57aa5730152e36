"""Tools in a turn: every call is sent as a request and a result, and stored with its outcome."""

import threading
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agents.models.scripted import ScriptedBrain
from agents.ports import Brief, ToolOutcome
from agents.tools.toolbox import Tool, Toolbox
from agents.values import Intent
from orchestrator.orchestrator import Orchestrator
from orchestrator.remember import indexing
from orchestrator.remember.indexing import Item
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.memory.memories import NewMemory
from orchestrator.store.rows import ToolUse
from tests.support.memory.memories import EMBEDDER
from tests.support.orchestrators import ANN, an_orchestrator, local_brain, over_websockets
from tests.support.protocol_client import (
    STOP,
    TOOL_REQUEST,
    TOOL_RESULT,
    TRACE,
    Peer,
    WebSocketLine,
    conversing,
)
from tests.support.stores import on_both_databases

BEN = "ben"
NUMBER = {"type": "object", "properties": {"of": {"type": "number"}}, "required": ["of"]}
DEVICE = Tool(
    "read_scale", "A weight from the person's scale.", NUMBER, execution="client", timeout_ms=20_000
)


class Using(ScriptedBrain):
    """Calls a tool, then says its outcome."""

    def __init__(self, tool: str, arguments: Mapping[str, Any], intent: str = "GENERAL_HEALTH") -> None:
        super().__init__(intents=[Intent(intent=intent, confidence=0.9, reasoning="As scripted")])
        self._call = (tool, arguments)
        self.outcomes: list[ToolOutcome] = []

    async def speak(self, brief: Brief) -> AsyncGenerator[str, None]:
        """Say whether the tool succeeded."""
        self.outcomes.append(await brief.tools.use(*self._call))
        yield "Done. "
        yield "Anything else?"


def fail(_: Mapping[str, Any]) -> Any:
    raise ZeroDivisionError


async def uses(orchestrator: Orchestrator, peer: Peer) -> list[ToolUse]:
    """The stored tool calls of this conversation."""
    conversation_id = peer.conversation_id
    assert conversation_id is not None
    return await orchestrator.store.read(lambda tx: tx.tools.of_conversation(conversation_id))


@pytest.mark.requirement("003-108", "003-109", "003-111")
@on_both_databases
async def test_the_local_brain_uses_a_tool_and_the_row_equals_the_frames(address: str) -> None:
    async with (
        an_orchestrator(address, local_brain()).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        frames = await peer.ask("What's my BMI? I'm 180 cm and 75 kg")
        (row,) = await uses(orchestrator, peer)

    (request,) = [frame.body for frame in frames if frame.type == TOOL_REQUEST]
    (result,) = [frame.body for frame in frames if frame.type == TOOL_RESULT]
    assert (row.id, row.tool_name, row.message_id) == (
        request["id"],
        request["toolName"],
        request["messageId"],
    )
    assert row.tool_arguments == request["parameters"] == {"height_m": 1.8, "weight_kg": 75.0}
    assert (request["execution"], result["requestId"], result["success"]) == ("server", row.id, True)
    assert (row.status, row.tool_result) == ("success", result["result"])
    assert row.completed_at is not None
    assert row.completed_at >= row.created_at
    assert "23.1" in "".join(frame.body.get("text", "") for frame in frames)


async def test_a_specialist_does_not_use_a_tool_that_its_section_does_not_name(address: str) -> None:
    brain = Using("body_mass_index", {"height_m": 1.8, "weight_kg": 75.0}, "MENTAL_HEALTH")
    async with an_orchestrator(address, brain).open() as orchestrator, conversing(orchestrator) as peer:
        await peer.ask()
        (row,) = await uses(orchestrator, peer)

    assert (row.status, row.error_message) == ("error", "there is no such tool")


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "says"),
    [
        ("nobody_knows", {"of": 1}, 305, "there is no such tool"),
        ("half", {"of": "much"}, 305, "of breaks the rule `type`"),
        ("broken", {"of": 1}, 305, "it failed"),
        ("slow", {"of": 1}, 304, "no result within 0.01 s"),
        ("read_scale", {"of": 1}, 305, "the client offers no tools"),
    ],
)
@pytest.mark.requirement("003-110")
async def test_a_tool_without_a_result_is_stored_with_the_reason_and_the_answer_continues(
    address: str, tool: str, arguments: dict[str, Any], code: int, says: str
) -> None:
    asleep = threading.Event()
    brain = Using(tool, arguments)
    toolbox = Toolbox(
        [
            Tool("half", "", NUMBER, run=lambda arguments: arguments["of"] / 2),
            Tool("broken", "", NUMBER, run=fail),
            Tool(
                "slow",
                "",
                NUMBER,
                timeout_ms=10,
                run=lambda _: asleep.wait(30),
            ),
            DEVICE,
        ]
    )
    async with (
        an_orchestrator(address, brain, toolbox=toolbox).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        frames = await peer.ask()
        (row,) = await uses(orchestrator, peer)
        asleep.set()

    (result,) = [frame.body for frame in frames if frame.type == TOOL_RESULT]
    assert (result["success"], result["errorCode"], result["errorMessage"]) == (False, code, says)
    assert (row.status, row.error_message, row.tool_result) == ("error", says, None)
    assert row.completed_at is not None
    assert brain.outcomes == [ToolOutcome(False, None, says)]
    assert "Anything else?" in [frame.body.get("text") for frame in frames]


@pytest.mark.requirement("003-109", "003-160")
@pytest.mark.parametrize("success", [True, False])
async def test_a_client_runs_a_tool(address: str, success: bool) -> None:
    brain = Using("read_scale", {"of": 1})
    async with (
        an_orchestrator(address, brain, toolbox=Toolbox([DEVICE])).open() as orchestrator,
        conversing(orchestrator, features=["streaming", "tools"]) as peer,
    ):
        await peer.say()
        request = (await peer.until_type(TOOL_REQUEST))[-1].body
        (waiting,) = await uses(orchestrator, peer)
        facts = {"result": {"kg": 75}} if success else {"errorCode": 305, "errorMessage": "no battery"}
        await peer.send(TOOL_RESULT, id="tool_mine", requestId=request["id"], success=success, **facts)
        frames = await peer.answer()
        (row,) = await uses(orchestrator, peer)

    assert (request["execution"], request["timeoutMs"]) == ("client", 20_000)
    assert not [frame for frame in frames if frame.type == TOOL_RESULT]
    assert waiting.status == "pending"
    assert (row.status, row.tool_result) == (("success", {"kg": 75}) if success else ("error", None))
    assert brain.outcomes == [ToolOutcome(success, row.tool_result, row.error_message or "")]


async def test_a_tool_goes_to_the_client_and_back_over_a_websocket(embedded: str, tmp_path: Path) -> None:
    brain = Using("read_scale", {"of": 1})
    async with (
        an_orchestrator(embedded, brain, toolbox=Toolbox([DEVICE])).open() as orchestrator,
        over_websockets(orchestrator, tmp_path) as dial,
        dial() as socket,
    ):
        peer = Peer(WebSocketLine(socket))
        await peer.open(features=["streaming", "tools"])
        await peer.say()
        request = (await peer.until_type(TOOL_REQUEST))[-1].body
        await peer.send(TOOL_RESULT, id="tool_mine", requestId=request["id"], success=True, result=75)
        await peer.answer()

    assert brain.outcomes == [ToolOutcome(True, 75)]


async def test_a_tool_call_is_closed_when_the_person_stops_the_answer(address: str) -> None:
    brain = Using("read_scale", {"of": 1})
    async with (
        an_orchestrator(address, brain, toolbox=Toolbox([DEVICE])).open() as orchestrator,
        conversing(orchestrator, features=["streaming", "tools"]) as peer,
    ):
        await peer.say()
        await peer.until_type(TOOL_REQUEST)
        await peer.send(STOP, id="stop_1")
        await peer.answer()
        (row,) = await uses(orchestrator, peer)

    assert (row.status, row.error_message) == ("error", "the answer ended before it")


async def test_a_specialist_searches_the_memory_of_the_person_and_of_nobody_else(address: str) -> None:
    brain = Using("search_memory", {"query": "penicillin allergy", "limit": 1})
    async with an_orchestrator(address, brain, remembers=True).open() as orchestrator:
        for person, text in ((ANN, "I am allergic to penicillin"), (BEN, "My penicillin allergy is worse")):
            await orchestrator.store.write(partial(_remember, person=person, text=text))
        async with conversing(orchestrator) as peer:
            frames = await peer.ask("Can I have antibiotics?")

    (outcome,) = brain.outcomes
    assert [(each["content"], each["conversation"]) for each in outcome.result["memories"]] == [
        ("I am allergic to penicillin", "an earlier one")
    ]
    traced = [each.body for each in frames if each.type == TRACE and each.body["memoryType"] == "user"]
    assert "penicillin allergy" in {each["metadata"]["queryPrompt"] for each in traced}


async def test_a_search_that_finds_nothing_is_a_result_without_memories(address: str) -> None:
    brain = Using("search_memory", {"query": "penicillin"})
    async with (
        an_orchestrator(address, brain, remembers=True).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask()

    assert [(each.success, each.result) for each in brain.outcomes] == [(True, {"memories": []})]


@pytest.mark.parametrize(
    "arguments", [{}, {"query": ""}, {"query": "x", "limit": 0}, {"query": "x", "user": "ben"}]
)
async def test_a_search_with_other_arguments_is_refused(address: str, arguments: dict[str, Any]) -> None:
    brain = Using("search_memory", arguments)
    async with (
        an_orchestrator(address, brain, remembers=True).open() as orchestrator,
        conversing(orchestrator) as peer,
    ):
        await peer.ask()

    assert [each.success for each in brain.outcomes] == [False]


def _remember(tx: Transaction, person: str, text: str) -> None:
    item = Item(
        f"mem_{person}",
        text,
        "before",
        tx.now,
        new=NewMemory(content=text, user_id=person, id=f"mem_{person}", source_type="user"),
    )
    indexing.write(tx, person, [item], indexing.embed([item], EMBEDDER))
