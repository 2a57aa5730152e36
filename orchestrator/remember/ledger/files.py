"""The ledger as files: a folder per person, and in it up to three files per conversation.

`ID_memories.jsonl` has the memories of kind `file`, `ID_summary.jsonl` the rolling summary, and
`ID_vector_memory.db` the memories of kind `vector`. The two JSON files are only appended to; erasing a memory
is the one exception, because its words must be gone then: the file is replaced by one without them.
"""

import fcntl
import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from orchestrator.errors import LEDGER_UNREADABLE, AnamnesisError
from orchestrator.ops import faults
from orchestrator.remember.ledger import vector_db
from orchestrator.remember.ledger.lines import (
    Discussion,
    Kind,
    Line,
    NewLine,
    Point,
    RollingSummary,
    chained,
    line_json,
    line_of,
    point_of,
    sha256,
    summary_json,
    without_text,
    without_words,
)
from orchestrator.remember.ledger.marks import MemoryMark, erased_by, marks

T = TypeVar("T")

_PLAIN: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def safe_name(id: str) -> str:
    """An id as part of a file name. An id that is not plain lower case is replaced by its digest.

    Some file systems do not tell upper from lower case; then two people could share a folder.
    """
    return id if _PLAIN.fullmatch(id) else f"~{sha256(id)}"


class FileLedger:
    """The ledgers in a folder. Several processes on one machine may use it."""

    def __init__(self, folder: Path, weights: Mapping[str, float] = vector_db.WEIGHTS) -> None:
        self._folder, self._weights = folder, weights

    def paths(self, of: Discussion) -> tuple[Path, Path, Path]:
        """The files of a conversation: memories, summary and vector memories. They may not exist."""
        start = self._folder / safe_name(of.user_id) / safe_name(of.id)
        memories, summary, vector = (
            start.with_name(start.name + ending)
            for ending in ("_memories.jsonl", "_summary.jsonl", "_vector_memory.db")
        )
        return memories, summary, vector

    def lines(self, of: Discussion, kind: Kind) -> list[Line]:
        """All lines in their order; none if there is no ledger."""
        memories, _, vector = self.paths(of)
        with _our_errors():
            if kind == "vector":
                return vector_db.read_lines(vector)
            return _read(memories, line_of)

    def point(self, of: Discussion, kind: Kind) -> Point | None:
        """The last message that was processed."""
        if kind == "file":
            return point_of(self.lines(of, kind))
        with _our_errors():
            return vector_db.read_point(self.paths(of)[2], of.id)

    def summaries(self, of: Discussion) -> list[RollingSummary]:
        """All versions of the rolling summary. The last one is current."""
        with _our_errors():
            return _read(self.paths(of)[1], _summary)

    def search(self, of: Discussion, keywords: str, limit: int) -> list[Line]:
        """The memories of kind `vector` that have any of the keywords, best first."""
        with _our_errors():
            return vector_db.search(self.paths(of)[2], keywords, limit, self._weights)

    def append(self, of: Discussion, kind: Kind, after: Point | None, new: Sequence[NewLine]) -> bool:
        """Append the lines of one chunk. Returns False, and appends nothing, if `after` is not the point."""
        memories, _, vector = self.paths(of)
        with self._locked(of), _our_errors():
            if kind == "vector":
                return vector_db.append(vector, of.id, after, new)
            known = _read(memories, line_of)
            if point_of(known) != after:
                return False
            # One line is written, so that after a crash the chunk is there as a whole or not at all.
            (line,) = chained(known[-1] if known else None, new)
            _append(memories, [line_json(line)])
            return True

    def change(self, of: Discussion, kind: Kind, changes: Sequence[MemoryMark], at: str) -> None:
        """Append that memories were edited, deleted, restored or erased. Erasing also removes words."""
        memories, summary, vector = self.paths(of)
        with self._locked(of), _our_errors():
            if kind == "vector":
                vector_db.change(vector, changes, at)
                return
            known = _read(memories, line_of)
            new = marks(known, changes, at)
            gone = erased_by(new)
            if not gone:
                _append(memories, [line_json(line) for line in new])
                return
            # The summaries first: if this process dies in between, the memory is still to be erased.
            _replace(summary, [summary_json(without_text(each)) for each in _read(summary, _summary)])
            faults.point("before_erasure")
            kept = [without_words(line) if line.memory_id in gone else line for line in (*known, *new)]
            _replace(memories, [line_json(line) for line in kept])

    def add_summary(self, of: Discussion, summary: RollingSummary) -> bool:
        """Append a version of the rolling summary, unless another one or another line came before it."""
        memories, path, _ = self.paths(of)
        with self._locked(of), _our_errors():
            if summary.number != len(_read(path, _summary)) + 1 or summary.seen != len(
                _whole_lines(memories)
            ):
                return False
            _append(path, [summary_json(summary)])
            return True

    @contextmanager
    def _locked(self, of: Discussion) -> Iterator[None]:
        """Hold the lock of the person's folder, which is created if needed, readable by its owner only."""
        folder = self.paths(of)[0].parent
        with _our_errors():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(folder / ".lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _summary(value: dict[str, Any]) -> RollingSummary:
    return RollingSummary(**{"salt": "", "text_digest": None, "seen": 1, **value})


def _whole_lines(path: Path) -> list[bytes]:
    """The lines of a file. A last line without its line break was cut by a crash and does not count."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    return data.split(b"\n")[:-1]


def _read(path: Path, make: Callable[[dict[str, Any]], T]) -> list[T]:
    return [make(json.loads(line)) for line in _whole_lines(path)]


def _append(path: Path, texts: Sequence[str]) -> None:
    """Append lines in one write, and wait until they are on the disk."""
    if not texts:
        return
    data = b"".join(text.encode("utf-8", "surrogatepass") + b"\n" for text in texts)
    file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        whole = sum(len(line) + 1 for line in _whole_lines(path))
        os.ftruncate(file, whole)  # removes what a crash left of a line
        os.lseek(file, whole, os.SEEK_SET)
        faults.point("before_line")
        half = len(data) // 2
        os.write(file, data[:half])
        faults.point("half_line")
        os.write(file, data[half:])
        os.fsync(file)
    finally:
        os.close(file)
    faults.point("after_line")


def _replace(path: Path, texts: Sequence[str]) -> None:
    """Replace a file by one with these lines, in one step."""
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    if not texts:
        return
    _append(new, texts)
    os.replace(new, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # else a power cut could bring the old file back
    finally:
        os.close(folder)
    faults.point("after_erasure")


@contextmanager
def _our_errors() -> Iterator[None]:
    """Raise an AnamnesisError for a file that cannot be read or written. It does not quote the file."""
    try:
        yield
    except (OSError, sqlite3.Error, ValueError, LookupError, TypeError) as error:
        rule = type(error).__name__
    else:
        return
    raise AnamnesisError(LEDGER_UNREADABLE, rule=rule)
