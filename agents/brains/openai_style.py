"""A model behind an OpenAI-style chat endpoint: hosted, or on a machine of one's own."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx

from agents import minutes
from agents.brains.asking import Ask, sayable
from agents.errors import ModelTrouble
from agents.ports import ToolOutcome, ToolUser
from agents.tools.toolbox import Tool

MOST_BYTES: Final = 4_000_000
"""More than this in one line of a stream, or in one whole reply, is not read."""

ROUNDS: Final = 4
"""How often tools may be used in one answer before the model has to speak."""

_MOST_CALLS: Final = 8
_OVERLOADED: Final = (408, 409, 425, 429)
_CONNECT_SECONDS: Final = 5.0
_SILENT_SECONDS: Final = 60.0
"""The longest silence on a connection; whoever asks has less patience, and hangs up."""


@dataclass(slots=True)
class _Call:
    """A tool that the model wants to be used, as its pieces come."""

    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class _Round:
    """What came of one request besides the words."""

    text: str = ""
    reasoning: str = ""
    calls: dict[str, _Call] = field(default_factory=dict)
    ended: bool = False


class ChatModel:
    """The models of one endpoint, which keeps nothing: all that is to be known is said in each request."""

    repeatable = True

    def __init__(self, endpoint: str, key: str, model: str, models: Mapping[str, str] | None = None) -> None:
        """`model` speaks and decides; `models` names another one for some roles."""
        self._model, self._models = model, models or {}
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.AsyncClient(
            base_url=f"{endpoint.rstrip('/')}/",
            headers=headers,
            timeout=httpx.Timeout(_SILENT_SECONDS, connect=_CONNECT_SECONDS),
            trust_env=False,
        )

    @property
    def name(self) -> str:
        """The model that speaks."""
        return self._model

    async def close(self) -> None:
        """Hang up."""
        await self._http.aclose()

    async def answers(self) -> None:
        """Whether anybody is there, for whoever looks after the house: `ModelTrouble` if not."""
        async with self._asked("GET", "models", None):
            pass

    async def decide(self, ask: Ask) -> str:
        """The whole reply, in the form of the schema if the endpoint can do that."""
        request = self._request(ask, _opening(ask))
        if ask.schema is not None:
            form = {"name": ask.schema.name, "strict": True, "schema": ask.schema.schema}
            request["response_format"] = {"type": "json_schema", "json_schema": form}
        minutes.of_this_turn().asked += 1
        async with self._asked("POST", "chat/completions", request) as answer:
            reply = _parsed(b"".join([each async for each in _bounded(answer)]))
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
            minutes.of_this_turn().asked += 1
            heard = _Round()
            try:
                async with self._asked("POST", "chat/completions", request) as answer:
                    async for data in _events(answer):
                        if fragment := _hear(heard, _parsed(data)):
                            yield fragment
                if not heard.ended:
                    raise ModelTrouble("broken_off", again=True)
            except ModelTrouble as trouble:
                trouble.again = trouble.again and number == 0  # what a tool did, is not done again
                raise
            minutes.of_this_turn().reason(sayable(heard.reasoning))
            if not heard.calls:
                return
            messages += await _used(heard, tools)

    def _request(self, ask: Ask, messages: Sequence[Mapping[str, Any]], **further: Any) -> dict[str, Any]:
        return {"model": self._models.get(ask.role) or self._model, "messages": messages, **further}

    @asynccontextmanager
    async def _asked(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> AsyncIterator[httpx.Response]:
        """An answer that is no refusal. The library's errors become ours, also while it is being read."""
        try:
            async with self._http.stream(method, path, json=body) as answer:
                if answer.status_code != httpx.codes.OK:
                    raise refusal(answer.status_code, answer.headers)
                yield answer
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
            raise ModelTrouble("unreachable", again=True) from None
        except httpx.HTTPError:
            raise ModelTrouble("broken_off", again=True) from None


