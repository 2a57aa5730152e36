"""Traces: which memory was read or written, for which message, by which actor."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import bindparam

from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.engine.unit import Unit
from orchestrator.store.rows import Trace

STAFF: Final = "operator"
"""The actor of commands; the name of the user follows after a colon."""

_table = Trace.table
_alive = _table.c.deleted_at.is_(None)
_in_order = (_table.c.created_at, _table.c.position_in_results.nulls_last(), _table.c.id)
_BY_ID = Statement(all_of(Trace).where(_table.c.id == bindparam("id"), _alive), Trace)
_OF_MESSAGE = Statement(
    all_of(Trace).where(_table.c.message_id == bindparam("message_id"), _alive).order_by(*_in_order), Trace
)
_OF_CONVERSATION = Statement(
    all_of(Trace)
    .where(_table.c.conversation_id == bindparam("conversation_id"), _alive)
    .order_by(*_in_order),
    Trace,
)
_OF_MEMORY = Statement(
    all_of(Trace).where(_table.c.memory_id == bindparam("memory_id"), _alive).order_by(*_in_order), Trace
)


class Traces:
    """The table `alicia_memory_used`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def add(self, traces: Sequence[Trace]) -> None:
        """Store traces, before their frames are sent."""
        self._unit.insert(*traces)

    def get(self, id: str) -> Trace | None:
        """The row with that id, unless it is deleted."""
        return self._unit.first(_BY_ID, id=id)

    def of_message(self, message_id: str) -> list[Trace]:
        """All memory reads and writes for a message, for example to explain a wrong answer."""
        return self._unit.all(_OF_MESSAGE, message_id=message_id)

    def of_conversation(self, conversation_id: str) -> list[Trace]:
        """All memory reads and writes in a conversation."""
        return self._unit.all(_OF_CONVERSATION, conversation_id=conversation_id)

    def of_memory(self, memory_id: str) -> list[Trace]:
        """All uses of a memory."""
        return self._unit.all(_OF_MEMORY, memory_id=memory_id)

    def delete(self, id: str) -> bool:
        """Mark it as deleted."""
        return self._unit.delete(Trace, id)


def is_of_staff(trace: Trace) -> bool:
    """Whether an operator has read the memory. Such a trace is stored, but not sent to the client."""
    by_staff = (trace.actor or "").partition(":")[0] == STAFF
    return by_staff and trace.message_id is None and trace.action == "retrieved"
