"""A database is migrated to the current schema, from nothing and from every earlier schema."""

import errno
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from psycopg import sql
from sqlalchemy import create_engine, insert, make_url

from orchestrator.errors import (
    DATABASE_FORBIDDEN,
    DATABASE_FOREIGN,
    DATABASE_UNREACHABLE,
    DATABASE_UNUSABLE,
    PGVECTOR_MISSING,
    SCHEMA_NEWER,
    SCHEMA_OLDER,
    AnamnesisError,
    Problem,
)
from orchestrator.store import migrations
from orchestrator.store.engine.database import Store
from orchestrator.store.engine.drivers import driver_for
from orchestrator.store.engine.statements import Statement, names_of
from orchestrator.store.migrations import REVISIONS, SchemaStatus, status, upgrade
from orchestrator.store.rows import metadata
from tests.contract.store.test_rules import WORLD
from tests.servers.postgres import as_psycopg, fresh_database
from tests.support.builders import CountedIds, HandClock
from tests.support.stores import DATABASES

NEEDED = REVISIONS[-1]


@pytest.fixture(params=DATABASES)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database; on SQLite its file does not exist."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@contextmanager
def connected(url: str) -> Iterator[Any]:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            yield connection
            connection.commit()
    else:
        with psycopg.connect(as_psycopg(url)) as server:
            yield server


def schema(url: str) -> list[Any]:
    """The schema of a database: tables, columns, defaults, constraints and indexes."""
    with connected(url) as connection:
        if url.startswith("sqlite"):
            found = connection.execute("SELECT sql FROM sqlite_master WHERE tbl_name <> 'alembic_version'")
            return sorted(" ".join(script.split()) for (script,) in found if script)
        columns = """SELECT attrelid::regclass::text, attname, format_type(atttypid, atttypmod), attnotnull,
                attgenerated, pg_get_expr(adbin, adrelid)
            FROM pg_attribute JOIN pg_class c ON c.oid = attrelid AND relkind = 'r'
            JOIN pg_namespace n ON n.oid = relnamespace AND nspname = 'public'
            LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
            WHERE attnum > 0 AND relname <> 'alembic_version'"""
        rules = """SELECT conrelid::regclass::text, conname, pg_get_constraintdef(pg_constraint.oid)
            FROM pg_constraint JOIN pg_namespace n ON n.oid = connamespace AND nspname = 'public'
            WHERE conrelid <> 'alembic_version'::regclass"""
        indexes = """SELECT indexname, indexdef FROM pg_indexes
            WHERE schemaname = 'public' AND tablename <> 'alembic_version'"""
        return sorted(
            tuple(map(str, row)) for ask in (columns, rules, indexes) for row in connection.execute(ask)
        )


def opened(url: str) -> None:
    Store.open(url, clock=HandClock(), ids=CountedIds())


def refused(url: str) -> AnamnesisError:
    with pytest.raises(AnamnesisError) as caught:
        opened(url)
    return caught.value


def test_the_migrated_schema_equals_that_of_the_tables(empty_url: str, tmp_path: Path) -> None:
    upgrade(empty_url)
    migrated = schema(empty_url)
    with connected(empty_url) as connection:
        if empty_url.startswith("sqlite"):
            shutil.move(tmp_path / "store.db", tmp_path / "migrated.db")
        else:
            for table in reversed(metadata.sorted_tables):
                connection.execute(f"DROP TABLE {table.name}")

    engine = create_engine(empty_url)
    with engine.begin() as plain:
        metadata.create_all(plain)
    engine.dispose()

    assert schema(empty_url) == migrated


def tables(url: str) -> list[str]:
    """The names of all tables."""
    look = (
        "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
        if url.startswith("sqlite")
        else "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename"
    )
    with connected(url) as connection:
        return [name for (name,) in connection.execute(look)]


def columns(url: str) -> dict[str, list[str]]:
    """The columns of each table."""
    with connected(url) as connection:
        return {
            table: [name for name, *_ in connection.execute(f"SELECT * FROM {table}").description]  # noqa: S608
            for table in tables(url)
            if table != "alembic_version"
        }


def fill(url: str, there: dict[str, list[str]]) -> None:
    """Put rows into each table of a schema, as far as it has their columns."""
    dialect = driver_for(url, busy_seconds=5, synchronous="FULL").dialect
    with connected(url) as connection:
        for row in (row for row in WORLD if row.table.name in there):
            keys = [name for name in names_of(type(row)) if name in there[row.table.name]]
            Statement(insert(row.table), lambda: None, keys=keys).insert(connection, dialect, [row])


