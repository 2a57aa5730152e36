"""Traces: which memory was read or written, for which message, by which actor."""

from collections.abc import Sequence
from functools import cache
from typing import Final

from sqlalchemy import bindparam, select

from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.repositories.by_id import ById
from orchestrator.store.rows import Trace

STAFF: Final = "operator"
"""The actor of commands; the name of the user follows after a colon."""

STAFF_ROLES: Final = (STAFF, "privacy", "analyst")
"""The roles in which staff reads the memory of others. They are the beginning of an actor's name."""

PERSON: Final = "person"
"""The beginning of the actor's name if people look at their own memory."""

_table = Trace.table


class Traces(ById[Trace]):
    """The table `alicia_memory_used`."""

    row_type = Trace

    def add(self, traces: Sequence[Trace]) -> None:
        """Store traces, before their frames are sent."""
        self._unit.insert(*traces)

    def of_message(self, message_id: str) -> list[Trace]:
        """All memory reads and writes for a message, for example to explain a wrong answer."""
        return self._unit.all(_of("message_id"), value=message_id)

    def of_conversation(self, conversation_id: str) -> list[Trace]:
        """All memory reads and writes in a conversation."""
        return self._unit.all(_of("conversation_id"), value=conversation_id)

    def of_memory(self, memory_id: str) -> list[Trace]:
        """All uses of a memory."""
        return self._unit.all(_of("memory_id"), value=memory_id)

    def memories_of(self, conversation_id: str, memory_type: str) -> set[str]:
        """The ids of the memories of a type that were read or written in a conversation."""
        return set(self._unit.all(_MEMORIES, conversation_id=conversation_id, memory_type=memory_type))


_MEMORIES: Final = Statement(
    select(_table.c.memory_id)
    .where(
        _table.c.conversation_id == bindparam("conversation_id"),
        _table.c.memory_type == bindparam("memory_type"),
    )
    .distinct(),
    str,
)


@cache
def _of(column: str) -> Statement[Trace]:
    found = all_of(Trace).where(_table.c[column] == bindparam("value"), _table.c.deleted_at.is_(None))
    in_order = (_table.c.created_at, _table.c.position_in_results.nulls_last(), _table.c.id)
    return Statement(found.order_by(*in_order), Trace)


def is_of_viewer(trace: Trace) -> bool:
    """Whether somebody has looked at the memory outside of a turn: staff, or the person themselves.

    Such a trace is stored, but not sent to the client.
    """
    looked = (trace.actor or "").partition(":")[0] in (*STAFF_ROLES, PERSON)
    return looked and trace.message_id is None and trace.action == "retrieved"
