"""A store that a test breaks in one transaction after another; each transaction is rolled back."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.engine.unit import Unit
from orchestrator.wire.ids import RandomIds
from tests.servers.postgres import as_psycopg
from tests.support.builders import START


class BreakableStore:
    """One connection to the database of a store, on which the database enforces no foreign key."""

    def __init__(self, store: Store, url: str) -> None:
        self.dialect = store.driver.dialect
        self.is_sqlite = url.startswith("sqlite")
        if self.is_sqlite:
            self._connection: Any = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        else:
            self._connection = psycopg.connect(as_psycopg(url), autocommit=True)
            self._connection.execute("SET timezone = 'UTC'; SET session_replication_role = replica")

    @contextmanager
    def rolled_back(self) -> Iterator[Transaction]:
        """A transaction in which a test may do and read anything."""
        self._connection.execute("BEGIN")
        try:
            yield Transaction(Unit(self._connection, self.dialect, START, RandomIds()))
        finally:
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


@contextmanager
def rules_ignored(tx: Transaction) -> Iterator[None]:
    """Disable CHECK constraints within the block. Only SQLite can do so."""
    if tx.unit.dialect.name != "sqlite":
        yield
        return
    tx.unit.connection.execute("PRAGMA ignore_check_constraints = ON")
    yield
    tx.unit.connection.execute("PRAGMA ignore_check_constraints = OFF")
