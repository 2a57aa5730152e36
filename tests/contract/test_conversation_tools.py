"""Tools in a turn: a request and a result in frames, and a row that says how it ended, in every outcome."""

import threading
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agents.brains.scripted import ScriptedBrain
from agents.ports import Brief, ToolOutcome
from agents.tools.toolbox import Tool, Toolbox
from agents.values import Intent
from orchestrator.house import House
from orchestrator.store.rows import ToolUse
from tests.houses import a_house, local_brain, over_websockets
from tests.peers import STOP, TOOL_REQUEST, TOOL_RESULT, Peer, WebSocketLine, conversing

NUMBER = {"type": "object", "properties": {"of": {"type": "number"}}, "required": ["of"]}
DEVICE = Tool(
    "read_scale", "A weight from the person's scale.", NUMBER, execution="client", timeout_ms=20_000
)


class Using(ScriptedBrain):
    """Uses a tool, then says what came of it."""

    def __init__(self, tool: str, arguments: Mapping[str, Any], intent: str = "GENERAL_HEALTH") -> None:
        super().__init__(intents=[Intent(intent=intent, confidence=0.9, reasoning="As told")])
        self._call = (tool, arguments)
        self.outcomes: list[ToolOutcome] = []

    async def speak(self, brief: Brief) -> AsyncGenerator[str, None]:
        """Whether it worked."""
        self.outcomes.append(await brief.tools.use(*self._call))
        yield "Done. "
        yield "Anything else?"


def fail(_: Mapping[str, Any]) -> Any:
    raise ZeroDivisionError


async def uses(house: House, peer: Peer) -> list[ToolUse]:
    """What the table says of this conversation's calls."""
    conversation_id = peer.conversation_id
    assert conversation_id is not None
    return await house.store.read(lambda tx: tx.tools.of_conversation(conversation_id))


@pytest.mark.requirement("003-108", "003-109", "003-111")
async def test_the_local_brain_works_out_what_is_asked_and_the_row_equals_the_frames(address: str) -> None:
    async with a_house(address, local_brain()).open() as house, conversing(house) as peer:
        frames = await peer.ask("What's my BMI? I'm 180 cm and 75 kg")
        (row,) = await uses(house, peer)

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


async def test_a_tool_that_a_specialist_does_not_name_is_not_used_by_it(address: str) -> None:
    brain = Using("body_mass_index", {"height_m": 1.8, "weight_kg": 75.0}, "MENTAL_HEALTH")
    async with a_house(address, brain).open() as house, conversing(house) as peer:
        await peer.ask()
        (row,) = await uses(house, peer)

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
async def test_a_tool_that_gives_nothing_is_kept_with_why_and_the_answer_goes_on(
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
    async with a_house(address, brain, toolbox=toolbox).open() as house, conversing(house) as peer:
        frames = await peer.ask()
        (row,) = await uses(house, peer)
        asleep.set()

    (result,) = [frame.body for frame in frames if frame.type == TOOL_RESULT]
    assert (result["success"], result["errorCode"], result["errorMessage"]) == (False, code, says)
    assert (row.status, row.error_message, row.tool_result) == ("error", says, None)
    assert row.completed_at is not None
    assert brain.outcomes == [ToolOutcome(False, None, says)]
    assert "Anything else?" in [frame.body.get("text") for frame in frames]


@pytest.mark.requirement("003-109", "003-160")
@pytest.mark.parametrize("success", [True, False])
async def test_a_client_does_its_part_of_a_tool(address: str, success: bool) -> None:
    brain = Using("read_scale", {"of": 1})
    async with (
        a_house(address, brain, toolbox=Toolbox([DEVICE])).open() as house,
        conversing(house, features=["streaming", "tools"]) as peer,
    ):
        await peer.say()
        request = (await peer.until_type(TOOL_REQUEST))[-1].body
        (waiting,) = await uses(house, peer)
        facts = {"result": {"kg": 75}} if success else {"errorCode": 305, "errorMessage": "no battery"}
        await peer.send(TOOL_RESULT, id="tool_mine", requestId=request["id"], success=success, **facts)
        frames = await peer.answer()
        (row,) = await uses(house, peer)

    assert (request["execution"], request["timeoutMs"]) == ("client", 20_000)
    assert not [frame for frame in frames if frame.type == TOOL_RESULT]
    assert waiting.status == "pending"
    assert (row.status, row.tool_result) == (("success", {"kg": 75}) if success else ("error", None))
    assert brain.outcomes == [ToolOutcome(success, row.tool_result, row.error_message or "")]


async def test_a_tool_goes_to_the_client_and_back_over_a_websocket(embedded: str, tmp_path: Path) -> None:
    brain = Using("read_scale", {"of": 1})
    async with (
        a_house(embedded, brain, toolbox=Toolbox([DEVICE])).open() as house,
        over_websockets(house, tmp_path) as dial,
        dial() as socket,
    ):
        peer = Peer(WebSocketLine(socket))
        await peer.open(features=["streaming", "tools"])
        await peer.say()
        request = (await peer.until_type(TOOL_REQUEST))[-1].body
        await peer.send(TOOL_RESULT, id="tool_mine", requestId=request["id"], success=True, result=75)
        await peer.answer()

    assert brain.outcomes == [ToolOutcome(True, 75)]


async def test_a_tool_that_the_person_stops_waiting_for_is_closed(address: str) -> None:
    brain = Using("read_scale", {"of": 1})
    async with (
        a_house(address, brain, toolbox=Toolbox([DEVICE])).open() as house,
        conversing(house, features=["streaming", "tools"]) as peer,
    ):
        await peer.say()
        await peer.until_type(TOOL_REQUEST)
        await peer.send(STOP, id="stop_1")
        await peer.answer()
        (row,) = await uses(house, peer)

    assert (row.status, row.error_message) == ("error", "the answer ended before it")
