"""Upgrades a database to the schema that this program needs, and reports which one it has."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from orchestrator.errors import (
    DATABASE_FOREIGN,
    DATABASE_UNUSABLE,
    PGVECTOR_MISSING,
    SCHEMA_NEWER,
    AnamnesisError,
)
from orchestrator.store.checks import drift
from orchestrator.store.engine import refusals
from orchestrator.store.engine.drivers import Driver, Sqlite, driver_for
from orchestrator.store.rows import metadata

REVISIONS: Final = (
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
    "0013",
    "0014",
    "0015",
    "0016",
    "0017",
)
"""All versions of the schema, oldest first. This program needs the last."""

_NEEDED: Final = REVISIONS[-1]
_LOCK: Final = 0x616E616D  # "anam": the advisory lock that an upgrade of PostgreSQL holds


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """The schema version of a database, if any, and the one we need."""

    found: str | None
    needed: str = _NEEDED

    @property
    def is_current(self) -> bool:
        """Whether the database has the version we need."""
        return self.found == self.needed

    @property
    def is_newer(self) -> bool:
        """Whether a newer version of this program has upgraded it."""
        return self.found is not None and self.found not in REVISIONS


def status(url: str, *, busy_seconds: float = 5.0) -> SchemaStatus:
    """Read the schema version, without creating an SQLite file. Raises for a database of another program."""
    driver = driver_for(url, busy_seconds=busy_seconds, synchronous="FULL")
    if isinstance(driver, Sqlite) and not _exists(driver):
        return SchemaStatus(None)
    try:
        connection = driver.connect(writing=False)
        try:
            found, is_ours = _inspect(driver, connection)
        finally:
            connection.close()
    except driver.errors as error:
        refused = driver.refusal_at_start(error)
    else:
        if len(found) > 1:
            several = f"it has several schema versions: {', '.join(found)}"
            refused = AnamnesisError(DATABASE_UNUSABLE, where=driver.name, rule=several)
        elif is_ours:
            return SchemaStatus(found[0] if found else None)
        else:
            refused = AnamnesisError(DATABASE_FOREIGN, where=driver.name)
    raise refused


def missing(url: str, *, busy_seconds: float = 5.0) -> list[str]:
    """The tables, columns and constraints that a database of the current version should have and lacks."""
    driver = driver_for(url, busy_seconds=busy_seconds, synchronous="FULL")
    try:
        connection = driver.connect(writing=False)
        try:
            return drift.missing(connection, driver.dialect)
        finally:
            connection.close()
    except driver.errors as error:
        refused = driver.refusal_at_start(error)
    raise refused


def _exists(file: Sqlite) -> bool:
    try:
        file.path.stat()
        return True
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        refused = refusals.from_file(error, file.name)
    raise refused


def _prepare(file: Sqlite) -> None:
    """Create the file, readable only by its owner; raises if it is not writable."""
    try:
        os.close(os.open(file.path, os.O_CREAT | os.O_RDWR, 0o600))
        return
    except OSError as error:
        refused = refusals.from_file(error, file.name)
    raise refused


def _inspect(driver: Driver, connection: Any) -> tuple[list[str], bool]:
    """The schema versions in the database (at most one is right), and whether the tables can be ours.

    An SQLite file belongs to one program. On a server, other programs may have tables, but not with our
    names.
    """
    if driver.one_writer:
        tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    else:
        tables = "SELECT tablename FROM pg_tables WHERE schemaname = ANY (current_schemas(false))"
    names = {name for (name,) in connection.execute(tables)}
    versions = "alembic_version" in names
    query = "SELECT version_num FROM alembic_version ORDER BY version_num"
    found = [str(name) for (name,) in connection.execute(query).fetchall()] if versions else []
    of_ours = names & set(metadata.tables)
    if not found:
        return found, not (names - {"alembic_version"} if driver.one_writer else of_ours)
    return found, bool(of_ours) or not set(found).isdisjoint(REVISIONS)


def upgrade(url: str, *, to: str = "head", busy_seconds: float = 30.0) -> None:
    """Upgrade an empty or older database to our schema in one transaction; raises for a newer one.

    If several processes do this at the same time, one does the work and the others find it done. Only tests
    pass another version than the latest.
    """
    driver = driver_for(url, busy_seconds=busy_seconds, synchronous="FULL")
    if isinstance(driver, Sqlite):
        _prepare(driver)
    found = status(url, busy_seconds=busy_seconds)
    if found.is_newer:
        raise AnamnesisError(SCHEMA_NEWER, found=found.found or "", needed=found.needed)
    if found.is_current:
        return

    from alembic.config import Config
    from sqlalchemy import NullPool, create_engine
    from sqlalchemy.exc import DBAPIError

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    if isinstance(driver, Sqlite):
        file = driver
        engine = create_engine("sqlite://", creator=lambda: file.connect(writing=True), poolclass=NullPool)
    else:
        engine = create_engine(driver.url, poolclass=NullPool, hide_parameters=True)
    try:
        with engine.connect() as connection:
            _run(config, connection, to, on_file=driver.one_writer)
        return
    except DBAPIError as error:
        no_vector = (error.statement or "").startswith("CREATE EXTENSION")
        refused = AnamnesisError(PGVECTOR_MISSING) if no_vector else driver.refusal_at_start(error.orig)
    finally:
        engine.dispose()
    raise refused


def _run(config: Any, connection: Any, to: str, *, on_file: bool) -> None:
    from alembic import command

    if on_file:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    config.attributes["connection"] = connection
    command.upgrade(config, to)
    connection.commit()
