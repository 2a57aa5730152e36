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
from orchestrator.outbox import Outbox, Page
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.traces import of_block
from orchestrator.waiting import Waiting

log = get_logger()

PATIENCE: Final = Waiting(silent_seconds=2.0, longest_seconds=2.0)
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
        outbox: Outbox,
        waiting: Waiting = PATIENCE,
        *,
        rest_seconds: float = REST_SECONDS,
    ) -> None:
        self._mirror, self._ledger, self._outbox = mirror, ledger, outbox
        self._waiting, self._rest_seconds = waiting, rest_seconds
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
        """Show these blocks; what somebody changed meanwhile is first taken over or set aside, if not yet.

        That is told at once, as what happens in the background is.
        """
        for _ in range(ROUNDS):
            unseen = await self._asked(
                conversation.id, partial(self._mirror.put, conversation.id, stored, followed)
            )
            if not unseen:
                return
            followed = (*followed, *unseen)
            try:
                take_over = partial(self._take_over, conversation, unseen)
                stored = await self._outbox.commit(conversation.id, take_over, step="adopt")
            except AnamnesisError as error:
                log.warning("mirror_not_followed", conversation_id=conversation.id, error=error.problem.name)
                return

    def _take_over(
        self, conversation: Conversation, changes: Sequence[ForeignChange], page: Page
    ) -> Mapping[Label, StoredBlock]:
        adopted = self._ledger.adopt(SqlBlockStore(page.tx.blocks), conversation, changes)
        for receipt in adopted.receipts:
            page.say(of_block(receipt, page.tx.ids.new("trace_"), conversation.id))
        return adopted.stored

    async def _asked(
        self, conversation_id: str, ask: Callable[[], Coroutine[Any, Any, Sequence[ForeignChange]]]
    ) -> Sequence[ForeignChange]:
        if any(monotonic() < self._rests_until.get(whom, 0.0) for whom in (EVERYBODY, conversation_id)):
            return ()
        asking = asyncio.create_task(ask())
        try:
            if await self._waiting.ends(asking):
                return asking.result()
            log.warning("mirror_failed", conversation_id=conversation_id, error="timed_out")
            self._rest(conversation_id)
        except MirrorUnavailable as error:
            log.warning("mirror_failed", conversation_id=conversation_id, error=error.name)
            if not error.soon:
                self._rest(conversation_id if error.for_one else EVERYBODY)
        finally:
            asking.cancel()
            await asyncio.wait([asking])
        return ()

    def _rest(self, whom: str) -> None:
        now = monotonic()
        resting = {each: until for each, until in self._rests_until.items() if until > now}
        self._rests_until = {**resting, whom: now + self._rest_seconds}
