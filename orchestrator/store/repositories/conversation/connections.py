"""The current connection of each conversation. A newer one replaces it, even in another process."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import bindparam, select

from orchestrator.store.engine.statements import Statement
from orchestrator.store.engine.unit import Unit
from orchestrator.store.rows import Conversation, OpenConnection

_table = OpenConnection.table
_BATCH = 50
_STATES = Statement(
    select(_table.c.conversation_id, _table.c.connection_id, -Conversation.table.c.last_server_stanza_id)
    .join_from(_table, Conversation.table, Conversation.table.c.id == _table.c.conversation_id)
    .where(_table.c.conversation_id.in_([bindparam(f"of_{place}") for place in range(_BATCH)])),
    lambda conversation_id, connection_id, sent: (conversation_id, ConnectionState(connection_id, sent)),
)


@dataclass(frozen=True, slots=True)
class ConnectionState:
    """The current connection of a conversation, and how many stanzas the server has sent in it."""

    connection_id: str
    sent: int


class Connections:
    """The table `connections`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def take(self, conversation_id: str, connection_id: str) -> None:
        """Make this the current connection of the conversation."""
        new = {"connection_id": connection_id, "opened_at": self._unit.now}
        if not self._unit.change(OpenConnection, {"conversation_id": conversation_id}, **new):
            self._unit.insert(OpenConnection(conversation_id, connection_id, self._unit.now))
        self._unit.notify()

    def current(self, conversation_id: str) -> str | None:
        """The current connection of the conversation."""
        found = self._unit.find_one(OpenConnection, conversation_id=conversation_id)
        return found.connection_id if found else None

    def states(self, conversation_ids: Iterable[str]) -> dict[str, ConnectionState]:
        """The state of several conversations; those without a connection are left out."""
        found: dict[str, ConnectionState] = {}
        wanted = list(conversation_ids)
        for start in range(0, len(wanted), _BATCH):
            some = wanted[start : start + _BATCH]
            some += some[-1:] * (_BATCH - len(some))  # the statement has a fixed number of parameters
            given = {f"of_{place}": each for place, each in enumerate(some)}
            found.update(self._unit.all(_STATES, **given))
        return found
