"""Tools used in a turn: asked for in a frame, done here or by the client, and kept however it ends."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from agents.errors import ToolRefused
from agents.ports import ToolOutcome
from agents.tools.toolbox import Tool, Toolbox
from orchestrator.errors import TOOL_FAILED, TOOL_TIMEOUT, Problem
from orchestrator.logs import get_logger
from orchestrator.outbox import Fence, Outbox, Page, uninterrupted
from orchestrator.store.rows import ToolUse
from orchestrator.wire.ids import MessageId, ToolUseId
from orchestrator.wire.messages import ToolUseRequest, ToolUseResult

log = get_logger()

OPEN: Final = ("pending", "running")
LOOK_SECONDS: Final = 0.05
"""How long between two looks for a client's result: it may come through another process."""


@dataclass(frozen=True)
class Tooling:
    """The tools of one turn. Each call is a request and a result, in frames and in a row of its own."""

    toolbox: Toolbox
    outbox: Outbox
    conversation_id: str
    message_id: str
    fence: Fence
    client_has_tools: bool

    async def use(self, name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """What the tool gave. One that is refused, fails or is late has an outcome without success."""
        refusal: str | None = None
        tool = Tool(name, "", {})
        try:
            tool = self.toolbox.find(name)
            self.toolbox.check(name, arguments)
        except ToolRefused as refused:
            refusal = refused.rule
        use_id = await self.outbox.commit(
            self.conversation_id, lambda page: self._ask(page, tool, arguments), self.fence, step="tool"
        )
        if refusal is not None:
            return await self._end(use_id, TOOL_FAILED, refusal)
        seconds = tool.timeout_ms / 1000
        try:
            async with asyncio.timeout(seconds):
                if tool.run is not None and tool.execution != "client":
                    result = await asyncio.to_thread(tool.run, arguments)
                elif self.client_has_tools:
                    return await self._answered(use_id)
                else:
                    return await self._end(use_id, TOOL_FAILED, "the client offers no tools")
        except TimeoutError:
            return await self._end(use_id, TOOL_TIMEOUT, f"no result within {seconds:g} s")
        except ToolRefused as refused:
            return await self._end(use_id, TOOL_FAILED, refused.rule)
        except asyncio.CancelledError:
            await uninterrupted(self._end(use_id, TOOL_FAILED, "the answer ended before it"))
            raise
        except Exception as error:
            log.error("tool_failed", exc_info=error)
            return await self._end(use_id, TOOL_FAILED, "it failed")
        await self._close(use_id, success=True, result=result)
        return ToolOutcome(True, result)

    def _ask(self, page: Page, tool: Tool, arguments: Mapping[str, Any]) -> str:
        use_id = page.tx.ids.new("tool_")
        page.say(
            ToolUseRequest(
                id=ToolUseId(use_id),
                conversation_id=page.conversation_id,
                message_id=MessageId(self.message_id),
                tool_name=tool.name,
                parameters=dict(arguments),
                execution=tool.execution,
                timeout_ms=tool.timeout_ms,
            )
        )
        return use_id

    async def _answered(self, use_id: str) -> ToolOutcome:
        """What the client sent; the desk has kept it by then."""
        while True:
            use = await self.outbox.store.read(lambda tx: tx.tools.get(use_id))
            if use is not None and use.status not in OPEN:
                return _outcome(use)
            await asyncio.sleep(LOOK_SECONDS)

    async def _end(self, use_id: str, problem: Problem, says: str) -> ToolOutcome:
        """Close it without a result; unless the client was quicker."""
        found = await self._close(use_id, success=False, error_code=problem.number, error_message=says)
        return found or ToolOutcome(False, None, says)

    async def _close(self, use_id: str, **facts: Any) -> ToolOutcome | None:
        def work(page: Page) -> ToolOutcome | None:
            use = page.tx.tools.get(use_id)
            if use is not None and use.status not in OPEN:
                return _outcome(use)
            page.say(
                ToolUseResult(
                    id=page.tx.ids.new("tool_"),
                    conversation_id=page.conversation_id,
                    request_id=ToolUseId(use_id),
                    **facts,
                )
            )
            return None

        return await self.outbox.commit(self.conversation_id, work, self.fence, step="tool")


def _outcome(use: ToolUse) -> ToolOutcome:
    return ToolOutcome(use.status == "success", use.tool_result, use.error_message or "")


def close_open(page: Page, message_id: str) -> None:
    """End what a process left open that died in the middle of a turn."""
    for use in page.tx.tools.of_conversation(page.conversation.id):
        if use.message_id == message_id and use.status in OPEN:
            page.say(
                ToolUseResult(
                    id=page.tx.ids.new("tool_"),
                    conversation_id=page.conversation_id,
                    request_id=ToolUseId(use.id),
                    success=False,
                    error_code=TOOL_FAILED.number,
                    error_message="the answer ended before it",
                )
            )
