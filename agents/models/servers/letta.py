"""Letta agents as a model: one per role of a conversation, each with a copy of the four blocks.

The agents keep no messages between two requests. So no answer affects the next one, and no tool call stays
pending. A request whose outcome is unknown is not sent again.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from agents.errors import ModelTrouble
from agents.models import usage
from agents.models.replies import without_control_characters
from agents.models.requests import ModelRequest, message_with_results
from agents.models.retries import AgentBreakers, Breaker
from agents.models.servers.http import HttpClient, encoded, text_or_empty
from agents.models.servers.json_text import find_object
from agents.models.servers.tool_calls import MAX_ROUNDS, ToolCall, run_tool_calls
from agents.models.usage import ModelCall
from agents.ports import ToolUser
from agents.tools.toolbox import Tool

_NORMAL_ENDS: Final = ("end_turn", "requires_approval", "max_steps", "max_tokens_exceeded", "tool_rule")
_CANCEL_SECONDS: Final = 5.0

_MISSING: Final = "http_404"
_OF_ONE_AGENT: Final = (
    _MISSING,
    "http_400",
    "http_409",
    "http_422",
    "context_window_overflow_in_system_prompt",
)
"""Failures whose cause is one agent: the server and its model may be well for all others."""


async def _none_behind(conversation_id: str) -> int:
    return 0


async def _never_healed(conversation_id: str, role: str, agent_id: str) -> bool:
    return False


@dataclass(slots=True)
class _Run:
    """One run of an agent, as far as its events were received; `begun` once it has sent any message."""

    id: str = ""
    call: ModelCall | None = None
    text: str = ""
    reasoning: str = ""
    calls: dict[str, ToolCall] = field(default_factory=dict)
    begun: bool = False
    ended: bool = False


@dataclass(frozen=True, slots=True)
class RoleModels:
    """The model of all roles, and other ones for the roles in `others`."""

    model: str
    others: Mapping[str, str] = field(default_factory=dict)

    def of(self, role: str) -> str:
        """The model of a role's agent."""
        return self.others.get(role) or self.model


