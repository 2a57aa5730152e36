"""Makes a table of a dataclass: its columns from the fields and their types, and its rules.

The database itself enforces every rule about one row, or about a row and those it refers to, on SQLite and on
PostgreSQL. Each rule has a name, which our errors report.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import MappingProxyType, NoneType, UnionType
from typing import Any, ClassVar, Final, TypeAlias, TypeVar, get_args

from sqlalchemy import (
    CheckConstraint,
    Column,
    ColumnElement,
    Computed,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import SchemaItem
from sqlalchemy.sql.compiler import DDLCompiler
from sqlalchemy.types import TypeEngine

from orchestrator.store.engine.types import (
    VECTOR_WIDTH,
    Flag,
    Json,
    JsonObject,
    JsonValue,
    Moment,
    Real,
    Vector,
    Words,
)


class Row:
    """Base of the frozen dataclasses whose fields are the columns of a table."""

    __slots__ = ()

    metadata: ClassVar = MetaData()
    table: ClassVar[Table]


R = TypeVar("R", bound=Row)
Rule: TypeAlias = tuple[str, str]
"""The name of a rule, and its condition."""
Maker: TypeAlias = Callable[[str], SchemaItem]
"""Makes a key or an index of the table with the given name."""

_KINDS: Final[Mapping[object, TypeEngine[Any]]] = MappingProxyType(
    {
        str: Text(),
        int: Integer(),
        float: Real,
        bool: Flag(),
        bytes: LargeBinary(),
        datetime: Moment(),
        Json: JsonValue(),
        JsonObject: JsonValue(),
        tuple[str, ...]: Words(),
        tuple[float, ...]: Vector(),
    }
)
"""The type of a column by the type of its field."""


@compiles(Computed, "sqlite")
def _virtual(computed: Computed, compiler: DDLCompiler, **options: Any) -> str:
    """Make generated columns virtual on SQLite; PostgreSQL can only store them."""
    expression = compiler.sql_compiler.process(computed.sqltext, include_table=False, literal_binds=True)
    return f"GENERATED ALWAYS AS ({expression}) VIRTUAL"


def stored_in(
    name: str,
    *parts: Rule | Maker,
    defaults: Mapping[str, str] = MappingProxyType({}),
    copies: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[type[R]], type[R]]:
    """Make a table of a dataclass, with these rules, keys and indexes, and with the rules of all tables.

    `defaults` has the SQL of columns with a default. `copies` names columns that have a generated copy. A
    column `id` is the key.
    """

    def make_table(row_type: type[R]) -> type[R]:
        columns = [_column(*field, defaults) for field in row_type.__annotations__.items()]
        items = [each for column in columns for each in (column, *_copy(column, copies))]
        rules = [part for part in parts if isinstance(part, tuple)]
        makers = [part for part in parts if not isinstance(part, tuple)]
        if columns[0].name == "id":
            makers.insert(0, key("id"))
            rules.insert(0, ("id", "length(id) BETWEEN 1 AND 128"))
        row_type.table = Table(
            name,
            Row.metadata,
            *items,
            *(make(name) for make in makers),
            *(_check(name, rule) for rule in rules),
            *(_check(name, rule).ddl_if(dialect="sqlite") for rule in _sqlite_rules(columns)),
            *(_check(name, rule).ddl_if(dialect="postgresql") for rule in _postgres_rules(columns)),
            sqlite_strict=True,
        )
        return row_type

    return make_table


# --- rules and keys ----------------------------------------------------------------------------------------


def one_of(column: str, *values: str) -> Rule:
    """The rule that a column has one of these values."""
    return column, f"{column} IN ({', '.join(repr(value) for value in values)})"


def same(left: str, right: str) -> str:
    """The condition that both conditions are true or both are false."""
    return f"({left}) = ({right})"


def key(*columns: str) -> Maker:
    """The primary key."""
    return lambda table: PrimaryKeyConstraint(*columns, name=f"pk_{table}")


def index(what: str, *columns: str | ColumnElement[Any], where: str | None = None) -> Maker:
    """An index; with `where`, only of the rows for which it is true."""
    if where is None:
        return lambda table: Index(f"ix_{table}_{what}", *columns)
    some = text(where)
    return lambda table: Index(f"ix_{table}_{what}", *columns, sqlite_where=some, postgresql_where=some)


def unique(what: str, *columns: str, where: str | None = None) -> Maker:
    """A unique constraint on these columns; with `where`, only among the rows for which it is true."""
    if where is None:
        return lambda table: UniqueConstraint(*columns, name=f"uq_{table}_{what}")
    some = text(where)
    return lambda table: Index(
        f"uq_{table}_{what}", *columns, unique=True, sqlite_where=some, postgresql_where=some
    )


def unique_index(what: str, *columns: str) -> Maker:
    """A unique constraint on these columns, made as an index, because a migration can add an index."""
    return lambda table: Index(f"uq_{table}_{what}", *columns, unique=True)


def of(*columns: str, to: str, their: Iterable[str] = ("id",), what: str) -> Maker:
    """A reference to a row of another table."""
    theirs = [f"{to}.{column}" for column in their]
    return lambda table: ForeignKeyConstraint(columns, theirs, name=f"fk_{table}_{what}")


def of_message(column: str = "message_id", what: str = "message") -> Maker:
    """A reference to a message of the same conversation."""
    return of("conversation_id", column, to="alicia_messages", their=("conversation_id", "id"), what=what)


of_conversation: Final = of("conversation_id", to="alicia_conversations", what="conversation")

# --- columns, and the rules of all tables ------------------------------------------------------------------


def _column(name: str, hint: Any, defaults: Mapping[str, str]) -> Column[Any]:
    kind, *others = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    default = text(defaults[name]) if name in defaults else None
    null = NoneType in others or kind == Json
    return Column(name, _KINDS[kind], nullable=null, server_default=default)


def _copy(column: Column[Any], copies: Mapping[str, str]) -> Iterable[Column[Any]]:
    if column.name in copies:
        yield Column(copies[column.name], column.type, Computed(column.name, persisted=True), nullable=True)


def _check(table: str, rule: Rule) -> CheckConstraint:
    what, condition = rule
    return CheckConstraint(condition, f"ck_{table}_{what}")


def _sqlite_rules(columns: Iterable[Column[Any]]) -> Iterable[Rule]:
    """Rules for what the types of PostgreSQL ensure by themselves, and for the kind of JSON values."""
    texts, moments = [], []
    for column in columns:
        name = column.name
        match column.type:
            case Flag():
                yield name, f"{name} IN (0, 1)"
            case JsonValue() | Words():
                without_nul = rf"instr(replace({name}, '\\', ''), '\u0000') = 0"
                kind = f" AND json_type({name}) = '{kind}'" if (kind := _json_kind(column)) else ""
                yield name, f"CASE WHEN json_valid({name}) THEN {without_nul}{kind} ELSE {name} IS NULL END"
                texts.append(name)
            case Moment():
                moments.append(name)
            case Text():
                texts.append(name)
            case Vector():
                width = f"json_extract({name}_info, '$.dimensions')"
                fits = f"{width} BETWEEN 1 AND {VECTOR_WIDTH} AND length({name}) = 4 * {width}"
                yield name, f"{name} IS NULL OR coalesce({fits}, FALSE)"
    yield "no_nul", " AND ".join(f"instr({each}, char(0)) = 0" for each in texts)
    yield "moments", " AND ".join(f"{each} GLOB '????-??-??T??:??:??.???Z'" for each in moments)


def _postgres_rules(columns: Iterable[Column[Any]]) -> Iterable[Rule]:
    """Rules for the kind of JSON values, lists without NULL, and the dimensions of vectors."""
    for column in columns:
        name = column.name
        match column.type:
            case Words():
                yield name, f"array_position({name}, NULL) IS NULL"
            case JsonValue() if kind := _json_kind(column):
                yield name, f"jsonb_typeof({name}) = '{kind}'"
            case Vector():
                width = f"({name}_info ->> 'dimensions')::integer"
                yield name, f"{name} IS NULL OR coalesce({width} BETWEEN 1 AND {VECTOR_WIDTH}, FALSE)"


def _json_kind(column: Column[Any]) -> str | None:
    """The kind of JSON value a column must have; the result of a tool may be of any kind."""
    if isinstance(column.type, Words):
        return "array"
    return None if column.name == "tool_result" else "object"
