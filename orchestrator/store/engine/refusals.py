"""Translates errors of the database to our errors. Values that they quote are not passed on."""

import errno
import os
import sqlite3
from typing import TYPE_CHECKING, Final

from sqlalchemy import PrimaryKeyConstraint, UniqueConstraint

from orchestrator.errors import (
    BAD_UTF8,
    BUSY,
    CONSTRAINT,
    DATABASE_BUSY,
    DATABASE_DAMAGED,
    DATABASE_FORBIDDEN,
    DATABASE_UNREACHABLE,
    DATABASE_UNUSABLE,
    INTERNAL,
    NUL_IN_TEXT,
    STORAGE_FULL,
    STORAGE_UNAVAILABLE,
    AnamnesisError,
)
from orchestrator.store.rows import metadata

if TYPE_CHECKING:
    import psycopg

_UNAVAILABLE: Final = (
    "SQLITE_IOERR",
    "SQLITE_CANTOPEN",
    "SQLITE_CORRUPT",
    "SQLITE_NOTADB",
    "SQLITE_READONLY",
)
_UNUSABLE: Final = {
    "SQLITE_NOTADB": "it is not an SQLite database",
    "SQLITE_CANTOPEN": "it cannot be opened",
    "SQLITE_IOERR": "it cannot be read or written",
    "SQLITE_FULL": "the disk is full",
}
"""The text for the operator if the database cannot be opened."""


def _keys() -> dict[frozenset[str], str]:
    """The name of each uniqueness rule by its columns, because SQLite reports only the columns."""
    rules = {}
    for table in metadata.tables.values():
        unique = (
            rule for rule in table.constraints if isinstance(rule, UniqueConstraint | PrimaryKeyConstraint)
        )
        for rule in (*unique, *(index for index in table.indexes if index.unique)):
            rules[frozenset(f"{table.name}.{column.name}" for column in rule.columns)] = str(rule.name)
    return rules


_KEYS: Final = _keys()


def from_value(error: UnicodeError | OverflowError) -> AnamnesisError:
    """The refusal for a value that the driver rejects: text that is not UTF-8, or a number too large."""
    if isinstance(error, UnicodeError):
        return AnamnesisError(BAD_UTF8)
    return AnamnesisError(CONSTRAINT, rule="range")


def _wrong_statement(code: str, message: str) -> AnamnesisError:
    """One of our statements is wrong. Such a message names tables, columns and types, never a value."""
    error = AnamnesisError(INTERNAL, code=code)
    error.add_note(message)
    return error


def is_busy(error: Exception) -> bool:
    """Whether the error means that another transaction holds a lock."""
    name, state = getattr(error, "sqlite_errorname", ""), getattr(error, "sqlstate", None)
    return name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or state in ("40001", "40P01", "55P03", "57014")


def from_sqlite(error: sqlite3.Error | UnicodeDecodeError) -> AnamnesisError:
    """Translate an error of SQLite by the name of its code."""
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    if is_busy(error):
        return AnamnesisError(BUSY)
    if name == "SQLITE_FULL":
        return AnamnesisError(STORAGE_FULL)
    if name.startswith(_UNAVAILABLE):
        return AnamnesisError(STORAGE_UNAVAILABLE)
    if not hasattr(error, "sqlite_errorname"):  # raised by Python's library, whose text may quote a value
        return AnamnesisError(INTERNAL, code=name)
    if not name.startswith("SQLITE_CONSTRAINT"):
        return _wrong_statement(name, str(error))
    what, _, detail = str(error).partition(" constraint failed: ")
    if detail.endswith("_no_nul"):
        return AnamnesisError(NUL_IN_TEXT)
    match what:
        case "CHECK":
            rule = detail
        case "UNIQUE":
            rule = _KEYS[frozenset(detail.split(", "))]
        case "NOT NULL":
            rule = f"{detail} is required"
        case "FOREIGN KEY constraint failed":
            rule = "foreign key"
        case _:
            rule = f"type of {what.rpartition(' ')[2]}"
    return AnamnesisError(CONSTRAINT, rule=rule)


def from_postgres(error: "psycopg.Error") -> AnamnesisError:
    """Translate an error of PostgreSQL by its SQLSTATE; without one, the connection is lost."""
    state = error.sqlstate
    if state is None:
        if "NUL" in str(error):
            return AnamnesisError(NUL_IN_TEXT)
        lost = type(error).__name__ in ("OperationalError", "ConnectionTimeout", "InterfaceError")
        return AnamnesisError(STORAGE_UNAVAILABLE) if lost else AnamnesisError(INTERNAL, code="psycopg")
    if is_busy(error):
        return AnamnesisError(BUSY)
    if state == "53100":
        return AnamnesisError(STORAGE_FULL)
    if state.startswith(("08", "25P03", "53", "57P", "58")):
        return AnamnesisError(STORAGE_UNAVAILABLE)
    if state in ("22021", "22P05"):
        return AnamnesisError(NUL_IN_TEXT)
    if state.startswith("23"):
        detail = error.diag
        rule = detail.constraint_name or f"{detail.table_name}.{detail.column_name} is required"
        return AnamnesisError(CONSTRAINT, rule=rule)
    if state.startswith("22"):
        return AnamnesisError(CONSTRAINT, rule="range" if state == "22003" else "type")
    if state.startswith("42"):
        return _wrong_statement(state, str(error.diag.message_primary))
    return AnamnesisError(INTERNAL, code=state)


# --- errors when opening the database, for the operator ----------------------------------------------------


def from_file(error: OSError, where: str) -> AnamnesisError:
    """Translate an error when checking or creating the database file."""
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return AnamnesisError(DATABASE_FORBIDDEN, where=where)
    return AnamnesisError(DATABASE_UNUSABLE, where=where, rule=os.strerror(error.errno or 0))


def from_opening_sqlite(error: sqlite3.Error | UnicodeDecodeError, where: str) -> AnamnesisError:
    """Translate an error of SQLite when a file is opened or upgraded."""
    name = getattr(error, "sqlite_errorname", "")
    if isinstance(error, UnicodeDecodeError) or name.startswith("SQLITE_CORRUPT"):
        return AnamnesisError(DATABASE_DAMAGED, where=where)
    if is_busy(error):
        return AnamnesisError(DATABASE_BUSY, where=where)
    if name.startswith("SQLITE_READONLY"):
        return AnamnesisError(DATABASE_FORBIDDEN, where=where)
    for code, rule in _UNUSABLE.items():
        if name.startswith(code):
            return AnamnesisError(DATABASE_UNUSABLE, where=where, rule=rule)
    return from_sqlite(error)


def from_opening_postgres(error: "psycopg.Error", where: str) -> AnamnesisError:
    """Translate an error of PostgreSQL when it is connected to or upgraded."""
    if error.sqlstate in ("42501", "25006"):  # no privilege; read-only transaction
        return AnamnesisError(DATABASE_FORBIDDEN, where=where)
    if (error.sqlstate or "").startswith(("28", "3D")):  # wrong user or password; no such database
        return AnamnesisError(DATABASE_UNREACHABLE, where=where)
    ours = from_postgres(error)
    if ours.problem is BUSY:
        return AnamnesisError(DATABASE_BUSY, where=where)
    if ours.problem is STORAGE_FULL:
        return AnamnesisError(DATABASE_UNUSABLE, where=where, rule=_UNUSABLE["SQLITE_FULL"])
    return AnamnesisError(DATABASE_UNREACHABLE, where=where) if ours.problem is STORAGE_UNAVAILABLE else ours
