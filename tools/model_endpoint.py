"""An OpenAI-style model endpoint on loopback, with faults to script: `python -m tools.model_endpoint`.

Behind `/v1/chat/completions` stands the local brain, which reads the four blocks from the prompt as a model
would; behind `/v1/embeddings` the embedding model. What it does differently is scripted with `ModelEndpoint`:
whoever's prompt holds a given text gets the scripted steps, so that tests beside each other do not meet.
"""

import argparse
import asyncio
import base64
import html
import json
import re
import threading
import urllib.request
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from time import sleep
from typing import Any, Final

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from agents.brains.local import LocalBrain
from agents.embedding import embed
from agents.ports import Brief, Embedder, Prompt, Recalled
from agents.roster import Roster, pick
from agents.tools.wishes import Wish, told, wish_in
from agents.values import Enrichment, Intent
from memory_blocks.edits import empty
from memory_blocks.errors import BlockInvalid
from memory_blocks.limits import DEFAULTS
from memory_blocks.models import Blocks, Conversation, Label, from_texts
from orchestrator.settings import load
from orchestrator.wiring import load_embedder, load_lexicon, load_roster, load_router
from tools.servers.keeper import keep

MODEL: Final = "anamnesis-local"
EMBEDDING: Final = "text-embedding-3-small"
WIDTH: Final = 1536
"""How many numbers that embedding model's vectors have; ours are filled up with zeros."""

UNREAD: Final = "I hear you. Please tell me a little more about it. When did it begin?"
"""What is said to a prompt that holds no blocks."""

_KEPT: Final = 2_000
_CLOSED: Final = {"Connection": "close"}  # a server that reuses descriptors stalls on a kept connection
_SSE: Final = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Step:
    """How one request is answered; without anything, as usual.

    `status` refuses it, with `retry_after` seconds to wait. `text` is said instead of the usual answer, as
    is, `tool` is called with `arguments` before anything is said. `cut` breaks the connection after so many
    fragments, `drip` waits so many seconds between any two, `hang` never answers.
    """

    status: int = 200
    retry_after: float | None = None
    text: str | None = None
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    reasoning: str = ""
    cut: int | None = None
    drip: float = 0.0
    hang: bool = False


@dataclass(slots=True)
class _Script:
    """The steps for prompts that hold `when`: one after the other, or anew for each message of a person."""

    when: str
    steps: tuple[Step, ...]
    anew: bool
    taken: int = 0

    def next(self, results: int) -> Step:
        at = results if self.anew else self.taken
        self.taken += 1
        return self.steps[at] if at < len(self.steps) else Step()


