"""Conversations: owner, room, settings and the last stanza of each side."""

from hashlib import sha256

from sqlalchemy import and_, bindparam, or_

from orchestrator.errors import INVALID_FIELD, NOT_FOUND, AnamnesisError
from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.engine.types import JsonObject
from orchestrator.store.repositories.by_id import ById
from orchestrator.store.rows import Conversation
from orchestrator.wire.ids import PERSON_RULE, is_person_id

_table = Conversation.table
_alive = _table.c.deleted_at.is_(None)
_room = _table.c.livekit_room_name
_IN_ROOM = Statement(
    all_of(Conversation).where(
        or_(_room == bindparam("room"), and_(_room.is_(None), _table.c.id == bindparam("room"))), _alive
    ),
    Conversation,
)
_OF_PERSON = Statement(
    all_of(Conversation)
    .where(_table.c.user_id == bindparam("user_id"), _alive)
    .order_by(_table.c.updated_at.desc(), _table.c.id)
    .limit(bindparam("limit")),
    Conversation,
)
_LOCK = Statement(
    all_of(Conversation).where(_table.c.id == bindparam("id"), _alive).with_for_update(key_share=True),
    Conversation,
)


def looks_id(user_id: str) -> str:
    """The id of the conversation that keeps traces of staff for a person without a conversation.

    It is a deleted one, so that no list shows it and nobody can write in it.
    """
    return f"conv_looks_{sha256(user_id.encode()).hexdigest()[:32]}"


class Conversations(ById[Conversation]):
    """The table `alicia_conversations`."""

    row_type = Conversation

    def create(
        self, user_id: str, *, id: str | None = None, preferences: JsonObject | None = None
    ) -> Conversation:
        """Create a conversation. Its LiveKit room has its id as name."""
        if not is_person_id(user_id):
            raise AnamnesisError(INVALID_FIELD, field="user_id", rule=PERSON_RULE)
        id = id or self._unit.ids.new("conv_")
        now = self._unit.now
        created = Conversation(id, user_id, id, None, "active", preferences or {}, 0, 0, now, now, None)
        self._unit.insert(created)
        return created

    def in_room(self, room: str) -> Conversation | None:
        """The conversation of a LiveKit room. If no room is stored, its name is the conversation's id."""
        return self._unit.first(_IN_ROOM, room=room)

    def owned(self, id: str, user_id: str) -> Conversation:
        """The conversation of that person. Another person's gives the same error as an unknown id."""
        found = self.get(id)
        if found is None or found.user_id != user_id:
            raise AnamnesisError(NOT_FOUND)
        return found

    def of_person(self, user_id: str, *, limit: int = 100) -> list[Conversation]:
        """The conversations of a person, the most recently active first."""
        return self._unit.all(_OF_PERSON, user_id=user_id, limit=limit)

    def every(self) -> list[Conversation]:
        """All conversations of everybody, except deleted ones."""
        return [each for each in self._unit.every(Conversation, "id") if each.deleted_at is None]

    def lock(self, id: str) -> Conversation:
        """Lock the conversation until the end of the transaction.

        On PostgreSQL, everything that assigns a next number locks here first. SQLite has one writer anyway.
        """
        if (found := self._unit.first(_LOCK, id=id)) is None:
            raise AnamnesisError(NOT_FOUND)
        return found

    def delete(self, id: str) -> bool:
        """Mark it as deleted: it is no longer found, but its rows are kept."""
        return self.update(id, status="deleted", deleted_at=self._unit.now)
