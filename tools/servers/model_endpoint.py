"""An OpenAI-style model on loopback, with faults to script: `python -m tools.servers.model_endpoint`.

`/v1/chat/completions` is answered by the local brain, which reads the dialogue and the facts, or the blocks
of a Letta agent, from the prompt as a model would, and `/v1/embeddings` by the embedding model.
`ModelEndpoint` scripts other behaviour. A script applies to prompts that contain a given text, so that tests
that run at the same time do not affect each other.
"""

import argparse
import asyncio
import base64
import json
import re
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from time import sleep
from typing import Any, Final

import httpx
import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from agents.local import LocalBrain
from agents.ports import Brief, Embedder, Prompt, Recalled, Situation
from agents.roster import Roster
from agents.tools.requests import ToolRequest, find_tool_request, result_sentence
from orchestrator.settings import configured, load
from orchestrator.wiring import load_embedder, load_roster, load_router
from tools.servers.keeper import keep
from tools.servers.model_view import View, view_of

MODEL: Final = "anamnesis-local"
EMBEDDING: Final = "text-embedding-3-small"
WIDTH: Final = 1536
"""The dimension of that embedding model's vectors. Our shorter vectors are padded with zeros."""

WITHOUT_BLOCKS: Final = "I hear you. Please tell me a little more about it. When did it begin?"
"""The answer to a prompt without blocks."""

