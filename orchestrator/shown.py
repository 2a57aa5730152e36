"""The blocks as they are shown elsewhere: what others change there is taken over or undone, never unseen.

The store stays the truth: a mirror that fails, or lets one wait, costs a turn a moment and nothing else, and
is then left alone for a while: by all where it does not answer, else by the conversation that had to wait.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Any, Final

from memory_blocks.errors import MirrorUnavailable
from memory_blocks.ledger import Ledger
from memory_blocks.models import Conversation, Label
from memory_blocks.ports import BlockMirror, ForeignChange, StoredBlock
from orchestrator.errors import AnamnesisError
from orchestrator.logs import get_logger
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.database import Store, Transaction
from orchestrator.traces import row_of_block

log = get_logger()

PATIENCE_SECONDS: Final = 2.0
REST_SECONDS: Final = 10.0
EVERYBODY: Final = ""
ROUNDS: Final = 5
"""How often somebody may be quicker than we are, before the next turn sees to it."""


class Shown:
    """A mirror, held to what the store has."""

    def __init__(
        self,
        mirror: BlockMirror,
        ledger: Ledger,
        store: Store,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
        rest_seconds: float = REST_SECONDS,
    ) -> None:
        self._mirror, self._ledger, self._store = mirror, ledger, store
        self._patience_seconds, self._rest_seconds = patience_seconds, rest_seconds
        self._rests_until: dict[str, float] = {}

    async def changes(self, conversation_id: str) -> Sequence[ForeignChange]:
        """What others changed since it was shown last; nothing, where that cannot be told now."""
        return await self._asked(conversation_id, partial(self._mirror.foreign, conversation_id))

    async def show(
        self,
        conversation: Conversation,
        stored: Mapping[Label, StoredBlock],
        followed: Sequence[ForeignChange] = (),
    ) -> None:
        """Show these blocks; what somebody changed meanwhile is taken over or kept aside, unless it was."""
        for _ in range(ROUNDS):
            show = partial(self._mirror.put, conversation.id, stored)
            written_over = [each for each in await self._asked(conversation.id, show) if each not in followed]
            if not written_over:
                return
            followed = written_over
            try:
                stored = await self._store.write(partial(self._take_over, conversation, written_over))
            except AnamnesisError as error:
                log.warning("mirror_not_followed", conversation_id=conversation.id, error=error.problem.name)
                return

    def _take_over(
        self, conversation: Conversation, changes: Sequence[ForeignChange], tx: Transaction
    ) -> Mapping[Label, StoredBlock]:
        tx.conversations.lock(conversation.id)
        adopted = self._ledger.adopt(SqlBlockStore(tx.blocks), conversation, changes)
        tx.traces.add(
            [row_of_block(each, tx.ids.new("trace_"), conversation.id, tx.now) for each in adopted.receipts]
        )
        return adopted.stored

    async def _asked(
        self, conversation_id: str, ask: Callable[[], Coroutine[Any, Any, Sequence[ForeignChange]]]
    ) -> Sequence[ForeignChange]:
        if any(monotonic() < self._rests_until.get(whom, 0.0) for whom in (EVERYBODY, conversation_id)):
            return ()
        try:
            async with asyncio.timeout(self._patience_seconds):
                return await ask()
        except MirrorUnavailable as error:
            log.warning("mirror_failed", conversation_id=conversation_id, error=error.name)
            if not error.soon:
                self._rest(conversation_id if error.for_one else EVERYBODY)
        except TimeoutError:
            log.warning("mirror_failed", conversation_id=conversation_id, error="timed_out")
            self._rest(conversation_id)
        return ()

    def _rest(self, whom: str) -> None:
        now = monotonic()
        resting = {each: until for each, until in self._rests_until.items() if until > now}
        self._rests_until = {**resting, whom: now + self._rest_seconds}
