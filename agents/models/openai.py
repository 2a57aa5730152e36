"""A model behind an OpenAI-style chat endpoint, hosted or on a machine of the operator's."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from agents.errors import ModelTrouble
from agents.models import usage
from agents.models.http import HttpClient, text_or_empty
from agents.models.prompts import ModelRequest
from agents.models.replies import without_control_characters
from agents.models.tool_calls import MAX_ROUNDS, ToolCall, run_tool_calls
from agents.ports import ToolUser
from agents.tools.toolbox import Tool


@dataclass(slots=True)
class _Reply:
    """One streamed reply, as far as it was received."""

    text: str = ""
    reasoning: str = ""
    calls: dict[str, ToolCall] = field(default_factory=dict)
    ended: bool = False


class ChatModel:
    """The models of one endpoint. The endpoint keeps nothing, so each request carries everything."""

    repeatable = True

    def __init__(self, endpoint: str, key: str, model: str, models: Mapping[str, str] | None = None) -> None:
        """Use `model` for every role, except for the roles that `models` names another one for."""
        self._model, self._models = model, models or {}
        self._http = HttpClient(endpoint, key, repeatable=True)

    @property
    def name(self) -> str:
        """The model that answers."""
        return self._model

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def check_health(self) -> None:
        """Raise `ModelTrouble` if the endpoint does not respond."""
        await self._http.fetch("GET", "models")

    async def decide(self, request: ModelRequest) -> str:
        """Return the whole reply. The endpoint is asked to follow the request's schema."""
        body = self._body(request, _first_messages(request))
        if request.schema is not None:
            schema = {"name": request.schema.name, "strict": True, "schema": request.schema.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        usage.current().requests += 1
        reply = await self._http.fetch("POST", "chat/completions", body)
        _add_tokens(reply.get("usage"))
        message = _first_choice(reply).get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(content, str):
            raise ModelTrouble("not_understood", retryable=True)
        return content

    async def speak(self, request: ModelRequest, tools: ToolUser) -> AsyncGenerator[str, None]:
        """Yield the reply as it arrives. Tools that it calls are run, and it continues with their results."""
        messages: list[dict[str, Any]] = _first_messages(request)
        for number in range(MAX_ROUNDS):
            body = self._body(request, messages, stream=True, stream_options={"include_usage": True})
            if request.tools and number < MAX_ROUNDS - 1:
                body["tools"] = [_tool_description(tool) for tool in request.tools]
            reply = _Reply()
            usage.current().requests += 1
            try:
                async with aclosing(self._http.stream_events("chat/completions", body)) as events:
                    async for event in events:
                        if fragment := _add_chunk(reply, event):
                            yield fragment
                if not reply.ended:
                    raise ModelTrouble("broken_off", retryable=True)
            except ModelTrouble as trouble:
                # a retry starts over, and would run the tools of earlier rounds twice
                trouble.retryable = trouble.retryable and number == 0
                raise
            usage.current().add_reasoning(without_control_characters(reply.reasoning))
            if not reply.calls:
                return
            messages += await _tool_messages(reply, tools)

    def _body(
        self, request: ModelRequest, messages: Sequence[Mapping[str, Any]], **options: Any
    ) -> dict[str, Any]:
        return {"model": self._models.get(request.role) or self._model, "messages": messages, **options}


def _first_messages(request: ModelRequest) -> list[dict[str, Any]]:
    system = f"{request.prompt}\n\n<memory_blocks>\n{request.memory}\n</memory_blocks>"
    return [{"role": "system", "content": system}, {"role": "user", "content": request.message}]


def _tool_description(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


async def _tool_messages(reply: _Reply, tools: ToolUser) -> list[dict[str, Any]]:
    """The model's own reply and the results of its tools, for the next request."""
    results = await run_tool_calls(reply.calls.values(), tools)
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call, _ in results
    ]
    return [
        {"role": "assistant", "content": reply.text or None, "tool_calls": calls},
        *({"role": "tool", "tool_call_id": call.id, "content": result} for call, result in results),
    ]


def _first_choice(body: Mapping[str, Any]) -> dict[str, Any]:
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else {}
    return first if isinstance(first, dict) else {}


def _add_chunk(reply: _Reply, chunk: Mapping[str, Any]) -> str:
    """Add one event of the stream to the reply, and return the text in it."""
    if "error" in chunk:
        raise ModelTrouble("failed", retryable=True)
    _add_tokens(chunk.get("usage"))
    choice = _first_choice(chunk)
    reply.ended = reply.ended or bool(choice.get("finish_reason"))
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return ""
    reply.reasoning += text_or_empty(delta.get("reasoning_content")) or text_or_empty(delta.get("reasoning"))
    for piece in delta.get("tool_calls") or ():
        if isinstance(piece, dict) and isinstance(function := piece.get("function"), dict):
            call = reply.calls.setdefault(str(piece.get("index")), ToolCall())
            call.add(piece.get("id"), function.get("name"), function.get("arguments"))
    fragment = text_or_empty(delta.get("content"))
    reply.text += fragment
    return fragment


def _add_tokens(counts: object) -> None:
    if isinstance(counts, dict):
        usage.current().add_tokens(counts.get("prompt_tokens"), counts.get("completion_tokens"))
