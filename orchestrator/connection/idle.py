"""Pauses sessions in which nobody writes any more, and ends those of archived conversations."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from memory_blocks.edits import with_status
from memory_blocks.errors import BlockError
from memory_blocks.ledger.ledger import Ledger
from memory_blocks.models import Conversation, Label, SessionStatus
from memory_blocks.ports import StoredBlock
from orchestrator.errors import AnamnesisError
from orchestrator.ops.logs import get_logger
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.engine.database import Transaction
from orchestrator.turn.block_sync import BlockSync
from orchestrator.turn.outbox import ConversationWrite, Outbox
from orchestrator.turn.traces import of_block

log = get_logger()

EVERY_SECONDS: Final = 60.0
OVERLAP: Final = timedelta(minutes=5)
"""How far each check looks back beyond the one before, because clocks of several machines differ."""
NEVER: Final = datetime.min.replace(tzinfo=UTC)
_ACTORS: Final[Mapping[SessionStatus, str]] = {
    SessionStatus.PAUSED: "orchestrator:paused",
    SessionStatus.ENDED: "orchestrator:ended",
}
_FORMER_ACTORS: Final[Mapping[SessionStatus, str]] = {
    SessionStatus.PAUSED: "house:paused",
    SessionStatus.ENDED: "house:ended",
}
"""The names that older versions wrote. Such sessions are paused or ended already."""


class IdleSessions:
    """Finds such sessions in the background. Several processes may do so; each session is written once."""

    def __init__(self, outbox: Outbox, ledger: Ledger, sync: BlockSync, idle: timedelta) -> None:
        self._outbox, self._ledger, self._sync, self._idle = outbox, ledger, sync, idle
        self._settled: set[tuple[str, int]] = set()
        self._checked_until = NEVER

    async def run(self) -> None:
        """Runs until cancelled: checks once a minute."""
        while True:
            try:
                await self.check()
            except AnamnesisError as error:
                log.warning("idle_sessions_not_paused", error=error.problem.name)
            await asyncio.sleep(EVERY_SECONDS)

    async def check(self) -> None:
        """Pause and end the sessions that are due now."""
        now, due = await self._outbox.store.read(self._due)
        for conversation_id, revision in due:
            if (conversation_id, revision) in self._settled:
                continue
            try:
                settled = await self._outbox.commit(conversation_id, self._settle, step="settle", quiet=True)
            except BlockError as refused:
                log.warning("session_not_settled", conversation_id=conversation_id, error=refused.name)
                self._settled.add((conversation_id, revision))
                continue
            if settled is not None:
                await self._sync.copy(*settled)
        self._checked_until = now - OVERLAP

    def _due(self, tx: Transaction) -> tuple[datetime, list[tuple[str, int]]]:
        """The sessions that became due since the last check; the first time, all that are due."""
        after, late = self._checked_until, tx.now - self._idle
        before = max(after, NEVER + self._idle) - self._idle
        idle = tx.blocks.sessions_due("active", before, late, not_by=_written_by(SessionStatus.PAUSED))
        archived = tx.blocks.sessions_due("archived", after, tx.now, not_by=_written_by(SessionStatus.ENDED))
        return tx.now, idle + archived

    def _settle(self, write: ConversationWrite) -> tuple[Conversation, Mapping[Label, StoredBlock]] | None:
        """Set the session's status and store the traces; None if there is nothing to do."""
        tx, found = write.tx, write.conversation
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
            write.say(of_block(receipt, tx.ids.new("trace_"), found.id))
        if written.receipts:
            return conversation, written.stored
        self._settled.add((found.id, reading.revisions[Label.ACTIVE_SESSION]))
        return None


def _written_by(status: SessionStatus) -> tuple[str, str]:
    """The actors that set this status: the one of this version and the one of older versions."""
    return _ACTORS[status], _FORMER_ACTORS[status]
