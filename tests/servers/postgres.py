"""A real PostgreSQL with pgvector, and a fresh database in it for each test that asks."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from tests.servers.once import start_once


@contextmanager
def fresh_database(server_url: str, *, template: str | None = None) -> Iterator[str]:
    """The address of a new database on that server, copied from `template`; dropped after the body."""
    name = f"anamnesis_test_{secrets.token_hex(6)}"
    url = make_url(server_url)
    _administer(server_url, "CREATE DATABASE {} TEMPLATE {}", name, template or "template1")
    try:
        yield url.set(database=name).render_as_string(hide_password=False)
    finally:
        _administer(server_url, "DROP DATABASE {} WITH (FORCE)", name)


def as_psycopg(url: str) -> str:
    """The same address as psycopg alone spells it, without SQLAlchemy's name for the driver."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def _administer(server_url: str, statement: str, *names: str) -> None:
    with psycopg.connect(as_psycopg(server_url), autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


@pytest.fixture(scope="session")
def postgres_server_url(request: pytest.FixtureRequest) -> str:
    """The server itself: the one `ANAMNESIS_TEST_POSTGRES_URL` names, else one of our own."""
    return os.environ.get("ANAMNESIS_TEST_POSTGRES_URL") or start_once(request.config, "postgres")


@pytest.fixture(scope="session")
def _database_with_vector(postgres_server_url: str) -> Iterator[str]:
    """The name of a database that only has pgvector, to copy the tests' own ones from."""
    with fresh_database(postgres_server_url) as url:
        _administer(url, "CREATE EXTENSION IF NOT EXISTS vector")
        name = make_url(url).database
        assert name is not None
        yield name


@pytest.fixture
def postgres_url(postgres_server_url: str, _database_with_vector: str) -> Iterator[str]:
    """An empty database with pgvector for this test alone, as SQLAlchemy spells it: `postgresql+psycopg://…`."""
    with fresh_database(postgres_server_url, template=_database_with_vector) as url:
        yield url
