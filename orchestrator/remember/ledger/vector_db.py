"""The database layer of vector memories: SQLite with a weighted full-text index (FTS5)."""

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from orchestrator.ops import faults
from orchestrator.remember.ledger.lines import (
    CHUNK_ACTIONS,
    Line,
    NewLine,
    Point,
    alive,
    chained,
    line_json,
    line_of,
    without_words,
)
from orchestrator.remember.ledger.marks import MemoryMark, erased_by, marks

if TYPE_CHECKING:
    from collections.abc import Iterator

COLUMNS: Final = ("title", "summary", "entities", "key_phrases", "memory_text")
"""The columns of the full-text index."""

WEIGHTS: Final[Mapping[str, float]] = {
    "title": 3.0,
    "summary": 2.0,
    "entities": 2.0,
    "key_phrases": 2.0,
    "memory_text": 0.5,
}
MOST_KEYWORDS: Final = 60
_MOST_WORDS: Final = 32  # of one keyword
_BUSY_SECONDS: Final = 10.0

_WORD: Final = re.compile(r"[^\W_]+")
_SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS memories (
      id INTEGER PRIMARY KEY,
      action TEXT NOT NULL,
      memory_id TEXT NOT NULL,
      memory_text TEXT,
      metadata_json TEXT NOT NULL,
      date_added TEXT NOT NULL
    ) STRICT;
    CREATE VIRTUAL TABLE IF NOT EXISTS memories_fts USING fts5(
      title, summary, entities, key_phrases, memory_text, tokenize = 'porter unicode61'
    );
    CREATE TABLE IF NOT EXISTS vector_memory_tracker (
      discussion_id TEXT PRIMARY KEY,
      last_processed_hash TEXT NOT NULL,
      last_message_id TEXT NOT NULL,
      last_message_number INTEGER NOT NULL,
      updated_at TEXT NOT NULL
    ) STRICT;
"""


def match_query(keywords: str) -> str:
    """The FTS5 query for keywords that are separated by semicolons: each is a phrase, joined by OR.

    Only letters and digits of a keyword are kept, and each phrase is quoted, so that no input is syntax.
    """
    phrases = [" ".join(_WORD.findall(each)[:_MOST_WORDS]) for each in keywords.split(";")]
    return " OR ".join(f'"{phrase}"' for phrase in [each for each in phrases if each][:MOST_KEYWORDS])


def read_lines(path: Path) -> list[Line]:
    """All lines of a database; none if the file does not exist."""
    with _reading(path) as connection:
        if connection is None:
            return []
        return _lines(connection)


def read_point(path: Path, discussion_id: str) -> Point | None:
    """The last processed message, as the tracker has it."""
    with _reading(path) as connection:
        return None if connection is None else _point(connection, discussion_id)


def append(path: Path, discussion_id: str, after: Point | None, new: Sequence[NewLine]) -> bool:
    """Append the lines of a chunk and move the tracker, in one transaction. Creates the file if needed."""
    with _writing(path) as connection:
        if _point(connection, discussion_id) != after:
            return False
        lines = chained(_last(connection), new)
        for line in lines:
            _insert(connection, line)
            _index(connection, line)
        faults.point("before_tracker")
        _move(connection, discussion_id, lines[-1])
        faults.point("before_line")
    faults.point("after_line")
    return True


def change(path: Path, changes: Sequence[MemoryMark], at: str) -> None:
    """Append edits, deletions, restorations and erasures, and index the memories with their present words."""
    with _writing(path) as connection:
        known = _lines(connection)
        new = marks(known, changes, at)
        for line in new:
            _insert(connection, line)
        gone, changed = erased_by(new), {line.memory_id for line in new}
        for line in (*known, *new):
            if line.memory_id in gone:
                connection.execute(
                    "UPDATE memories SET memory_text = NULL, metadata_json = ? WHERE id = ?",
                    (line_json(without_words(line)), line.number),
                )
            if line.memory_id in changed:
                connection.execute("DELETE FROM memories_fts WHERE rowid = ?", (line.number,))
        for line in alive(_lines(connection)):
            if line.memory_id in changed:
                _index(connection, line)
        if gone:
            connection.execute("INSERT INTO memories_fts (memories_fts) VALUES ('optimize')")
        faults.point("before_erasure")
    faults.point("after_erasure")


def search(path: Path, keywords: str, limit: int, weights: Mapping[str, float]) -> list[Line]:
    """The memories with any of the keywords, best first; none if the file does not exist."""
    with _reading(path) as connection:
        return [] if connection is None else _found(connection, keywords, limit, weights)


def search_lines(
    lines: Sequence[Line], keywords: str, limit: int, weights: Mapping[str, float]
) -> list[Line]:
    """The same for lines that are stored elsewhere: they are indexed in memory for this one search."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA)
        for line in lines:
            _insert(connection, line)
        for line in alive(lines):
            _index(connection, line)
        return _found(connection, keywords, limit, weights)


