"""A turn with Letta, compared with a client that asks three agents in each turn.

They say what the message means, where it belongs and what to answer. In one way each of them answers with
one message. In the other, the first of them also keeps the four blocks up to date with its own tools, as in
Letta's documentation, which takes a request to the model for each tool call.
"""

import asyncio
import json
import os
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from uuid import uuid4

import httpx

from agents.models.servers.http import HttpClient
from agents.sentences import sentences
from benchmarks.models import CONVERSATION, tokens_of
from memory_blocks.models import Label
from orchestrator.client.client import Client
from orchestrator.ops import logs
from orchestrator.orchestrator import Orchestrator
from orchestrator.settings import load
from orchestrator.transports.in_process import pair
from orchestrator.wire.ids import RandomIds
from orchestrator.wire.messages import AssistantSentence
from orchestrator.wiring import build_orchestrator
from tools.servers.letta import LETTA_EMBEDDING, LETTA_MODEL, letta_database, serving
from tools.servers.model_endpoint import ModelEndpoint, Step, running_model_endpoint

DELAY_SECONDS = 0.3
"""How long the model takes to its first token."""

MESSAGES = (
    "I am having a headache",
    "since Tuesday",
    "it throbs on the left side",
    "8",
    "no",
    "I work at a desk",
)
"""A conversation."""


def _reading(kind: str, value: str, about: str = "headache") -> Step:
    """A reading as a model gives it."""
    change = {"op": "add", "kind": kind, "subject": "person", "about": about, "value": value}
    whole = {
        "enriched_message": f"User says of their headache: {value}",
        "previous_context": "User reported a headache",
        "relevant_history": ["turn_1"],
        "topic": "headache",
        "trigger": "answer",
        "phase": "symptom_evaluation",
        "acts": [{"kind": "answer", "words": value, "confidence": 0.9}],
        "changes": [change],
        "intent": "GENERAL_HEALTH",
        "confidence": 0.9,
        "reasoning": "It goes on about the headache",
    }
    return Step(text=json.dumps(whole))


ANSWER = Step(text="Thank you for telling me. What else have you noticed?")
ANSWERS = (
    *(_reading("concern", "headache", ""), ANSWER),
    *(_reading("onset", "since Tuesday"), ANSWER),
    *(_reading("quality", "throbbing"), Step(text="Thank you. How severe is it on a scale of 1 to 10?")),
    Step(text="Thank you for telling me. Have you had this before?"),
    ANSWER,
    *(_reading("activity", "works at a desk"), ANSWER),
)
"""What the model says: a reading and an answer in each turn, but only an answer to "8" and "no", because
these reply to plain questions. Like the other agents' replies, they take the model no time to compute."""

TALKS = 3
"""How many conversations are measured, one after the other."""

GOALS = {1: 0.35, 2: 0.6}
"""At most this share of the plain way's time to the first sentence, by messages to agents in a turn."""

AT_ONCE = 8
EXTRACTS, CLASSIFIES = "You keep the four blocks up to date.", "You name the intent."
READS, ANSWERS_KINDLY = "You say what the message means.", "You answer kindly."


@dataclass(frozen=True, slots=True)
class TurnTime:
    """One turn: seconds to the first sentence and to its end, and the number of messages to agents.

    `by_fallback`: the local brain answered, so it is not counted.
    """

    first: float
    whole: float
    messages: int
    by_fallback: bool = False


class CallCounter:
    """Counts all HTTP requests to the server, including those of background work."""

    def __init__(self, base_url: str) -> None:
        self.count, self._url, self._send = 0, httpx.URL(base_url), httpx.AsyncClient.send

    def __enter__(self) -> "CallCounter":
        async def counted(client: httpx.AsyncClient, request: httpx.Request, **how: Any) -> httpx.Response:
            self.count += (request.url.host, request.url.port) == (self._url.host, self._url.port)
            return await self._send(client, request, **how)

        setattr(httpx.AsyncClient, "send", counted)  # noqa: B010 - the library has no hook for it
        return self

    def __exit__(self, *_: object) -> None:
        setattr(httpx.AsyncClient, "send", self._send)  # noqa: B010


# --- the plain way ------------------------------------------------------------------------------------------


