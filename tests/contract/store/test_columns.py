"""Every column the source documents name is there, of the right kind, on both databases."""

import ast
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from orchestrator import store as store_package
from orchestrator.store import rows
from orchestrator.store.engine import unit
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.engine.statements import Statement, columns_of
from orchestrator.store.repositories.by_id import ById
from orchestrator.store.rows import metadata
from tests.architecture.sources import parsed, python_files

KINDS = {
    "sqlite": {
        "text": "TEXT",
        "whole": "INTEGER",
        "real": "REAL",
        "flag": "INTEGER",
        "json": "TEXT",
        "words": "TEXT",
        "moment": "TEXT",
        "bytes": "BLOB",
        "vector": "BLOB",
    },
    "postgresql": {
        "text": "text",
        "whole": "int4",
        "real": "float8",
        "flag": "bool",
        "json": "jsonb",
        "words": "_text",
        "moment": "timestamptz",
        "bytes": "bytea",
        "vector": "vector",
    },
}

# Table, the number of its first column in the source document, then its columns in the order of the document.
# A name followed by ? may be null.
TABLES = [
    (
        "alicia_conversations",
        "003-002",
        "id:text user_id:text livekit_room_name?:text title?:text status:text preferences:json"
        " last_client_stanza_id:whole last_server_stanza_id:whole"
        " created_at:moment updated_at:moment deleted_at?:moment",
    ),
    (
        "alicia_messages",
        "003-017",
        "id:text conversation_id:text sequence_number:whole previous_id?:text message_role:text contents:text"
        " local_id?:text server_id?:text sync_status:text synced_at?:moment completion_status:text"
        " created_at:moment updated_at:moment deleted_at?:moment",
    ),
    (
        "alicia_sentences",
        "003-036",
        "id:text message_id:text sentence_sequence_number:whole text:text audio_type?:text audio_format?:text"
        " duration_ms?:whole audio_bytesize?:whole audio_data?:bytes meta?:json completion_status:text"
        " created_at:moment updated_at:moment deleted_at?:moment",
    ),
    (
        "alicia_memory",
        "003-054",
        "id:text content:text embeddings?:vector embeddings_info?:json importance:real confidence:real"
        " user_rating?:whole created_by?:text source_type?:text source_info?:json tags:words pinned:flag"
        " archived:flag created_at:moment updated_at:moment deleted_at?:moment",
    ),
    (
        "alicia_memory_used",
        "003-072",
        "id:text conversation_id:text message_id?:text memory_id:text query_prompt?:text"
        " query_prompt_meta?:json similarity_score?:real meta?:json position_in_results?:whole"
        " created_at:moment updated_at:moment deleted_at?:moment",
    ),
    (
        "alicia_memory_used",
        "000-039",
        "id:text conversation_id:text message_id?:text memory_id:text memory_type?:text action:text"
        " content:text confidence?:real created_at:moment metadata?:json",
    ),
    (
        "alicia_user_conversation_commentaries",
        "003-086",
        "id:text content:text conversation_id:text message_id?:text created_by:text meta?:json"
        " created_at:moment updated_at:moment deleted_at?:moment",
    ),
    (
        "alicia_tool_uses",
        "003-096",
        "id:text message_id:text tool_name:text tool_arguments:json tool_result?:json status:text"
        " error_message?:text sequence_number:whole completed_at?:moment"
        " created_at:moment updated_at:moment deleted_at?:moment",
    ),
    (
        "alicia_audio",
        "003-112",
        "id:text message_id?:text audio_type:text audio_format:text audio_data?:bytes duration_ms?:whole"
        " transcription?:text livekit_track_sid?:text transcription_meta?:json"
        " created_at:moment updated_at:moment deleted_at?:moment",
    ),
    (
        "alicia_meta",
        "003-128",
        "id:text ref:text key:text value:text created_at:moment updated_at:moment deleted_at?:moment",
    ),
]


def _tables() -> list[Any]:
    """Each table as a parameter, marked with the requirements of its columns."""
    params = []
    for table, first, columns in TABLES:
        document, number = first.split("-")
        ids = [f"{document}-{int(number) + place:03}" for place in range(len(columns.split()))]
        marks = pytest.mark.requirement(*ids)
        params.append(pytest.param(table, columns, id=f"{table} {first}", marks=marks))
    return params


def found_columns(store: Store, table: str) -> dict[str, tuple[str, bool]]:
    """The type of each column, and whether it may be null, as the database itself reports."""
    if store.driver.dialect.name == "sqlite":
        query = f"SELECT name, type, NOT \"notnull\" FROM pragma_table_xinfo('{table}')"  # noqa: S608
    else:
        query = f"""SELECT column_name, udt_name, is_nullable = 'YES' FROM information_schema.columns
            WHERE table_name = '{table}'"""  # noqa: S608
    found = store.read_now(lambda tx: tx.unit.connection.execute(query).fetchall())
    return {name: (kind, bool(null)) for name, kind, null in found}


@pytest.mark.parametrize(("table", "columns"), _tables())
def test_a_table_has_the_columns_of_the_source_document(
    shared_store: Store, table: str, columns: str
) -> None:
    kinds = KINDS[shared_store.driver.dialect.name]
    wanted = {
        name.rstrip("?"): (kinds[kind], name.endswith("?"))
        for name, _, kind in (column.partition(":") for column in columns.split())
    }

    found = found_columns(shared_store, table)

    assert {name: found.get(name) for name in wanted} == wanted


