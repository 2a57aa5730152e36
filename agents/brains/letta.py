"""Letta agents as a model: one per role of a conversation, each with the four blocks in its own memory.

They keep no messages between two questions, so nothing of one answer shows in the next, no tool call is ever
left pending, and a question whose outcome is unknown is not asked again.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from agents import minutes
from agents.brains import asking
from agents.brains.asking import Ask, sayable
from agents.brains.calling import ROUNDS, Call, used
from agents.brains.lines import Line, text_of
from agents.errors import ModelTrouble
from agents.ports import ToolUser
from agents.tools.toolbox import Tool

_WELL: Final = ("end_turn", "requires_approval", "max_steps", "max_tokens_exceeded", "tool_rule")
_CANCEL_SECONDS: Final = 5.0


@dataclass(slots=True)
class _Run:
    """What came of one message to an agent besides the words that were passed on."""

    id: str = ""
    reasoning: str = ""
    calls: dict[str, Call] = field(default_factory=dict)
    begun: bool = False
    ended: bool = False


class LettaAgents:
    """The agents of one Letta server. `agent_for` tells an agent's id by conversation and role."""

    repeatable = False

    def __init__(
        self, base_url: str, key: str, model: str, agent_for: Callable[[str, str], Awaitable[str]]
    ) -> None:
        self._line, self._model, self._agent_for = Line(base_url, key, repeatable=False), model, agent_for
        self._cancelling: set[asyncio.Task[None]] = set()

    @property
    def name(self) -> str:
        """The model that the agents think with."""
        return self._model

    async def close(self) -> None:
        """Let cancellations under way arrive, then hang up."""
        await asyncio.gather(*self._cancelling)
        await self._line.close()

    async def answers(self) -> None:
        """Whether the server is there, for whoever looks after the house: `ModelTrouble` if not."""
        await self._line.fetch("GET", "v1/health/")

    async def decide(self, ask: Ask) -> str:
        """The agent's last message as a whole; its schema is a setting of the agent."""
        agent_id = await self._agent_for(ask.conversation_id, ask.role)
        said: dict[str, str] = {}
        async with aclosing(self._run(agent_id, ask.message, (), _Run())) as messages:
            async for message_id, fragment in messages:
                said[message_id] = said.get(message_id, "") + fragment
        return list(said.values())[-1] if said else ""

    async def speak(self, ask: Ask, tools: ToolUser) -> AsyncGenerator[str, None]:
        """The agent's words as they come; tools are used here, and it is told what they gave."""
        agent_id = await self._agent_for(ask.conversation_id, ask.role)
        message, said = ask.message, ""
        told: list[tuple[str, str]] = []
        for number in range(ROUNDS):
            run = _Run()
            offered = ask.tools if number < ROUNDS - 1 else ()
            try:
                async with aclosing(self._run(agent_id, message, offered, run)) as messages:
                    async for _, fragment in messages:
                        said += fragment
                        yield fragment
            except ModelTrouble as trouble:
                trouble.again = trouble.again and number == 0  # what a tool did, is not done again
                raise
            if not run.calls:
                return
            results = await used(run.calls.values(), tools)
            told += [(call.name, result) for call, result in results]
            message = asking.with_results(ask.message, said, told)

    async def _run(
        self, agent_id: str, message: str, tools: tuple[Tool, ...], run: _Run
    ) -> AsyncGenerator[tuple[str, str], None]:
        """The words of one run, each with the id of its message. A run that is left early is cancelled."""
        taken = minutes.of_this_turn()
        taken.asked += 1
        request: dict[str, Any] = {
            "messages": [{"role": "user", "content": message}],
            "stream_tokens": True,
        }
        if tools:
            request["client_tools"] = [_offered(tool) for tool in tools]
        over = False
        try:
            async with aclosing(
                self._line.events(f"v1/agents/{agent_id}/messages/stream", request)
            ) as events:
                async for event in events:
                    if fragment := _hear(run, event):
                        yield text_of(event.get("id")), fragment
            over = True
        except ModelTrouble:
            over = not run.id or run.ended
            raise
        finally:
            if not over:
                self._cancel(agent_id, run.id)
        if not run.ended:
            raise ModelTrouble("broken_off")
        taken.reason(sayable(run.reasoning))

    def _cancel(self, agent_id: str, run_id: str) -> None:
        """Have a run ended without waiting for it: whoever was to hear its words has gone."""

        async def cancel() -> None:
            with suppress(ModelTrouble, TimeoutError):
                async with asyncio.timeout(_CANCEL_SECONDS):
                    runs = {"run_ids": [run_id]} if run_id else {}
                    await self._line.fetch("POST", f"v1/agents/{agent_id}/messages/cancel", runs)

        task = asyncio.create_task(cancel())
        self._cancelling.add(task)
        task.add_done_callback(self._cancelling.discard)


def _offered(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def _hear(run: _Run, event: Mapping[str, Any]) -> str:
    """Take one event in; the words of it."""
    run.id = run.id or text_of(event.get("run_id"))
    kind = text_of(event.get("message_type"))
    run.begun = run.begun or (kind.endswith("_message") and kind != "error_message")
    match kind:
        case "assistant_message":
            return _words(event.get("content"))
        case "reasoning_message":
            run.reasoning += text_of(event.get("reasoning"))
        case "approval_request_message":
            _add_calls(run, event)
        case "usage_statistics":
            minutes.of_this_turn().used(event.get("prompt_tokens"), event.get("completion_tokens"))
        case "stop_reason":
            run.ended = event.get("stop_reason") in _WELL
        case "error_message":
            run.ended = True
            why = text_of(event.get("error_type")) or "failed"
            asked_again_by_letta = why.startswith("llm")
            raise ModelTrouble(why, again=not run.begun and not asked_again_by_letta)
    return ""


def _words(content: object) -> str:
    if isinstance(content, list):
        return "".join(text_of(part.get("text")) for part in content if isinstance(part, dict))
    return text_of(content)


def _add_calls(run: _Run, event: Mapping[str, Any]) -> None:
    named = event.get("tool_calls") or event.get("tool_call")
    for piece in named if isinstance(named, list) else [named]:
        if isinstance(piece, dict):
            call = run.calls.setdefault(text_of(piece.get("tool_call_id")), Call())
            call.add(piece.get("tool_call_id"), piece.get("name"), piece.get("arguments"))
