"""Makes memories in the background: after some messages, after a rotation, and when a session pauses."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import bindparam

from orchestrator.errors import AnamnesisError
from orchestrator.ops.logs import get_logger
from orchestrator.remember.creators.history import HistoryMessage, history_after
from orchestrator.remember.creators.quality_memory import QualityMemory
from orchestrator.remember.ledger.lines import Discussion, Point
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.rows import ArchivedTurn, Conversation

log = get_logger()

OVERLAP: Final = timedelta(minutes=5)
"""How far each check looks back beyond the one before, because clocks of several machines differ."""
NEVER: Final = datetime.min.replace(tzinfo=UTC)
FIRST_PAUSE: Final = timedelta(minutes=1)
LONGEST_PAUSE: Final = timedelta(hours=1)
"""How long a conversation waits after a failed run: longer each time, up to this."""
CLAIM_SECONDS: Final = 600.0
"""How long the other processes leave a conversation to one that makes its memories, and then dies."""

_table = Conversation.table
_ACTIVE_SINCE: Final = Statement(
    all_of(Conversation)
    .where(
        _table.c.updated_at > bindparam("since", type_=_table.c.updated_at.type),
        _table.c.deleted_at.is_(None),
    )
    .order_by(_table.c.updated_at, _table.c.id),
    Conversation,
)


@dataclass(frozen=True, slots=True)
class WaitingMessages:
    """The messages of a conversation that are in no memory yet.

    `rotated`: one of them has left the history block. `over`: the session has paused or ended.
    """

    messages: list[HistoryMessage]
    rotated: bool
    over: bool


class BackgroundMemories:
    """Runs the creator for conversations that are due. It starts where an earlier process ended."""

    def __init__(
        self, store: Store, creator: QualityMemory, *, idle: timedelta, seconds: float, holder: str
    ) -> None:
        """It checks every so many `seconds`. `holder` is the name under which it claims conversations."""
        self._store, self._creator, self._idle, self._seconds = store, creator, idle, seconds
        self._holder = holder
        self._since = NEVER
        self._complete: dict[str, Point | None] = {}
        self._open: dict[str, Conversation] = {}
        self._pauses: dict[str, tuple[datetime, timedelta]] = {}

    async def run(self) -> None:
        """Runs until cancelled: checks every few seconds."""
        while True:
            try:
                await self.check()
            except AnamnesisError as error:
                log.warning("memories_not_checked", error=error.problem.name)
            await asyncio.sleep(self._seconds)

    async def check(self) -> None:
        """Let the ledgers follow what an earlier process left, and make the memories that are due now."""
        await asyncio.to_thread(self._creator.settling.settle_all)
        now, active = await self._store.read(lambda tx: (tx.now, _active(tx, self._since)))
        self._since = now - OVERLAP
        self._open |= {each.id: each for each in active}
        self._complete = {id: point for id, point in self._complete.items() if id in self._open}
        for conversation in list(self._open.values()):
            not_before, pause = self._pauses.get(conversation.id, (NEVER, FIRST_PAUSE))
            if now < not_before:
                continue
            if await self._make(conversation, now):
                self._pauses.pop(conversation.id, None)
            else:
                self._pauses[conversation.id] = (now + pause, min(pause * 2, LONGEST_PAUSE))

    async def _make(self, conversation: Conversation, now: datetime) -> bool:
        """Run the creator for one conversation; False if that failed."""
        of = Discussion(conversation.user_id, conversation.id)
        try:
            point = await asyncio.to_thread(self._creator.ledger.point, of, self._creator.kind)
            found = await self._store.read(lambda tx: waiting(tx, of.id, point, self._idle))
            if found is None:  # the conversation was deleted
                del self._open[of.id]
                return True
            if self._is_complete(of, point) and not self._creator.ready(
                found.messages, whole=found.over, eager=found.rotated
            ):
                if not found.messages:
                    del self._open[of.id]
                return True
            if not await self._store.write(self._claim(of)):
                return True  # another process makes them now
            try:
                run = await self._creator.handle_discussion_id_flow(of, whole=found.over, eager=found.rotated)
                if not run.error:
                    point = await asyncio.to_thread(self._creator.ledger.point, of, self._creator.kind)
                    self._complete[of.id] = point
            finally:
                await self._store.write(lambda tx: tx.memory_work.release(of.id, self._holder))
        except AnamnesisError as error:
            log.warning("memories_not_made", conversation_id=of.id, error=error.problem.name)
            return False
        return not run.error

    def _is_complete(self, of: Discussion, point: Point | None) -> bool:
        """Whether this process has seen everything done up to the last processed message."""
        return of.id in self._complete and self._complete[of.id] == point

    def _claim(self, of: Discussion) -> Callable[[Transaction], bool]:
        return lambda tx: tx.memory_work.claim(of.id, self._holder, seconds=CLAIM_SECONDS)


def waiting(
    tx: Transaction, conversation_id: str, point: Point | None, idle: timedelta
) -> WaitingMessages | None:
    """What a conversation has that is in no memory yet; None if it is deleted."""
    conversation = tx.conversations.get(conversation_id)
    if conversation is None:
        return None
    new = history_after(tx, conversation_id, point)
    over = conversation.status != "active" or conversation.updated_at <= tx.now - idle
    left = tx.unit.find(ArchivedTurn, "turn_id", conversation_id=conversation_id) if new else []
    ids = {said.id for said in new}
    rotated = any(turn.has_left and message_of(turn) in ids for turn in left)
    return WaitingMessages(new, rotated, over)


def message_of(turn: ArchivedTurn) -> str:
    """The id of the person's message of an archived turn."""
    return str(json.loads(turn.value).get("user_message", {}).get("message_id", ""))


def _active(tx: Transaction, since: datetime) -> list[Conversation]:
    return tx.unit.all(_ACTIVE_SINCE, since=since)
