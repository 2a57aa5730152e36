"""Doubles of servers with OpenAI-style chat endpoints: what each accepts, refuses and replies.

Each does what the server that it imitates is known to do. They prove the form of what is exchanged, not that
a model understands it.
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.faults.http_proxy import listening

READING: Final[Mapping[str, Any]] = {
    "enriched_message": "User cannot sleep",
    "previous_context": "No previous context - first message",
    "relevant_history": [],
    "topic": "sleep",
    "trigger": "new_session",
    "phase": "opening",
    "acts": [],
    "changes": [],
    "intent": "SLEEP",
    "confidence": 0.9,
    "reasoning": "It is about nights",
}
ANSWER: Final = "That sounds tiring. Since when do you wake up at night?"

Refusal = tuple[int, Any]
"""A status and a body."""


@dataclass
class Shape:
    """How one kind of server behaves.

    `refuse` returns a refusal of a request, or None. `decision` and `answer` are the texts of its replies.
    `reports_usage` says whether it counts tokens, `streams` whether it streams when it is asked to,
    `lists_models` whether it answers `GET /models`.
    """

    name: str
    refuse: Callable[[Mapping[str, Any], Mapping[str, str]], Refusal | None]
    decision: str = json.dumps(READING)
    answer: str = ANSWER
    reasoning: str = ""
    reports_usage: bool = True
    streams: bool = True
    in_parts: bool = False
    lists_models: bool = True
    asked: list[dict[str, Any]] = field(default_factory=list)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Serve while the block runs; the address of the endpoint."""
        routes = [Route("/v1/chat/completions", self._complete, methods=["POST"])]
        if self.lists_models:
            routes.append(Route("/v1/models", self._models))
        async with listening(Starlette(routes=routes)) as url:
            yield f"{url}/v1"

    async def _models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": "a-model", "object": "model"}]})

    async def _complete(self, request: Request) -> Response:
        body = await request.json()
        self.asked.append(body)
        if (refused := self.refuse(body, request.headers)) is not None:
            return JSONResponse(refused[1], refused[0])
        text = self.answer if body.get("stream") else self.decision
        if body.get("stream") and self.streams:
            return StreamingResponse(self._streamed(text, body), media_type="text/event-stream")
        content: Any = [{"type": "text", "text": text}] if self.in_parts else text
        message = {"role": "assistant", "content": content, "reasoning_content": self.reasoning}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return JSONResponse({"choices": [choice], **self._usage()})

    async def _streamed(self, text: str, body: Mapping[str, Any]) -> AsyncIterator[str]:
        yield ": PROCESSING\n\n"  # a comment, as gateways send it to keep the connection open
        deltas = [{"reasoning_content": self.reasoning}] if self.reasoning else []
        deltas += [{"content": word + " "} for word in text.split(" ")]
        for delta in deltas:
            yield _event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        yield _event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        if self.reports_usage and body.get("stream_options"):
            yield _event({"choices": [], **self._usage()})
        yield "data: [DONE]\n\n"

    def _usage(self) -> dict[str, Any]:
        return {"usage": {"prompt_tokens": 1_000, "completion_tokens": 50}} if self.reports_usage else {}


def _event(body: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(body)}\n\n"


def _form_of(body: Mapping[str, Any]) -> str:
    return str((body.get("response_format") or {}).get("type", "text"))


# --- the servers --------------------------------------------------------------------------------------------


def openai() -> Shape:
    """OpenAI: accepts everything that we send, with a key."""

    def refuse(body: Mapping[str, Any], headers: Mapping[str, str]) -> Refusal | None:
        if headers.get("authorization") != "Bearer a key":
            return 401, {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}
        return None

    return Shape("openai", refuse)


