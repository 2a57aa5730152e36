"""What is to be done for the memories of conversations: changes that their ledgers must follow; errors."""

from typing import Final

from sqlalchemy import bindparam
from sqlalchemy.dialects import postgresql, sqlite

from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.engine.unit import Unit, changing
from orchestrator.store.rows import Conversation, MemoryWork

_table = MemoryWork.table
_of_conversation = _table.c.conversation_id == bindparam("of_conversation")
_START_ON: Final = {
    "sqlite": sqlite.insert(_table).on_conflict_do_nothing(),
    "postgresql": postgresql.insert(_table).on_conflict_do_nothing(),
}
_START: Final = {
    name: Statement(
        start.values(
            conversation_id=bindparam("of_conversation"),
            user_id=bindparam("of_user"),
            changed=0,
            settled=0,
            error=None,
            created_at=bindparam("now"),
            updated_at=bindparam("now"),
        ),
        lambda: None,
    )
    for name, start in _START_ON.items()
}
_UNSETTLED: Final = Statement(
    all_of(MemoryWork).where(_table.c.changed > _table.c.settled).order_by(_table.c.conversation_id),
    MemoryWork,
)
_CHANGED: Final = Statement(
    changing(_table).where(_of_conversation).values(changed=_table.c.changed + 1), lambda: None
)
_SETTLED: Final = Statement(
    changing(_table)
    .where(_of_conversation, _table.c.settled < bindparam("count"))
    .values(settled=bindparam("count")),
    lambda: None,
)


class MemoryWorks:
    """The table `memory_work`. `changed` has the conversations that this transaction has changed."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self.changed: set[str] = set()

    def get(self, conversation_id: str) -> MemoryWork | None:
        """The row of a conversation; None if nothing was ever to be done."""
        return self._unit.find_one(MemoryWork, conversation_id=conversation_id)

    def unsettled(self) -> list[MemoryWork]:
        """The conversations whose ledgers do not follow all changes yet."""
        return self._unit.all(_UNSETTLED)

    def note_change(self, conversation_id: str) -> None:
        """Note that a message or a memory of a conversation was deleted, restored, erased or changed."""
        if self._start(conversation_id):
            self._unit.run(_CHANGED, of_conversation=conversation_id)
            self.changed.add(conversation_id)

    def note_settled(self, conversation_id: str, count: int) -> None:
        """Note that the ledger follows so many changes."""
        self._unit.run(_SETTLED, of_conversation=conversation_id, count=count)

    def note_error(self, conversation_id: str, error: str | None) -> None:
        """Note why the last run failed; None if it did not."""
        if self._start(conversation_id):
            self._unit.change(MemoryWork, {"conversation_id": conversation_id}, error=error)

    def _start(self, conversation_id: str) -> bool:
        """Make the row if there is none; False if there is no such conversation."""
        found = self._unit.find_one(Conversation, even_deleted=True, id=conversation_id)
        if found is None:
            return False
        start = _START[self._unit.dialect.name]
        self._unit.run(start, of_conversation=conversation_id, of_user=found.user_id)
        return True
