"""Every server stanza: stored with the rows it speaks of, then handed to whoever listens.

A connection receives by following the stored stanzas from the last one it has seen. Replay, live frames and
an answer that runs in another process are one thing to it: what is stored after that number, in order.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

from orchestrator import faults, telemetry
from orchestrator.logs import get_logger
from orchestrator.mirror import record
from orchestrator.store.database import Store, Transaction
from orchestrator.store.rows import Conversation, Frame
from orchestrator.wire.codec import encode
from orchestrator.wire.envelope import Envelope, Scalar
from orchestrator.wire.ids import ConversationId
from orchestrator.wire.messages import Body, MemoryTrace

log = get_logger()

T = TypeVar("T")

BATCH: Final = 200
"""How many stanzas are read from the store at a time, and how many may wait for a slow listener."""


@dataclass(frozen=True, slots=True)
class Fence:
    """Under which turn and epoch a worker writes; the store refuses an epoch that has passed."""

    turn: int
    epoch: int


@dataclass(slots=True)
class Page:
    """One conversation's part of one transaction: what is said on it is stored and sent, or neither."""

    tx: Transaction
    conversation: Conversation
    fence: Fence | None = None
    quiet: bool = False
    """Whether it is written beside the turns: then the conversation counts as active no later than before."""
    traced: list[MemoryTrace] = field(default_factory=list)
    _packets: list[tuple[int, bytes]] = field(default_factory=list)

    @property
    def conversation_id(self) -> ConversationId:
        """Whose page it is."""
        return ConversationId(self.conversation.id)

    def say(self, body: Body, meta: Mapping[str, Scalar] | None = None) -> None:
        """Store a stanza and what it means for the tables; it is sent once the transaction is committed."""
        number = self.conversation.last_server_stanza_id - len(self._packets) - 1
        envelope = Envelope(number, self.conversation_id, body, meta or None)
        record(self.tx, self.conversation, envelope)
        self._packets.append((body.TYPE, encode(envelope)))
        if isinstance(body, MemoryTrace):
            self.traced.append(body)

    def close(self) -> list[Frame]:
        """Store what was said, with the numbers it was said under."""
        return self.tx.frames.append_server(
            self.conversation.id,
            self.conversation.last_server_stanza_id - 1,
            self._packets,
            turn=self.fence.turn if self.fence else None,
            epoch=self.fence.epoch if self.fence else None,
            quiet=self.quiet,
        )


@contextmanager
def beside(tx: Transaction, conversation_id: str) -> Iterator[Page]:
    """A page within somebody's own transaction, whoever holds the lease: the row's lock gives the numbers.

    Whoever is connected, wherever that is, is sent it as soon as their house sees that the store has it.
    """
    page = Page(tx, tx.conversations.lock(conversation_id), quiet=True)
    yield page
    page.close()


@dataclass(slots=True, eq=False)
class _Listener:
    """What is fresh for one connection. A slow one loses the oldest of it, and reads those from the store."""

    fresh: deque[Frame] = field(default_factory=lambda: deque(maxlen=BATCH))
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    look: bool = True
    known: int = 0

    def hear(self, said: Sequence[Frame]) -> None:
        """These have just been stored."""
        if said:
            self.fresh.extend(said)
            self.known = max(self.known, -said[-1].stanza_id)
            self.woken.set()

    def take(self, seen: int) -> list[Frame]:
        """The fresh stanzas right after number `seen`, up to the first gap; what lies beyond is in the store.

        Commits on several threads may be heard of in another order than they were made in.
        """
        following = []
        for frame in self.fresh:
            if -frame.stanza_id == seen + 1:
                following.append(frame)
                seen += 1
            elif -frame.stanza_id > seen:
                self.look = True
        self.fresh.clear()
        return following


class Outbox:
    """The one way by which stanzas leave."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._listeners: defaultdict[str, set[_Listener]] = defaultdict(set)

    async def commit(
        self,
        conversation_id: str,
        work: Callable[[Page], T],
        fence: Fence | None = None,
        *,
        step: str,
        quiet: bool = False,
    ) -> T:
        """Do `work` in one transaction, then hand what it said to the listeners.

        Whoever waits may be cancelled; the transaction and the handing over then still happen, both.
        """

        def transact(tx: Transaction) -> tuple[T, list[Frame], list[MemoryTrace]]:
            if fence is not None:
                tx.leases.check_epoch(conversation_id, fence.epoch)
            page = Page(tx, tx.conversations.lock(conversation_id), fence, quiet)
            result = work(page)
            said = page.close()
            faults.point(f"before_{step}_commit")
            return result, said, page.traced

        async def settle() -> T:
            with telemetry.store_write():
                result, said, traced = await self.store.write(transact)
            faults.point(f"after_{step}_commit")
            for listener in self._listeners.get(conversation_id, ()):
                listener.hear(said)
            for trace in traced:
                telemetry.trace_kept(trace.action)
                log.info(
                    "memory_traced",
                    conversation_id=conversation_id,
                    memory_trace_id=trace.id,
                    memory_id=trace.memory_id,
                    action=trace.action,
                )
            return result

        return await uninterrupted(settle())

    async def follow(self, conversation_id: str, seen: int) -> AsyncGenerator[Frame, None]:
        """Every stanza after number `seen` (its absolute value), in order, for as long as anybody asks."""
        with self._listening(conversation_id) as listener:
            while True:
                listener.woken.clear()
                frames = listener.take(seen)
                if not frames and listener.look:
                    listener.look = False
                    frames = await self.store.read(partial(_after, conversation_id, seen))
                    listener.look |= len(frames) == BATCH
                for frame in frames:
                    seen = -frame.stanza_id
                    listener.known = max(listener.known, seen)
                    yield frame
                if not frames and not listener.look:
                    await listener.woken.wait()

    def wake(self, conversation_id: str, sent: int) -> None:
        """The store has `sent` stanzas by now; whoever knows of fewer has to look."""
        for listener in self._listeners.get(conversation_id, ()):
            if listener.known < sent:
                listener.look = True
                listener.woken.set()

    @contextmanager
    def _listening(self, conversation_id: str) -> Iterator[_Listener]:
        listener = _Listener()
        self._listeners[conversation_id].add(listener)
        try:
            yield listener
        finally:
            self._listeners[conversation_id].discard(listener)
            if not self._listeners[conversation_id]:
                del self._listeners[conversation_id]


def _after(conversation_id: str, seen: int, tx: Transaction) -> list[Frame]:
    return tx.frames.after(conversation_id, seen, limit=BATCH)


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Finish `work` even when cancelled meanwhile, and be cancelled after it."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # it was told; nobody is left to hear it
        raise
