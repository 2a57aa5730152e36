"""What repositories use of a transaction: its time, new ids, and methods to run statements."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final, TypeVar

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Dialect,
    Select,
    Table,
    Update,
    bindparam,
    delete,
    func,
    select,
    tuple_,
    update,
)

from memory_blocks.ports import Ids
from orchestrator.store.engine.statements import Connection, IsRow, Statement, all_of, inserting, names_of

T = TypeVar("T")
R = TypeVar("R", bound=IsRow)

PAGE: Final = 500
"""How many rows `every` reads at a time."""
_TIMES: Final = ("created_at", "updated_at")


@dataclass(frozen=True, slots=True)
class Unit:
    """One transaction, for the repositories."""

    connection: Connection
    dialect: Dialect
    now: datetime
    ids: Ids

    def all(self, statement: Statement[T], **given: Any) -> list[T]:
        """All records of a query."""
        return statement.all(self.connection, self.dialect, given)

    def first(self, statement: Statement[T], **given: Any) -> T | None:
        """The first record of a query, or none."""
        return statement.first(self.connection, self.dialect, given)

    def find(self, row_type: type[R], *order: str, even_deleted: bool = False, **values: Any) -> list[R]:
        """The rows with these values in these columns, in that order."""
        return self.all(_finding(row_type, tuple(values), order, even_deleted), **values)

    def find_one(self, row_type: type[R], *, even_deleted: bool = False, **values: Any) -> R | None:
        """The row with these values in these columns, or none."""
        return self.first(_finding(row_type, tuple(values), (), even_deleted, limit=1), **values)

    def highest(self, row_type: type[IsRow], column: str, **values: Any) -> int:
        """The highest number in that column of the rows with these values; 0 if there are none."""
        return self.first(_highest(row_type, column, tuple(values)), **values) or 0

    def every(self, row_type: type[R], *key: str) -> list[R]:
        """All rows of a table in the order of `key`, read page by page."""
        found: list[R] = []
        after = dict.fromkeys(key, "")
        while True:
            page = self.all(_page_after(row_type, key), **after)
            found += page
            if len(page) < PAGE:
                return found
            after = {name: getattr(page[-1], name) for name in key}

    def run(self, statement: Statement[Any], **given: Any) -> int:
        """Execute a statement, with the transaction's time as `now`; returns the number of changed rows."""
        given["now"] = self.now
        return statement.run(self.connection, self.dialect, given)

    def insert(self, *rows: IsRow) -> None:
        """Insert rows of one table."""
        if rows:
            inserting(type(rows[0])).insert(self.connection, self.dialect, rows)

    def add(self, row_type: type[R], **columns: Any) -> R:
        """Insert a row and return it. Columns left out are null; `created_at` and `updated_at` are now."""
        empty = {name: self.now if name in _TIMES else None for name in names_of(row_type)}
        row = row_type(**empty | columns)
        self.insert(row)
        return row

    def change(self, row_type: type[IsRow], which: Mapping[str, Any], **columns: Any) -> int:
        """Set columns of the rows with the values of `which`, except deleted ones; returns how many."""
        given = {f"new_{name}": value for name, value in columns.items()}
        return self.run(_changing_columns(row_type, tuple(which), tuple(columns)), **which, **given)

    def remove(self, row_type: type[IsRow], **values: Any) -> int:
        """Remove the rows with these values from their table; returns how many."""
        return self.run(_removing(row_type, tuple(values)), **values)

    def notify(self) -> None:
        """Notify other processes of a change when this transaction is committed."""
        if self.dialect.name == "postgresql":
            self.connection.execute("SELECT pg_notify('anamnesis', '')")


def changing(table: Table) -> Update:
    """An update of a table that also sets `updated_at`."""
    return update(table).values(updated_at=bindparam("now"))


@cache
def _page_after(row_type: type[R], key: tuple[str, ...]) -> Statement[R]:
    columns = [row_type.table.c[name] for name in key]
    is_after = tuple_(*columns) > tuple_(*(bindparam(name) for name in key))
    return Statement(all_of(row_type).where(is_after).order_by(*columns).limit(PAGE), row_type)


@cache
def _finding(
    row_type: type[R],
    names: tuple[str, ...],
    order: tuple[str, ...],
    even_deleted: bool,
    limit: int | None = None,
) -> Statement[R]:
    table = row_type.table
    found = all_of(row_type).where(*_equal(table, names), *(() if even_deleted else _alive(table)))
    return Statement(found.order_by(*(table.c[name] for name in order)).limit(limit), row_type)


@cache
def _highest(row_type: type[IsRow], column: str, names: tuple[str, ...]) -> Statement[int]:
    highest: Select[Any] = select(func.coalesce(func.max(row_type.table.c[column]), 0))
    return Statement(highest.where(*_equal(row_type.table, names)), int)


@cache
def _changing_columns(
    row_type: type[IsRow], which: tuple[str, ...], names: tuple[str, ...]
) -> Statement[None]:
    table = row_type.table
    new: dict[str, BindParameter[Any]] = {
        name: bindparam(f"new_{name}", type_=table.c[name].type) for name in names
    }
    changed = changing(table) if "updated_at" in table.c else update(table)
    return Statement(changed.where(*_equal(table, which), *_alive(table)).values(new), lambda: None)


@cache
def _removing(row_type: type[IsRow], names: tuple[str, ...]) -> Statement[None]:
    return Statement(delete(row_type.table).where(*_equal(row_type.table, names)), lambda: None)


def _equal(table: Table, names: tuple[str, ...]) -> list[ColumnElement[bool]]:
    return [table.c[name] == bindparam(name) for name in names]


def _alive(table: Table) -> list[ColumnElement[bool]]:
    return [table.c.deleted_at.is_(None)] if "deleted_at" in table.c else []
