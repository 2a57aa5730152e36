"""Keeps the copies of the blocks up to date, and adopts or undoes what others change there.

The store is the truth. A mirror that fails or is slow delays a turn by a moment at most. It is then not asked
for a while: for no conversation if it does not answer at all, else not for the conversation that waited.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Any, Final

from memory_blocks.errors import MirrorUnavailable
from memory_blocks.ledger.adopt import adopt
from memory_blocks.ledger.ledger import Ledger
from memory_blocks.mirrors.no_mirror import NoMirror
from memory_blocks.models import Conversation, Label
from memory_blocks.ports import BlockMirror, ForeignChange, StoredBlock
from orchestrator.errors import AnamnesisError
from orchestrator.ops.logs import get_logger
from orchestrator.ops.waiting import Waiting
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.turn.outbox import ConversationWrite, Outbox
from orchestrator.turn.traces import of_block

log = get_logger()

DEFAULT_WAITING: Final = Waiting(silent_seconds=2.0, longest_seconds=2.0)
REST_SECONDS: Final = 10.0
ALL_CONVERSATIONS: Final = ""
ROUNDS: Final = 5
"""How often a copy is written again because it was changed meanwhile; then the next turn does it."""


MayWait = Callable[[str], Awaitable[bool]]


class BlockSync:
    """A mirror of the blocks, kept equal to the store.

    Without `may_wait`, the copies are written after every turn. With it, they are written when it returns
    False for the conversation; the upkeep writes them when the conversation pauses.
    """

    def __init__(
        self,
        mirror: BlockMirror,
        ledger: Ledger,
        outbox: Outbox,
        waiting: Waiting = DEFAULT_WAITING,
        *,
        rest_seconds: float = REST_SECONDS,
        may_wait: MayWait | None = None,
    ) -> None:
        self._mirror, self._ledger, self._outbox = mirror, ledger, outbox
        self._waiting, self._rest_seconds = waiting, rest_seconds
        self._rests_until: dict[str, float] = {}
        self._may_wait = may_wait

    async def foreign_changes(self, conversation_id: str) -> Sequence[ForeignChange]:
        """What others changed in the copies; nothing if the mirror does not answer."""
        return await self._ask(conversation_id, partial(self._mirror.foreign_changes, conversation_id))

    async def changes_during_turn(self, conversation_id: str, *, by_agent: bool) -> Sequence[ForeignChange]:
        """Read what others changed in the copies during a turn. `by_agent`: the agent of this turn may have.

        If the copies are not written after this turn, changes by others can wait for the next one.
        """
        if self._may_wait is not None and not by_agent:
            return ()
        return await self.foreign_changes(conversation_id)

    async def copy_if_due(
        self,
        conversation: Conversation,
        stored: Mapping[Label, StoredBlock],
        adopted: Sequence[ForeignChange] = (),
    ) -> None:
        """Copy these blocks now if somebody changed the copies, or if the copies are too old."""
        if adopted or self._may_wait is None or not await self._may_wait(conversation.id):
            await self.copy(conversation, stored, adopted)

    async def copy(
        self,
        conversation: Conversation,
        stored: Mapping[Label, StoredBlock],
        adopted: Sequence[ForeignChange] = (),
    ) -> None:
        """Copy these blocks to the mirror. `adopted` are the changes there that the store has already.

        Other changes that are found there are adopted or undone first, with traces of their own.
        """
        for _ in range(ROUNDS):
            found = await self._ask(
                conversation.id, partial(self._mirror.put, conversation.id, stored, adopted)
            )
            if not found:
                return
            adopted = (*adopted, *found)
            try:
                work = partial(self._adopt, conversation, found)
                stored = await self._outbox.commit(conversation.id, work, step="adopt")
            except AnamnesisError as error:
                log.warning("mirror_not_followed", conversation_id=conversation.id, error=error.problem.name)
                return

    def _adopt(
        self, conversation: Conversation, changes: Sequence[ForeignChange], write: ConversationWrite
    ) -> Mapping[Label, StoredBlock]:
        adopted = adopt(self._ledger, SqlBlockStore(write.tx.blocks), conversation, changes)
        for receipt in adopted.receipts:
            write.say(of_block(receipt, write.tx.ids.new("trace_"), conversation.id))
        return adopted.stored

    async def _ask(
        self, conversation_id: str, ask: Callable[[], Coroutine[Any, Any, Sequence[ForeignChange]]]
    ) -> Sequence[ForeignChange]:
        if type(self._mirror) is NoMirror:
            return ()
        if any(monotonic() < self._rests_until.get(key, 0.0) for key in (ALL_CONVERSATIONS, conversation_id)):
            return ()
        asking = asyncio.create_task(ask())
        try:
            if await self._waiting.finishes(asking):
                return asking.result()
            log.warning("mirror_failed", conversation_id=conversation_id, error="timed_out")
            self._rest(conversation_id)
        except MirrorUnavailable as error:
            log.warning("mirror_failed", conversation_id=conversation_id, error=error.name)
            if not error.soon:
                self._rest(conversation_id if error.for_one else ALL_CONVERSATIONS)
        finally:
            asking.cancel()
            await asyncio.wait([asking])
        return ()

    def _rest(self, key: str) -> None:
        """Do not ask the mirror for a while: for one conversation, or for all."""
        now = monotonic()
        resting = {each: until for each, until in self._rests_until.items() if until > now}
        self._rests_until = {**resting, key: now + self._rest_seconds}