@pytest.mark.requirement("003-056")
@pytest.mark.parametrize("shared_store", ["postgres"], indirect=True)
def test_postgres_keeps_vectors_of_1024_numbers(shared_store: Store) -> None:
    query = "SELECT atttypmod FROM pg_attribute WHERE attname = 'embeddings'"

    width = shared_store.read_now(lambda tx: tx.unit.connection.execute(query).fetchone())

    assert width == (1024,)


@pytest.mark.requirement("003-142")
def test_there_is_no_table_for_chunks_of_audio() -> None:
    assert "alicia_audio_chunks" not in metadata.tables


def test_a_row_has_a_field_for_each_column_in_the_same_order() -> None:
    kinds = [kind for kind in vars(rows).values() if isinstance(kind, type) and hasattr(kind, "table")]

    for kind in kinds:
        written = [column for column in kind.table.c if column.computed is None]
        assert columns_of(kind) == written

    assert {kind.table.name for kind in kinds} == set(metadata.tables)


BUILDERS: dict[str, Callable[..., Statement[Any]]] = {
    "find": lambda row, names: unit._finding(row, names, (), even_deleted=False),
    "find_one": lambda row, names: unit._finding(row, names, (), even_deleted=False, limit=1),
    "highest": lambda row, names: unit._highest(row, names[0], names),
    "change": lambda row, names: unit._changing_columns(row, names, names[:1]),
    "remove": unit._removing,
}


def _built() -> Iterator[tuple[str, Statement[Any]]]:
    """The statement that a `Unit` builds for each call such as `unit.find(Turn, conversation_id=…)`."""
    for path in python_files("orchestrator"):
        functions = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef)]
        for function, call in ((each, node) for each in functions for node in ast.walk(each)):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            what = call.func.attr
            if what in BUILDERS and ast.unparse(call.func.value).endswith("unit"):
                keys: list[ast.expr | None] = [
                    ast.Constant(each.arg) if each.arg else None for each in call.keywords
                ]
                named = ast.Dict(keys, [each.value for each in call.keywords])
                which = _keys(call.args[1] if what == "change" else named, function)
                names = tuple(name for name in which if name != "even_deleted")
                assert names, f"{path}:{call.lineno}: the columns are not known"
                for kind in _row_types(call.args[0]):
                    yield f"{path}:{call.lineno} {what} {kind.__name__}", BUILDERS[what](kind, names)


def _keys(given: ast.expr, function: ast.FunctionDef) -> Iterator[str]:
    """The keys of a dict literal, or of the dict that a variable of the function holds."""
    if isinstance(given, ast.Name):
        for node in ast.walk(function):
            match node:
                case (
                    ast.Assign(targets=[ast.Name(name)], value=ast.Dict() as value)
                    | ast.AnnAssign(target=ast.Name(name), value=ast.Dict() as value)
                ) if name == given.id:
                    yield from _keys(value, function)
        return
    assert isinstance(given, ast.Dict), ast.unparse(given)
    for key, inner in zip(given.keys, given.values, strict=True):
        yield from _keys(inner, function) if key is None else [ast.literal_eval(key)]


def _row_types(row: ast.expr) -> list[type[Any]]:
    if ast.unparse(row) == "self.row_type":
        return [repository.row_type for repository in ById.__subclasses__()]
    return [getattr(rows, ast.unparse(row))]


def _statements() -> Iterator[tuple[str, Statement[Any]]]:
    """Every statement of the store with its name, except those that read whole tables on purpose."""
    yield from _built()
    for module in pkgutil.walk_packages(store_package.__path__, f"{store_package.__name__}."):
        if ".checks." not in module.name and ".migrations" not in module.name:  # these read whole tables
            for name, value in vars(importlib.import_module(module.name)).items():
                if isinstance(value, Statement):
                    yield f"{module.name}.{name}", value


@pytest.mark.parametrize("shared_store", ["sqlite"], indirect=True)
def test_no_statement_reads_a_whole_table(shared_store: Store) -> None:
    def plan(statement: Statement[Any], tx: Transaction) -> list[str]:
        sql = statement._for(shared_store.driver.dialect).sql
        values = [1] * sql.count("?")
        return [step for *_, step in tx.unit.connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]

    plans = {name: shared_store.read_now(partial(plan, statement)) for name, statement in _statements()}

    assert len(plans) > 100
    assert {name: steps for name, steps in plans.items() if any(_scanned_tables(steps))} == {}


def _scanned_tables(plan: list[str]) -> Iterator[str]:
    """The tables that a plan reads from one end to the other; not what it has made of rows itself."""
    made = {step.split()[1] for step in plan if step.startswith(("MATERIALIZE", "CO-ROUTINE"))}
    indexes = (index for table in metadata.tables.values() for index in table.indexes)
    of_some_rows = {index.name for index in indexes if index.dialect_options["sqlite"]["where"] is not None}
    for step in plan:
        words = step.split()
        if words[0] == "SCAN" and words[1] not in made and words[-1] not in of_some_rows:
            yield step