def _found(
    connection: sqlite3.Connection, keywords: str, limit: int, weights: Mapping[str, float]
) -> list[Line]:
    query = match_query(keywords)
    if not query:
        return []
    values = ", ".join(str(float(weights[name])) for name in COLUMNS)
    statement = f"""
        SELECT rowid FROM memories_fts
        WHERE memories_fts MATCH ? ORDER BY bm25(memories_fts, {values}), rowid LIMIT ?"""  # noqa: S608
    rows = connection.execute(statement, (query, limit)).fetchall()
    living = {line.number: line for line in alive(_lines(connection))}
    return [living[number] for (number,) in rows if number in living]


def _lines(connection: sqlite3.Connection) -> list[Line]:
    rows = connection.execute("SELECT metadata_json FROM memories ORDER BY id").fetchall()
    return [line_of(json.loads(text)) for (text,) in rows]


def _insert(connection: sqlite3.Connection, line: Line) -> None:
    connection.execute(
        "INSERT INTO memories VALUES (?, ?, ?, ?, ?, ?)",
        (
            line.number,
            line.action,
            line.memory_id,
            line.body.text if line.body else None,
            line_json(line),
            line.at,
        ),
    )


def _index(connection: sqlite3.Connection, line: Line) -> None:
    body = line.body
    if body is None:
        return
    connection.execute(
        "INSERT INTO memories_fts (rowid, title, summary, entities, key_phrases, memory_text)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (
            line.number,
            body.title,
            body.summary,
            "; ".join(body.entities),
            "; ".join(body.key_phrases),
            body.text,
        ),
    )


def _last(connection: sqlite3.Connection) -> Line | None:
    row = connection.execute("SELECT metadata_json FROM memories ORDER BY id DESC LIMIT 1").fetchone()
    return None if row is None else line_of(json.loads(row[0]))


def _point(connection: sqlite3.Connection, discussion_id: str) -> Point | None:
    row = connection.execute(
        "SELECT last_message_id, last_message_number, last_processed_hash FROM vector_memory_tracker"
        " WHERE discussion_id = ?",
        (discussion_id,),
    ).fetchone()
    return None if row is None else Point(*row)


def _move(connection: sqlite3.Connection, discussion_id: str, line: Line) -> None:
    assert line.action in CHUNK_ACTIONS  # noqa: S101  only chunks move the tracker
    point = line.point
    connection.execute(
        "INSERT OR REPLACE INTO vector_memory_tracker VALUES (?, ?, ?, ?, ?)",
        (discussion_id, point.hash, point.message_id, point.number, line.at),
    )


@contextmanager
def _reading(path: Path) -> "Iterator[sqlite3.Connection | None]":
    """A connection that does not change the database; None if nothing was ever committed to the file.

    The file is opened for writing, because SQLite may have to undo what a process left that has crashed.
    """
    if not path.exists():
        yield None
        return
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=_BUSY_SECONDS)) as connection:
        connection.execute("PRAGMA query_only = ON")
        tables = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'memories'").fetchone()
        yield connection if tables[0] else None


@contextmanager
def _writing(path: Path) -> "Iterator[sqlite3.Connection]":
    """A connection in a transaction, which is committed at the end of the block unless it raises."""
    path.touch(mode=0o600, exist_ok=True)
    with closing(sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in _statements(_SCHEMA):
                connection.execute(statement)
            yield connection
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


def _statements(script: str) -> Iterable[str]:
    return filter(str.strip, script.split(";\n"))
