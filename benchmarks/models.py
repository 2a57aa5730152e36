"""The tokens of the requests to a chat endpoint, turn by turn, counted with a tokenizer of OpenAI."""

import asyncio
import json
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import bpe_openai

from agents.models.servers.http import encoded
from agents.models.usage import estimated_tokens
from orchestrator.client.client import Client
from orchestrator.ops import logs
from orchestrator.orchestrator import Orchestrator
from orchestrator.settings import load
from orchestrator.transports.in_process import pair
from orchestrator.wire.ids import RandomIds
from orchestrator.wiring import build_orchestrator
from tools.servers.model_endpoint import MODEL, ModelEndpoint, running_model_endpoint

MOST_TOKENS = 4_000
SHOWN = (1, 5, 10, 15, 20, 25)

CONVERSATION = (
    "Hi, I have had a headache since Tuesday and it is getting on my nerves",
    "It throbs on the left side, mostly behind the eye",
    "7",
    "No fever, but I feel a bit sick in the mornings and the light bothers me",
    "I am 42, and I have had asthma since I was a child",
    "I take a blue inhaler when I need it and 5 mg of ramipril every day",
    "My mother had migraines too, she always went to bed with a wet cloth",
    "I am allergic to penicillin, I got hives from it as a teenager",
    "Yesterday I only slept four hours because of it",
    "It's more like 5 now that I am lying down",
    "Could it be the new screen at work? I sit in front of it for nine hours",
    "My daughter has a cold as well, she is six and coughs all night",
    "No, she has no temperature, she eats and plays as usual",
    "Back to my head: it started on the right side today",
    "I drink two coffees in the morning and one after lunch",
    "About a litre and a half of water, maybe less on busy days",
    "Yes, I grind my teeth at night, my dentist told me so last year",
    "I stopped running in October because my knee hurt",
    "The left one, going down stairs is the worst",
    "I am a bit worried, to be honest, with all these things at once",
    "The doctor measured 150 over 95 two weeks ago",
    "I have not measured it since, the machine is broken",
    "Paracetamol helped a little the day before yesterday",
    "What should I tell my doctor on Thursday?",
    "And can I go swimming until then?",
)
"""What one person writes in 25 turns, some of it long and some of it about somebody else."""


@cache
def _encoding() -> Any:
    return bpe_openai.get_encoding("o200k_base")


def tokens_of(request: Mapping[str, Any]) -> int:
    """The tokens of a request: its messages with four each besides their text, its schema and its tools."""
    texts = [_text(message) for message in request["messages"]]
    schema = (request.get("response_format") or {}).get("json_schema") or {}
    rest = [encoded(each) for each in (schema, *(request.get("tools") or ())) if each]
    return sum(len(_encoding().encode_ordinary(text)) for text in (*texts, *rest)) + 4 * len(texts)


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


async def _converse(orchestrator: Orchestrator, endpoint: ModelEndpoint) -> list[list[dict[str, Any]]]:
    """Say everything, and return the requests of each turn."""
    ours, theirs = pair()
    serving = asyncio.create_task(orchestrator.serve(theirs, "bench"))
    client = Client(ours, RandomIds())
    async for _ in client.open():
        pass
    turns = []
    for number, message in enumerate(CONVERSATION, 1):
        mark = f"(message {number:03})"
        async for _ in client.answer_to(await client.say(f"{message} {mark}")):
            pass
        asked = await asyncio.to_thread(endpoint.asked, mark)
        turns.append([request for request in asked if mark in _text(request["messages"][-1])])
    await client.close()
    await serving
    return turns


def _report(turns: Sequence[Sequence[Mapping[str, Any]]]) -> None:
    for number in SHOWN:
        counts = [tokens_of(request) for request in turns[number - 1]]
        print(f"turn {number:2}: {' + '.join(f'{count:,}' for count in counts)} tokens")
    requests = [request for turn in turns for request in turn]
    largest = max(map(tokens_of, requests))
    ratios = [estimated_tokens(encoded(request)) / tokens_of(request) for request in requests]
    print(f"{len(requests)} requests in {len(turns)} turns")
    print(f"the largest has {largest:,} tokens (goal: at most {MOST_TOKENS:,})")
    print(f"the estimate at run time is {min(ratios):.2f} to {max(ratios):.2f} times the count")


def main() -> None:
    """Talk for 25 turns with a model endpoint on loopback."""
    logs.configure("error")
    with tempfile.TemporaryDirectory() as folder, running_model_endpoint() as endpoint:
        given = {"data.dir": str(Path(folder)), "chat.model": MODEL, "chat.endpoint": endpoint.url}
        orchestrator = build_orchestrator(load(given=given, environment={}))

        async def run() -> None:
            async with orchestrator.open():
                _report(await _converse(orchestrator, endpoint))

        started = perf_counter()
        asyncio.run(run())
        print(f"{perf_counter() - started:.1f} s")