def openai_reasoning() -> Shape:
    """A reasoning model of OpenAI: no temperature, and another name for the limit on tokens."""

    def refuse(body: Mapping[str, Any], headers: Mapping[str, str]) -> Refusal | None:
        if "max_tokens" in body:
            says = "Unsupported parameter: 'max_tokens' is not supported with this model. "
            says += "Use 'max_completion_tokens' instead."
            return 400, {"error": {"message": says, "param": "max_tokens", "code": "unsupported_parameter"}}
        if body.get("temperature", 1) != 1:
            says = "Unsupported value: 'temperature' does not support 0.0 with this model."
            return 400, {"error": {"message": says, "param": "temperature", "code": "unsupported_value"}}
        return None

    return Shape("openai reasoning", refuse)


def ollama() -> Shape:
    """Ollama with a model that knows no tools: it needs no key, and reports thoughts apart."""

    def refuse(body: Mapping[str, Any], headers: Mapping[str, str]) -> Refusal | None:
        if "tools" in body:
            says = "registry.ollama.ai/library/gemma3:4b does not support tools"
            return 400, {"error": {"message": says, "type": "api_error"}}
        return None

    return Shape("ollama", refuse, reasoning="They wake up at night.")


def old_ollama() -> Shape:
    """An Ollama that ignores the schema: the model wraps its JSON in a fence and some words."""
    decision = f"Here is the JSON:\n```json\n{json.dumps(READING, indent=2)}\n```"
    return Shape("old ollama", lambda body, headers: None, decision=decision, reports_usage=False)


def llama_cpp() -> Shape:
    """llama.cpp started without --jinja: no tools; thoughts come inside the text."""

    def refuse(body: Mapping[str, Any], headers: Mapping[str, str]) -> Refusal | None:
        if "tools" in body:
            error = {"code": 500, "message": "tools param requires --jinja flag", "type": "server_error"}
            return 500, {"error": error}
        return None

    thinks = "<think>\nIt is about sleep.\n</think>\n\n"
    return Shape("llama.cpp", refuse, decision=thinks + json.dumps(READING), answer=thinks + ANSWER)


def vllm() -> Shape:
    """vLLM started without --enable-auto-tool-choice."""

    def refuse(body: Mapping[str, Any], headers: Mapping[str, str]) -> Refusal | None:
        if "tools" in body:
            says = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
            return 400, {"object": "error", "message": says, "type": "BadRequestError", "code": 400}
        return None

    return Shape("vllm", refuse)


def lm_studio() -> Shape:
    """LM Studio: knows json_schema, refuses json_object, and reports an error as a text."""

    def refuse(body: Mapping[str, Any], headers: Mapping[str, str]) -> Refusal | None:
        if _form_of(body) == "json_object":
            return 400, {"error": "'response_format.type' must be 'json_schema' or 'text'"}
        return None

    return Shape("lm studio", refuse, reports_usage=False)


def json_object_only() -> Shape:
    """A hosted model without json_schema, such as many open models behind a gateway."""

    def refuse(body: Mapping[str, Any], headers: Mapping[str, str]) -> Refusal | None:
        if _form_of(body) == "json_schema":
            return 400, {"error": {"message": "This response_format type is unavailable now", "type": "x"}}
        return None

    return Shape("json_object only", refuse)


def gateway() -> Shape:
    """A gateway that knows no response_format, does not stream, sends content in parts, lists no models."""

    def refuse(body: Mapping[str, Any], headers: Mapping[str, str]) -> Refusal | None:
        if "response_format" in body:
            says = "No endpoints found that can handle the requested parameters."
            return 404, {"error": {"message": says, "code": 404}}
        if "stream_options" in body:
            return 422, {"detail": [{"loc": ["body", "stream_options"], "msg": "extra fields not permitted"}]}
        return None

    return Shape("gateway", refuse, streams=False, in_parts=True, lists_models=False)


SHAPES: Final = (
    openai,
    openai_reasoning,
    ollama,
    old_ollama,
    llama_cpp,
    vllm,
    lm_studio,
    json_object_only,
    gateway,
)