class ModelEndpoint:
    """An endpoint that is up, as a test speaks to it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def script(self, when: str, *steps: Step, anew: bool = False) -> None:
        """Answer prompts that hold `when` by these steps, in their order, and then as usual again.

        With `anew`, by the number of tool results since the person's last message, for each message again.
        """
        self._post("script", {"when": when, "steps": [asdict(step) for step in steps], "anew": anew})

    def delay(self, seconds: float) -> None:
        """Wait so long before the first token of every answer from now on."""
        self._post("delay", {"seconds": seconds})

    def asked(self, when: str) -> list[dict[str, Any]]:
        """The latest requests for a completion whose prompt holds `when`, oldest first."""
        asked: list[dict[str, Any]] = self._post("asked", {"when": when})
        return asked

    def _post(self, what: str, body: Mapping[str, Any]) -> Any:
        address = f"{self.url.removesuffix('/v1')}/control/{what}"
        request = urllib.request.Request(address, data=json.dumps(body).encode())  # noqa: S310 - loopback
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return json.load(answer)


@contextmanager
def running_model_endpoint(delay_seconds: float = 0.0, port: int = 0) -> Iterator[ModelEndpoint]:
    """An endpoint that is up during the body, in a thread of this process; its `url` ends in `/v1`."""
    server = uvicorn.Server(
        uvicorn.Config(
            _application(delay_seconds),
            port=port,
            log_config=None,
            log_level="critical",
            lifespan="off",
            ws="none",
        )
    )
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined] # it is not the main thread
    thread = threading.Thread(target=server.run, name="model endpoint", daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise OSError("the model endpoint did not start")
            sleep(0.01)
        listens = server.servers[0].sockets[0].getsockname()
        yield ModelEndpoint(f"http://127.0.0.1:{listens[1]}/v1")
    finally:
        server.force_exit = server.should_exit = True
        thread.join(timeout=10)


# --- the server ---------------------------------------------------------------------------------------------


@dataclass
class _Endpoint:
    """What is scripted, what was asked, and the brain that answers."""

    delay_seconds: float
    brain: "_Reader"
    scripts: list[_Script] = field(default_factory=list)
    log: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=_KEPT))

    async def control(self, request: Request) -> Response:
        """Script, delay or tell what was asked."""
        body = await request.json()
        match request.path_params["what"]:
            case "script":
                steps = tuple(Step(**step) for step in body["steps"])
                self.scripts.insert(0, _Script(body["when"], steps, body["anew"]))
            case "delay":
                self.delay_seconds = body["seconds"]
            case "asked":
                found = [each for each in self.log if body["when"] in json.dumps(each, ensure_ascii=False)]
                return JSONResponse(found, headers=_CLOSED)
        return JSONResponse({}, headers=_CLOSED)

    async def models(self, request: Request) -> Response:
        """The models there are."""
        listed = [{"id": name, "object": "model", "owned_by": "anamnesis"} for name in (MODEL, EMBEDDING)]
        return JSONResponse({"object": "list", "data": listed}, headers=_CLOSED)

    async def embeddings(self, request: Request) -> Response:
        """The embedding model's vectors, filled up."""
        body = await request.json()
        texts = [body["input"]] if isinstance(body["input"], str) else [str(each) for each in body["input"]]
        vectors = await asyncio.to_thread(self.brain.embedded, texts, int(body.get("dimensions") or WIDTH))
        packed = body.get("encoding_format") == "base64"
        data = [
            {
                "object": "embedding",
                "index": at,
                "embedding": base64.b64encode(row.tobytes()).decode() if packed else row.tolist(),
            }
            for at, row in enumerate(vectors)
        ]
        used = _tokens("".join(texts))
        usage = {"prompt_tokens": used, "total_tokens": used}
        return JSONResponse(
            {"object": "list", "data": data, "model": body.get("model", EMBEDDING), "usage": usage},
            headers=_CLOSED,
        )

    async def complete(self, request: Request) -> Response:
        """One completion, whole or streamed."""
        asked = await request.json()
        self.log.append(asked)
        step = self._step(asked)
        await asyncio.sleep(self.delay_seconds)
        if step.hang:
            await _gone(request)
        if step.status != 200:
            waits = {} if step.retry_after is None else {"Retry-After": f"{step.retry_after:g}"}
            problem = {"error": {"message": "as scripted", "type": "scripted", "code": str(step.status)}}
            return JSONResponse(problem, step.status, {**_CLOSED, **waits})
        message = await self._message(asked, step)
        if asked.get("stream"):
            return StreamingResponse(_streamed(asked, message, step), media_type=_SSE, headers=_CLOSED)
        if step.cut is not None:
            whole = json.dumps(_completion(asked, message)).encode()
            return StreamingResponse(
                _broken_after(whole[: step.cut]), media_type="application/json", headers=_CLOSED
            )
        return JSONResponse(_completion(asked, message), headers=_CLOSED)

    def _step(self, asked: Mapping[str, Any]) -> Step:
        text = json.dumps(asked, ensure_ascii=False)
        for script in self.scripts:
            if script.when in text and (script.anew or script.taken < len(script.steps)):
                return script.next(_results(asked["messages"]))
        return Step()

    async def _message(self, asked: Mapping[str, Any], step: Step) -> dict[str, Any]:
        if step.tool:
            return _call(step.tool, step.arguments, len(asked["messages"])) | {"reasoning": step.reasoning}
        if step.text is not None:
            return {"role": "assistant", "content": step.text, "reasoning": step.reasoning}
        return await self.brain.reply(asked) | {"reasoning": step.reasoning}


