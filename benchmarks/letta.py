"""A turn through Letta, against the plain way: extractor, which edits its blocks, classifier, specialist."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from uuid import uuid4

import httpx

from agents.brains.lines import Line
from agents.sentences import sentences
from benchmarks.turn import SAID
from memory_blocks.models import Label
from orchestrator import logs
from orchestrator.client import Client
from orchestrator.house import House
from orchestrator.settings import load
from orchestrator.transports.in_process import pair
from orchestrator.wire.ids import RandomIds
from orchestrator.wire.messages import AssistantSentence
from orchestrator.wiring import build_house
from tools.model_endpoint import ModelEndpoint, Step, running_model_endpoint
from tools.servers.letta import LETTA_EMBEDDING, LETTA_MODEL, letta_database, serving

DELAY_SECONDS = 0.3
"""How long the model takes to its first token."""

AT_ONCE = 8
EXTRACTS, CLASSIFIES = "You keep the four blocks up to date.", "You name the intent."


@dataclass(frozen=True, slots=True)
class Took:
    """One turn: seconds to the first sentence and to the end, and messages to agents on the way there."""

    first: float
    whole: float
    messages: int


# --- the plain way ------------------------------------------------------------------------------------------


class Plain:
    """One conversation as Letta's own documentation would have it: agents with shared blocks, in sequence."""

    def __init__(self, base_url: str) -> None:
        self._http = httpx.AsyncClient(base_url=base_url, timeout=120)
        self._line = Line(base_url, "", repeatable=False)
        self._agents: list[str] = []

    async def open(self) -> None:
        """Make the agents and their blocks."""
        blocks = [
            (await self._posted("blocks/", {"label": label, "value": "empty", "limit": 32_000}))["id"]
            for label in Label
        ]
        for system, tools in ((EXTRACTS, ["core_memory_append"]), (CLASSIFIES, []), ("Be kind.", [])):
            agent = {
                "name": f"plain-{uuid4().hex}",
                "agent_type": "letta_v1_agent",
                "include_base_tools": False,
                "tools": tools,
                "system": system,
                "block_ids": blocks,
                "model": LETTA_MODEL,
                "embedding": LETTA_EMBEDDING,
            }
            self._agents.append((await self._posted("agents/", agent))["id"])

    async def turn(self, said: str) -> Took:
        """One after the other: remember, classify, answer."""
        began = perf_counter()
        extractor, classifier, specialist = self._agents
        message = {"messages": [{"role": "user", "content": said}]}
        await self._posted(f"agents/{extractor}/messages", message)
        await self._posted(f"agents/{classifier}/messages", message)
        first = 0.0
        async with aclosing(sentences(self._spoken(specialist, message))) as spoken:
            async for _ in spoken:
                first = first or perf_counter() - began
        return Took(first, perf_counter() - began, 3)

    async def close(self) -> None:
        """Hang up."""
        await self._http.aclose()
        await self._line.close()

    async def _spoken(self, agent: str, message: dict[str, Any]) -> AsyncGenerator[str, None]:
        request = message | {"stream_tokens": True}
        async for event in self._line.events(f"v1/agents/{agent}/messages/stream", request):
            if event.get("message_type") == "assistant_message":
                yield event["content"]

    async def _posted(self, path: str, body: dict[str, Any]) -> Any:
        return (await self._http.post(f"/v1/{path}", json=body)).raise_for_status().json()


# --- ours ---------------------------------------------------------------------------------------------------