def refusal(status: int, headers: Mapping[str, str]) -> ModelTrouble:
    """What an HTTP status means for whoever asked: those that pass by themselves may be tried again."""
    again = status in _OVERLOADED or status >= httpx.codes.INTERNAL_SERVER_ERROR
    return ModelTrouble(f"http_{status}", again=again, after=_retry_after(headers))


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The header in seconds: given as such, or as a date beside that of the answer."""
    given = headers.get("retry-after", "")
    try:
        if given.replace(".", "", 1).isdecimal():
            return float(given)
        waits = parsedate_to_datetime(given) - parsedate_to_datetime(headers.get("date", ""))
        return max(waits.total_seconds(), 0.0)
    except (TypeError, ValueError):
        return None


# --- what is sent -------------------------------------------------------------------------------------------


def _opening(ask: Ask) -> list[dict[str, Any]]:
    system = f"{ask.prompt}\n\n<memory_blocks>\n{ask.memory}\n</memory_blocks>"
    return [{"role": "system", "content": system}, {"role": "user", "content": ask.message}]


def _offered(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


async def _used(heard: _Round, tools: ToolUser) -> list[dict[str, Any]]:
    """The model's own words and what its tools gave, for the next round."""
    calls = list(heard.calls.values())[:_MOST_CALLS]
    named = [
        {"id": each.id, "type": "function", "function": {"name": each.name, "arguments": each.arguments}}
        for each in calls
    ]
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": heard.text or None, "tool_calls": named}
    ]
    for each in calls:
        outcome = await tools.use(each.name, arguments_of(each.arguments))
        messages.append({"role": "tool", "tool_call_id": each.id, "content": told(outcome)})
    return messages


def arguments_of(text: str) -> dict[str, Any]:
    """A tool's arguments as a model writes them; none where they cannot be read, which the tool refuses."""
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def told(outcome: ToolOutcome) -> str:
    """What came of a tool, as a model is told."""
    return json.dumps({"result": outcome.result} if outcome.success else {"error": outcome.says})


# --- what comes back ----------------------------------------------------------------------------------------


async def _events(answer: httpx.Response) -> AsyncIterator[bytes]:
    """The data of a stream of events, up to its end."""
    pending = b""
    async for data in answer.aiter_bytes():
        *lines, pending = (pending + data).split(b"\n")
        if len(pending) > MOST_BYTES:
            raise ModelTrouble("too_long")
        for line in lines:
            if line.startswith(b"data:") and (said := line[5:].strip()) != b"[DONE]":
                yield said


async def _bounded(answer: httpx.Response) -> AsyncIterator[bytes]:
    size = 0
    async for data in answer.aiter_bytes():
        size += len(data)
        if size > MOST_BYTES:
            raise ModelTrouble("too_long")
        yield data


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict) or "error" in said:
        raise ModelTrouble("not_understood", again=True)
    return said


def _first(said: Mapping[str, Any]) -> dict[str, Any]:
    choices = said.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else {}
    return first if isinstance(first, dict) else {}


def _hear(heard: _Round, chunk: Mapping[str, Any]) -> str:
    """Take one piece in; the words of it."""
    _count(chunk.get("usage"))
    choice = _first(chunk)
    heard.ended = heard.ended or bool(choice.get("finish_reason"))
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return ""
    heard.reasoning += _text(delta.get("reasoning_content")) or _text(delta.get("reasoning"))
    for piece in delta.get("tool_calls") or ():
        if isinstance(piece, dict) and isinstance(function := piece.get("function"), dict):
            call = heard.calls.setdefault(str(piece.get("index")), _Call())
            call.id = call.id or _text(piece.get("id"))
            call.name += _text(function.get("name"))
            call.arguments += _text(function.get("arguments"))
    fragment = _text(delta.get("content"))
    heard.text += fragment
    return fragment


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(usage: object) -> None:
    if isinstance(usage, dict):
        minutes.of_this_turn().used(usage.get("prompt_tokens"), usage.get("completion_tokens"))