def rows(url: str, asked: dict[str, list[str]]) -> dict[str, list[str]]:
    """The values of these columns of each table."""
    with connected(url) as connection:
        return {
            table: sorted(map(repr, connection.execute(f"SELECT {', '.join(names)} FROM {table}")))  # noqa: S608
            for table, names in asked.items()
        }


@pytest.mark.parametrize("released", [None, *REVISIONS])
def test_every_earlier_schema_is_upgraded_with_its_rows(empty_url: str, released: str | None) -> None:
    there: dict[str, list[str]] = {}
    held: dict[str, list[str]] = {}
    if released:
        upgrade(empty_url, to=released)
        fill(empty_url, there := columns(empty_url))
        held = rows(empty_url, there)
    before = status(empty_url)

    upgrade(empty_url)

    assert before == SchemaStatus(released, NEEDED)
    assert status(empty_url).is_current
    assert all(held.values())
    assert rows(empty_url, there) == held
    store = Store.open(empty_url, clock=HandClock(), ids=CountedIds())
    assert store.write_now(lambda tx: tx.conversations.create("eve")).user_id == "eve"
    store.close_now()


def test_our_list_of_schemas_equals_that_of_the_migrations() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    script = ScriptDirectory.from_config(config)

    steps = [step.revision for step in script.walk_revisions()]

    assert tuple(reversed(steps)) == REVISIONS


def test_reading_the_status_creates_nothing(empty_url: str, tmp_path: Path) -> None:
    assert status(empty_url) == SchemaStatus(None, NEEDED)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_database_is_refused_by_name_unless_it_may_be_created(empty_url: str) -> None:
    error = refused(empty_url)
    store = Store.open(empty_url, clock=HandClock(), ids=CountedIds(), create=True)
    store.close_now()

    assert error.problem is SCHEMA_OLDER
    assert error.facts == {"found": "none", "needed": NEEDED}
    assert status(empty_url).is_current


@pytest.mark.parametrize(("found", "problem"), [("0000", SCHEMA_OLDER), ("9999", SCHEMA_NEWER)])
def test_another_schema_is_refused_at_start_by_name(
    empty_url: str, monkeypatch: pytest.MonkeyPatch, found: str, problem: object
) -> None:
    monkeypatch.setattr(migrations, "REVISIONS", ("0000", *REVISIONS))
    upgrade(empty_url)
    with connected(empty_url) as connection:
        connection.execute(f"UPDATE alembic_version SET version_num = '{found}'")  # noqa: S608

    error = refused(empty_url)

    assert error.problem is problem
    assert error.facts == {"found": found, "needed": NEEDED}


