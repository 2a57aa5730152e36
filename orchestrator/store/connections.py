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

_TOGETHER = 50
_STANDING = Statement(
    select(_table.c.conversation_id, _table.c.connection_id, -Conversation.table.c.last_server_stanza_id)
    .join_from(_table, Conversation.table, Conversation.table.c.id == _table.c.conversation_id)
    .where(_table.c.conversation_id.in_([bindparam(f"of_{place}") for place in range(_TOGETHER)])),
    lambda conversation_id, connection_id, sent: (conversation_id, Standing(connection_id, sent)),
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
        found: dict[str, Standing] = {}
        asked = list(conversation_ids)
        for start in range(0, len(asked), _TOGETHER):
            some = asked[start : start + _TOGETHER]
            some += some[-1:] * (_TOGETHER - len(some))  # the statement has a place for each
            given = {f"of_{place}": each for place, each in enumerate(some)}
            found.update(self._unit.all(_STANDING, **given))
        return found
