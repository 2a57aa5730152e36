"""Statements that SQLAlchemy compiles, once per database, and the driver runs.

We use SQLAlchemy only to write the SQL of both databases from one expression. Running a statement through it
would cost several times as much as SQLite needs for a row, for a pool and events that we do not use.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

from sqlalchemy import Column, Dialect, Executable, Select, Table, insert, select
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import TypeEngine

from orchestrator.store.engine.types import Convert, PerDatabase

T = TypeVar("T")


class IsRow(Protocol):
    """A frozen dataclass whose fields are the columns of its table."""

    table: ClassVar[Table]
    __dataclass_fields__: ClassVar[dict[str, Any]]


R = TypeVar("R", bound=IsRow)


class Cursor(Protocol):
    """What we use of the cursors of both drivers."""

    @property
    def rowcount(self) -> int: ...
    def executemany(self, sql: Any, parameters: Any, /) -> object: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """What we use of the connections of both drivers."""

    def execute(self, sql: Any, parameters: Any = ..., /) -> Any: ...
    def cursor(self) -> Any: ...
    def close(self) -> None: ...


class _Compiled:
    """The SQL text for one database, and how parameters and results are converted."""

    __slots__ = ("_attributes", "_inputs", "_names", "_outputs", "sql")

    def __init__(self, statement: Any, dialect: Dialect, keys: Sequence[str] | None) -> None:
        compiled = cast(SQLCompiler, statement.compile(dialect=dialect, column_keys=keys))
        self.sql = compiled.string
        bound = [compiled.binds[name] for name in compiled.positiontup or ()]
        # Either the name of a given value, or a constant of the statement.
        self._names = [(each.key, None) if each.required else (None, each.effective_value) for each in bound]
        self._inputs = _conversions((each.type for each in bound), lambda kind: kind.bind_processor(dialect))
        columns = getattr(statement, "exported_columns", ())
        self._outputs = _conversions(
            (each.type for each in columns), lambda kind: kind.result_processor(dialect)
        )
        self._attributes = attrgetter(*keys) if keys else None

    def values(self, given: dict[str, Any]) -> Sequence[Any]:
        """The given values in the order of the SQL parameters."""
        return _converted(
            [constant if name is None else given[name] for name, constant in self._names], self._inputs
        )

    def values_of(self, row: IsRow) -> Sequence[Any]:
        """A row's values in the order of its columns."""
        assert self._attributes is not None  # noqa: S101  only an insert calls this
        return _converted(list(self._attributes(row)), self._inputs)

    def read(self, record: Sequence[Any]) -> Sequence[Any]:
        """Convert a record of the driver."""
        return _converted(list(record), self._outputs) if self._outputs else record


def _conversions(
    kinds: Iterable[TypeEngine[Any]], find: Callable[[PerDatabase], Convert]
) -> list[tuple[int, Callable[[Any], Any]]]:
    """The positions of the values that must be converted, and how."""
    found = ((place, find(kind)) for place, kind in enumerate(kinds) if isinstance(kind, PerDatabase))
    return [(place, convert) for place, convert in found if convert is not None]


def _converted(values: list[Any], conversions: list[tuple[int, Callable[[Any], Any]]]) -> list[Any]:
    for place, convert in conversions:
        if values[place] is not None:
            values[place] = convert(values[place])
    return values


class Statement(Generic[T]):
    """One SQL statement; `make` is called with each record it returns."""

    __slots__ = ("_compiled", "_keys", "_make", "_statement")

    def __init__(
        self, statement: Executable, make: Callable[..., T], *, keys: Sequence[str] | None = None
    ) -> None:
        self._statement, self._make, self._keys = statement, make, keys
        self._compiled: dict[str, _Compiled] = {}

    @property
    def query(self) -> Any:
        """The statement for SQLAlchemy, to be used inside of another one."""
        return self._statement

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
        """Execute it and return the number of changed rows."""
        compiled = self._for(dialect)
        return int(connection.execute(compiled.sql, compiled.values(given)).rowcount)

    def insert(self, connection: Connection, dialect: Dialect, rows: Sequence[IsRow]) -> None:
        """Execute it once for each row."""
        compiled = self._for(dialect)
        if len(rows) == 1:
            connection.execute(compiled.sql, compiled.values_of(rows[0]))
        else:
            connection.cursor().executemany(compiled.sql, [compiled.values_of(row) for row in rows])

    def _for(self, dialect: Dialect) -> _Compiled:
        compiled = self._compiled.get(dialect.name)
        if compiled is None:
            compiled = self._compiled[dialect.name] = _Compiled(self._statement, dialect, self._keys)
        return compiled


@cache
def names_of(row_type: type[IsRow]) -> tuple[str, ...]:
    """The names of a row's columns, in order."""
    return tuple(field.name for field in fields(cast(Any, row_type)))


def columns_of(row_type: type[IsRow]) -> list[Column[Any]]:
    """The columns of a row as SQLAlchemy objects, in order."""
    return [row_type.table.c[name] for name in names_of(row_type)]


def all_of(row_type: type[IsRow]) -> Select[Any]:
    """A query for all rows of a table, to be narrowed."""
    return select(*columns_of(row_type))


@cache
def inserting(row_type: type[IsRow]) -> Statement[None]:
    """The statement that inserts a row."""
    return Statement(insert(row_type.table), lambda: None, keys=names_of(row_type))
