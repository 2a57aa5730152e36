"""What is to be done for the memories of conversations: changes that their ledgers must follow; errors."""

from datetime import timedelta
from typing import Final

from sqlalchemy import bindparam, or_
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
            dropped=0,
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
_DROPPED: Final = Statement(
    changing(_table).where(_of_conversation).values(dropped=_table.c.dropped + bindparam("count")),
    lambda: None,
)
_CLAIM: Final = Statement(
    changing(_table)
    .where(
        _of_conversation,
        or_(
            _table.c.claimed_by.is_(None),
            _table.c.claimed_by == bindparam("holder"),
            _table.c.claimed_until <= bindparam("now"),
        ),
    )
    .values(claimed_by=bindparam("holder"), claimed_until=bindparam("until")),
    lambda: None,
)
_RELEASE: Final = Statement(
    changing(_table)
    .where(_of_conversation, _table.c.claimed_by == bindparam("holder"))
    .values(claimed_by=None, claimed_until=None),
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

    def note_dropped(self, conversation_id: str, count: int) -> None:
        """Count sentences of a rolling summary that the memories did not support."""
        if self._start(conversation_id):
            self._unit.run(_DROPPED, of_conversation=conversation_id, count=count)

    def claim(self, conversation_id: str, holder: str, *, seconds: float) -> bool:
        """Note who makes the memories of a conversation now; False if somebody else does.

        This only saves requests to a model: the ledger takes each chunk once in any case.
        """
        until = self._unit.now + timedelta(seconds=seconds)
        return self._start(conversation_id) and bool(
            self._unit.run(_CLAIM, of_conversation=conversation_id, holder=holder, until=until)
        )

    def release(self, conversation_id: str, holder: str) -> None:
        """End a claim, if that holder has it."""
        self._unit.run(_RELEASE, of_conversation=conversation_id, holder=holder)

    def _start(self, conversation_id: str) -> bool:
        """Make the row if there is none; False if there is no such conversation."""
        found = self._unit.find_one(Conversation, even_deleted=True, id=conversation_id)
        if found is None:
            return False
        start = _START[self._unit.dialect.name]
        self._unit.run(start, of_conversation=conversation_id, of_user=found.user_id)
        return True
