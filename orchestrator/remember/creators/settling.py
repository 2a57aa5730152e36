"""Lets the ledgers follow every change of a memory and of the messages it rests on, right after the change.

A transaction that deletes, restores, erases or edits a memory or replaces a message notes it in the table
`memory_work`. After its commit, the ledger follows (`Store.settle`). If the process dies in between, the note
is still there, and the next reader, run or check of the background lets the ledger follow.
"""

from collections.abc import Collection
from typing import Final

from memory_blocks.ports import Clock
from orchestrator.errors import AnamnesisError
from orchestrator.ops import faults
from orchestrator.ops.clock import as_text
from orchestrator.ops.logs import get_logger
from orchestrator.remember.creators import projection
from orchestrator.remember.creators.extractive import LOCAL, roll
from orchestrator.remember.ledger.lines import Discussion, Kind, alive, is_current, next_summary
from orchestrator.remember.ledger.port import MemoryLedger
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.rows import MemoryWork

log = get_logger()

KINDS: Final[tuple[Kind, ...]] = ("file", "vector")


class Settling:
    """Changes ledgers. Its methods block: call them from a thread."""

    def __init__(self, store: Store, ledger: MemoryLedger, clock: Clock, *, characters: int) -> None:
        """A rolling summary has at most so many `characters`."""
        self._store, self._ledger, self._clock, self._characters = store, ledger, clock, characters

    def after_commit(self, conversation_ids: Collection[str]) -> None:
        """Settle conversations. A failure is logged: the change is stored, and is tried again later."""
        for id in sorted(conversation_ids):
            try:
                self.settle_if_changed(id)
            except AnamnesisError as error:
                log.warning("memories_not_settled", conversation_id=id, error=error.problem.name)

    def settle_all(self) -> None:
        """Settle all conversations whose ledgers do not follow all changes yet."""
        self.after_commit([each.conversation_id for each in self._store.read_now(_unsettled)])

    def settle_if_changed(self, conversation_id: str) -> None:
        """Let the ledgers of a conversation follow, if there are changes that they do not have yet."""
        work = self._store.read_now(lambda tx: tx.memory_work.get(conversation_id))
        if work is not None and work.changed > work.settled:
            self.settle(Discussion(work.user_id, conversation_id))

    def settle(self, of: Discussion) -> None:
        """Let the ledgers of a conversation follow the present state of its messages and memories."""
        work = self._store.read_now(lambda tx: tx.memory_work.get(of.id))
        for kind in KINDS:
            self._follow(of, kind)
        self._roll(of)
        if work is not None and work.changed > work.settled:
            faults.point("before_settled")
            self._store.write_now(lambda tx: tx.memory_work.note_settled(of.id, work.changed))

    def _follow(self, of: Discussion, kind: Kind) -> None:
        lines = self._ledger.lines(of, kind)
        if not lines:
            return
        changed = self._store.read_now(lambda tx: projection.changes(tx, of, lines))
        if changed:
            self._store.write_now(lambda tx: projection.follow(tx, changed))
            self._ledger.change(of, kind, changed, as_text(self._clock.now()))

    def _roll(self, of: Discussion) -> None:
        """Make the rolling summary anew, without a model, if it was made before the last change."""
        lines, summaries = self._ledger.lines(of, "file"), self._ledger.summaries(of)
        while summaries and not is_current(summaries[-1], lines):
            living = alive(lines)
            text = roll((line.body.text for line in living if line.body), self._characters)
            held = living[-1] if living else next(each for each in lines if each.action == "memory")
            made = next_summary(summaries[-1], text, held, lines, LOCAL, self._clock.now())
            self._ledger.add_summary(of, made)  # False if a line came in between: look again
            lines, summaries = self._ledger.lines(of, "file"), self._ledger.summaries(of)


def _unsettled(tx: Transaction) -> list[MemoryWork]:
    return tx.memory_work.unsettled()
