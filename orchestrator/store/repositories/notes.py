"""Notes on messages or on whole conversations."""

from typing import Any

from sqlalchemy import bindparam

from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.engine.types import JsonObject
from orchestrator.store.engine.unit import Unit
from orchestrator.store.rows import Note

_table = Note.table
_alive = _table.c.deleted_at.is_(None)
_BY_ID = Statement(all_of(Note).where(_table.c.id == bindparam("id"), _alive), Note)
_EVER = Statement(all_of(Note).where(_table.c.id == bindparam("id")), Note)
_OF_CONVERSATION = Statement(
    all_of(Note)
    .where(_table.c.conversation_id == bindparam("conversation_id"), _alive)
    .order_by(_table.c.created_at, _table.c.id),
    Note,
)


class Notes:
    """The table `alicia_user_conversation_commentaries`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def add(
        self,
        conversation_id: str,
        content: str,
        *,
        created_by: str,
        message_id: str | None = None,
        id: str | None = None,
        meta: JsonObject | None = None,
    ) -> Note:
        """Store a note on a message, or on the conversation if there is no message."""
        now = self._unit.now
        id = id or self._unit.ids.new("note_")
        note = Note(id, content, conversation_id, message_id, created_by, meta, now, now, None)
        self._unit.insert(note)
        return note

    def get(self, id: str) -> Note | None:
        """The row with that id, unless it is deleted."""
        return self._unit.first(_BY_ID, id=id)

    def get_even_deleted(self, id: str) -> Note | None:
        """The row with that id, deleted or not. An id is used only once."""
        return self._unit.first(_EVER, id=id)

    def of_conversation(self, conversation_id: str) -> list[Note]:
        """All notes of a conversation, in the order of creation."""
        return self._unit.all(_OF_CONVERSATION, conversation_id=conversation_id)

    def update(self, id: str, **columns: Any) -> bool:
        """Set some columns, such as `content` or `meta`."""
        return self._unit.change(Note, id, **columns)

    def delete(self, id: str) -> bool:
        """Mark it as deleted."""
        return self._unit.delete(Note, id)
