"""Tool calls in a turn: requested in a frame, run here or by the client, and stored with their outcome."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, Final

from agents.errors import ToolRefused
from agents.ports import ToolOutcome
from agents.tools.toolbox import Tool, Toolbox
from orchestrator.errors import TOOL_FAILED, TOOL_TIMEOUT, Problem
from orchestrator.ops.logs import get_logger
from orchestrator.store.rows import ToolUse
from orchestrator.turn.outbox import ConversationWrite, Fence, Outbox, uninterrupted
from orchestrator.wire.ids import MessageId, ToolUseId
from orchestrator.wire.messages import ToolUseRequest, ToolUseResult

log = get_logger()

OPEN: Final = ("pending", "running")
POLL_SECONDS: Final = 0.05
"""How often the store is read for a client's result, which may have arrived in another process."""


@dataclass(frozen=True)
class TurnTools:
    """The tools of one turn. Each call is stored as a row and sent as two frames, request and result."""

    toolbox: Toolbox
    outbox: Outbox
    conversation_id: str
    message_id: str
    fence: Fence
    client_has_tools: bool

    async def use(self, name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Run a tool. A call that is refused, fails or takes too long gives an outcome without success."""
        refusal: str | None = None
        tool = Tool(name, "", {})
        try:
            tool = self.toolbox.find(name)
            self.toolbox.check(name, arguments)
        except ToolRefused as refused:
            refusal = refused.rule
        use_id = await self.outbox.commit(
            self.conversation_id, lambda write: self._request(write, tool, arguments), self.fence, step="tool"
        )
        if refusal is not None:
            return await self._fail(use_id, TOOL_FAILED, refusal)
        seconds = tool.timeout_ms / 1000
        try:
            async with asyncio.timeout(seconds):
                if tool.run is not None and tool.execution != "client":
                    is_async = iscoroutinefunction(tool.run)
                    result = await (
                        tool.run(arguments) if is_async else asyncio.to_thread(tool.run, arguments)
                    )
                elif self.client_has_tools:
                    return await self._client_result(use_id)
                else:
                    return await self._fail(use_id, TOOL_FAILED, "the client offers no tools")
        except TimeoutError:
            return await self._fail(use_id, TOOL_TIMEOUT, f"no result within {seconds:g} s")
        except ToolRefused as refused:
            return await self._fail(use_id, TOOL_FAILED, refused.rule)
        except asyncio.CancelledError:
            await uninterrupted(self._fail(use_id, TOOL_FAILED, "the answer ended before it"))
            raise
        except Exception as error:
            log.error("tool_failed", exc_info=error)
            return await self._fail(use_id, TOOL_FAILED, "it failed")
        await self._close(use_id, success=True, result=result)
        return ToolOutcome(True, result)

    def _request(self, write: ConversationWrite, tool: Tool, arguments: Mapping[str, Any]) -> str:
        use_id = write.tx.ids.new("tool_")
        write.say(
            ToolUseRequest(
                id=ToolUseId(use_id),
                conversation_id=write.conversation_id,
                message_id=MessageId(self.message_id),
                tool_name=tool.name,
                parameters=dict(arguments),
                execution=tool.execution,
                timeout_ms=tool.timeout_ms,
            )
        )
        return use_id

    async def _client_result(self, use_id: str) -> ToolOutcome:
        """Wait for the client's result, which the frame handlers store."""
        while True:
            use = await self.outbox.store.read(lambda tx: tx.tools.get(use_id))
            if use is not None and use.status not in OPEN:
                return _outcome(use)
            await asyncio.sleep(POLL_SECONDS)

    async def _fail(self, use_id: str, problem: Problem, message: str) -> ToolOutcome:
        """Close the call without a result, unless the client's result has just arrived."""
        found = await self._close(use_id, success=False, error_code=problem.number, error_message=message)
        return found or ToolOutcome(False, None, message)

    async def _close(self, use_id: str, **facts: Any) -> ToolOutcome | None:
        """Store the result. If there is one already, leave it and return it."""

        def work(write: ConversationWrite) -> ToolOutcome | None:
            use = write.tx.tools.get(use_id)
            if use is not None and use.status not in OPEN:
                return _outcome(use)
            write.say(
                ToolUseResult(
                    id=write.tx.ids.new("tool_"),
                    conversation_id=write.conversation_id,
                    request_id=ToolUseId(use_id),
                    **facts,
                )
            )
            return None

        return await self.outbox.commit(self.conversation_id, work, self.fence, step="tool")


def _outcome(use: ToolUse) -> ToolOutcome:
    return ToolOutcome(use.status == "success", use.tool_result, use.error_message or "")


def close_open_calls(write: ConversationWrite, message_id: str) -> None:
    """Close the tool calls that a process left open when it died in the middle of a turn."""
    for use in write.tx.tools.of_conversation(write.conversation.id):
        if use.message_id == message_id and use.status in OPEN:
            write.say(
                ToolUseResult(
                    id=write.tx.ids.new("tool_"),
                    conversation_id=write.conversation_id,
                    request_id=ToolUseId(use.id),
                    success=False,
                    error_code=TOOL_FAILED.number,
                    error_message="the answer ended before it",
                )
            )
