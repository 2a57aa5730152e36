"""What a database's refusal means in our own table of errors. Nothing of what it quotes is passed on."""

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
from orchestrator.store.tables import metadata

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
"""What an operator is told at the start, where nobody has sent a message yet."""


def _keys() -> dict[frozenset[str], str]:
    """The name of each uniqueness rule by the columns SQLite tells when it is broken."""
    rules = {}
    for table in metadata.tables.values():
        unique = (
            rule for rule in table.constraints if isinstance(rule, UniqueConstraint | PrimaryKeyConstraint)
        )
        for rule in (*unique, *(index for index in table.indexes if index.unique)):
            rules[frozenset(f"{table.name}.{column.name}" for column in rule.columns)] = str(rule.name)
    return rules


_KEYS: Final = _keys()


def of_value(error: UnicodeError | OverflowError) -> AnamnesisError:
    """A text that is not UTF-8, or a number no column can hold; a driver refuses both before the database."""
    if isinstance(error, UnicodeError):
        return AnamnesisError(BAD_UTF8)
    return AnamnesisError(CONSTRAINT, rule="range")


def _mistake(code: str, told: str) -> AnamnesisError:
    """A statement of ours is wrong. What is told then names tables, columns and types, never a value."""
    mistake = AnamnesisError(INTERNAL, code=code)
    mistake.add_note(told)
    return mistake


def is_busy(error: Exception) -> bool:
    """Whether a database says that somebody else is in the way, on either of the two."""
    name, state = getattr(error, "sqlite_errorname", ""), getattr(error, "sqlstate", None)
    return name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or state in ("40001", "40P01", "55P03", "57014")


def of_sqlite(error: sqlite3.Error | UnicodeDecodeError) -> AnamnesisError:
    """What SQLite says, by the name of its error code."""
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    if is_busy(error):
        return AnamnesisError(BUSY)
    if name == "SQLITE_FULL":
        return AnamnesisError(STORAGE_FULL)
    if name.startswith(_UNAVAILABLE):
        return AnamnesisError(STORAGE_UNAVAILABLE)
    if not hasattr(
        error, "sqlite_errorname"
    ):  # it is of Python's library, which quotes a text it cannot read
        return AnamnesisError(INTERNAL, code=name)
    if not name.startswith("SQLITE_CONSTRAINT"):
        return _mistake(name, str(error))
    what, _, told = str(error).partition(" constraint failed: ")
    if told.endswith("_no_nul"):
        return AnamnesisError(NUL_IN_TEXT)
    match what:
        case "CHECK":
            rule = told
        case "UNIQUE":
            rule = _KEYS[frozenset(told.split(", "))]
        case "NOT NULL":
            rule = f"{told} is required"
        case "FOREIGN KEY constraint failed":
            rule = "foreign key"
        case _:
            rule = f"type of {what.rpartition(' ')[2]}"
    return AnamnesisError(CONSTRAINT, rule=rule)


def of_postgres(error: "psycopg.Error") -> AnamnesisError:
    """What Postgres says, by its SQLSTATE; without one, the connection is gone."""
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
        told = error.diag
        rule = told.constraint_name or f"{told.table_name}.{told.column_name} is required"
        return AnamnesisError(CONSTRAINT, rule=rule)
    if state.startswith("22"):
        return AnamnesisError(CONSTRAINT, rule="range" if state == "22003" else "type")
    if state.startswith("42"):
        return _mistake(state, str(error.diag.message_primary))
    return AnamnesisError(INTERNAL, code=state)


# --- at the start, to an operator --------------------------------------------------------------------------


def of_file(error: OSError, where: str) -> AnamnesisError:
    """A database's file that cannot be looked at or made."""
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return AnamnesisError(DATABASE_FORBIDDEN, where=where)
    return AnamnesisError(DATABASE_UNUSABLE, where=where, rule=os.strerror(error.errno or 0))


def of_opening_sqlite(error: sqlite3.Error | UnicodeDecodeError, where: str) -> AnamnesisError:
    """What SQLite says of a file that is being opened or brought up."""
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
    return of_sqlite(error)


def of_opening_postgres(error: "psycopg.Error", where: str) -> AnamnesisError:
    """What Postgres says when it is connected to or brought up."""
    if error.sqlstate in ("42501", "25006"):  # no privilege; a transaction that may only read
        return AnamnesisError(DATABASE_FORBIDDEN, where=where)
    if (error.sqlstate or "").startswith(("28", "3D")):  # wrong user or password; no such database
        return AnamnesisError(DATABASE_UNREACHABLE, where=where)
    meant = of_postgres(error)
    if meant.problem is BUSY:
        return AnamnesisError(DATABASE_BUSY, where=where)
    if meant.problem is STORAGE_FULL:
        return AnamnesisError(DATABASE_UNUSABLE, where=where, rule=_UNUSABLE["SQLITE_FULL"])
    return (
        AnamnesisError(DATABASE_UNREACHABLE, where=where) if meant.problem is STORAGE_UNAVAILABLE else meant
    )
