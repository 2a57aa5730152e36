"""Tool calls and their results."""

from sqlalchemy import bindparam

from orchestrator.errors import TOOL_UNKNOWN, AnamnesisError
from orchestrator.store.engine.statements import Statement
from orchestrator.store.engine.types import Json, JsonObject
from orchestrator.store.engine.unit import Unit, changing
from orchestrator.store.repositories.by_id import ById
from orchestrator.store.repositories.conversation.conversations import Conversations
from orchestrator.store.rows import ToolUse

_table = ToolUse.table
_FINISH = Statement(
    changing(_table)
    .where(_table.c.id == bindparam("id"), _table.c.deleted_at.is_(None), _table.c.completed_at.is_(None))
    .values(
        status=bindparam("status"),
        tool_result=bindparam("result"),
        error_message=bindparam("error"),
        completed_at=bindparam("now"),
    ),
    lambda: None,
)


class Tools(ById[ToolUse]):
    """The table `alicia_tool_uses`."""

    row_type = ToolUse

    def __init__(self, unit: Unit, conversations: Conversations) -> None:
        super().__init__(unit)
        self._conversations = conversations

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
        return self._unit.add(
            ToolUse,
            id=id or self._unit.ids.new("tool_"),
            conversation_id=conversation_id,
            message_id=message_id,
            tool_name=tool_name,
            tool_arguments=arguments,
            status="pending",
            sequence_number=self._unit.highest(ToolUse, "sequence_number", message_id=message_id) + 1,
        )

    def start(self, id: str) -> bool:
        """Record that the tool is running."""
        return self.update(id, status="running")

    def succeed(self, id: str, result: Json) -> None:
        """Record the result. Raises if the call has already ended or does not exist."""
        self._finish(id, "success", result, None)

    def fail(self, id: str, error: str) -> None:
        """Record that the tool failed, and why."""
        self._finish(id, "error", None, error)

    def _finish(self, id: str, status: str, result: Json, error: str | None) -> None:
        if not self._unit.run(_FINISH, id=id, status=status, result=result, error=error):
            raise AnamnesisError(TOOL_UNKNOWN)

    def of_conversation(self, conversation_id: str) -> list[ToolUse]:
        """All tool calls of a conversation, in order."""
        order = ("created_at", "sequence_number", "id")
        return self._unit.find(ToolUse, *order, conversation_id=conversation_id)
