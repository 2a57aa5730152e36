"""A turn through Letta, against the plain way: extractor, which edits its blocks, classifier, specialist."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from uuid import uuid4

import httpx

from agents.brains.lines import Line
from agents.sentences import sentences
from benchmarks.turn import SAID
from memory_blocks.models import ConversationHistory, Label
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

SURE = "sure without the model"
"""What the reasoning in the history says where the local classifier decided."""

AT_ONCE = 8
EXTRACTS, CLASSIFIES = "You keep the four blocks up to date.", "You name the intent."


@dataclass(frozen=True, slots=True)
class Took:
    """One turn: seconds to the first sentence and to the end, and messages to agents on the way there.

    `sure` says that the local classifier was; of one in which the local brain `stood_in`, nothing is counted.
    """

    first: float
    whole: float
    messages: int
    sure: bool = False
    stood_in: bool = False


class Calls:
    """Counts every HTTP request to the server, whoever makes it, in the background, too."""

    def __init__(self, base_url: str) -> None:
        self.made, self._url, self._send = 0, httpx.URL(base_url), httpx.AsyncClient.send

    def __enter__(self) -> "Calls":
        async def counted(client: httpx.AsyncClient, request: httpx.Request, **how: Any) -> httpx.Response:
            self.made += (request.url.host, request.url.port) == (self._url.host, self._url.port)
            return await self._send(client, request, **how)

        setattr(httpx.AsyncClient, "send", counted)  # noqa: B010 - the library has no place for it
        return self

    def __exit__(self, *_: object) -> None:
        setattr(httpx.AsyncClient, "send", self._send)  # noqa: B010


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
        self._house, (ours, theirs) = house, pair()
        self._attending = asyncio.create_task(house.attend(theirs, "bench"))
        self._client = Client(ours, RandomIds())

    async def open(self) -> None:
        """Shake hands."""
        async for _ in self._client.open():
            pass

    async def turn(self, said: str) -> Took:
        """Say something, and hear the answer."""
        began, first, asked, stood_in = perf_counter(), 0.0, 0, False
        async for envelope in self._client.answer_to(await self._client.say(said)):
            if isinstance(envelope.body, AssistantSentence):
                first = first or perf_counter() - began
                asked = int((envelope.meta or {}).get("model.asked") or 0)
                if trouble := (envelope.meta or {}).get("model.trouble"):
                    print(f"       not counted: the local brain stood in: {trouble}", flush=True)
                    stood_in = True
        whole = perf_counter() - began
        stored = await self._house.store.read(lambda tx: tx.blocks.load(self._client.conversation_id))
        history = ConversationHistory.model_validate_json(stored[Label.CONVERSATION_HISTORY].value or "")
        why = history.turns[-1].intent_classification
        return Took(first, whole, asked, why is not None and SURE in why.reasoning, stood_in)

    async def close(self) -> None:
        """Leave."""
        await self._client.close()
        await self._attending


# --- both ---------------------------------------------------------------------------------------------------


async def _alone(conversation: Plain | Ours, calls: Calls) -> tuple[list[Took], int]:
    """Turn after turn, and how many calls there were in all; in the first one agents may still be made."""
    await conversation.open()
    before = calls.made
    took = [await conversation.turn(said) for said in SAID]
    await conversation.close()
    return took, calls.made - before


async def _together(conversations: Sequence[Plain | Ours]) -> float:
    """Turns per second of several conversations at once."""
    for each in conversations:
        await each.open()
    await asyncio.gather(*(each.turn(SAID[0]) for each in conversations))

    async def converse(conversation: Plain | Ours) -> int:
        return sum([not (await conversation.turn(said)).stood_in for said in SAID[1:3]])

    began = perf_counter()
    turns = sum(await asyncio.gather(*(converse(each) for each in conversations)))
    took = perf_counter() - began
    for each in conversations:
        await each.close()
    return turns / took


def _told(what: str, took: Sequence[Took], calls: int) -> tuple[float, float]:
    """Say it, and tell the medians of the turns after the first that agents answered."""
    counted = [each for each in took[1:] if not each.stood_in]
    if not counted:
        raise SystemExit(f"{what}: the local brain stood in for every turn; nothing was measured")
    first, whole = median(each.first for each in counted), median(each.whole for each in counted)
    print(
        f"{what:6} first sentence {first * 1000:5.0f} ms   whole turn {whole * 1000:5.0f} ms   "
        f"first turn {took[0].whole * 1000:5.0f} ms   {len(counted)} of {len(took) - 1} later turns counted",
        flush=True,
    )
    for which, of in (("sure", True), ("not sure", False)):
        if told := [str(each.messages) for each in took if each.sure is of and not each.stood_in]:
            about = f" in turns the classifier is {which} of" if what != "plain" else ""
            print(f"       messages to agents{about}: {', '.join(told)}", flush=True)
    print(
        f"       all calls, agents' making and the background too: {calls / len(took):.1f} per turn",
        flush=True,
    )
    return first, whole


def _house(base_url: str, folder: Path, **chosen: object) -> House:
    settings = load(
        given={
            "data.dir": str(folder),
            "letta.base_url": base_url,
            "letta.model": LETTA_MODEL,
            "letta.embedding": LETTA_EMBEDDING,
            "brain.reply_seconds": 60.0,
            "brain.budget_seconds": 60.0,
            "letta.show_seconds": 60.0,
            **{f"brain.{name}": value for name, value in chosen.items()},
        },
        environment={},
    )
    return build_house(settings)


async def _measure(base_url: str, endpoint: ModelEndpoint, folder: Path) -> None:
    edits = [
        Step(tool="core_memory_append", arguments={"label": label, "content": "more"}) for label in Label
    ]
    endpoint.script(EXTRACTS, *edits, Step(text="Done."), anew=True)
    endpoint.script(CLASSIFIES, *[Step(text="GENERAL_HEALTH")] * 1_000)
    with Calls(base_url) as calls:
        plain_first, plain_whole = _told("plain", *await _alone(Plain(base_url), calls))
        async with (await asyncio.to_thread(_house, base_url, folder / "sure")).open() as house:
            first, whole = _told("ours", *await _alone(Ours(house), calls))
        print(
            f"ratio  first sentence {first / plain_first:.2f} (goal: at most 0.35)   "
            f"whole turn {whole / plain_whole:.2f} (goal: at most 0.50)"
        )
        never_sure = partial(_house, base_url, folder / "unsure", sure_intent=2.0)
        async with (await asyncio.to_thread(never_sure)).open() as house:
            _told("unsure", *await _alone(Ours(house), calls))
    async with (await asyncio.to_thread(_house, base_url, folder / "together")).open() as house:
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
