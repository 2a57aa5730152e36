"""The ledger in tables of the database, so that any process can serve any conversation."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final, cast

from sqlalchemy import bindparam

from orchestrator.ops import faults
from orchestrator.ops.clock import as_text
from orchestrator.remember.ledger import vector_db
from orchestrator.remember.ledger.lines import (
    Action,
    Discussion,
    Kind,
    Line,
    MemoryBody,
    NewLine,
    Point,
    RollingSummary,
    chained,
    point_of,
)
from orchestrator.remember.ledger.marks import MemoryMark, erased_by, marks
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.rows import Conversation, MemoryLine, MemorySummary

_LOCK: Final = Statement(
    all_of(Conversation)
    .where(Conversation.table.c.id == bindparam("id"), Conversation.table.c.user_id == bindparam("user_id"))
    .with_for_update(key_share=True),
    Conversation,
)
"""Unlike `Conversations.lock`, this also finds a deleted conversation: its memories can still be erased."""


class TableLedger:
    """The ledgers in the tables `memory_lines` and `memory_summaries`."""

    def __init__(self, store: Store, weights: Mapping[str, float] = vector_db.WEIGHTS) -> None:
        self._store, self._weights = store, weights

    def lines(self, of: Discussion, kind: Kind) -> list[Line]:
        """All lines in their order; none if there is no ledger."""
        return self._store.read_now(lambda tx: _lines(tx, of, kind))

    def point(self, of: Discussion, kind: Kind) -> Point | None:
        """The last message that was processed."""
        return point_of(self.lines(of, kind))

    def summaries(self, of: Discussion) -> list[RollingSummary]:
        """All versions of the rolling summary. The last one is current."""
        return self._store.read_now(lambda tx: _summaries(tx, of))

    def search(self, of: Discussion, keywords: str, limit: int) -> list[Line]:
        """The memories of kind `vector` that have any of the keywords, best first."""
        return vector_db.search_lines(self.lines(of, "vector"), keywords, limit, self._weights)

    def append(self, of: Discussion, kind: Kind, after: Point | None, new: Sequence[NewLine]) -> bool:
        """Append the lines of one chunk. Returns False, and appends nothing, if `after` is not the point."""

        def work(tx: Transaction) -> bool:
            if not _lock(tx, of):
                return False
            known = _lines(tx, of, kind)
            if point_of(known) != after:
                return False
            _insert(tx, of, kind, chained(known[-1] if known else None, new))
            faults.point("before_line")
            return True

        appended = self._store.write_now(work)
        faults.point("after_line")
        return appended

    def change(self, of: Discussion, kind: Kind, changes: Sequence[MemoryMark], at: str) -> None:
        """Append that memories were edited, deleted, restored or erased. Erasing also removes words."""
        person, conversation = of.user_id, of.id

        def work(tx: Transaction) -> None:
            if not _lock(tx, of):
                return
            new = marks(_lines(tx, of, kind), changes, at)
            _insert(tx, of, kind, new)
            gone = erased_by(new)
            for memory_id in gone:
                which = {
                    "user_id": person,
                    "conversation_id": conversation,
                    "kind": kind,
                    "memory_id": memory_id,
                }
                tx.unit.change(MemoryLine, which, body=None, salt=None)
            if gone and kind == "file":
                here = {"user_id": person, "conversation_id": conversation}
                tx.unit.change(MemorySummary, here, text=None, salt=None)
            faults.point("before_erasure")

        self._store.write_now(work)
        faults.point("after_erasure")

    def add_summary(self, of: Discussion, summary: RollingSummary) -> bool:
        """Append a version of the rolling summary, unless another one or another line came before it."""

        def work(tx: Transaction) -> bool:
            if not _lock(tx, of) or summary.number != len(_summaries(tx, of)) + 1:
                return False
            if summary.seen != len(_lines(tx, of, "file")):
                return False
            values = {**asdict(summary), "created_at": datetime.fromisoformat(summary.at)}
            del values["at"]
            tx.unit.insert(MemorySummary(user_id=of.user_id, conversation_id=of.id, **values))
            return True

        return self._store.write_now(work)


def _lock(tx: Transaction, of: Discussion) -> bool:
    """Lock the conversation until the transaction ends; False if it is not this person's."""
    return tx.unit.first(_LOCK, id=of.id, user_id=of.user_id) is not None


def _lines(tx: Transaction, of: Discussion, kind: Kind) -> list[Line]:
    rows = tx.unit.find(MemoryLine, "number", user_id=of.user_id, conversation_id=of.id, kind=kind)
    return [_line(row) for row in rows]


def _summaries(tx: Transaction, of: Discussion) -> list[RollingSummary]:
    rows = tx.unit.find(MemorySummary, "number", user_id=of.user_id, conversation_id=of.id)
    return [
        RollingSummary(
            number=row.number,
            text=row.text,
            salt=row.salt,
            text_digest=row.text_digest,
            hash=row.hash,
            seen=row.seen,
            maker=row.maker,
            at=as_text(row.created_at),
            previous=row.previous,
            digest=row.digest,
        )
        for row in rows
    ]


def _line(row: MemoryLine) -> Line:
    body: dict[str, Any] | None = cast("dict[str, Any] | None", row.body)
    return Line(
        action=cast(Action, row.action),
        memory_id=row.memory_id,
        chunk=row.chunk,
        point=Point(row.last_message_id, row.last_number, row.hash),
        messages=row.messages,
        rests_on=row.rests_on,
        maker=row.maker,
        dropped=row.dropped,
        at=as_text(row.created_at),
        body=None
        if body is None
        else MemoryBody(
            body["text"],
            body["title"],
            body["summary"],
            tuple(body["entities"]),
            tuple(body["key_phrases"]),
        ),
        number=row.number,
        salt=row.salt,
        body_digest=row.body_digest,
        previous=row.previous,
        digest=row.digest,
    )


def _insert(tx: Transaction, of: Discussion, kind: Kind, lines: Sequence[Line]) -> None:
    tx.unit.insert(
        *(
            MemoryLine(
                user_id=of.user_id,
                conversation_id=of.id,
                kind=kind,
                number=line.number,
                action=line.action,
                memory_id=line.memory_id,
                chunk=line.chunk,
                last_message_id=line.point.message_id,
                last_number=line.point.number,
                hash=line.point.hash,
                messages=line.messages,
                rests_on=line.rests_on,
                maker=line.maker,
                dropped=line.dropped,
                body=asdict(line.body) if line.body else None,
                salt=line.salt,
                body_digest=line.body_digest,
                previous=line.previous,
                digest=line.digest,
                created_at=datetime.fromisoformat(line.at),
            )
            for line in lines
        )
    )
