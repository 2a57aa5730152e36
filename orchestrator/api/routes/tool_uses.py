"""`/v1/conversations/{id}/tool-uses` and `/v1/tool-uses/{id}`: tools that were called for answers."""

from typing import Any

from fastapi import APIRouter, Request

from orchestrator.api.access.checking import caller_of, facts_of, item_texts, reason_of
from orchestrator.api.answers import (
    Answer,
    Cursor,
    Id,
    Limit,
    Moment,
    Page,
    page_of,
    position_cursor,
    problems,
    read_position,
)
from orchestrator.api.ports import Resources
from orchestrator.errors import ITEM_NOT_FOUND, AnamnesisError
from orchestrator.inspection.looks import trace_text
from orchestrator.store.engine.database import Transaction
from orchestrator.store.repositories.api.pages import ToolUseEntry
from orchestrator.store.rows import ToolUse


class ToolUseFacts(Answer):
    """A tool call in a list, without arguments and result."""

    id: str
    conversation_id: str
    message_id: str
    tool_name: str
    status: str
    created_at: Moment
    completed_at: Moment | None


class WholeToolUse(ToolUseFacts):
    """A tool call with its arguments and result."""

    tool_arguments: dict[str, Any]
    tool_result: Any
    error_message: str | None


def build_router(resources: Resources) -> APIRouter:
    """Build the routes."""
    router = APIRouter(tags=["tool uses"])
    store = resources.store

    @router.get("/v1/conversations/{conversation_id}/tool-uses", responses=problems(404))
    async def show_list(
        request: Request, conversation_id: Id, limit: Limit = 50, cursor: Cursor = None
    ) -> Page[ToolUseFacts]:
        """List the tool calls of a conversation, newest first, without arguments and results."""
        caller, after = caller_of(request), read_position(cursor)

        def read(tx: Transaction) -> list[ToolUseEntry]:
            facts_of(tx, caller, conversation_id)
            return tx.pages.tool_uses(conversation_id, after, limit + 1)

        found = await store.read(read)
        return page_of(
            found, limit, lambda entry: position_cursor(entry.position), ToolUseFacts.model_validate
        )

    @router.get("/v1/tool-uses/{tool_use_id}", responses=problems(404))
    async def show_one(request: Request, tool_use_id: Id) -> WholeToolUse:
        """Show one tool call with its arguments and result."""
        caller, reason = caller_of(request), reason_of(request)

        def read(tx: Transaction) -> ToolUse:
            found = tx.tools.get(tool_use_id)
            if found is None:
                raise AnamnesisError(ITEM_NOT_FOUND, what="tool call")
            _, look = item_texts(tx, caller, found.conversation_id, reason, "tool call")
            trace_text(tx, found.conversation_id, look, f"tool call {found.id}")
            return found

        return WholeToolUse.model_validate(await store.write(read))

    return router
