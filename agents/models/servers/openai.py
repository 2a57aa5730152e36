"""A model behind an OpenAI-style chat endpoint, hosted or on a machine of the operator's."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from agents.errors import ModelTrouble
from agents.models import usage
from agents.models.replies import without_control_characters
from agents.models.requests import ModelRequest
from agents.models.servers.capabilities import Capabilities
from agents.models.servers.http import HttpClient, encoded, text_or_empty
from agents.models.servers.json_text import find_object
from agents.models.servers.thinking import ThoughtFilter
from agents.models.servers.tool_calls import MAX_ROUNDS, ToolCall, run_tool_calls
from agents.models.usage import ModelCall
from agents.ports import ToolUser
from agents.tools.toolbox import Tool

_PATH: Final = "chat/completions"
_RESPONDS: Final = ("http_404", "http_405", "http_429", "http_501", "not_understood")
"""The troubles of a list of models behind which the endpoint itself works."""

_CUT_SHORT: Final = {"length": "token_limit", "content_filter": "content_filter"}
"""The trouble behind a `finish_reason` with which a reply is not whole."""


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """The limits of a reply. Messages are read at temperature 0, and answered at `temperature`."""

    temperature: float = 0.3
    answer_tokens: int = 2_048


@dataclass(slots=True)
class _Reply:
    """One streamed reply, as far as it was received."""

    text: str = ""
    thoughts: ThoughtFilter = field(default_factory=ThoughtFilter)
    reasoning: str = ""
    calls: dict[str, ToolCall] = field(default_factory=dict)
    finish: str = ""

    @property
    def begun(self) -> bool:
        """Whether anything of it has arrived."""
        return bool(self.text or self.reasoning or self.calls or self.finish)


class ChatModel:
    """The models of one endpoint. The endpoint keeps nothing, so each request carries everything.

    What a model refused once, it is not sent again by this process: `capabilities_of` says what is known.
    """

    repeatable = True

    def __init__(
        self,
        endpoint: str,
        key: str,
        model: str,
        models: Mapping[str, str] | None = None,
        options: ChatOptions | None = None,
    ) -> None:
        """Use `model` for every role, except for the roles that `models` names another one for."""
        self._model, self._models, self._options = model, models or {}, options or ChatOptions()
        self._capabilities: dict[str, Capabilities] = {}
        self._http = HttpClient(endpoint, key, repeatable=True)

    @property
    def name(self) -> str:
        """The model that answers."""
        return self._model

    def capabilities_of(self, role: str) -> Capabilities:
        """What the model of a role accepts, as far as is known."""
        return self._capabilities.get(self._model_of(role), Capabilities())

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def check_health(self) -> None:
        """Raise `ModelTrouble` if the endpoint does not respond. It need not be able to list its models."""
        try:
            await self._http.fetch("GET", "models")
        except ModelTrouble as trouble:
            if trouble.kind not in _RESPONDS:
                raise

    async def decide(self, request: ModelRequest) -> str:
        """Return the JSON object of the reply. The endpoint is asked to follow the request's schema."""
        capabilities, first_refusal = self.capabilities_of(request.role), None
        while True:
            body = self._decision(request, capabilities)
            try:
                text = await self._whole_reply(request.role, body)
            except ModelTrouble as trouble:
                first_refusal = first_refusal or trouble
                if (less := capabilities.after(trouble, body)) is None:
                    raise first_refusal from None
                capabilities = less
            else:
                self._capabilities[self._model_of(request.role)] = capabilities
                return find_object(text)

    async def speak(self, request: ModelRequest, tools: ToolUser) -> AsyncGenerator[str, None]:
        """Yield the reply as it arrives. Tools that it calls are run, and it continues with their results."""
        messages = _messages(request)
        for number in range(MAX_ROUNDS):
            reply = _Reply()
            offered = request.tools if number < MAX_ROUNDS - 1 else ()
            try:
                async with aclosing(self._round(request.role, messages, offered, reply)) as fragments:
                    async for fragment in fragments:
                        yield fragment
            except ModelTrouble as trouble:
                # a retry starts over, and would run the tools of earlier rounds twice
                trouble.retryable = trouble.retryable and number == 0
                raise
            thoughts = reply.reasoning or reply.thoughts.thoughts
            usage.current().add_reasoning(without_control_characters(thoughts))
            if not reply.calls:
                return
            messages += await _tool_messages(reply, tools)

    # --- requests -------------------------------------------------------------------------------------------

    def _model_of(self, role: str) -> str:
        return self._models.get(role) or self._model

    def _decision(self, request: ModelRequest, capabilities: Capabilities) -> dict[str, Any]:
        """The request for a structured reply."""
        schema = request.schema
        return {
            "model": self._model_of(request.role),
            "messages": _messages(request, capabilities.described(schema) if schema else ""),
            **capabilities.options(0.0, self._options.answer_tokens),
            **(capabilities.response_format(schema) if schema else {}),
        }

    async def _whole_reply(self, role: str, body: Mapping[str, Any]) -> str:
        turn_usage, text, outcome = usage.current(), "", "closed"
        call = turn_usage.begin_call(role, body["model"], encoded(body))
        try:
            reply = await self._http.fetch("POST", _PATH, body)
            _add_tokens(call, reply.get("usage"))
            text, outcome = _message_text(reply), usage.ANSWERED
        except ModelTrouble as trouble:
            outcome = trouble.kind
            raise
        finally:
            turn_usage.end_call(call, outcome, text)
        return text

    async def _round(
        self, role: str, messages: Sequence[Mapping[str, Any]], offered: Sequence[Tool], reply: _Reply
    ) -> AsyncGenerator[str, None]:
        """Yield one reply. A request that is refused for one of its options is sent without it."""
        capabilities, first_refusal = self.capabilities_of(role), None
        while True:
            body = self._answer_body(role, messages, offered, capabilities)
            try:
                async with aclosing(self._stream(role, body, reply)) as fragments:
                    async for fragment in fragments:
                        yield fragment
            except ModelTrouble as trouble:
                first_refusal = first_refusal or trouble
                less = None if reply.begun else capabilities.after(trouble, body)
                if less is None:
                    raise (trouble if reply.begun else first_refusal) from None
                capabilities = less
            else:
                self._capabilities[self._model_of(role)] = capabilities
                return

    def _answer_body(
        self,
        role: str,
        messages: Sequence[Mapping[str, Any]],
        offered: Sequence[Tool],
        capabilities: Capabilities,
    ) -> dict[str, Any]:
        body = {
            "model": self._model_of(role),
            "messages": messages,
            "stream": True,
            **capabilities.options(self._options.temperature, self._options.answer_tokens),
        }
        if capabilities.takes_stream_options:
            body["stream_options"] = {"include_usage": True}
        if offered and capabilities.takes_tools:
            body["tools"] = [_tool_description(tool) for tool in offered]
        return body

    async def _stream(self, role: str, body: Mapping[str, Any], reply: _Reply) -> AsyncGenerator[str, None]:
        """Send one request and yield the text of its reply, without thoughts."""
        turn_usage, outcome = usage.current(), "closed"
        call = turn_usage.begin_call(role, body["model"], encoded(body))
        try:
            async with aclosing(self._http.stream_events(_PATH, body)) as events:
                async for event in events:
                    _add_tokens(call, event.get("usage"))
                    if fragment := _add_event(reply, event):
                        yield fragment
            if rest := reply.thoughts.rest():
                reply.text += rest
                yield rest
            if not reply.finish:
                raise ModelTrouble("broken_off", retryable=True)
            if reply.finish in _CUT_SHORT:
                raise ModelTrouble(_CUT_SHORT[reply.finish])
            outcome = usage.ANSWERED
        except ModelTrouble as trouble:
            outcome = trouble.kind
            raise
        finally:
            turn_usage.end_call(call, outcome, reply.text)


