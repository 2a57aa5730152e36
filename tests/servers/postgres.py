"""A real PostgreSQL with pgvector, and an empty database for each test that needs one."""

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from tests.servers.once import start_once


@contextmanager
def fresh_database(server_url: str, *, template: str | None = None) -> Iterator[str]:
    """The address of a new database on that server, a copy of `template`. It is dropped afterwards."""
    name = f"anamnesis_test_{secrets.token_hex(6)}"
    url = make_url(server_url)
    _administer(server_url, "CREATE DATABASE {} TEMPLATE {}", name, template or "template1")
    try:
        yield url.set(database=name).render_as_string(hide_password=False)
    finally:
        _administer(server_url, "DROP DATABASE {} WITH (FORCE)", name)


TABLES_AND_RULES = """
    SELECT md5(string_agg(part, ' ' ORDER BY part)) FROM (
        SELECT concat_ws(' ', tableoid, oid, xmin) FROM pg_class
            WHERE relnamespace = 'public'::regnamespace
        UNION ALL SELECT concat_ws(' ', a.tableoid, attrelid, attnum, a.xmin)
            FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid
            WHERE relnamespace = 'public'::regnamespace
        UNION ALL SELECT concat_ws(' ', tableoid, oid, xmin) FROM pg_constraint
        UNION ALL SELECT concat_ws(' ', tableoid, oid, xmin) FROM pg_trigger
        UNION ALL SELECT concat_ws(' ', tableoid, indexrelid, xmin) FROM pg_index
        UNION ALL SELECT concat_ws(' ', tableoid, oid, xmin) FROM pg_proc
            WHERE pronamespace = 'public'::regnamespace
        UNION ALL SELECT concat_ws(' ', tableoid, oid, xmin) FROM pg_extension
        UNION ALL SELECT 'at ' || version_num FROM alembic_version
    ) AS parts (part)
"""
"""A query whose result changes with every table and constraint, but not with rows."""


class KeptDatabase:
    """A migrated database that tests use one after the other. It is emptied in between.

    To create and drop a database takes ten times as long. After a test that changed the schema, and while
    another test uses the database, a test gets a new one.
    """

    def __init__(self, server_url: str, template: str) -> None:
        self._server_url, self._template = server_url, template
        self._url, self._made, self._kept = "", "", ExitStack()
        self._lent = False

    @contextmanager
    def lent(self) -> Iterator[str]:
        """The address of an empty database."""
        if self._lent:
            with fresh_database(self._server_url, template=self._template) as url:
                yield url
            return
        if not self._url:
            self._url = self._kept.enter_context(fresh_database(self._server_url, template=self._template))
            with psycopg.connect(as_psycopg(self._url)) as connection:
                self._made = _tables_and_rules(connection)
        self._lent = True
        try:
            yield self._url
        finally:
            self._lent = False
            if not self._is_emptied():
                self.close()

    def close(self) -> None:
        """Drop the database."""
        self._kept.close()
        self._url = ""

    def _is_emptied(self) -> bool:
        """Disconnect all clients and delete all rows. Returns whether the schema is unchanged."""
        with suppress(psycopg.Error), psycopg.connect(as_psycopg(self._url), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            if _tables_and_rules(connection) != self._made:
                return False
            connection.execute("SET session_replication_role = replica")
            for (name,) in connection.execute(
                "SELECT tablename FROM pg_tables"
                " WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
            ).fetchall():
                connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(name)))
            return True
        return False


def _tables_and_rules(connection: psycopg.Connection) -> str:
    found = connection.execute(TABLES_AND_RULES).fetchone()
    assert found is not None
    return str(found[0])


def as_psycopg(url: str) -> str:
    """The address for psycopg, without SQLAlchemy's name of the driver."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def _administer(server_url: str, statement: str, *names: str) -> None:
    with psycopg.connect(as_psycopg(server_url), autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


@pytest.fixture(scope="session")
def postgres_server_url(request: pytest.FixtureRequest) -> str:
    """The server at `ANAMNESIS_TEST_POSTGRES_URL`; otherwise one that the run starts."""
    return os.environ.get("ANAMNESIS_TEST_POSTGRES_URL") or start_once(request.config, "postgres")


@pytest.fixture(scope="session")
def _database_with_vector(postgres_server_url: str) -> Iterator[str]:
    """The name of a template database with only pgvector."""
    with fresh_database(postgres_server_url) as url:
        _administer(url, "CREATE EXTENSION IF NOT EXISTS vector")
        name = make_url(url).database
        assert name is not None
        yield name


@pytest.fixture
def postgres_url(postgres_server_url: str, _database_with_vector: str) -> Iterator[str]:
    """An address for SQLAlchemy (`postgresql+psycopg://…`) of an empty database for this test alone."""
    with fresh_database(postgres_server_url, template=_database_with_vector) as url:
        yield url
