"""Connections: which one a conversation has now; a newer one takes it over, wherever the older one is."""

from collections.abc import Sequence

from sqlalchemy import bindparam, update

from orchestrator.store.rows import OpenConnection
from orchestrator.store.statements import Statement, all_of
from orchestrator.store.unit import Unit

_table = OpenConnection.table
_this = _table.c.conversation_id == bindparam("conversation_id")
_ONE = Statement(all_of(OpenConnection).where(_this), OpenConnection)
_SET = Statement(
    update(_table).where(_this).values(connection_id=bindparam("connection_id"), opened_at=bindparam("now")),
    lambda: None,
)


class Connections:
    """The table `connections`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def take(self, conversation_id: str, connection_id: str) -> None:
        """From now on this connection is the conversation's, and no other."""
        if not self._unit.run(_SET, conversation_id=conversation_id, connection_id=connection_id):
            self._unit.insert(OpenConnection(conversation_id, connection_id, self._unit.now))

    def current(self, conversation_id: str) -> str | None:
        """The connection that has the conversation."""
        found = self._unit.first(_ONE, conversation_id=conversation_id)
        return found.connection_id if found else None

    def of_many(self, conversation_ids: Sequence[str]) -> dict[str, str | None]:
        """The connections of several conversations."""
        return {each: self.current(each) for each in conversation_ids}