class Ours:
    """One conversation in the house."""

    def __init__(self, house: House) -> None:
        ours, theirs = pair()
        self._attending = asyncio.create_task(house.attend(theirs, "bench"))
        self._client = Client(ours, RandomIds())

    async def open(self) -> None:
        """Shake hands."""
        async for _ in self._client.open():
            pass

    async def turn(self, said: str) -> Took:
        """Say something, and hear the answer."""
        began, first, asked = perf_counter(), 0.0, 0
        async for envelope in self._client.answer_to(await self._client.say(said)):
            if isinstance(envelope.body, AssistantSentence):
                first = first or perf_counter() - began
                asked = int((envelope.meta or {}).get("model.asked") or 0)
                if trouble := (envelope.meta or {}).get("model.trouble"):
                    print(f"       not counting: the local brain stood in: {trouble}", flush=True)
                    asked = 0
        return Took(first, perf_counter() - began, asked)

    async def close(self) -> None:
        """Leave."""
        await self._client.close()
        await self._attending


# --- both ---------------------------------------------------------------------------------------------------


async def _alone(conversation: Plain | Ours) -> list[Took]:
    """Turn after turn; the first one, in which agents may still be made, is told apart."""
    await conversation.open()
    took = [await conversation.turn(said) for said in SAID]
    await conversation.close()
    return took


async def _together(conversations: Sequence[Plain | Ours]) -> float:
    """Turns per second of several conversations at once."""
    for each in conversations:
        await each.open()
    await asyncio.gather(*(each.turn(SAID[0]) for each in conversations))

    async def converse(conversation: Plain | Ours) -> int:
        return sum([(await conversation.turn(said)).messages > 0 for said in SAID[1:3]])

    began = perf_counter()
    turns = sum(await asyncio.gather(*(converse(each) for each in conversations)))
    took = perf_counter() - began
    for each in conversations:
        await each.close()
    return turns / took


def _told(what: str, took: Sequence[Took]) -> tuple[float, float]:
    later = took[1:]
    first, whole = median(each.first for each in later), median(each.whole for each in later)
    messages = ", ".join(str(each.messages) for each in took)
    print(
        f"{what:6} first sentence {first * 1000:5.0f} ms   whole turn {whole * 1000:5.0f} ms   "
        f"first turn {took[0].whole * 1000:5.0f} ms   messages to agents {messages}",
        flush=True,
    )
    return first, whole


async def _measure(base_url: str, endpoint: ModelEndpoint, folder: Path) -> None:
    edits = [
        Step(tool="core_memory_append", arguments={"label": label, "content": "more"}) for label in Label
    ]
    endpoint.script(EXTRACTS, *edits, Step(text="Done."), anew=True)
    endpoint.script(CLASSIFIES, *[Step(text="GENERAL_HEALTH")] * 1_000)
    plain_first, plain_whole = _told("plain", await _alone(Plain(base_url)))
    settings = load(
        given={
            "data.dir": str(folder),
            "letta.base_url": base_url,
            "letta.model": LETTA_MODEL,
            "letta.embedding": LETTA_EMBEDDING,
            "brain.reply_seconds": 60.0,
            "brain.budget_seconds": 60.0,
            "letta.show_seconds": 60.0,
        },
        environment={},
    )
    async with (await asyncio.to_thread(build_house, settings)).open() as house:
        first, whole = _told("ours", await _alone(Ours(house)))
        print(
            f"ratio  first sentence {first / plain_first:.2f} (goal: at most 0.35)   "
            f"whole turn {whole / plain_whole:.2f} (goal: at most 0.50)"
        )
        plain_rate = await _together([Plain(base_url) for _ in range(AT_ONCE)])
        rate = await _together([Ours(house) for _ in range(AT_ONCE)])
        print(
            f"{AT_ONCE} conversations at once: plain {plain_rate:.2f}, ours {rate:.2f} turns per second, "
            f"ratio {rate / plain_rate:.1f} (goal: at least 3)"
        )


def main() -> None:
    """Measure both on one server of our own, whose model takes its time."""
    logs.configure("error")
    with (
        tempfile.TemporaryDirectory() as folder,
        running_model_endpoint(DELAY_SECONDS) as endpoint,
        letta_database() as database,
        serving(database, endpoint.url) as address,
    ):
        asyncio.run(_measure(address.base_url, endpoint, Path(folder)))
