"""Tool calls and their results."""

from sqlalchemy import bindparam, func, select

from orchestrator.errors import TOOL_UNKNOWN, AnamnesisError
from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.engine.types import Json, JsonObject
from orchestrator.store.engine.unit import Unit, changing
from orchestrator.store.repositories.conversations import Conversations
from orchestrator.store.rows import ToolUse

_table = ToolUse.table
_alive = _table.c.deleted_at.is_(None)
_BY_ID = Statement(all_of(ToolUse).where(_table.c.id == bindparam("id"), _alive), ToolUse)
_OF_CONVERSATION = Statement(
    all_of(ToolUse)
    .where(_table.c.conversation_id == bindparam("conversation_id"), _alive)
    .order_by(_table.c.created_at, _table.c.sequence_number, _table.c.id),
    ToolUse,
)
_HIGHEST = Statement(
    select(func.coalesce(func.max(_table.c.sequence_number), 0)).where(
        _table.c.message_id == bindparam("message_id")
    ),
    int,
)
_FINISH = Statement(
    changing(_table)
    .where(_table.c.id == bindparam("id"), _alive, _table.c.completed_at.is_(None))
    .values(
        status=bindparam("status"),
        tool_result=bindparam("result"),
        error_message=bindparam("error"),
        completed_at=bindparam("now"),
    ),
    lambda: None,
)


class Tools:
    """The table `alicia_tool_uses`."""

    def __init__(self, unit: Unit, conversations: Conversations) -> None:
        self._unit, self._conversations = unit, conversations

    def request(
        self,
        conversation_id: str,
        message_id: str,
        tool_name: str,
        arguments: JsonObject,
        *,
        id: str | None = None,
    ) -> ToolUse:
        """Store the request to call a tool."""
        self._conversations.lock(conversation_id)
        highest = self._unit.first(_HIGHEST, message_id=message_id) or 0
        now = self._unit.now
        use = ToolUse(
            id=id or self._unit.ids.new("tool_"),
            conversation_id=conversation_id,
            message_id=message_id,
            tool_name=tool_name,
            tool_arguments=arguments,
            tool_result=None,
            status="pending",
            error_message=None,
            sequence_number=highest + 1,
            completed_at=None,
            created_at=now,
            updated_at=now,
            deleted_at=None,
        )
        self._unit.insert(use)
        return use

    def start(self, id: str) -> bool:
        """Record that the tool is running."""
        return self._unit.change(ToolUse, id, status="running")

    def succeed(self, id: str, result: Json) -> None:
        """Record the result. Raises if the call has already ended or does not exist."""
        self._finish(id, "success", result, None)

    def fail(self, id: str, error: str) -> None:
        """Record that the tool failed, and why."""
        self._finish(id, "error", None, error)

    def _finish(self, id: str, status: str, result: Json, error: str | None) -> None:
        if not self._unit.run(_FINISH, id=id, status=status, result=result, error=error):
            raise AnamnesisError(TOOL_UNKNOWN)

    def get(self, id: str) -> ToolUse | None:
        """The row with that id, unless it is deleted."""
        return self._unit.first(_BY_ID, id=id)

    def of_conversation(self, conversation_id: str) -> list[ToolUse]:
        """All tool calls of a conversation, in order."""
        return self._unit.all(_OF_CONVERSATION, conversation_id=conversation_id)

    def delete(self, id: str) -> bool:
        """Mark it as deleted."""
        return self._unit.delete(ToolUse, id)
