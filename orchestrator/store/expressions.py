"""Expressions that each database writes in its own way, for indexes and for the queries that use them."""

from typing import Any

from sqlalchemy import Text
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction


class Day(GenericFunction[str]):
    """The day of a time in UTC, such as 2026-11-18."""

    type = Text()
    inherit_cache = True


class ActorRole(GenericFunction[str]):
    """The part of an actor's name before the colon; the whole name if it has none."""

    type = Text()
    inherit_cache = True


class TraceLabel(GenericFunction[str]):
    """The block that a trace's metadata names; NULL if the trace is not of a block."""

    type = Text()
    inherit_cache = True


@compiles(Day, "sqlite")
def _day_on_sqlite(function: Day, compiler: SQLCompiler, **options: Any) -> str:
    return f"substr({compiler.process(function.clauses, **options)}, 1, 10)"


@compiles(Day, "postgresql")
def _day_on_postgres(function: Day, compiler: SQLCompiler, **options: Any) -> str:
    return f"to_char({compiler.process(function.clauses, **options)} AT TIME ZONE 'UTC', 'YYYY-MM-DD')"


@compiles(ActorRole, "sqlite")
def _role_on_sqlite(function: ActorRole, compiler: SQLCompiler, **options: Any) -> str:
    actor = compiler.process(function.clauses, **options)
    return f"substr({actor}, 1, instr({actor} || ':', ':') - 1)"


@compiles(ActorRole, "postgresql")
def _role_on_postgres(function: ActorRole, compiler: SQLCompiler, **options: Any) -> str:
    return f"split_part({compiler.process(function.clauses, **options)}, ':', 1)"


@compiles(TraceLabel, "sqlite")
def _label_on_sqlite(function: TraceLabel, compiler: SQLCompiler, **options: Any) -> str:
    about = compiler.process(function.clauses, **options)
    return f"CASE WHEN json_valid({about}) THEN json_extract({about}, '$.label') END"


@compiles(TraceLabel, "postgresql")
def _label_on_postgres(function: TraceLabel, compiler: SQLCompiler, **options: Any) -> str:
    return f"({compiler.process(function.clauses, **options)} ->> 'label')"
