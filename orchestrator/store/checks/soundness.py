"""Checks the database itself (I21): its file, rules, references and values.

References and values are checked in every row, because a rule may have been dropped, or disabled for a while.
Violations are reported with ids and names only.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

from sqlalchemy import Column, Integer, Table, Text

from orchestrator.store.checks import drift
from orchestrator.store.checks.violations import Found, Violation, tolerating_broken_rows
from orchestrator.store.engine.types import JsonValue, Moment, Words
from orchestrator.store.engine.unit import Unit
from orchestrator.store.rows import metadata


def check_database(unit: Unit) -> Found:
    """All violations of I21 in the database itself."""
    yield from tolerating_broken_rows(unit, _file(unit), "file")
    missing: list[str] = []
    yield from tolerating_broken_rows(unit, _rules(unit, missing), "rules")
    existing = tuple(table for table in metadata.sorted_tables if table.name not in missing)
    yield from tolerating_broken_rows(unit, _references(unit, existing), "references")
    yield from tolerating_broken_rows(unit, _values(unit, existing), "values")


def _file(unit: Unit) -> Found:
    """SQLite's own check of pages, indexes and rules. PostgreSQL has no such check."""
    if unit.dialect.name == "sqlite":
        for (problem,) in unit.connection.execute("PRAGMA integrity_check").fetchall():
            if problem != "ok":
                yield Violation("I21", "the file is damaged", (str(problem),))


def _rules(unit: Unit, missing: list[str]) -> Found:
    """All tables, columns and rules exist and are in force. Adds the names of missing ones to the list."""
    missing.extend(drift.missing(unit.connection, unit.dialect))
    for name in missing:
        yield Violation("I21", "a table, a column or a rule is missing", (name,))
    if unit.dialect.name == "postgresql":
        for (name,) in unit.connection.execute(_DISABLED_RULES).fetchall():
            yield Violation("I21", "a rule is not in force", (str(name),))


_DISABLED_RULES: Final = f"""
    WITH ours AS (SELECT oid FROM pg_class WHERE relnamespace = ANY (current_schemas(false)::regnamespace[])
        AND relname IN ({", ".join(repr(name) for name in metadata.tables)}))
    SELECT conname FROM ours JOIN pg_constraint ON conrelid = ours.oid WHERE NOT convalidated
    UNION ALL SELECT indexrelid::regclass::text FROM ours JOIN pg_index ON indrelid = ours.oid
        WHERE NOT indisvalid
    UNION ALL SELECT DISTINCT coalesce(conname, tgname) FROM ours JOIN pg_trigger ON tgrelid = ours.oid
        LEFT JOIN pg_constraint ON pg_constraint.oid = tgconstraint WHERE tgenabled NOT IN ('O', 'A')"""  # noqa: S608


_LONGEST_KEY: Final = max(len(table.primary_key) for table in metadata.sorted_tables)


# --- checks of every row -----------------------------------------------------------------------------------


def _references(unit: Unit, tables: tuple[Table, ...]) -> Found:
    for rule, *key in unit.connection.execute(_dangling_references(unit.dialect.name, tables)):
        yield Violation("I21", "a row refers to a missing row", (rule, *_ids(key)))


def _values(unit: Unit, tables: tuple[Table, ...]) -> Found:
    if unit.dialect.name == "sqlite":
        connection: Any = unit.connection
        connection.create_function("is_utf8", 1, _is_utf8, deterministic=True)
    for column, *key in unit.connection.execute(_foreign_values(unit.dialect.name, tables)):
        yield Violation("I21", "a value was not written by this program", (column, *_ids(key)))


@cache
def _dangling_references(database: str, tables: tuple[Table, ...]) -> str:
    """A query for rows that refer to missing rows: the rule and the key of the row."""
    queries = []
    for rule in (rule for table in tables for rule in table.foreign_key_constraints):
        if rule.referred_table in tables:
            pairs = [(each.parent.name, each.column.name) for each in rule.elements]
            given = " AND ".join(f"this.{ours} IS NOT NULL" for ours, _ in pairs)
            same = " AND ".join(f"named.{theirs} = this.{ours}" for ours, theirs in pairs)
            queries.append(f"""SELECT '{rule.name}', {_key(database, rule.table)}
                FROM {rule.table.name} AS this WHERE {given}
                AND NOT EXISTS (SELECT 1 FROM {rule.referred_table.name} AS named WHERE {same})""")  # noqa: S608
    return " UNION ALL ".join(queries)


@cache
def _foreign_values(database: str, tables: tuple[Table, ...]) -> str:
    """A query for values that the database accepts but our types never write: column and key of the row."""
    wrong = _wrong_on_sqlite if database == "sqlite" else _wrong_on_postgres
    queries = []
    for table in tables:
        which = " ".join(f"WHEN {condition} THEN '{table.name}.{name}'" for name, condition in wrong(table.c))
        queries.append(
            f"SELECT CASE {which} END AS place, {_key(database, table)} FROM {table.name} AS this"  # noqa: S608
        )
    return f"SELECT * FROM ({' UNION ALL '.join(queries)}) AS looked WHERE place IS NOT NULL"  # noqa: S608


def _wrong_on_sqlite(columns: Iterable[Column[Any]]) -> Iterator[tuple[str, str]]:
    for column in columns:
        value = f"this.{column.name}"
        match column.type:
            case Moment():
                normalized = f"strftime('%Y-%m-%dT%H:%M:%fZ', {value}, '+0 days')"
                yield column.name, f"{value} IS NOT {normalized} OR {value} < '0001'"
            case Integer():
                yield column.name, f"{value} NOT BETWEEN -2147483648 AND 2147483647"
            case Text() | JsonValue():
                yield column.name, f"NOT is_utf8(CAST({value} AS BLOB))"
            case Words():
                yield column.name, f"NOT is_utf8(CAST({value} AS BLOB))"
                others = f"SELECT 1 FROM json_each({value}) WHERE type <> 'text'"  # noqa: S608
                yield column.name, f"CASE WHEN json_valid({value}) THEN EXISTS ({others}) END"


def _wrong_on_postgres(columns: Iterable[Column[Any]]) -> Iterator[tuple[str, str]]:
    for column in columns:
        if isinstance(column.type, Moment):
            yield column.name, f"this.{column.name} NOT BETWEEN '0001-01-01' AND '9999-12-31'"


def _is_utf8(data: bytes | None) -> bool:
    try:
        (data or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def _key(database: str, table: Table) -> str:
    """The key of a row, cast so that any value can be read, and padded to the length of the longest key."""
    kind = "BLOB" if database == "sqlite" else "TEXT"
    parts = [f"CAST(this.{column.name} AS {kind})" for column in table.primary_key]
    return ", ".join(parts + [f"CAST(NULL AS {kind})"] * (_LONGEST_KEY - len(parts)))


def _ids(key: Iterable[str | bytes | None]) -> Iterator[str]:
    for part in key:
        if part is not None:
            yield part.decode(errors="backslashreplace") if isinstance(part, bytes) else part