class LettaAgents:
    """The agents of one Letta server.

    `agent_for` returns an agent's id by conversation and role. `forget_missing` is called with conversation,
    role and id of an agent that the server does not find; if it returns True, `agent_for` makes a new one.
    `turns_behind` says how many of the latest turns the blocks of a conversation's agents lack.
    """

    repeatable = False

    def __init__(
        self,
        base_url: str,
        key: str,
        models: RoleModels,
        agent_for: Callable[[str, str], Awaitable[str]],
        forget_missing: Callable[[str, str, str], Awaitable[bool]] = _never_healed,
        make_breaker: Callable[[], Breaker] = Breaker,
        turns_behind: Callable[[str], Awaitable[int]] = _none_behind,
    ) -> None:
        self._http = HttpClient(base_url, key, repeatable=False)
        self._models, self._agent_for, self._forget_missing = models, agent_for, forget_missing
        self._turns_behind, self._breakers = turns_behind, AgentBreakers(make_breaker)
        self._cancellations: set[asyncio.Task[None]] = set()

    @property
    def name(self) -> str:
        """The model that the specialists use."""
        return self._models.model

    async def close(self) -> None:
        """Wait for cancellations that are being sent, then close the connections."""
        await asyncio.gather(*self._cancellations)
        await self._http.close()

    async def check_health(self) -> None:
        """Raise `ModelTrouble` if the server does not respond."""
        await self._http.fetch("GET", "v1/health/")

    async def decide(self, request: ModelRequest) -> str:
        """Return the agent's last message as a whole. Its schema is a setting of the agent."""
        agent_id, message = await self._agent(request)
        texts: dict[str, str] = {}
        async with (
            self._watching(agent_id, request),
            aclosing(self._run(agent_id, request, message, (), _Run())) as messages,
        ):
            async for message_id, fragment in messages:
                texts[message_id] = texts.get(message_id, "") + fragment
        return find_object(list(texts.values())[-1]) if texts else ""

    async def speak(self, request: ModelRequest, tools: ToolUser) -> AsyncGenerator[str, None]:
        """Yield the agent's text as it arrives. Run the tools it calls and send the results back."""
        agent_id, first_message = await self._agent(request)
        message, said = first_message, ""
        all_results: list[tuple[str, str]] = []
        for number in range(MAX_ROUNDS):
            run = _Run()
            offered = request.tools if number < MAX_ROUNDS - 1 else ()
            try:
                async with (
                    self._watching(agent_id, request),
                    aclosing(self._run(agent_id, request, message, offered, run)) as messages,
                ):
                    async for _, fragment in messages:
                        said += fragment
                        yield fragment
            except ModelTrouble as trouble:
                # a retry starts over, and would run the tools of earlier rounds twice
                trouble.retryable = trouble.retryable and number == 0
                raise
            if not run.calls:
                return
            results = await run_tool_calls(run.calls.values(), tools)
            all_results += [(call.name, result) for call, result in results]
            message = message_with_results(first_message, said, all_results)

    async def _agent(self, request: ModelRequest) -> tuple[str, str]:
        """The id of the agent to ask, unless it keeps failing, and the message to it."""
        agent_id = await self._agent_for(request.conversation_id, request.role)
        self._breakers.check(agent_id)
        return agent_id, request.message_for_agent(await self._turns_behind(request.conversation_id))

    @asynccontextmanager
    async def _watching(self, agent_id: str, request: ModelRequest) -> AsyncIterator[None]:
        """Count a failure against the agent if its cause is there; have a missing agent made again."""
        try:
            yield
        except ModelTrouble as trouble:
            if trouble.kind in _OF_ONE_AGENT:
                trouble.counts_against_model = False
                self._breakers.record_failure(agent_id, trouble.retry_after)
            if trouble.kind == _MISSING:
                trouble.retryable = await self._forget_missing(
                    request.conversation_id, request.role, agent_id
                )
            raise
        self._breakers.record_success(agent_id)

    async def _run(
        self, agent_id: str, request: ModelRequest, message: str, tools: tuple[Tool, ...], run: _Run
    ) -> AsyncGenerator[tuple[str, str], None]:
        """Yield the text of one run, each fragment with its message's id. Leaving early cancels the run."""
        turn_usage = usage.current()
        body: dict[str, Any] = {
            "messages": [{"role": "user", "content": message}],
            "stream_tokens": True,
        }
        if tools:
            body["client_tools"] = [_tool_description(tool) for tool in tools]
        over, outcome = False, "closed"
        run.call = turn_usage.begin_call(request.role, self._models.of(request.role), encoded(body))
        path = f"v1/agents/{agent_id}/messages/stream"
        try:
            async with aclosing(self._http.stream_events(path, body)) as events:
                async for event in events:
                    if fragment := _add_event(run, event):
                        run.text += fragment
                        yield text_or_empty(event.get("id")), fragment
            over, outcome = True, usage.ANSWERED if run.ended else "broken_off"
        except ModelTrouble as trouble:
            over, outcome = not run.id or run.ended, trouble.kind
            raise
        finally:
            turn_usage.end_call(run.call, outcome, run.text)
            if not over:
                self._cancel(agent_id, run.id)
        if not run.ended:
            raise ModelTrouble("broken_off")
        turn_usage.add_reasoning(without_control_characters(run.reasoning))

    def _cancel(self, agent_id: str, run_id: str) -> None:
        """Cancel a run in the background, since nobody reads its text any more."""

        async def cancel() -> None:
            with suppress(ModelTrouble, TimeoutError):
                async with asyncio.timeout(_CANCEL_SECONDS):
                    runs = {"run_ids": [run_id]} if run_id else {}
                    await self._http.fetch("POST", f"v1/agents/{agent_id}/messages/cancel", runs)

        task = asyncio.create_task(cancel())
        self._cancellations.add(task)
        task.add_done_callback(self._cancellations.discard)


def _tool_description(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def _add_event(run: _Run, event: Mapping[str, Any]) -> str:
    """Add one event of the stream to the run, and return the text in it."""
    run.id = run.id or text_or_empty(event.get("run_id"))
    kind = text_or_empty(event.get("message_type"))
    run.begun = run.begun or (kind.endswith("_message") and kind != "error_message")
    match kind:
        case "assistant_message":
            return _content_text(event.get("content"))
        case "reasoning_message":
            run.reasoning += text_or_empty(event.get("reasoning"))
        case "tool_call_message":
            usage.current().used_own_tools = True
        case "approval_request_message":
            _add_calls(run, event)
        case "usage_statistics":
            if run.call is not None:
                tokens = event.get("prompt_tokens"), event.get("completion_tokens")
                usage.current().add_tokens(run.call, *tokens)
        case "stop_reason":
            run.ended = event.get("stop_reason") in _NORMAL_ENDS
        case "error_message":
            run.ended = True
            error = text_or_empty(event.get("error_type")) or "failed"
            retried_by_letta = error.startswith("llm")
            raise ModelTrouble(error, retryable=not run.begun and not retried_by_letta)
    return ""


def _content_text(content: object) -> str:
    if isinstance(content, list):
        return "".join(text_or_empty(part.get("text")) for part in content if isinstance(part, dict))
    return text_or_empty(content)


def _add_calls(run: _Run, event: Mapping[str, Any]) -> None:
    calls = event.get("tool_calls") or event.get("tool_call")
    for piece in calls if isinstance(calls, list) else [calls]:
        if isinstance(piece, dict):
            call = run.calls.setdefault(text_or_empty(piece.get("tool_call_id")), ToolCall())
            call.add(piece.get("tool_call_id"), piece.get("name"), piece.get("arguments"))