class Plain:
    """One conversation as in Letta's documentation: agents with shared blocks, asked one after the other.

    With `edits`, the first agent writes to the blocks with its tools.
    """

    def __init__(self, base_url: str, *, edits: bool) -> None:
        self._first = (EXTRACTS, ["core_memory_append"]) if edits else (READS, [])
        self._http = httpx.AsyncClient(base_url=base_url, timeout=120)
        self._model_http = HttpClient(base_url, "", repeatable=False)
        self._agents: list[str] = []

    async def open(self) -> None:
        """Create the agents and their blocks."""
        blocks = [
            (await self._post("blocks/", {"label": label, "value": "empty", "limit": 32_000}))["id"]
            for label in Label
        ]
        for system, tools in (self._first, (CLASSIFIES, []), (ANSWERS_KINDLY, [])):
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
            self._agents.append((await self._post("agents/", agent))["id"])

    async def turn(self, message: str) -> TurnTime:
        """Run one turn: remember, classify, answer."""
        started = perf_counter()
        extractor, classifier, specialist = self._agents
        request = {"messages": [{"role": "user", "content": message}]}
        await self._post(f"agents/{extractor}/messages", request)
        await self._post(f"agents/{classifier}/messages", request)
        first = 0.0
        async with aclosing(sentences(self._stream(specialist, request))) as answer:
            async for _ in answer:
                first = first or perf_counter() - started
        return TurnTime(first, perf_counter() - started, 3)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()
        await self._model_http.close()

    async def _stream(self, agent: str, request: dict[str, Any]) -> AsyncGenerator[str, None]:
        body = request | {"stream_tokens": True}
        async for event in self._model_http.stream_events(f"v1/agents/{agent}/messages/stream", body):
            if event.get("message_type") == "assistant_message":
                yield event["content"]

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        return (await self._http.post(f"/v1/{path}", json=body)).raise_for_status().json()


# --- ours ---------------------------------------------------------------------------------------------------


class Ours:
    """One conversation with the orchestrator."""

    def __init__(self, orchestrator: Orchestrator, endpoint: ModelEndpoint | None = None) -> None:
        self._endpoint, (ours, theirs) = endpoint, pair()
        self._serving = asyncio.create_task(orchestrator.serve(theirs, "bench"))
        self._client = Client(ours, RandomIds())

    async def open(self) -> None:
        """Do the handshake. The model's answers are scripted, if there is an endpoint."""
        async for _ in self._client.open():
            pass
        if self._endpoint is not None:
            await asyncio.to_thread(self._endpoint.script, self._client.conversation_id, *ANSWERS)

    async def turn(self, message: str) -> TurnTime:
        """Send a message, and wait for the end of the answer."""
        started, first, messages, by_fallback = perf_counter(), 0.0, 0, False
        async for envelope in self._client.answer_to(await self._client.say(message)):
            if isinstance(envelope.body, AssistantSentence):
                first = first or perf_counter() - started
                messages = int((envelope.meta or {}).get("model.asked") or 0)
                if trouble := (envelope.meta or {}).get("model.trouble"):
                    print(f"       not counted, because the local brain answered: {trouble}", flush=True)
                    by_fallback = True
        return TurnTime(first, perf_counter() - started, messages, by_fallback)

    async def close(self) -> None:
        """Disconnect."""
        await self._client.close()
        await self._serving


# --- both ---------------------------------------------------------------------------------------------------


async def _alone(begin: Callable[[], Plain | Ours], calls: CallCounter) -> tuple[list[list[TurnTime]], int]:
    """Run some conversations, one turn after the other, and count all calls."""
    talks, made = [], 0
    for _ in range(TALKS):
        conversation = begin()
        await conversation.open()
        before = calls.count
        talks.append([await conversation.turn(message) for message in MESSAGES])
        made += calls.count - before
        await conversation.close()
    return talks, made


async def _together(conversations: Sequence[Plain | Ours]) -> float:
    """Turns per second of several conversations at once."""
    for each in conversations:
        await each.open()
    await asyncio.gather(*(each.turn(MESSAGES[0]) for each in conversations))

    async def converse(conversation: Plain | Ours) -> int:
        return sum([not (await conversation.turn(message)).by_fallback for message in MESSAGES[1:3]])

    started = perf_counter()
    turns = sum(await asyncio.gather(*(converse(each) for each in conversations)))
    seconds = perf_counter() - started
    for each in conversations:
        await each.close()
    return turns / seconds


def _print_times(what: str, talks: Sequence[Sequence[TurnTime]], calls: int) -> list[TurnTime]:
    """Print the times. Returns the turns that agents answered, without first turns, which create agents."""
    counted = [each for talk in talks for each in talk[1:] if not each.by_fallback]
    if not counted:
        raise SystemExit(f"{what}: the local brain answered every turn; nothing was measured")
    for messages in sorted({each.messages for each in counted}):
        alike = [each for each in counted if each.messages == messages]
        first, whole = median(each.first for each in alike), median(each.whole for each in alike)
        print(
            f"{what:6} {len(alike)} turns with {messages} messages to agents: "
            f"first sentence {first * 1000:5.0f} ms   whole turn {whole * 1000:5.0f} ms",
            flush=True,
        )
    first_turn, turns = median(talk[0].whole for talk in talks), sum(map(len, talks))
    print(f"       first turn {first_turn * 1000:5.0f} ms", flush=True)
    print(f"       all calls, including creation and background: {calls / turns:.1f} per turn", flush=True)
    return counted