_REQUESTS_KEPT: Final = 2_000
_CLOSE: Final = {"Connection": "close"}  # Letta stalls on a connection that is kept open
_SSE: Final = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Step:
    """How one request is answered. The default is the usual answer.

    `status` is an error status, sent with a `Retry-After` of `retry_after` seconds. `text` replaces the usual
    answer. `tool` is called with `arguments` instead of an answer. `cut` breaks the connection after that
    many fragments, `drip` waits that many seconds between two fragments, `hang` never answers.
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
    """The steps for prompts that contain `when`."""

    when: str
    steps: tuple[Step, ...]
    anew: bool
    taken: int = 0

    def next(self, tool_results: int) -> Step:
        index = tool_results if self.anew else self.taken
        self.taken += 1
        return self.steps[index] if index < len(self.steps) else Step()


class ModelEndpoint:
    """A client for tests, which controls a running endpoint."""

    def __init__(self, url: str) -> None:
        self.url = url

    def script(self, when: str, *steps: Step, anew: bool = False) -> None:
        """Answer prompts that contain `when` by these steps, in their order, and afterwards as usual.

        With `anew`, each message of the person starts again at the first step. The step is then chosen by the
        number of tool results since that message.
        """
        self._post("script", {"when": when, "steps": [asdict(step) for step in steps], "anew": anew})

    def delay(self, seconds: float) -> None:
        """From now on, wait that long before the first token of every answer."""
        self._post("delay", {"seconds": seconds})

    def asked(self, when: str) -> list[dict[str, Any]]:
        """The latest completion requests that contain `when`, oldest first."""
        requests: list[dict[str, Any]] = self._post("asked", {"when": when})
        return requests

    def _post(self, command: str, body: Mapping[str, Any]) -> Any:
        address = f"{self.url.removesuffix('/v1')}/control/{command}"
        content = json.dumps(body)  # httpx's own encoding refuses half a surrogate pair, which tests send
        return httpx.post(address, content=content, timeout=30, trust_env=False).raise_for_status().json()


@contextmanager
def running_model_endpoint(delay_seconds: float = 0.0, port: int = 0) -> Iterator[ModelEndpoint]:
    """An endpoint during the body, in a thread of this process. Its `url` ends in `/v1`."""
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
    thread = threading.Thread(target=server.run, name="model endpoint", daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise OSError("The model endpoint did not start.")
            sleep(0.01)
        listening_port = server.servers[0].sockets[0].getsockname()[1]
        yield ModelEndpoint(f"http://127.0.0.1:{listening_port}/v1")
    finally:
        server.force_exit = server.should_exit = True
        thread.join(timeout=10)


# --- the server ---------------------------------------------------------------------------------------------


@dataclass
class _Endpoint:
    """The HTTP handlers, with the scripts, the requests so far and the model that answers."""

    delay_seconds: float
    model: "_LocalModel"
    scripts: list[_Script] = field(default_factory=list)
    log: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=_REQUESTS_KEPT))

    async def control(self, request: Request) -> Response:
        """Commands of `ModelEndpoint`."""
        body = await request.json()
        match request.path_params["command"]:
            case "script":
                steps = tuple(Step(**step) for step in body["steps"])
                self.scripts.insert(0, _Script(body["when"], steps, body["anew"]))
            case "delay":
                self.delay_seconds = body["seconds"]
            case "asked":
                found = [asked for asked in self.log if body["when"] in json.dumps(asked, ensure_ascii=False)]
                return JSONResponse(found, headers=_CLOSE)
        return JSONResponse({}, headers=_CLOSE)

    async def models(self, request: Request) -> Response:
        """The list of models."""
        listed = [{"id": name, "object": "model", "owned_by": "anamnesis"} for name in (MODEL, EMBEDDING)]
        return JSONResponse({"object": "list", "data": listed}, headers=_CLOSE)

    async def embeddings(self, request: Request) -> Response:
        """Vectors of the embedding model, padded with zeros."""
        body = await request.json()
        texts = [body["input"]] if isinstance(body["input"], str) else [str(text) for text in body["input"]]
        vectors = await asyncio.to_thread(self.model.embed, texts, int(body.get("dimensions") or WIDTH))
        packed = body.get("encoding_format") == "base64"
        data = [
            {
                "object": "embedding",
                "index": index,
                "embedding": base64.b64encode(row.tobytes()).decode() if packed else row.tolist(),
            }
            for index, row in enumerate(vectors)
        ]
        tokens = _tokens("".join(texts))
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return JSONResponse(
            {"object": "list", "data": data, "model": body.get("model", EMBEDDING), "usage": usage},
            headers=_CLOSE,
        )

    async def complete(self, request: Request) -> Response:
        """One completion, streamed or not."""
        asked = await request.json()
        self.log.append(asked)
        step = self._step(asked)
        await asyncio.sleep(self.delay_seconds)
        if step.hang:
            await _wait_for_disconnect(request)
        if step.status != 200:
            retry_after = {} if step.retry_after is None else {"Retry-After": f"{step.retry_after:g}"}
            problem = {"error": {"message": "as scripted", "type": "scripted", "code": str(step.status)}}
            return JSONResponse(problem, step.status, {**_CLOSE, **retry_after})
        message = await self._message(asked, step)
        if asked.get("stream"):
            return StreamingResponse(_streamed(asked, message, step), media_type=_SSE, headers=_CLOSE)
        if step.cut is not None:
            complete = json.dumps(_completion(asked, message)).encode()
            return StreamingResponse(
                _cut_after(complete[: step.cut]), media_type="application/json", headers=_CLOSE
            )
        return JSONResponse(_completion(asked, message), headers=_CLOSE)

    def _step(self, asked: Mapping[str, Any]) -> Step:
        text = json.dumps(asked, ensure_ascii=False)
        for script in self.scripts:
            if script.when in text and (script.anew or script.taken < len(script.steps)):
                return script.next(_count_tool_results(asked["messages"]))
        return Step()

    async def _message(self, asked: Mapping[str, Any], step: Step) -> dict[str, Any]:
        if step.tool:
            return _tool_call(step.tool, step.arguments, len(asked["messages"])) | {
                "reasoning": step.reasoning
            }
        if step.text is not None:
            return {"role": "assistant", "content": step.text, "reasoning": step.reasoning}
        return await self.model.reply(asked) | {"reasoning": step.reasoning}


def _application(delay_seconds: float) -> Starlette:
    endpoint = _Endpoint(delay_seconds, _LocalModel())
    return Starlette(
        routes=[
            Route("/v1/models", endpoint.models),
            Route("/v1/embeddings", endpoint.embeddings, methods=["POST"]),
            Route("/v1/chat/completions", endpoint.complete, methods=["POST"]),
            Route("/control/{command}", endpoint.control, methods=["POST"]),
        ]
    )


# --- the model ----------------------------------------------------------------------------------------------


class _LocalModel:
    """The local brain, which reads everything it needs from the prompt."""

    def __init__(self) -> None:
        settings = load(environment={})
        self._roster: Roster = load_roster()
        self._embedder: Embedder = load_embedder(settings)
        router = load_router(settings, self._roster, self._embedder)
        self._brain = LocalBrain(self._roster, router, configured("local", None), self._embedder)

    def embed(self, texts: Sequence[str], width: int) -> Any:
        """A vector per text, padded with zeros to `width`."""
        vectors = self._embedder.embed(texts)
        padded = np.zeros((len(texts), width), dtype=np.float32)
        padded[:, : min(width, vectors.shape[1])] = vectors[:, :width]
        return padded

    async def reply(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The message with which the local brain answers this prompt."""
        view = view_of(asked["messages"])
        if view.asks_for_reading:
            return _assistant(json.dumps(await self._understand(view.message, view.situation)))
        return await self._answer(asked, view)

    async def _understand(self, message: str, situation: Situation | None) -> dict[str, Any]:
        if situation is None:
            enriched = {
                "previous_context": "None was shown",
                "enriched_message": f'User says: "{message[:300]}"',
            }
            intent = {"intent": "UNCLEAR", "confidence": 0.5, "reasoning": "No blocks were shown"}
            return {**enriched, **_NOTHING_READ, **intent}
        found = await self._brain.understand(message, situation)
        return {
            **found.enrichment.model_dump(mode="json", include=_SHOWN),
            "acts": [act.model_dump(mode="json") for act in found.acts],
            "changes": [change.model_dump(mode="json", exclude={"decided_by"}) for change in found.changes],
            **found.intent.model_dump(mode="json", include={"intent", "confidence", "reasoning"}),
        }

    async def _answer(self, asked: Mapping[str, Any], view: View) -> dict[str, Any]:
        names = {tool["function"]["name"] for tool in asked.get("tools") or []}
        wish, results, situation = find_tool_request(view.message), view.tool_results, view.situation
        if wish is not None and wish.tool in names and not results:
            return _tool_call(wish.tool, wish.arguments, len(asked["messages"]))
        result = _result_sentence(wish, results[-1]) if wish is not None and results else ""
        if situation is None:
            return _assistant(f"{result}{WITHOUT_BLOCKS}")
        reading = await self._brain.understand(view.message, situation)
        brief = Brief(
            view.specialist(self._roster),
            view.message,
            reading,
            situation,
            (*situation.facts, *view.new_facts),
            Recalled(),
            Prompt("none", "", "0"),
            view.said,
        )
        answer = "".join([fragment async for fragment in self._brain.speak(brief)])
        return _assistant(result + answer)


