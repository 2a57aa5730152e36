"""Sessions in which nobody speaks any more are paused, and those of archived conversations end."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from memory_blocks.edits import with_status
from memory_blocks.errors import BlockError
from memory_blocks.ledger import Ledger
from memory_blocks.models import Conversation, Label, SessionStatus
from memory_blocks.ports import StoredBlock
from orchestrator.errors import AnamnesisError
from orchestrator.logs import get_logger
from orchestrator.outbox import Outbox, Page
from orchestrator.shown import Shown
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.database import Transaction
from orchestrator.traces import of_block

log = get_logger()

EVERY_SECONDS: Final = 60.0
AGAIN: Final = timedelta(minutes=5)
"""So far back each look reaches into the one before: clocks of several machines differ."""
NEVER: Final = datetime.min.replace(tzinfo=UTC)
PAUSED_BY: Final = "house:paused"
ENDED_BY: Final = "house:ended"
_ACTORS: Final[Mapping[SessionStatus, str]] = {
    SessionStatus.PAUSED: PAUSED_BY,
    SessionStatus.ENDED: ENDED_BY,
}


class Idle:
    """Looks for such sessions in the background. Another process may do so, too: each is written once."""

    def __init__(self, outbox: Outbox, ledger: Ledger, shown: Shown, idle: timedelta) -> None:
        self._outbox, self._ledger, self._shown, self._idle = outbox, ledger, shown, idle
        self._as_they_should: set[tuple[str, int]] = set()
        self._looked_until = NEVER

    async def keep_looking(self) -> None:
        """For ever, once a minute."""
        while True:
            try:
                await self.look()
            except AnamnesisError as error:
                log.warning("idle_sessions_not_paused", error=error.problem.name)
            await asyncio.sleep(EVERY_SECONDS)

    async def look(self) -> None:
        """Pause and end what is due now."""
        now, due = await self._outbox.store.read(self._due)
        for conversation_id, revision in due:
            if (conversation_id, revision) in self._as_they_should:
                continue
            try:
                settled = await self._outbox.commit(conversation_id, self._settle, step="settle", quiet=True)
            except BlockError as refused:
                log.warning("session_not_settled", conversation_id=conversation_id, error=refused.name)
                self._as_they_should.add((conversation_id, revision))
                continue
            if settled is not None:
                await self._shown.show(*settled)
        self._looked_until = now - AGAIN

    def _due(self, tx: Transaction) -> tuple[datetime, list[tuple[str, int]]]:
        """What nobody looked at yet: the first time everything, and then what has come since."""
        after, late = self._looked_until, tx.now - self._idle
        before = max(after, NEVER + self._idle) - self._idle
        idle = tx.blocks.sessions_due("active", before, late, actor=PAUSED_BY)
        return tx.now, idle + tx.blocks.sessions_due("archived", after, tx.now, actor=ENDED_BY)

    def _settle(self, page: Page) -> tuple[Conversation, Mapping[Label, StoredBlock]] | None:
        """Set the session's status, with traces that have no message; None if it has it, or is in use."""
        tx, found = page.tx, page.conversation
        conversation = Conversation(found.id, found.user_id, found.created_at)
        archived = found.status == "archived"
        if not archived and (found.updated_at > tx.now - self._idle or tx.turns.next_open(found.id)):
            return None
        status = SessionStatus.ENDED if archived else SessionStatus.PAUSED
        actor, blocks = _ACTORS[status], SqlBlockStore(tx.blocks)
        reading = self._ledger.read(blocks, conversation, actor=actor)
        after = with_status(reading.blocks, status, self._ledger.limits)
        written = self._ledger.write(blocks, conversation, reading, after, actor=actor)
        for receipt in (*reading.receipts, *written.receipts):
            page.say(of_block(receipt, tx.ids.new("trace_"), found.id))
        if written.receipts:
            return conversation, written.stored
        self._as_they_should.add((found.id, reading.revisions[Label.ACTIVE_SESSION]))
        return None