def _print_ratios(what: str, plain: Sequence[TurnTime], ours: Sequence[TurnTime]) -> None:
    """Compare the times to the first sentence, by messages to agents."""
    base = median(each.first for each in plain)
    print(f"compared with {what}:", flush=True)
    for messages, goal in GOALS.items():
        if alike := [each.first for each in ours if each.messages == messages]:
            ratio = median(alike) / base
            print(
                f"ratio  first sentence with {messages}: {ratio:.2f} (goal: at most {goal:.2f})", flush=True
            )
    whole = median(each.whole for each in ours) / median(each.whole for each in plain)
    print(f"ratio  whole turn: {whole:.2f}", flush=True)


async def _tokens_at_the_end(orchestrator: Orchestrator, endpoint: ModelEndpoint) -> None:
    """Print the tokens of each request that reaches the model in the last turn of a long conversation."""
    talk, mark = Ours(orchestrator), f"(mark {uuid4().hex[:8]})"
    await talk.open()
    times = [await talk.turn(message) for message in (*CONVERSATION[:-1], f"{CONVERSATION[-1]} {mark}")]
    await talk.close()
    for messages, turns in sorted(Counter(each.messages for each in times).items()):
        print(f"{turns} of {len(times)} turns sent {messages} messages to agents", flush=True)
    asked = await asyncio.to_thread(endpoint.asked, mark)
    counts = " + ".join(f"{tokens_of(request):,}" for request in asked)
    print(f"tokens that reach the model in turn {len(CONVERSATION)}: {counts}", flush=True)


def _orchestrator(base_url: str, folder: Path) -> Orchestrator:
    settings = load(
        given={
            "data.dir": str(folder),
            "letta.base_url": base_url,
            "letta.model": LETTA_MODEL,
            "letta.embedding": LETTA_EMBEDDING,
            "brain.reply_seconds": 60.0,
            "brain.budget_seconds": 60.0,
            "letta.sync_seconds": 60.0,
        },
        environment={},
    )
    return build_orchestrator(settings)


async def _measure(base_url: str, endpoint: ModelEndpoint, folder: Path) -> None:
    edits = [
        Step(tool="core_memory_append", arguments={"label": label, "content": "more"}) for label in Label
    ]
    endpoint.script(EXTRACTS, *edits, Step(text="Done."), anew=True)
    endpoint.script(READS, *[Step(text="User answers the question about the headache.")] * 1_000)
    endpoint.script(CLASSIFIES, *[Step(text="GENERAL_HEALTH")] * 1_000)
    endpoint.script(ANSWERS_KINDLY, *[ANSWER] * 1_000)
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    with CallCounter(base_url) as calls:
        plain, editing = [
            _print_times(name, *await _alone(partial(Plain, base_url, edits=edits), calls))
            for name, edits in (("three", False), ("edits", True))
        ]
        async with (
            await asyncio.to_thread(_orchestrator, base_url, folder / "alone")
        ).open() as orchestrator:
            ours = _print_times("ours", *await _alone(partial(Ours, orchestrator, endpoint), calls))
    _print_ratios("three messages", plain, ours)
    _print_ratios("three messages and edits of the blocks", editing, ours)
    print(f"load after: {os.getloadavg()[0]:.1f}", flush=True)
    async with (await asyncio.to_thread(_orchestrator, base_url, folder / "long")).open() as orchestrator:
        await _tokens_at_the_end(orchestrator, endpoint)
    async with (await asyncio.to_thread(_orchestrator, base_url, folder / "together")).open() as orchestrator:
        plain_rate = await _together([Plain(base_url, edits=True) for _ in range(AT_ONCE)])
        rate = await _together([Ours(orchestrator) for _ in range(AT_ONCE)])
        print(
            f"{AT_ONCE} conversations at once: plain {plain_rate:.2f}, ours {rate:.2f} turns per second, "
            f"ratio {rate / plain_rate:.1f} (goal: at least 3)"
        )


def main() -> None:
    """Measure both on the same Letta server, with a model that answers after a delay."""
    logs.configure("error")
    with (
        tempfile.TemporaryDirectory() as folder,
        running_model_endpoint(DELAY_SECONDS) as endpoint,
        letta_database() as database,
        serving(database, endpoint.url) as address,
    ):
        asyncio.run(_measure(address.base_url, endpoint, Path(folder)))
