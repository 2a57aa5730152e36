"""What repositories use of a transaction: its time, new ids, and methods to run statements."""

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final, TypeVar

from sqlalchemy import Dialect, Table, Update, bindparam, tuple_, update

from memory_blocks.ports import Ids
from orchestrator.store.engine.statements import Connection, IsRow, Statement, all_of, inserting

T = TypeVar("T")
R = TypeVar("R", bound=IsRow)

PAGE: Final = 500
"""How many rows `every` reads at a time."""


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

    def change(self, row_type: type[IsRow], key: str, **columns: Any) -> bool:
        """Set columns of the row with that id; false if there is none or it is deleted."""
        given = {f"new_{name}": value for name, value in columns.items()}
        return self.run(_changing_columns(row_type, tuple(columns)), key=key, **given) == 1

    def delete(self, row_type: type[IsRow], key: str) -> bool:
        """Mark the row with that id as deleted. It stays in the table, but normal reads skip it."""
        return self.change(row_type, key, deleted_at=self.now)

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
def _changing_columns(row_type: type[IsRow], names: tuple[str, ...]) -> Statement[Any]:
    table = row_type.table
    new = {name: bindparam(f"new_{name}", type_=table.c[name].type) for name in names}
    alive = (table.c.id == bindparam("key"), table.c.deleted_at.is_(None))
    return Statement(changing(table).where(*alive).values(new), lambda: None)
