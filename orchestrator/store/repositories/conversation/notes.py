"""Notes on messages or on whole conversations."""

from orchestrator.store.engine.types import JsonObject
from orchestrator.store.repositories.by_id import ById
from orchestrator.store.rows import Note


class Notes(ById[Note]):
    """The table `alicia_user_conversation_commentaries`."""

    row_type = Note

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

    def of_conversation(self, conversation_id: str) -> list[Note]:
        """All notes of a conversation, in the order of creation."""
        return self._unit.find(Note, "created_at", "id", conversation_id=conversation_id)
