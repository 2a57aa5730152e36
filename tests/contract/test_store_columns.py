"""Every column the source documents name is there, of the right kind, on both databases."""

import importlib
import pkgutil
from typing import Any

import pytest

from orchestrator import store as store_package
from orchestrator.store import rows
from orchestrator.store.database import Store
from orchestrator.store.statements import Statement, columns_of
from orchestrator.store.tables import metadata

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


def _columns() -> list[Any]:
    params = []
    for table, first, columns in TABLES:
        document, number = first.split("-")
        for place, column in enumerate(columns.split()):
            name, kind = column.split(":")
            requirement = f"{document}-{int(number) + place:03}"
            mark = pytest.mark.requirement(requirement)
            params.append(
                pytest.param(table, name.rstrip("?"), kind, name.endswith("?"), id=requirement, marks=mark)
            )
    return params


def found_columns(store: Store, table: str) -> dict[str, tuple[str, bool]]:
    """The kind of each column, and whether it may be null, as the database itself tells."""
    if store.driver.dialect.name == "sqlite":
        query = f"SELECT name, type, NOT \"notnull\" FROM pragma_table_xinfo('{table}')"  # noqa: S608
    else:
        query = f"""SELECT column_name, udt_name, is_nullable = 'YES' FROM information_schema.columns
            WHERE table_name = '{table}'"""  # noqa: S608
    found = store.read_now(lambda tx: tx.unit.connection.execute(query).fetchall())
    return {name: (kind, bool(null)) for name, kind, null in found}


@pytest.mark.parametrize(("table", "column", "kind", "null"), _columns())
def test_the_table_has_the_column(
    shared_store: Store, table: str, column: str, kind: str, null: bool
) -> None:
    found = found_columns(shared_store, table)

    assert found[column] == (KINDS[shared_store.driver.dialect.name][kind], null)


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


def _statements() -> list[Any]:
    found = []
    for module in pkgutil.iter_modules(store_package.__path__):
        if module.name not in ("invariants", "migrations"):  # these look at everything, on purpose
            names = vars(importlib.import_module(f"{store_package.__name__}.{module.name}"))
            found += [
                pytest.param(statement, id=f"{module.name}{name}")
                for name, statement in names.items()
                if isinstance(statement, Statement)
            ]
    return found


@pytest.mark.parametrize("shared_store", ["sqlite"], indirect=True)
@pytest.mark.parametrize("statement", _statements())
def test_no_statement_walks_through_a_whole_table(shared_store: Store, statement: Statement[Any]) -> None:
    sql = statement._for(shared_store.driver.dialect).sql
    values = [1] * sql.count("?")

    plan = shared_store.read_now(
        lambda tx: tx.unit.connection.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall()
    )

    steps = [step for *_, step in plan]
    assert not [step for step in steps if step.startswith("SCAN")]
