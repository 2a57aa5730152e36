"""SQLite and PostgreSQL: how to connect, how to begin and end a transaction, and what their errors mean."""

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
from orchestrator.store.engine import refusals
from orchestrator.store.engine.open_files import OpenFiles
from orchestrator.store.engine.statements import Connection

Synchronous: TypeAlias = Literal["FULL", "NORMAL", "OFF"]

OLDEST_SQLITE: Final = (3, 37, 0)
"""The first version with STRICT tables. Without them, SQLite stores text in a number column."""
OLDEST_POSTGRES: Final = 14


class Driver(Protocol):
    """A kind of database."""

    dialect: Dialect
    url: URL
    name: str
    one_writer: bool

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The exceptions of its library."""

    def connect(self, *, writing: bool) -> Connection:
        """Open a connection for one thread. Never creates a database."""

    def begin(self, connection: Connection, *, writing: bool) -> None:
        """Begin a transaction. A reading one sees a snapshot, taken at its first statement."""

    def commit(self, connection: Connection) -> None:
        """Commit durably, or raise."""

    def roll_back(self, connection: Any) -> bool:
        """Roll back the transaction, if any; false if the connection can no longer be used."""

    def refusal(self, error: Any) -> AnamnesisError:
        """Our error for one of `errors` in a transaction, for the client whose message is being stored."""

    def refusal_at_start(self, error: Any) -> AnamnesisError:
        """Our error for one of `errors` when the database is opened or upgraded, for the operator."""


class Sqlite:
    """SQLite: a file, shared by processes on one machine."""

    one_writer = True
    errors = (sqlite3.Error, UnicodeDecodeError)  # UnicodeDecodeError: names in a damaged file
    refusal = staticmethod(refusals.from_sqlite)

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
        self._files = OpenFiles(self.path)

    def connect(self, *, writing: bool) -> sqlite3.Connection:
        self._files.remember_database()
        self._files.check()
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?{'mode=rw' if writing else self._reading_mode()}",
            uri=True,
            timeout=self._busy_seconds,
            isolation_level=None,  # we begin transactions ourselves
            check_same_thread=False,  # used by one thread, closed by another
            cached_statements=512,
        )
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
            connection.execute("PRAGMA journal_mode = WAL" if writing else "PRAGMA query_only = ON")
            if writing:
                self._files.remember_wal()
            self._files.check()  # it may have been replaced while it was opened
        except BaseException:
            connection.close()
            raise
        return connection

    def _reading_mode(self) -> str:
        """The options for reading. Without write permission, a file that no process has open is immutable."""
        if os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK):
            return "mode=rw"
        return "mode=ro" if Path(f"{self.path}-wal").exists() else "mode=ro&immutable=1"

    def begin(self, connection: Connection, *, writing: bool) -> None:
        self._files.check()
        # IMMEDIATE, since a deferred one fails with SQLITE_BUSY_SNAPSHOT when it first writes, without
        # waiting.
        connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")

    def commit(self, connection: Connection) -> None:
        connection.execute("COMMIT")
        self._files.check()  # a commit to a lost file must not be reported as stored

    def roll_back(self, connection: Any) -> bool:
        connection.rollback()
        return True

    def refusal_at_start(self, error: Any) -> AnamnesisError:
        return refusals.from_opening_sqlite(error, self.name)


class Postgres:
    """PostgreSQL with pgvector: a server, shared by processes on any number of machines."""

    one_writer = False
    refusal = staticmethod(refusals.from_postgres)

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
        defaults: dict[str, Any] = {
            "connect_timeout": 5,
            "application_name": "anamnesis",
            "client_encoding": "utf8",
        }
        connection: Any = self._open(**{**defaults, **options}, autocommit=True)
        found = connection.info.server_version // 10000
        if found < OLDEST_POSTGRES:
            connection.close()
            needed = f"PostgreSQL {OLDEST_POSTGRES}"
            raise AnamnesisError(DATABASE_TOO_OLD, found=f"PostgreSQL {found}", needed=needed)
        milliseconds = int(self._busy_seconds * 1000)
        # The second timeout ends a transaction that is idle, because others wait for its locks.
        connection.execute(
            f"SET timezone = 'UTC'; SET lock_timeout = {milliseconds};"
            f" SET idle_in_transaction_session_timeout = {milliseconds}"
        )
        return connection  # type: ignore[no-any-return]

    def begin(self, connection: Connection, *, writing: bool) -> None:
        connection.execute("BEGIN" if writing else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def commit(self, connection: Connection) -> None:
        if connection.execute("COMMIT").statusmessage != "COMMIT":
            raise AnamnesisError(INTERNAL, code="commit of a failed transaction")

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
        return refusals.from_opening_postgres(error, self.name)


def driver_for(url: str, *, busy_seconds: float, synchronous: Synchronous) -> Driver:
    """The driver for a database URL: `sqlite:///FILE` or `postgresql://…`."""
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
