"""Connections: which one a conversation has now; a newer one takes it over, wherever the older one is."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import bindparam, select, update

from orchestrator.store.rows import Conversation, OpenConnection
from orchestrator.store.statements import Statement, all_of
from orchestrator.store.unit import Unit

_table = OpenConnection.table
_this = _table.c.conversation_id == bindparam("conversation_id")
_ONE = Statement(all_of(OpenConnection).where(_this), OpenConnection)
_SET = Statement(
    update(_table).where(_this).values(connection_id=bindparam("connection_id"), opened_at=bindparam("now")),
    lambda: None,
)

_STANDING = Statement(
    select(_table.c.connection_id, -Conversation.table.c.last_server_stanza_id)
    .join_from(_table, Conversation.table, Conversation.table.c.id == _table.c.conversation_id)
    .where(_this),
    lambda connection_id, sent: Standing(connection_id, sent),
)


@dataclass(frozen=True, slots=True)
class Standing:
    """Which connection a conversation has, and how many stanzas the server has sent in it."""

    connection_id: str
    sent: int


class Connections:
    """The table `connections`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def take(self, conversation_id: str, connection_id: str) -> None:
        """From now on this connection is the conversation's, and no other."""
        if not self._unit.run(_SET, conversation_id=conversation_id, connection_id=connection_id):
            self._unit.insert(OpenConnection(conversation_id, connection_id, self._unit.now))
        self._unit.notify()

    def current(self, conversation_id: str) -> str | None:
        """The connection that has the conversation."""
        found = self._unit.first(_ONE, conversation_id=conversation_id)
        return found.connection_id if found else None

    def standing(self, conversation_ids: Iterable[str]) -> dict[str, Standing]:
        """Where several conversations stand; one that is gone is left out."""
        found = ((each, self._unit.first(_STANDING, conversation_id=each)) for each in conversation_ids)
        return {each: standing for each, standing in found if standing is not None}
