"""Reads the rows of one conversation for the checks, including deleted ones."""

from typing import Any

from sqlalchemy import bindparam

from orchestrator.store.engine.statements import Statement, all_of


def rows_of(row_type: Any, *order: str, **only: Any) -> Statement[Any]:
    """The statement for the rows of the conversation `id`, in that order, with these values."""
    table = row_type.table
    where = [
        table.c.conversation_id == bindparam("id"),
        *(table.c[name] == value for name, value in only.items()),
    ]
    return Statement(all_of(row_type).where(*where).order_by(*(table.c[name] for name in order)), row_type)
