"""The store: runs a plain function in one transaction, on a thread of the store."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from concurrent.futures import Future
from functools import cached_property
from typing import Final, TypeVar

from memory_blocks.ports import Clock, Ids
from orchestrator.errors import SCHEMA_NEWER, SCHEMA_OLDER, AnamnesisError
from orchestrator.ops.clock import cut_to_milliseconds
from orchestrator.store import migrations
from orchestrator.store.engine.changes import changes
from orchestrator.store.engine.drivers import Driver, Synchronous, driver_for
from orchestrator.store.engine.lanes import Lane, SharedLane
from orchestrator.store.engine.statements import Connection
from orchestrator.store.engine.unit import Unit
from orchestrator.store.repositories.api.api_keys import ApiKeys
from orchestrator.store.repositories.api.overview import Overview
from orchestrator.store.repositories.api.pages import Pages
from orchestrator.store.repositories.api.replies import Replies
from orchestrator.store.repositories.conversation.audio import Recordings
from orchestrator.store.repositories.conversation.connections import Connections
from orchestrator.store.repositories.conversation.conversations import Conversations
from orchestrator.store.repositories.conversation.frames import Frames
from orchestrator.store.repositories.conversation.leases import Leases
from orchestrator.store.repositories.conversation.messages import Messages
from orchestrator.store.repositories.conversation.meta import Metadata
from orchestrator.store.repositories.conversation.notes import Notes
from orchestrator.store.repositories.letta import Letta
from orchestrator.store.repositories.memory.blocks import Blocks
from orchestrator.store.repositories.memory.facts import Facts
from orchestrator.store.repositories.memory.index import MemoryIndex
from orchestrator.store.repositories.memory.memories import Memories
from orchestrator.store.repositories.memory.work import MemoryWorks
from orchestrator.store.repositories.turn.model_calls import ModelCalls
from orchestrator.store.repositories.turn.runs import Runs
from orchestrator.store.repositories.turn.safety import Safety
from orchestrator.store.repositories.turn.tools import Tools
from orchestrator.store.repositories.turn.traces import Traces
from orchestrator.store.repositories.turn.turns import Turns

T = TypeVar("T")

CONNECTIONS: Final = 4


class Transaction:
    """One transaction: all repositories, at one moment. It is committed as a whole or not at all."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.now = unit.now
        self.ids = unit.ids

    # Each is made when it is first used, because a transaction uses few of them.
    conversations = cached_property(lambda tx: Conversations(tx.unit))
    messages = cached_property(lambda tx: Messages(tx.unit, tx.conversations))
    memories = cached_property(lambda tx: Memories(tx.unit))
    memory_index = cached_property(lambda tx: MemoryIndex(tx.unit, tx.memories.ledger))
    memory_work = cached_property[MemoryWorks](lambda tx: tx.memories.work)
    traces = cached_property(lambda tx: Traces(tx.unit))
    notes = cached_property(lambda tx: Notes(tx.unit))
    tools = cached_property(lambda tx: Tools(tx.unit, tx.conversations))
    audio = cached_property(lambda tx: Recordings(tx.unit))
    meta = cached_property(lambda tx: Metadata(tx.unit))
    frames = cached_property(lambda tx: Frames(tx.unit, tx.conversations))
    turns = cached_property(lambda tx: Turns(tx.unit, tx.conversations))
    connections = cached_property(lambda tx: Connections(tx.unit))
    leases = cached_property(lambda tx: Leases(tx.unit))
    facts = cached_property(lambda tx: Facts(tx.unit))
    blocks = cached_property(lambda tx: Blocks(tx.unit, tx.conversations, tx.memories, tx.facts))
    safety = cached_property(lambda tx: Safety(tx.unit))
    model_calls = cached_property(lambda tx: ModelCalls(tx.unit))
    runs = cached_property(lambda tx: Runs(tx.unit))
    letta = cached_property(lambda tx: Letta(tx.unit))
    pages = cached_property(lambda tx: Pages(tx.unit))
    overview = cached_property(lambda tx: Overview(tx.unit))
    api_keys = cached_property(lambda tx: ApiKeys(tx.unit))
    replies = cached_property(lambda tx: Replies(tx.unit))