def _messages(request: ModelRequest, more: str = "") -> list[dict[str, Any]]:
    """The request as messages: what does not change, what is known, the dialogue, the message.

    There is one system message, and the others alternate, because the templates of some models demand it.
    """
    system = "\n\n".join(part for part in (request.instructions + more, request.known) if part)
    messages = [{"role": "system", "content": system}]
    messages += [{"role": each.role, "content": each.text} for each in request.dialogue]
    return messages


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


def _message_text(body: Mapping[str, Any]) -> str:
    """The text of a whole reply."""
    if "error" in body and "choices" not in body:
        raise ModelTrouble("failed", retryable=True)
    message = _first_choice(body).get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, str | list):
        raise ModelTrouble("not_understood", retryable=True)
    return _content_text(content)


def _content_text(content: object) -> str:
    """The text of a message's content, which some gateways send in parts."""
    if isinstance(content, list):
        return "".join(text_or_empty(part.get("text")) for part in content if isinstance(part, dict))
    return text_or_empty(content)


def _add_event(reply: _Reply, event: Mapping[str, Any]) -> str:
    """Add one event of the stream to the reply, and return the text of the answer in it.

    A server that does not stream sends the whole `message` where others send a `delta`.
    """
    if "error" in event:
        raise ModelTrouble("failed", retryable=True)
    choice = _first_choice(event)
    reply.finish = reply.finish or text_or_empty(choice.get("finish_reason"))
    delta = choice.get("delta") or choice.get("message")
    if not isinstance(delta, dict):
        return ""
    reply.reasoning += text_or_empty(delta.get("reasoning_content")) or text_or_empty(delta.get("reasoning"))
    for number, piece in enumerate(delta.get("tool_calls") or ()):
        if isinstance(piece, dict) and isinstance(function := piece.get("function"), dict):
            call = reply.calls.setdefault(str(piece.get("index", number)), ToolCall())
            call.add(piece.get("id"), function.get("name"), function.get("arguments"))
    fragment = reply.thoughts.add(_content_text(delta.get("content")))
    reply.text += fragment
    return fragment


def _add_tokens(call: ModelCall, counts: object) -> None:
    if isinstance(counts, dict):
        usage.current().add_tokens(call, counts.get("prompt_tokens"), counts.get("completion_tokens"))
