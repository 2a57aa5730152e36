"""Brings a database to the schema this program needs, and tells which one it has."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from orchestrator.errors import PGVECTOR_MISSING, SCHEMA_NEWER, AnamnesisError
from orchestrator.store.drivers import Driver, Sqlite, driver_for

REVISIONS: Final = ("0001",)
"""Every schema there has been, oldest first; the last is the one this program needs."""

_NEEDED: Final = REVISIONS[-1]
_LOCK: Final = 0x616E616D  # "anam": whoever upgrades a Postgres database holds this lock


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """The schema a database has, if any, and the one we need."""

    found: str | None
    needed: str = _NEEDED

    @property
    def is_current(self) -> bool:
        """Whether the two are the same."""
        return self.found == self.needed

    @property
    def is_newer(self) -> bool:
        """Whether a newer program than this one has been here."""
        return self.found is not None and self.found not in REVISIONS


def status(url: str, *, busy_seconds: float = 5.0) -> SchemaStatus:
    """Look, and change nothing: an SQLite file that is not there is not made."""
    driver = driver_for(url, busy_seconds=busy_seconds, synchronous="FULL")
    if isinstance(driver, Sqlite) and not driver.path.exists():
        return SchemaStatus(None)
    try:
        connection = driver.connect(writing=False)
        try:
            return SchemaStatus(_revision(driver, connection))
        finally:
            connection.close()
    except driver.errors as error:
        refused = driver.refusal(error)
    raise refused


def _revision(driver: Driver, connection: Any) -> str | None:
    look = "sqlite_master WHERE name" if driver.one_writer else "information_schema.tables WHERE table_name"
    if connection.execute(f"SELECT 1 FROM {look} = 'alembic_version'").fetchone() is None:  # noqa: S608
        return None
    record = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if record is None else str(record[0])


def upgrade(url: str, *, to: str = "head", busy_seconds: float = 30.0) -> None:
    """Bring an empty or older database to our schema, all steps in one transaction; a newer one is refused.

    Of several processes that do this at once, one does the work and the others find it done. Only tests of
    later steps name another schema than the latest.
    """
    from alembic.config import Config
    from sqlalchemy import NullPool, create_engine
    from sqlalchemy.exc import DBAPIError

    driver = driver_for(url, busy_seconds=busy_seconds, synchronous="FULL")
    if isinstance(driver, Sqlite):
        os.close(os.open(driver.path, os.O_CREAT | os.O_RDWR, 0o600))  # only its owner may read it
    found = status(url, busy_seconds=busy_seconds)
    if found.is_newer:
        raise AnamnesisError(SCHEMA_NEWER, found=found.found or "", needed=found.needed)
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
        refused = AnamnesisError(PGVECTOR_MISSING) if no_vector else driver.refusal(error.orig)
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
