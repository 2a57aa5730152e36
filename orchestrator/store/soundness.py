"""Whether a database is in order by itself, whatever its rows tell: file, rules, references and values.

`rules` are asked of the database, `references` and `values` of every row: a rule that somebody took out, or
that stood aside while something was written, is not trusted. What is found is told in ids and names only.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

from sqlalchemy import Column, Integer, Table, Text

from orchestrator.store import drift
from orchestrator.store.refusals import is_busy
from orchestrator.store.tables import metadata
from orchestrator.store.types import JsonValue, Moment, Words
from orchestrator.store.unit import Unit


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that must never be: which invariant, in which way, and where."""

    invariant: str
    why: str
    ids: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.invariant}: {self.why} ({', '.join(self.ids)})"


Found: TypeAlias = Iterator[Violation]


def without_end(unit: Unit, found: Found, *where: str) -> Found:
    """What is found; where a row stops the looking, that is one more thing found, and the next can be asked.

    A broken row may do anything to who reads it, so nothing it does is let through; the type of the error is
    told, and its text is not. A database that is busy is no such row; one that is gone refuses the way back.
    """
    unit.connection.execute("SAVEPOINT looking")
    try:
        yield from found
    except Exception as error:
        if is_busy(error):
            raise
        unit.connection.execute("ROLLBACK TO looking")
        yield Violation("I21", "a row cannot be read", (*where, type(error).__name__))
    unit.connection.execute("RELEASE looking")


def unsound(unit: Unit) -> Found:
    """I21: the database itself is in order."""
    yield from without_end(unit, _file(unit), "file")
    lacking: list[str] = []
    yield from without_end(unit, _rules(unit, lacking), "rules")
    there = tuple(table for table in metadata.sorted_tables if table.name not in lacking)
    yield from without_end(unit, _references(unit, there), "references")
    yield from without_end(unit, _values(unit, there), "values")


def _file(unit: Unit) -> Found:
    """What SQLite itself finds: pages, indexes, and rows that break a rule. Postgres cannot be asked so."""
    if unit.dialect.name == "sqlite":
        for (told,) in unit.connection.execute("PRAGMA integrity_check").fetchall():
            if told != "ok":
                yield Violation("I21", "the file is damaged", (str(told),))


def _rules(unit: Unit, lacking: list[str]) -> Found:
    """Whether all of them are there and in force; what is not there is put where the next ones see it."""
    lacking.extend(drift.missing(unit.connection, unit.dialect))
    for name in lacking:
        yield Violation("I21", "a table, a column or a rule is missing", (name,))
    if unit.dialect.name == "postgresql":
        for (name,) in unit.connection.execute(_OUT_OF_FORCE).fetchall():
            yield Violation("I21", "a rule is not in force", (str(name),))


_OUT_OF_FORCE: Final = f"""
    WITH ours AS (SELECT oid FROM pg_class WHERE relnamespace = ANY (current_schemas(false)::regnamespace[])
        AND relname IN ({", ".join(repr(name) for name in metadata.tables)}))
    SELECT conname FROM ours JOIN pg_constraint ON conrelid = ours.oid WHERE NOT convalidated
    UNION ALL SELECT indexrelid::regclass::text FROM ours JOIN pg_index ON indrelid = ours.oid
        WHERE NOT indisvalid
    UNION ALL SELECT DISTINCT coalesce(conname, tgname) FROM ours JOIN pg_trigger ON tgrelid = ours.oid
        LEFT JOIN pg_constraint ON pg_constraint.oid = tgconstraint WHERE tgenabled NOT IN ('O', 'A')"""  # noqa: S608


_WIDEST: Final = max(len(table.primary_key) for table in metadata.sorted_tables)


# --- row by row --------------------------------------------------------------------------------------------


def _references(unit: Unit, tables: tuple[Table, ...]) -> Found:
    for rule, *key in unit.connection.execute(_dangling(unit.dialect.name, tables)):
        yield Violation("I21", "a row refers to one that is not there", (rule, *_ids(key)))


def _values(unit: Unit, tables: tuple[Table, ...]) -> Found:
    if unit.dialect.name == "sqlite":
        connection: Any = unit.connection
        connection.create_function("is_utf8", 1, _is_utf8, deterministic=True)
    for column, *key in unit.connection.execute(_foreign(unit.dialect.name, tables)):
        yield Violation("I21", "a value cannot have been written by us", (column, *_ids(key)))


@cache
def _dangling(database: str, tables: tuple[Table, ...]) -> str:
    """Which rows name others that are not there: the rule, and the row's key."""
    asked = []
    for rule in (rule for table in tables for rule in table.foreign_key_constraints):
        if rule.referred_table in tables:
            pairs = [(each.parent.name, each.column.name) for each in rule.elements]
            given = " AND ".join(f"this.{ours} IS NOT NULL" for ours, _ in pairs)
            same = " AND ".join(f"named.{theirs} = this.{ours}" for ours, theirs in pairs)
            asked.append(f"""SELECT '{rule.name}', {_key(database, rule.table)} FROM {rule.table.name} AS this
                WHERE {given}
                AND NOT EXISTS (SELECT 1 FROM {rule.referred_table.name} AS named WHERE {same})""")  # noqa: S608
    return " UNION ALL ".join(asked)


@cache
def _foreign(database: str, tables: tuple[Table, ...]) -> str:
    """Values that our types cannot have written, and the database lets through: the column, the row's key."""
    wrong = _wrong_on_sqlite if database == "sqlite" else _wrong_on_postgres
    asked = []
    for table in tables:
        which = " ".join(f"WHEN {condition} THEN '{table.name}.{name}'" for name, condition in wrong(table.c))
        asked.append(
            f"SELECT CASE {which} END AS place, {_key(database, table)} FROM {table.name} AS this"  # noqa: S608
        )
    return f"SELECT * FROM ({' UNION ALL '.join(asked)}) AS looked WHERE place IS NOT NULL"  # noqa: S608


def _wrong_on_sqlite(columns: Iterable[Column[Any]]) -> Iterator[tuple[str, str]]:
    for column in columns:
        value = f"this.{column.name}"
        match column.type:
            case Moment():
                as_told = f"strftime('%Y-%m-%dT%H:%M:%fZ', {value}, '+0 days')"
                yield column.name, f"{value} IS NOT {as_told} OR {value} < '0001'"
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
    """A row's key, such that it can be read whatever it is, and as wide as that of any other table."""
    kind = "BLOB" if database == "sqlite" else "TEXT"
    parts = [f"CAST(this.{column.name} AS {kind})" for column in table.primary_key]
    return ", ".join(parts + [f"CAST(NULL AS {kind})"] * (_WIDEST - len(parts)))


def _ids(key: Iterable[str | bytes | None]) -> Iterator[str]:
    for part in key:
        if part is not None:
            yield part.decode(errors="backslashreplace") if isinstance(part, bytes) else part
