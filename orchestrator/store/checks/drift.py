"""Finds the tables, columns and rules that a database lacks, although it has our schema version."""

import re
from collections.abc import Iterator
from typing import Final

from sqlalchemy import Dialect
from sqlalchemy.schema import CreateTable

from orchestrator.store.engine.statements import Connection
from orchestrator.store.rows import metadata

_CONSTRAINT: Final = re.compile(r"CONSTRAINT (\w+)")

_ON_SQLITE: Final = """
    SELECT name, NULL, 0, sql FROM sqlite_master WHERE type IN ('table', 'index')
    UNION ALL SELECT held.name, part.name, part."notnull", NULL
    FROM sqlite_master AS held JOIN pragma_table_xinfo(held.name) AS part WHERE held.type = 'table'"""
_ON_POSTGRES: Final = """
    WITH ours AS (SELECT oid, relname FROM pg_class
        WHERE relnamespace = ANY (current_schemas(false)::regnamespace[]) AND relkind IN ('r', 'i'))
    SELECT relname, NULL, false, NULL FROM ours
    UNION ALL SELECT relname, attname, attnotnull, NULL
    FROM ours JOIN pg_attribute ON attrelid = ours.oid WHERE attnum > 0 AND NOT attisdropped
    UNION ALL SELECT conname, NULL, false, NULL FROM ours JOIN pg_constraint ON conrelid = ours.oid"""


_needed: Final[dict[str, frozenset[tuple[str, str]]]] = {}
"""For each kind of database, the names that must exist in it, each with its table."""


def missing(connection: Connection, dialect: Dialect) -> list[str]:
    """The missing names. For a missing table, only its own name is reported; additional names are ignored."""
    if dialect.name not in _needed:
        _needed[dialect.name] = frozenset(_parts(dialect))
    found: set[str] = set()
    query = _ON_SQLITE if dialect.name == "sqlite" else _ON_POSTGRES
    for name, column, is_required, script in connection.execute(query).fetchall():
        if column is None:
            found |= {name, *_CONSTRAINT.findall(script or "")}
        else:
            found |= _column(name, column, required=is_required)
    absent = ((table, part) for table, part in _needed[dialect.name] if part not in found)
    return sorted(part for table, part in absent if part == table or table in found)


def _parts(dialect: Dialect) -> Iterator[tuple[str, str]]:
    for table in metadata.sorted_tables:
        parts = {table.name, *_CONSTRAINT.findall(str(CreateTable(table).compile(dialect=dialect)))}
        parts |= {str(index.name) for index in table.indexes}
        for column in table.c:
            parts |= _column(table.name, column.name, required=not column.nullable)
        yield from ((table.name, part) for part in parts)


def _column(table: str, name: str, *, required: bool) -> set[str]:
    return {f"{table}.{name}", *((f"{table}.{name} NOT NULL",) if required else ())}
