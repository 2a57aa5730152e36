"""An empty store for each test, on SQLite and on PostgreSQL, checked after the test."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import make_url

from orchestrator.store import migrations
from orchestrator.store.checks.invariants import check
from orchestrator.store.checks.soundness import check_database
from orchestrator.store.engine.database import Store
from tests.servers.postgres import KeptDatabase, fresh_database
from tests.support.builders import CountedIds, HandClock

DATABASES = ("sqlite", "postgres")

on_both_databases = pytest.mark.parametrize("address", DATABASES, indirect=True)
"""Runs a test with the fixture `address` on each database; without this mark it runs on SQLite."""


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file; each test gets a copy."""
    path = tmp_path_factory.mktemp("template") / "store.db"
    migrations.upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def postgres_template(postgres_server_url: str) -> Iterator[str]:
    """The name of a migrated template database; each test gets a copy."""
    with fresh_database(postgres_server_url) as url:
        migrations.upgrade(url)
        yield make_url(url).database or ""


@pytest.fixture(scope="session")
def postgres_kept(postgres_server_url: str, postgres_template: str) -> Iterator[KeptDatabase]:
    """The database that the tests of this worker share, emptied in between."""
    kept = KeptDatabase(postgres_server_url, postgres_template)
    yield kept
    kept.close()


@contextmanager
def empty_store(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    """The address of a migrated and empty database of one kind."""
    if kind == "sqlite":
        shutil.copyfile(request.getfixturevalue("sqlite_template"), folder / "store.db")
        yield f"sqlite:///{folder / 'store.db'}"
    else:
        kept: KeptDatabase = request.getfixturevalue("postgres_kept")
        with kept.lent() as url:
            yield url


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty store's address, for this test alone; the test runs once for each database."""
    with empty_store(request.param, request, tmp_path) as url:
        yield url


@pytest.fixture(scope="module", params=DATABASES)
def shared_store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store for all tests of a module; each must accept the rows of the others.

    Rows of a conversation may be incomplete; the database itself must be sound at the end.
    """
    with empty_store(request.param, request, tmp_path_factory.mktemp("store")) as url:
        store = Store.open(url, clock=HandClock(), ids=CountedIds(), synchronous="OFF", connections=1)
        yield store
        found = store.read_now(lambda tx: list(check_database(tx.unit)))
        store.close_now()
        assert found == []


@pytest.fixture
def clock() -> HandClock:
    """The clock of the test's store."""
    return HandClock()


@pytest.fixture
def ids() -> CountedIds:
    """The source of ids of the test's store."""
    return CountedIds()


@pytest.fixture
def loose_store(database_url: str, clock: HandClock, ids: CountedIds) -> Iterator[Store]:
    """A store in which a test may leave an incomplete state, such as a message without its turn."""
    store = Store.open(database_url, clock=clock, ids=ids, synchronous="OFF", connections=2)
    yield store
    store.close_now()


@pytest.fixture
def store(loose_store: Store) -> Iterator[Store]:
    """A store in which every invariant must hold when the test has ended."""
    yield loose_store
    assert check(loose_store) == []
