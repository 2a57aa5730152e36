"""The two databases: how a connection is opened, how a transaction begins and ends, what a refusal means."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias

from sqlalchemy import URL, Dialect, make_url
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.exc import ArgumentError

from orchestrator.errors import BAD_SETTING, DATABASE_TOO_OLD, INTERNAL, AnamnesisError
from orchestrator.store import refusals
from orchestrator.store.statements import Connection

Synchronous: TypeAlias = Literal["FULL", "NORMAL", "OFF"]

OLDEST_SQLITE: Final = (3, 37, 0)
"""The first with STRICT tables, without which SQLite keeps a text in a column of numbers."""
OLDEST_POSTGRES: Final = 14


class Driver(Protocol):
    """One database behind the store."""

    dialect: Dialect
    url: URL
    name: str
    one_writer: bool

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What its library raises."""
        ...

    def connect(self, *, writing: bool) -> Connection:
        """A connection of its own for one thread. Never makes a database that is not there."""
        ...

    def begin(self, connection: Connection, *, writing: bool) -> None:
        """Begin a transaction; one that reads sees the database as it stood at its first statement."""
        ...

    def commit(self, connection: Connection) -> None:
        """Make it last, or raise."""
        ...

    def roll_back(self, connection: Any) -> bool:
        """Undo what was begun, if anything was; false when the connection is of no more use."""
        ...

    def refusal(self, error: Any) -> AnamnesisError:
        """What one of `errors` means to whoever sent something that is being stored."""
        ...

    def refusal_at_start(self, error: Any) -> AnamnesisError:
        """What one of `errors` means to the operator, while the database is opened or brought up."""
        ...


class Sqlite:
    """A file, several processes of one machine at most."""

    one_writer = True
    errors = (sqlite3.Error, UnicodeDecodeError)  # the latter where the names in a damaged file are no text
    refusal = staticmethod(refusals.of_sqlite)

    def __init__(self, url: URL, busy_seconds: float, synchronous: Synchronous) -> None:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            needed = "SQLite " + ".".join(map(str, OLDEST_SQLITE))
            raise AnamnesisError(DATABASE_TOO_OLD, found=f"SQLite {sqlite3.sqlite_version}", needed=needed)
        if not url.database or url.database == ":memory:":
            raise AnamnesisError(BAD_SETTING, key="database.url", where="SQLite", rule="must name a file")
        self.url = url
        self.path = Path(url.database).absolute()
        self.name = str(self.path)
        self.dialect: Dialect = SQLiteDialect_pysqlite(paramstyle="qmark")
        self._busy_seconds, self._synchronous = busy_seconds, synchronous

    def connect(self, *, writing: bool) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?{'mode=rw' if writing else self._how_to_read()}",
            uri=True,
            timeout=self._busy_seconds,
            isolation_level=None,  # transactions begin where we say so
            check_same_thread=False,  # one thread uses it, another may close it
            cached_statements=512,
        )
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        connection.execute("PRAGMA journal_mode = WAL" if writing else "PRAGMA query_only = ON")
        return connection

    def _how_to_read(self) -> str:
        """Who may not write reads what is there: as it stands if nobody has it open, else beside them."""
        if os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK):
            return "mode=rw"
        return "mode=ro" if Path(f"{self.path}-wal").exists() else "mode=ro&immutable=1"

    def begin(self, connection: Connection, *, writing: bool) -> None:
        # A deferred transaction that turns to writing meets SQLITE_BUSY_SNAPSHOT, which no waiting cures.
        connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")

    def commit(self, connection: Connection) -> None:
        connection.execute("COMMIT")

    def roll_back(self, connection: Any) -> bool:
        connection.rollback()
        return True

    def refusal_at_start(self, error: Any) -> AnamnesisError:
        return refusals.of_opening_sqlite(error, self.name)


class Postgres:
    """A server, with pgvector, for as many processes and machines as there are."""

    one_writer = False
    refusal = staticmethod(refusals.of_postgres)

    def __init__(self, url: URL, busy_seconds: float) -> None:
        import psycopg

        self.errors = (psycopg.Error,)
        self.url = url.set(drivername="postgresql+psycopg")
        self.name = f"{url.host or 'localhost'}:{url.port or 5432}/{url.database or ''}"
        self.dialect: Dialect = PGDialect_psycopg(paramstyle="format")  # type: ignore[no-untyped-call]
        self._open: Callable[..., Connection] = psycopg.connect
        self._busy_seconds = busy_seconds

    def connect(self, *, writing: bool) -> Connection:
        _, options = self.dialect.create_connect_args(self.url)
        usual: dict[str, Any] = {
            "connect_timeout": 5,
            "application_name": "anamnesis",
            "client_encoding": "utf8",
        }
        connection: Any = self._open(**{**usual, **options}, autocommit=True)
        found = connection.info.server_version // 10000
        if found < OLDEST_POSTGRES:
            connection.close()
            needed = f"PostgreSQL {OLDEST_POSTGRES}"
            raise AnamnesisError(DATABASE_TOO_OLD, found=f"PostgreSQL {found}", needed=needed)
        patience = int(self._busy_seconds * 1000)
        # Who stands still within a transaction is let go, since everybody else waits for what it holds.
        connection.execute(
            f"SET timezone = 'UTC'; SET lock_timeout = {patience};"
            f" SET idle_in_transaction_session_timeout = {patience}"
        )
        return connection  # type: ignore[no-any-return]

    def begin(self, connection: Connection, *, writing: bool) -> None:
        connection.execute("BEGIN" if writing else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def commit(self, connection: Connection) -> None:
        if connection.execute("COMMIT").statusmessage != "COMMIT":
            raise AnamnesisError(INTERNAL, code="a failed transaction was to be committed")

    def roll_back(self, connection: Any) -> bool:
        if connection.closed:
            return False
        try:
            connection.rollback()
        except self.errors:
            connection.close()
            return False
        return True

    def refusal_at_start(self, error: Any) -> AnamnesisError:
        return refusals.of_opening_postgres(error, self.name)


def driver_for(url: str, *, busy_seconds: float, synchronous: Synchronous) -> Driver:
    """The database an address speaks of: `sqlite:///FILE` or `postgresql://…`."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        parsed = URL.create("")
    match parsed.get_backend_name() if parsed.drivername else "":
        case "sqlite":
            return Sqlite(parsed, busy_seconds, synchronous)
        case "postgresql":
            return Postgres(parsed, busy_seconds)
        case _:
            rule = "must begin with postgresql:// or sqlite:///"
            raise AnamnesisError(BAD_SETTING, key="database.url", where="the store", rule=rule)
