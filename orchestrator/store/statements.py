"""Statements written with SQLAlchemy, compiled once per database, run by the driver itself.

SQLAlchemy writes the SQL for two databases from one expression, and that is what we need of it. Its execution
would cost several times what SQLite needs for a row, for a pool and events that nobody here uses.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

from sqlalchemy import Column, Dialect, Executable, Select, Table, insert, select
from sqlalchemy.sql.compiler import SQLCompiler

from orchestrator.store.types import Kept

T = TypeVar("T")


class IsRow(Protocol):
    """A frozen dataclass whose fields are the columns of its table."""

    table: ClassVar[Table]
    __dataclass_fields__: ClassVar[dict[str, Any]]


R = TypeVar("R", bound=IsRow)


class Cursor(Protocol):
    """What the two drivers' cursors have in common, and we use."""

    @property
    def rowcount(self) -> int: ...
    def executemany(self, sql: Any, parameters: Any, /) -> object: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """What the two drivers' connections have in common, and we use."""

    def execute(self, sql: Any, parameters: Any = ..., /) -> Any: ...
    def cursor(self) -> Any: ...
    def close(self) -> None: ...


class _Compiled:
    """SQL text for one database, with what is to be done to each value going in and coming out."""

    __slots__ = ("_bindings", "_outputs", "sql")

    def __init__(self, statement: Any, dialect: Dialect, keys: Sequence[str] | None) -> None:
        compiled = cast(SQLCompiler, statement.compile(dialect=dialect, column_keys=keys))
        self.sql = compiled.string
        self._bindings: list[tuple[str | None, Any]] = []
        for name in compiled.positiontup or ():
            bound = compiled.binds[name]
            convert = bound.type.bind_processor(dialect) if isinstance(bound.type, Kept) else None
            if bound.required:
                self._bindings.append((bound.key, convert))
            else:
                constant = bound.effective_value
                self._bindings.append((None, constant if convert is None else convert(constant)))
        columns: Iterable[Any] = getattr(statement, "exported_columns", ())
        kept = ((i, column.type) for i, column in enumerate(columns) if isinstance(column.type, Kept))
        outputs = ((position, kind.result_processor(dialect)) for position, kind in kept)
        self._outputs = [(position, convert) for position, convert in outputs if convert is not None]

    def values(self, given: dict[str, Any]) -> tuple[Any, ...]:
        """The given values in the order the SQL asks for them."""
        return tuple(
            [
                convert if name is None else given[name] if convert is None else convert(given[name])
                for name, convert in self._bindings
            ]
        )

    def read(self, record: Sequence[Any]) -> Sequence[Any]:
        """What the driver gave, as Python has it."""
        if not self._outputs:
            return record
        values = list(record)
        for position, convert in self._outputs:
            values[position] = convert(values[position])
        return values


class Statement(Generic[T]):
    """One statement; each record it gives is handed to `make`."""

    __slots__ = ("_compiled", "_keys", "_make", "_statement")

    def __init__(
        self, statement: Executable, make: Callable[..., T], *, keys: Sequence[str] | None = None
    ) -> None:
        self._statement, self._make, self._keys = statement, make, keys
        self._compiled: dict[str, _Compiled] = {}

    def all(self, connection: Connection, dialect: Dialect, given: dict[str, Any]) -> list[T]:
        """Every record."""
        compiled = self._for(dialect)
        records = connection.execute(compiled.sql, compiled.values(given)).fetchall()
        read, make = compiled.read, self._make
        return [make(*read(record)) for record in records]

    def first(self, connection: Connection, dialect: Dialect, given: dict[str, Any]) -> T | None:
        """The first record, or none."""
        compiled = self._for(dialect)
        record = connection.execute(compiled.sql, compiled.values(given)).fetchone()
        return None if record is None else self._make(*compiled.read(record))

    def run(self, connection: Connection, dialect: Dialect, given: dict[str, Any]) -> int:
        """Do it, and tell how many rows it touched."""
        compiled = self._for(dialect)
        return int(connection.execute(compiled.sql, compiled.values(given)).rowcount)

    def run_many(self, connection: Connection, dialect: Dialect, given: Iterable[dict[str, Any]]) -> None:
        """Do it once for each."""
        compiled = self._for(dialect)
        connection.cursor().executemany(compiled.sql, [compiled.values(each) for each in given])

    def _for(self, dialect: Dialect) -> _Compiled:
        compiled = self._compiled.get(dialect.name)
        if compiled is None:
            compiled = self._compiled[dialect.name] = _Compiled(self._statement, dialect, self._keys)
        return compiled


@cache
def names_of(row_type: type[IsRow]) -> tuple[str, ...]:
    """The columns of a row, in order."""
    return tuple(field.name for field in fields(cast(Any, row_type)))


def columns_of(row_type: type[IsRow]) -> list[Column[Any]]:
    """The columns of a row, in order, as SQLAlchemy has them."""
    return [row_type.table.c[name] for name in names_of(row_type)]


def all_of(row_type: type[IsRow]) -> Select[Any]:
    """The beginning of every query for rows of a kind."""
    return select(*columns_of(row_type))


@cache
def inserting(row_type: type[IsRow]) -> Statement[None]:
    """The statement that puts a row into its table."""
    return Statement(insert(row_type.table), lambda: None, keys=names_of(row_type))


def values_of(row: IsRow) -> dict[str, Any]:
    """A row's values by column."""
    return {name: getattr(row, name) for name in names_of(type(row))}
