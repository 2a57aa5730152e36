"""One transaction as the repositories see it: the moment it happens at, new ids, a way to run statements."""

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final, TypeVar

from sqlalchemy import Dialect, Table, Update, bindparam, tuple_, update

from memory_blocks.ports import Ids
from orchestrator.store.statements import Connection, IsRow, Statement, all_of, inserting

T = TypeVar("T")
R = TypeVar("R", bound=IsRow)

PAGE: Final = 500
"""How many rows are read at a time by who reads them all."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What a repository needs of the transaction it belongs to."""

    connection: Connection
    dialect: Dialect
    now: datetime
    ids: Ids

    def all(self, statement: Statement[T], **given: Any) -> list[T]:
        """Every record of a query."""
        return statement.all(self.connection, self.dialect, given)

    def first(self, statement: Statement[T], **given: Any) -> T | None:
        """The first record of a query, or none."""
        return statement.first(self.connection, self.dialect, given)

    def every(self, row_type: type[R], *key: str) -> list[R]:
        """All rows of a table in the order of its key, some at a time, for who looks after everything."""
        found: list[R] = []
        after = dict.fromkeys(key, "")
        while True:
            page = self.all(_following(row_type, key), **after)
            found += page
            if len(page) < PAGE:
                return found
            after = {name: getattr(page[-1], name) for name in key}

    def run(self, statement: Statement[Any], **given: Any) -> int:
        """Do what the statement says, at the moment of this transaction; how many rows it touched."""
        given["now"] = self.now
        return statement.run(self.connection, self.dialect, given)

    def insert(self, *rows: IsRow) -> None:
        """Put rows of one kind into their table."""
        if rows:
            inserting(type(rows[0])).insert(self.connection, self.dialect, rows)

    def change(self, row_type: type[IsRow], key: str, **columns: Any) -> bool:
        """Set columns of the row with that id, unless it is deleted; false when there is none."""
        given = {f"new_{name}": value for name, value in columns.items()}
        return self.run(_changing_columns(row_type, tuple(columns)), key=key, **given) == 1

    def delete(self, row_type: type[IsRow], key: str) -> bool:
        """Mark the row with that id as deleted: normal reads pass it over, and it is kept."""
        return self.change(row_type, key, deleted_at=self.now)

    def notify(self) -> None:
        """Tell other processes, once this transaction is committed, that there is something to look at."""
        if self.dialect.name == "postgresql":
            self.connection.execute("SELECT pg_notify('anamnesis', '')")


def changing(table: Table) -> Update:
    """The beginning of every update: `updated_at` moves with it."""
    return update(table).values(updated_at=bindparam("now"))


@cache
def _following(row_type: type[R], key: tuple[str, ...]) -> Statement[R]:
    columns = [row_type.table.c[name] for name in key]
    behind = tuple_(*columns) > tuple_(*(bindparam(name) for name in key))
    return Statement(all_of(row_type).where(behind).order_by(*columns).limit(PAGE), row_type)


@cache
def _changing_columns(row_type: type[IsRow], names: tuple[str, ...]) -> Statement[Any]:
    table = row_type.table
    new = {name: bindparam(f"new_{name}", type_=table.c[name].type) for name in names}
    alive = (table.c.id == bindparam("key"), table.c.deleted_at.is_(None))
    return Statement(changing(table).where(*alive).values(new), lambda: None)
