"""A model behind an OpenAI-style chat endpoint: hosted, or on a machine of one's own."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from agents import minutes
from agents.brains.asking import Ask, sayable
from agents.brains.calling import ROUNDS, Call, used
from agents.brains.lines import Line, text_of
from agents.errors import ModelTrouble
from agents.ports import ToolUser
from agents.tools.toolbox import Tool


@dataclass(slots=True)
class _Heard:
    """What came of one request besides the words that were passed on."""

    text: str = ""
    reasoning: str = ""
    calls: dict[str, Call] = field(default_factory=dict)
    ended: bool = False


class ChatModel:
    """The models of one endpoint, which keeps nothing: all that is to be known is said in each request."""

    repeatable = True

    def __init__(self, endpoint: str, key: str, model: str, models: Mapping[str, str] | None = None) -> None:
        """`model` speaks and decides; `models` names another one for some roles."""
        self._model, self._models = model, models or {}
        self._line = Line(endpoint, key, repeatable=True)

    @property
    def name(self) -> str:
        """The model that speaks."""
        return self._model

    async def close(self) -> None:
        """Hang up."""
        await self._line.close()

    async def answers(self) -> None:
        """Whether anybody is there, for whoever looks after the house: `ModelTrouble` if not."""
        await self._line.fetch("GET", "models")

    async def decide(self, ask: Ask) -> str:
        """The whole reply, in the form of the schema if the endpoint can do that."""
        request = self._request(ask, _opening(ask))
        if ask.schema is not None:
            form = {"name": ask.schema.name, "strict": True, "schema": ask.schema.schema}
            request["response_format"] = {"type": "json_schema", "json_schema": form}
        minutes.of_this_turn().asked += 1
        reply = await self._line.fetch("POST", "chat/completions", request)
        _count(reply.get("usage"))
        message = _first(reply).get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(content, str):
            raise ModelTrouble("not_understood", again=True)
        return content

    async def speak(self, ask: Ask, tools: ToolUser) -> AsyncGenerator[str, None]:
        """The reply as it comes; whatever tools it asks for are used, and it goes on with their results."""
        messages: list[dict[str, Any]] = _opening(ask)
        for number in range(ROUNDS):
            request = self._request(ask, messages, stream=True, stream_options={"include_usage": True})
            if ask.tools and number < ROUNDS - 1:
                request["tools"] = [_offered(tool) for tool in ask.tools]
            heard = _Heard()
            minutes.of_this_turn().asked += 1
            try:
                async with aclosing(self._line.events("chat/completions", request)) as events:
                    async for event in events:
                        if fragment := _hear(heard, event):
                            yield fragment
                if not heard.ended:
                    raise ModelTrouble("broken_off", again=True)
            except ModelTrouble as trouble:
                trouble.again = trouble.again and number == 0  # what a tool did, is not done again
                raise
            minutes.of_this_turn().reason(sayable(heard.reasoning))
            if not heard.calls:
                return
            messages += await _results(heard, tools)

    def _request(self, ask: Ask, messages: Sequence[Mapping[str, Any]], **further: Any) -> dict[str, Any]:
        return {"model": self._models.get(ask.role) or self._model, "messages": messages, **further}


def _opening(ask: Ask) -> list[dict[str, Any]]:
    system = f"{ask.prompt}\n\n<memory_blocks>\n{ask.memory}\n</memory_blocks>"
    return [{"role": "system", "content": system}, {"role": "user", "content": ask.message}]


def _offered(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


async def _results(heard: _Heard, tools: ToolUser) -> list[dict[str, Any]]:
    """The model's own words and what its tools gave, for the next round."""
    results = await used(heard.calls.values(), tools)
    named = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call, _ in results
    ]
    return [
        {"role": "assistant", "content": heard.text or None, "tool_calls": named},
        *({"role": "tool", "tool_call_id": call.id, "content": told} for call, told in results),
    ]


def _first(said: Mapping[str, Any]) -> dict[str, Any]:
    choices = said.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else {}
    return first if isinstance(first, dict) else {}


def _hear(heard: _Heard, chunk: Mapping[str, Any]) -> str:
    """Take one piece in; the words of it."""
    if "error" in chunk:
        raise ModelTrouble("failed", again=True)
    _count(chunk.get("usage"))
    choice = _first(chunk)
    heard.ended = heard.ended or bool(choice.get("finish_reason"))
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return ""
    heard.reasoning += text_of(delta.get("reasoning_content")) or text_of(delta.get("reasoning"))
    for piece in delta.get("tool_calls") or ():
        if isinstance(piece, dict) and isinstance(function := piece.get("function"), dict):
            call = heard.calls.setdefault(str(piece.get("index")), Call())
            call.add(piece.get("id"), function.get("name"), function.get("arguments"))
    fragment = text_of(delta.get("content"))
    heard.text += fragment
    return fragment


def _count(usage: object) -> None:
    if isinstance(usage, dict):
        minutes.of_this_turn().used(usage.get("prompt_tokens"), usage.get("completion_tokens"))