def _application(delay_seconds: float) -> Starlette:
    endpoint = _Endpoint(delay_seconds, _Reader())
    return Starlette(
        routes=[
            Route("/v1/models", endpoint.models),
            Route("/v1/embeddings", endpoint.embeddings, methods=["POST"]),
            Route("/v1/chat/completions", endpoint.complete, methods=["POST"]),
            Route("/control/{what}", endpoint.control, methods=["POST"]),
        ]
    )


# --- who answers --------------------------------------------------------------------------------------------


class _Reader:
    """The local brain, told by a prompt."""

    def __init__(self) -> None:
        settings = load(environment={})
        self._roster: Roster = load_roster()
        self._embedder: Embedder = load_embedder(settings)
        router = load_router(settings, self._roster, self._embedder)
        self._brain = LocalBrain(self._roster, router, load_lexicon())

    def embedded(self, texts: Sequence[str], width: int) -> Any:
        vectors = self._embedder.embed(texts)
        filled = np.zeros((len(texts), width), dtype=np.float32)
        filled[:, : min(width, vectors.shape[1])] = vectors[:, :width]
        return filled

    async def reply(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What the local brain would reply to this prompt."""
        messages = asked["messages"]
        blocks = _blocks("\n".join(_text(each) for each in messages if each["role"] in _INSTRUCTING))
        last = next((_text(each) for each in reversed(messages) if each["role"] == "user"), "")
        schema = ((asked.get("response_format") or {}).get("json_schema") or {}).get("schema") or {}
        wanted = schema.get("properties", {})
        if "enriched_message" in wanted:
            return _says(json.dumps(_enrichment(await self._extract(_tagged("message", last), blocks))))
        if "intent" in wanted:
            intent = await self._classify(_tagged("enriched_message", last), blocks)
            return _says(intent.model_dump_json(include={"intent", "confidence", "reasoning"}))
        return await self._answer(asked, last, blocks)

    async def _extract(self, message: str, blocks: Blocks | None) -> Enrichment:
        if blocks is None:
            return Enrichment(
                previous_context="None was shown", enriched_message=f'User says: "{message[:300]}"'
            )
        return await self._brain.extract(message, blocks)

    async def _classify(self, enriched: str, blocks: Blocks | None) -> Intent:
        enrichment = Enrichment(previous_context="None was shown", enriched_message=enriched or "nothing")
        embedded = await embed(self._embedder, enriched, enrichment)
        if blocks is None:
            return Intent(intent="UNCLEAR", confidence=0.5, reasoning="No blocks were shown")
        return await self._brain.classify(enrichment, blocks, embedded)

    async def _answer(self, asked: Mapping[str, Any], last: str, blocks: Blocks | None) -> dict[str, Any]:
        message, offered = _tagged("message", last) or last, asked.get("tools") or []
        names = {tool["function"]["name"] for tool in offered}
        wish = wish_in(message)
        results = [_text(each) for each in asked["messages"] if each["role"] == "tool"]
        results += _tagged("tool_results", last).splitlines()
        if wish is not None and wish.tool in names and not results:
            return _call(wish.tool, wish.arguments, len(asked["messages"]))
        worked_out = _worked_out(wish, results[-1]) if wish is not None and results else ""
        if blocks is None:
            return _says(f"{worked_out}{UNREAD}")
        intent = Intent(intent=_tagged("intent", last) or "UNCLEAR", confidence=0.9, reasoning="As told")
        brief = Brief(
            pick(intent, self._roster),
            message,
            await self._extract(message, blocks),
            intent,
            blocks,
            Recalled(),
            Prompt("none", "", "0"),
            _tagged("said_so_far", last),
        )
        said = "".join([fragment async for fragment in self._brain.speak(brief)])
        return _says(worked_out + said)


_INSTRUCTING: Final = ("system", "developer")


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _blocks(prompt: str) -> Blocks | None:
    """The four blocks as they stand in a prompt, ours or Letta's; None where they do not.

    All of them blank are those of a conversation that has had no turn.
    """
    shapes = {
        label: rf"<{label}>(?:(?!</{label}>).)*?<value>\n(.*?)\n</value>\s*</{label}>" for label in Label
    }
    found = {label: re.search(shape, prompt, re.S) for label, shape in shapes.items()}
    texts = {label: each[1] for label, each in found.items() if each}
    if len(texts) == len(Label) and not any(text.strip() for text in texts.values()):
        return empty(Conversation("none", "none", datetime.fromtimestamp(0, UTC)), DEFAULTS)
    try:
        return from_texts(texts)
    except (BlockInvalid, KeyError):
        return None


def _tagged(name: str, text: str) -> str:
    found = re.search(rf"<{name}>\n(.*?)\n</{name}>", text, re.S)
    return html.unescape(found[1]) if found else ""


def _enrichment(enrichment: Enrichment) -> dict[str, Any]:
    whole = enrichment.model_dump(mode="json", exclude={"asked_before", "passed_over"})
    return whole | {"sentiment": whole["sentiment"] or "neutral"}


def _worked_out(wish: Wish, result: str) -> str:
    """What a tool gave, in a sentence; nothing where that cannot be told."""
    with suppress(ValueError, LookupError, TypeError):
        return told(wish, json.loads(result[result.index("{") :])["result"])
    return ""


def _results(messages: Sequence[Mapping[str, Any]]) -> int:
    """How many tool results came since the person's last message."""
    roles = [each["role"] for each in messages]
    return roles[len(roles) - roles[::-1].index("user") :].count("tool") if "user" in roles else 0


# --- as OpenAI would write it -----------------------------------------------------------------------------


def _says(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def _call(name: str, arguments: Mapping[str, Any], number: int) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(dict(arguments))}
    call = {"id": f"call_{number}_{name}"[:29], "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _completion(asked: Mapping[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "message": _outward(message), "finish_reason": _ended(message)}
    return {**_head(asked, "chat.completion"), "choices": [choice], "usage": _usage(asked, message)}


async def _streamed(asked: Mapping[str, Any], message: Mapping[str, Any], step: Step) -> AsyncIterator[bytes]:
    head = _head(asked, "chat.completion.chunk")
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if message.get("reasoning"):
        deltas.append({"reasoning_content": message["reasoning"]})
    for at, call in enumerate(message.get("tool_calls", ())):
        deltas.append({"tool_calls": [{"index": at, **call}]})
    deltas += [{"content": each} for each in re.findall(r"\S+\s*|\s+", message.get("content") or "")]
    for number, delta in enumerate(deltas):
        if step.cut is not None and number >= step.cut:
            raise _Cut
        yield _event(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        await asyncio.sleep(step.drip)
    yield _event(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": _ended(message)}]})
    if (asked.get("stream_options") or {}).get("include_usage"):
        yield _event(head | {"choices": [], "usage": _usage(asked, message)})
    yield b"data: [DONE]\n\n"


async def _gone(request: Request) -> None:
    """Wait until whoever asked has hung up."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _broken_after(data: bytes) -> AsyncIterator[bytes]:
    yield data
    raise _Cut


class _Cut(Exception):
    """The connection breaks here."""


def _event(chunk: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(chunk)}\n\n".encode()


def _head(asked: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-anamnesis", "object": kind, "created": 0, "model": asked.get("model", MODEL)}


def _outward(message: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in message.items() if key != "reasoning"}
    return kept | ({"reasoning_content": message["reasoning"]} if message.get("reasoning") else {})


def _ended(message: Mapping[str, Any]) -> str:
    return "tool_calls" if message.get("tool_calls") else "stop"


def _usage(asked: Mapping[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    prompt, completion = _tokens(json.dumps(asked["messages"])), _tokens(json.dumps(dict(message)))
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _tokens(text: str) -> int:
    return len(text) // 4 + 1


@contextmanager
def _address(delay_seconds: float, port: int) -> Iterator[str]:
    with running_model_endpoint(delay_seconds, port) as endpoint:
        yield endpoint.url


def main() -> None:
    """Serve until stopped; the address is printed as one line."""
    parser = argparse.ArgumentParser(description="A model endpoint for tests and developers.", add_help=False)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before the first token")
    parser.add_argument("--port", type=int, default=0, help="where it listens; 0 picks a free one")
    chosen, further = parser.parse_known_args()
    keep(partial(_address, chosen.delay, chosen.port), further)


if __name__ == "__main__":
    main()