def test_a_newer_schema_is_not_changed(empty_url: str) -> None:
    upgrade(empty_url)
    with connected(empty_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    before = schema(empty_url)

    with pytest.raises(AnamnesisError) as caught:
        upgrade(empty_url)

    assert caught.value.problem is SCHEMA_NEWER
    assert schema(empty_url) == before


def test_of_two_processes_that_upgrade_at_once_both_find_it_done(empty_url: str) -> None:
    command = [
        sys.executable,
        "-c",
        "import sys; from orchestrator.store import migrations as m; m.upgrade(sys.argv[1])",
    ]

    with subprocess.Popen([*command, empty_url]) as one, subprocess.Popen([*command, empty_url]) as other:
        pass

    assert (one.returncode, other.returncode) == (0, 0)
    assert status(empty_url).is_current


def test_an_upgrade_that_fails_half_way_leaves_nothing(empty_url: str) -> None:
    last = metadata.sorted_tables[-1].name
    with connected(empty_url) as connection:
        connection.execute(f"CREATE VIEW {last} AS SELECT 1 AS mine")

    with pytest.raises(AnamnesisError):
        upgrade(empty_url)

    assert status(empty_url).found is None
    assert tables(empty_url) == []


def is_refused(url: str, problem: Problem) -> None:
    """Assert that checking, migrating and opening the database are all refused for this reason."""
    for attempt in (status, upgrade, opened):
        with pytest.raises(AnamnesisError) as caught:
            attempt(url)
        assert caught.value.problem is problem
        assert caught.value.__context__ is None


@pytest.mark.parametrize("versions", [False, True], ids=["without versions", "with versions of its own"])
def test_a_file_of_another_program_is_left_alone(tmp_path: Path, versions: bool) -> None:
    url = f"sqlite:///{tmp_path / 'recipes.db'}"
    with connected(url) as connection:
        connection.execute("CREATE TABLE recipes (title TEXT)")
        if versions:
            connection.execute("CREATE TABLE alembic_version AS SELECT 'c0ffee' AS version_num")
    before = tables(url)

    is_refused(url, DATABASE_FOREIGN)

    assert tables(url) == before


def test_a_table_of_our_name_that_is_not_ours_is_left_alone(empty_url: str) -> None:
    ours = metadata.sorted_tables[0].name
    with connected(empty_url) as connection:
        connection.execute(f"CREATE TABLE {ours} (mine TEXT)")

    is_refused(empty_url, DATABASE_FOREIGN)

    assert tables(empty_url) == [ours]


def test_on_a_server_others_may_have_tables_beside_ours(postgres_url: str) -> None:
    with connected(postgres_url) as connection:
        connection.execute("CREATE TABLE recipes (title TEXT)")
        connection.execute("CREATE SCHEMA elsewhere")
        connection.execute("CREATE TABLE elsewhere.alembic_version (version_num TEXT)")

    upgrade(postgres_url)

    assert status(postgres_url).is_current
    assert "recipes" in tables(postgres_url)


def test_a_file_that_is_no_database_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("dear diary, " * 100)

    is_refused(f"sqlite:///{tmp_path / 'notes.db'}", DATABASE_UNUSABLE)


def test_an_impossible_path_is_refused_by_name(tmp_path: Path) -> None:
    is_refused(f"sqlite:///{tmp_path / ('x' * 300)}", DATABASE_UNUSABLE)
    is_refused(f"sqlite:///{tmp_path}", DATABASE_UNUSABLE)


@pytest.mark.parametrize("folder", ["nowhere", "file"])
def test_a_database_in_a_missing_folder_is_missing_and_cannot_be_created(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").touch()
    url = f"sqlite:///{tmp_path / folder / 'store.db'}"

    with pytest.raises(AnamnesisError) as caught:
        upgrade(url)

    assert caught.value.problem is DATABASE_UNUSABLE
    assert status(url).found is None


def test_a_file_that_may_not_be_written_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    upgrade(url)

    def forbid(*_: object) -> int:
        raise PermissionError(errno.EACCES, "no")

    monkeypatch.setattr(os, "open", forbid)  # root ignores file modes
    with pytest.raises(AnamnesisError) as caught:
        Store.open(url, clock=HandClock(), ids=CountedIds(), create=True)

    assert caught.value.problem is DATABASE_FORBIDDEN


def test_a_server_that_rejects_our_login_is_reported_without_the_password(postgres_url: str) -> None:
    address = make_url(postgres_url)

    for wrong in (address.set(database="no_such_database"), address.set(username="nobody", password="x7f3a")):
        url = wrong.render_as_string(hide_password=False)
        is_refused(url, DATABASE_UNREACHABLE)
        assert "x7f3a" not in str(refused(url))


def test_a_server_on_which_we_may_create_nothing_is_reported(postgres_url: str) -> None:
    read_only = make_url(postgres_url).update_query_dict({"options": "-c default_transaction_read_only=on"})

    with pytest.raises(AnamnesisError) as caught:
        upgrade(read_only.render_as_string(hide_password=False))

    assert caught.value.problem is DATABASE_FORBIDDEN


def test_only_its_owner_can_read_the_file(tmp_path: Path) -> None:
    upgrade(f"sqlite:///{tmp_path / 'store.db'}")

    mode = stat.S_IMODE(os.stat(tmp_path / "store.db").st_mode)

    assert mode == 0o600


def test_a_server_without_pgvector_is_reported(postgres_server_url: str) -> None:
    role = sql.Identifier(f"anamnesis_test_{os.getpid()}")
    with (
        fresh_database(postgres_server_url) as url,
        psycopg.connect(as_psycopg(url), autocommit=True) as admin,
    ):
        admin.execute("DROP EXTENSION IF EXISTS vector")
        admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'none'").format(role))
        admin.execute(sql.SQL("GRANT CREATE ON SCHEMA public TO {}").format(role))
        try:
            poor = make_url(url).set(username=role.as_string(admin).strip('"'), password="none")
            with pytest.raises(AnamnesisError) as caught:
                upgrade(poor.render_as_string(hide_password=False))
        finally:
            admin.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(role))

    assert caught.value.problem is PGVECTOR_MISSING
    assert caught.value.__context__ is None
