"""Detects that SQLite's database file was deleted, moved or replaced while it is open.

The operating system keeps a deleted file for the processes that have it open. SQLite would go on committing
to it, and all of that would be gone after a restart.
"""

import os
from pathlib import Path

from orchestrator.errors import DATABASE_FILE_LOST, AnamnesisError
from orchestrator.ops.logs import get_logger

log = get_logger()


class OpenFiles:
    """The device and inode of the database file and of its write-ahead log, as they were when opened."""

    def __init__(self, database: Path) -> None:
        self._database, self._wal = str(database), f"{database}-wal"
        self._expected: dict[str, tuple[int, int]] = {}
        self._lost = False

    def remember_database(self) -> None:
        """Remember the file that is about to be opened, unless an earlier connection has opened it."""
        if self._database not in self._expected:
            self._remember(self._database)

    def remember_wal(self) -> None:
        """Remember the log that a writing connection has just opened; an empty database has none yet."""
        self._remember(self._wal)

    def check(self) -> None:
        """Raise if a path no longer leads to the file that was opened."""
        for path, identity in self._expected.items():
            if _identity(path) != identity:
                error = AnamnesisError(DATABASE_FILE_LOST)
                if not self._lost:
                    self._lost = True
                    log.critical("database_file_lost", exc_info=error)
                raise error
        if self._lost:
            self._lost = False
            log.warning("database_file_found_again")

    def _remember(self, path: str) -> None:
        if identity := _identity(path):
            # A new dict, because other threads may be iterating over the old one.
            self._expected = {**self._expected, path: identity}


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
