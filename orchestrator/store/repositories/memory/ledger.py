"""The ledger of long-term memories: every change of one, in a chain of digests per person."""

import hashlib
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import bindparam, update
from sqlalchemy.dialects import postgresql, sqlite

from orchestrator.ops.clock import as_text
from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.engine.types import json_text
from orchestrator.store.engine.unit import Unit
from orchestrator.store.rows import LedgerEntry, MemoryHead

CHAIN_RULES: Final = (
    "an entry of the ledger is missing before this one",
    "an entry's body is not the one it was written with",
    "an entry does not follow the one before",
    "an entry's digest is not that of its values",
)

_heads = MemoryHead.table
_START_ON: Final = {
    "sqlite": sqlite.insert(_heads).on_conflict_do_nothing(),
    "postgresql": postgresql.insert(_heads).on_conflict_do_nothing(),
}
_START: Final = {
    name: Statement(
        start.values(
            user_id=bindparam("user_id"), version=0, entries=0, digest=None, updated_at=bindparam("now")
        ),
        lambda: None,
    )
    for name, start in _START_ON.items()
}
_BUMP: Final = Statement(
    update(_heads)
    .where(_heads.c.user_id == bindparam("user_id"))
    .values(version=_heads.c.version + 1, updated_at=bindparam("now")),
    lambda: None,
)
_REMOVE_BODIES: Final = Statement(
    update(LedgerEntry.table)
    .where(
        LedgerEntry.table.c.user_id == bindparam("user_id"),
        LedgerEntry.table.c.memory_id == bindparam("memory_id"),
    )
    .values(body=None, salt=None),
    lambda: None,
)

_LATEST: Final = Statement(
    all_of(LedgerEntry)
    .where(LedgerEntry.table.c.user_id == bindparam("user_id"))
    .order_by(LedgerEntry.table.c.number.desc())
    .limit(bindparam("limit")),
    LedgerEntry,
)


@dataclass(frozen=True, slots=True)
class LedgerChange:
    """A change of one memory. `columns` has the new values; it is empty if the action says everything."""

    memory_id: str
    action: str
    columns: dict[str, Any]


class MemoryLedger:
    """The tables `memory_heads` and `memory_ledger`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def head(self, user_id: str) -> MemoryHead | None:
        """How often this person's memories have changed; None if never."""
        return self._unit.find_one(MemoryHead, user_id=user_id)

    def next_version(self, user_id: str) -> int:
        """Lock the person's head until the transaction ends, and return a new version."""
        return self._locked(user_id).version

    def append(self, user_id: str, changes: Sequence[LedgerChange], *, actor: str) -> int:
        """Add one entry per change, and return the new version of the person's memories."""
        head = self._locked(user_id)
        entries = []
        number, before = head.entries, head.digest
        for change in changes:
            number += 1
            entry = _entry(user_id, number, change, before, actor, self._unit.now)
            entries.append(entry)
            before = entry.digest
        self._unit.insert(*entries)
        self._unit.change(MemoryHead, {"user_id": user_id}, entries=number, digest=before)
        return head.version

    def of_person(self, user_id: str) -> list[LedgerEntry]:
        """All entries of a person, in order."""
        return self._unit.find(LedgerEntry, "number", user_id=user_id)

    def of_memory(self, user_id: str, memory_id: str) -> list[LedgerEntry]:
        """The entries of one memory, in order."""
        return self._unit.find(LedgerEntry, "number", user_id=user_id, memory_id=memory_id)

    def latest(self, user_id: str, *, limit: int) -> list[LedgerEntry]:
        """The last entries of a person, the newest first."""
        return self._unit.all(_LATEST, user_id=user_id, limit=limit)

    def remove_bodies(self, user_id: str, memory_id: str) -> None:
        """Remove the content from all entries of a memory. The chain of digests still verifies."""
        self._unit.run(_REMOVE_BODIES, user_id=user_id, memory_id=memory_id)

    def _locked(self, user_id: str) -> MemoryHead:
        self._unit.run(_START[self._unit.dialect.name], user_id=user_id)
        self._unit.run(_BUMP, user_id=user_id)
        head = self._unit.find_one(MemoryHead, user_id=user_id)
        assert head is not None  # noqa: S101  the statement above made it
        return head


def departures(entries: Iterable[LedgerEntry]) -> Iterator[tuple[int, str]]:
    """The entries of one person that break the chain, each with the broken rule. Pure."""
    before: LedgerEntry | None = None
    for entry in entries:
        expected = 1 if before is None else before.number + 1
        if entry.number != expected:
            yield entry.number, CHAIN_RULES[0]
        elif entry.previous_digest != (before.digest if before else None):
            yield entry.number, CHAIN_RULES[2]
        if entry.body is not None and entry.body_digest != _digest(entry.salt or "", entry.body):
            yield entry.number, CHAIN_RULES[1]
        if entry.digest != _chained(entry):
            yield entry.number, CHAIN_RULES[3]
        before = entry


def _entry(
    user_id: str, number: int, change: LedgerChange, before: str | None, actor: str, at: datetime
) -> LedgerEntry:
    body, salt = json_text(change.columns), secrets.token_hex(16)
    entry = LedgerEntry(
        user_id=user_id,
        number=number,
        memory_id=change.memory_id,
        action=change.action,
        body=body,
        salt=salt,
        body_digest=_digest(salt, body),
        previous_digest=before,
        digest="",
        actor=actor,
        created_at=at,
    )
    return replace(entry, digest=_chained(entry))


def _chained(entry: LedgerEntry) -> str:
    return _digest(
        entry.previous_digest or "",
        entry.user_id,
        str(entry.number),
        entry.memory_id,
        entry.action,
        entry.body_digest,
        entry.actor,
        as_text(entry.created_at),
    )


def _digest(*parts: str) -> str:
    """The digest of some texts. Their lengths are part of it, so that no two lists have the same."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode()
        whole.update(len(data).to_bytes(8, "big") + data)
    return whole.hexdigest()