class Store:
    """An open database.

    `work` is a plain function, so nothing can be awaited inside a transaction, and no model, socket or other
    task ever keeps one open. If a call is cancelled, its work has either not begun or has ended before
    CancelledError is raised, so what the caller writes next comes after it.

    `settle` is called after each commit that changes what the memories of some conversations rest on, with
    their ids and on another thread than an event loop's. The write is reported when it has returned.
    """

    def __init__(self, driver: Driver, writes: Lane[Transaction], reads: Lane[Transaction]) -> None:
        self.driver = driver
        self.settle: Callable[[Collection[str]], None] | None = None
        self._writes, self._reads = writes, reads

    @classmethod
    def open(
        cls,
        url: str,
        *,
        clock: Clock,
        ids: Ids,
        create: bool = False,
        busy_seconds: float = 5.0,
        synchronous: Synchronous = "FULL",
        connections: int = CONNECTIONS,
    ) -> "Store":
        """Open `sqlite:///FILE` or `postgresql://…`; raises if the schema is not ours.

        With `create`, a missing database is created and an older one is upgraded; it must be writable then.
        Without it, nothing is created or changed.
        """
        driver = driver_for(url, busy_seconds=busy_seconds, synchronous=synchronous)
        if create:
            migrations.upgrade(url)
        schema = migrations.status(url, busy_seconds=busy_seconds)
        if not schema.is_current:
            problem = SCHEMA_NEWER if schema.is_newer else SCHEMA_OLDER
            raise AnamnesisError(problem, found=schema.found or "none", needed=schema.needed)

        def begin(connection: Connection) -> Transaction:
            return Transaction(Unit(connection, driver.dialect, cut_to_milliseconds(clock.now()), ids))

        reads = Lane(driver, begin, writing=False, threads=connections)
        if driver.one_writer:
            return cls(driver, SharedLane(driver, begin), reads)
        return cls(driver, Lane(driver, begin, writing=True, threads=connections), reads)

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run the work in one transaction and commit it, or raise and change nothing."""
        result, changed = await _result_of(self._writes.submit(lambda tx: _performed(tx, work)))
        if changed and self.settle is not None:
            await asyncio.to_thread(self.settle, changed)
        return result

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run the work on a consistent snapshot of the database."""
        return await _result_of(self._reads.submit(work))

    async def try_to_write(self) -> None:
        """Write and delete a row, or raise: reading may work although writing does not, as on a full disk."""
        await self.write(_write_and_delete)

    def write_now(self, work: Callable[[Transaction], T]) -> T:
        """`write` for a caller without an event loop, such as a command."""
        result, changed = self._writes.submit(lambda tx: _performed(tx, work)).result()
        if changed and self.settle is not None:
            self.settle(changed)
        return result

    def read_now(self, work: Callable[[Transaction], T]) -> T:
        """`read` for a caller without an event loop."""
        return self._reads.submit(work).result()

    def changes(self) -> AsyncIterator[None]:
        """Yields whenever this or another process has written."""
        return changes(self.driver)

    async def close(self) -> None:
        """Finish the queued work and close the database."""
        await asyncio.to_thread(self.close_now)

    def close_now(self) -> None:
        """`close` for a caller without an event loop."""
        self._reads.close()
        self._writes.close()


def _performed(tx: Transaction, work: Callable[[Transaction], T]) -> tuple[T, Collection[str]]:
    """The result of the work, and the conversations whose memories must follow it."""
    result = work(tx)
    return result, tx.memory_work.changed


async def _result_of(future: Future[T]) -> T:
    """Wait for a thread. Does what `shield(wrap_future(future))` does, with half of its callbacks."""
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    def wake() -> None:
        if not ended.done():
            ended.set_result(None)

    def report(_: Future[T]) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(wake)

    future.add_done_callback(report)
    try:
        await ended
    except asyncio.CancelledError:
        if not future.cancel():
            running = asyncio.wrap_future(future)
            await asyncio.wait([running])
            if not running.cancelled():
                running.exception()  # mark as retrieved: the caller was cancelled
        raise
    return future.result()


def _write_and_delete(tx: Transaction) -> None:
    tx.unit.connection.execute("INSERT INTO alembic_version VALUES ('a trial')")
    tx.unit.connection.execute("DELETE FROM alembic_version WHERE version_num = 'a trial'")
