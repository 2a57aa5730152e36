"""Stores every server stanza with its rows in one transaction, then hands it to the connections.

A connection follows the stored stanzas from the last one it has seen. Replay, live frames and an answer that
runs in another process are therefore the same to it: the stanzas stored after that number, in order.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any, Final, TypeVar

from orchestrator.errors import STORAGE_FULL, AnamnesisError
from orchestrator.ops import faults, telemetry
from orchestrator.ops.logs import get_logger
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.frame_records import record
from orchestrator.store.rows import Conversation, Frame
from orchestrator.wire.codec import encode
from orchestrator.wire.envelope import Envelope, Scalar
from orchestrator.wire.ids import ConversationId
from orchestrator.wire.messages import Body, MemoryTrace

log = get_logger()

T = TypeVar("T")

BATCH: Final = 200
"""How many stanzas are read from the store at a time, and how many are kept for a slow connection."""

FULL_SECONDS: Final = 60.0
"""How long the disk counts as full after a write found no room. A delayed turn is tried again sooner."""


@dataclass(frozen=True, slots=True)
class Fence:
    """The turn and epoch that a worker writes under; the store refuses an epoch that has passed."""

    turn: int
    epoch: int


@dataclass(slots=True)
class ConversationWrite:
    """One transaction on one conversation. Its stanzas are stored and then sent, or neither."""

    tx: Transaction
    conversation: Conversation
    fence: Fence | None = None
    quiet: bool = False
    """Whether this is background work, which does not count as activity of the conversation."""
    traced: list[MemoryTrace] = field(default_factory=list)
    _packets: list[tuple[int, bytes]] = field(default_factory=list)

    @property
    def conversation_id(self) -> ConversationId:
        """The id of the conversation."""
        return ConversationId(self.conversation.id)

    def say(self, body: Body, meta: Mapping[str, Scalar] | None = None) -> None:
        """Write the rows that a stanza implies. The stanza is sent once the transaction is committed."""
        number = self.conversation.last_server_stanza_id - len(self._packets) - 1
        envelope = Envelope(number, self.conversation_id, body, meta or None)
        record(self.tx, self.conversation, envelope)
        self._packets.append((body.TYPE, encode(envelope)))
        if isinstance(body, MemoryTrace):
            self.traced.append(body)

    def close(self) -> list[Frame]:
        """Store the stanzas under their numbers."""
        return self.tx.frames.append_server(
            self.conversation.id,
            self.conversation.last_server_stanza_id - 1,
            self._packets,
            turn=self.fence.turn if self.fence else None,
            epoch=self.fence.epoch if self.fence else None,
            quiet=self.quiet,
        )


@contextmanager
def in_transaction(tx: Transaction, conversation_id: str) -> Iterator[ConversationWrite]:
    """Write stanzas within a transaction of the caller, without the conversation's lease.

    The lock on the conversation's row gives the stanza numbers. Connections get the stanzas as soon as their
    process notices the change of the store.
    """
    write = ConversationWrite(tx, tx.conversations.lock(conversation_id), quiet=True)
    yield write
    write.close()


@dataclass(slots=True, eq=False)
class _Follower:
    """New stanzas for one connection. A slow connection loses the oldest and reads them from the store."""

    fresh: deque[Frame] = field(default_factory=lambda: deque(maxlen=BATCH))
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    must_read_store: bool = True
    known: int = 0
    """The highest stanza number that is known to be stored."""

    def add(self, stored: Sequence[Frame]) -> None:
        """Take in stanzas that have just been stored."""
        if stored:
            self.fresh.extend(stored)
            self.known = max(self.known, -stored[-1].stanza_id)
            self.woken.set()

    def take(self, seen: int) -> list[Frame]:
        """The new stanzas right after number `seen`, up to the first gap; the rest is read from the store.

        Commits on several threads may arrive here in another order than they were made in.
        """
        following = []
        for frame in self.fresh:
            if -frame.stanza_id == seen + 1:
                following.append(frame)
                seen += 1
            elif -frame.stanza_id > seen:
                self.must_read_store = True
        self.fresh.clear()
        return following


class Outbox:
    """The only way to send a numbered stanza."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._found_full_at: float | None = None
        self._followers: defaultdict[str, set[_Follower]] = defaultdict(set)

    @property
    def disk_is_full(self) -> bool:
        """Whether a write found the disk full in the last minute and none succeeded since, for health.

        The report expires: a load balancer may send no messages to a process that reports a full disk, and
        without messages no write would show that there is room again.
        """
        return self._found_full_at is not None and monotonic() - self._found_full_at < FULL_SECONDS

    async def commit(
        self,
        conversation_id: str,
        work: Callable[[ConversationWrite], T],
        fence: Fence | None = None,
        *,
        step: str,
        quiet: bool = False,
    ) -> T:
        """Run `work` in one transaction, then hand its stanzas to the connections.

        If the caller is cancelled meanwhile, both still happen.
        """

        def transact(tx: Transaction) -> tuple[T, list[Frame], list[MemoryTrace]]:
            if fence is not None:
                tx.leases.check_epoch(conversation_id, fence.epoch)
            write = ConversationWrite(tx, tx.conversations.lock(conversation_id), fence, quiet)
            result = work(write)
            stored = write.close()
            faults.point(f"before_{step}_commit")
            return result, stored, write.traced

        async def write_and_hand_over() -> T:
            with telemetry.store_write(), self._noting_failure():
                result, stored, traced = await self.store.write(transact)
            faults.point(f"after_{step}_commit")
            for follower in self._followers.get(conversation_id, ()):
                follower.add(stored)
            for trace in traced:
                telemetry.trace_stored(trace.action)
                log.info(
                    "memory_traced",
                    conversation_id=conversation_id,
                    memory_trace_id=trace.id,
                    memory_id=trace.memory_id,
                    action=trace.action,
                )
            return result

        return await uninterrupted(write_and_hand_over())

    def note_failed_write(self, error: AnamnesisError) -> None:
        """Remember when a failed write found the disk full."""
        if error.problem is STORAGE_FULL:
            self._found_full_at = monotonic()

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        try:
            yield
        except AnamnesisError as error:
            self.note_failed_write(error)
            raise
        self._found_full_at = None

    async def follow(self, conversation_id: str, seen: int) -> AsyncGenerator[Frame, None]:
        """Every stanza after number `seen` (its absolute value), in order, without end."""
        with self._following(conversation_id) as follower:
            while True:
                follower.woken.clear()
                frames = follower.take(seen)
                if not frames and follower.must_read_store:
                    follower.must_read_store = False
                    frames = await self.store.read(partial(_after, conversation_id, seen))
                    follower.must_read_store |= len(frames) == BATCH
                for frame in frames:
                    seen = -frame.stanza_id
                    follower.known = max(follower.known, seen)
                    yield frame
                if not frames and not follower.must_read_store:
                    await follower.woken.wait()

    def wake(self, conversation_id: str, sent: int) -> None:
        """Let connections that know of fewer than `sent` stanzas read the store."""
        for follower in self._followers.get(conversation_id, ()):
            if follower.known < sent:
                follower.must_read_store = True
                follower.woken.set()

    @contextmanager
    def _following(self, conversation_id: str) -> Iterator[_Follower]:
        follower = _Follower()
        self._followers[conversation_id].add(follower)
        try:
            yield follower
        finally:
            self._followers[conversation_id].discard(follower)
            if not self._followers[conversation_id]:
                del self._followers[conversation_id]


def _after(conversation_id: str, seen: int, tx: Transaction) -> list[Frame]:
    return tx.frames.after(conversation_id, seen, limit=BATCH)


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Finish `work` even if the caller is cancelled meanwhile; the cancellation is raised after it."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # retrieve it, or asyncio logs it as never retrieved
        raise