_SHOWN: Final = {"previous_context", "enriched_message", "relevant_history", "topic", "trigger", "phase"}
_NOTHING_READ: Final[Mapping[str, Any]] = {
    "relevant_history": [],
    "topic": "conversation",
    "trigger": "new_message",
    "phase": "opening",
    "acts": [],
    "changes": [],
}


def _result_sentence(wish: ToolRequest, result: str) -> str:
    """A tool's result as a sentence; empty if it cannot be read."""
    with suppress(ValueError, LookupError, TypeError):
        return result_sentence(wish, json.loads(result[result.index("{") :])["result"])
    return ""


def _count_tool_results(messages: Sequence[Mapping[str, Any]]) -> int:
    """The number of tool results since the person's last message."""
    roles = [message["role"] for message in messages]
    return roles[len(roles) - roles[::-1].index("user") :].count("tool") if "user" in roles else 0


# --- the format of OpenAI ---------------------------------------------------------------------------------


def _assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def _tool_call(name: str, arguments: Mapping[str, Any], number: int) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(dict(arguments))}
    call = {"id": f"call_{number}_{name}"[:29], "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _completion(asked: Mapping[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "message": _as_openai(message), "finish_reason": _finish_reason(message)}
    return {**_head(asked, "chat.completion"), "choices": [choice], "usage": _usage(asked, message)}


async def _streamed(asked: Mapping[str, Any], message: Mapping[str, Any], step: Step) -> AsyncIterator[bytes]:
    head = _head(asked, "chat.completion.chunk")
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if message.get("reasoning"):
        deltas.append({"reasoning_content": message["reasoning"]})
    for index, call in enumerate(message.get("tool_calls", ())):
        deltas.append({"tool_calls": [{"index": index, **call}]})
    deltas += [{"content": word} for word in re.findall(r"\S+\s*|\s+", message.get("content") or "")]
    for number, delta in enumerate(deltas):
        if step.cut is not None and number >= step.cut:
            raise _Cut
        yield _event(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        await asyncio.sleep(step.drip)
    yield _event(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": _finish_reason(message)}]})
    if (asked.get("stream_options") or {}).get("include_usage"):
        yield _event(head | {"choices": [], "usage": _usage(asked, message)})
    yield b"data: [DONE]\n\n"


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _cut_after(data: bytes) -> AsyncIterator[bytes]:
    yield data
    raise _Cut


class _Cut(Exception):
    """Raised while a response is streamed, so that uvicorn breaks the connection."""


def _event(chunk: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(chunk)}\n\n".encode()


def _head(asked: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-anamnesis", "object": kind, "created": 0, "model": asked.get("model", MODEL)}


def _as_openai(message: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in message.items() if key != "reasoning"}
    return kept | ({"reasoning_content": message["reasoning"]} if message.get("reasoning") else {})


def _finish_reason(message: Mapping[str, Any]) -> str:
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
    """Serve until stopped. The address is printed as one line."""
    parser = argparse.ArgumentParser(description="A model endpoint for tests and developers.", add_help=False)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before the first token")
    parser.add_argument("--port", type=int, default=0, help="the port; 0 picks a free one")
    chosen, arguments = parser.parse_known_args()
    keep(partial(_address, chosen.delay, chosen.port), arguments)


if __name__ == "__main__":
    main()
