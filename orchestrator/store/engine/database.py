"""The store: runs a plain function in one transaction, on a thread of the store."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
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
from orchestrator.store.repositories.api_keys import ApiKeys
from orchestrator.store.repositories.audio import Recordings
from orchestrator.store.repositories.blocks import Blocks
from orchestrator.store.repositories.connections import Connections
from orchestrator.store.repositories.conversations import Conversations
from orchestrator.store.repositories.facts import Facts
from orchestrator.store.repositories.frames import Frames
from orchestrator.store.repositories.leases import Leases
from orchestrator.store.repositories.letta import Letta
from orchestrator.store.repositories.memories import Memories
from orchestrator.store.repositories.memory_index import MemoryIndex
from orchestrator.store.repositories.messages import Messages
from orchestrator.store.repositories.meta import Metadata
from orchestrator.store.repositories.model_calls import ModelCalls
from orchestrator.store.repositories.notes import Notes
from orchestrator.store.repositories.overview import Overview
from orchestrator.store.repositories.pages import Pages
from orchestrator.store.repositories.replies import Replies
from orchestrator.store.repositories.runs import Runs
from orchestrator.store.repositories.safety import Safety
from orchestrator.store.repositories.tools import Tools
from orchestrator.store.repositories.traces import Traces
from orchestrator.store.repositories.turns import Turns

T = TypeVar("T")

CONNECTIONS: Final = 4


class Transaction:
    """One transaction: all repositories, at one moment. It is committed as a whole or not at all."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.now = unit.now
        self.ids = unit.ids
        self.conversations = Conversations(unit)
        self.messages = Messages(unit, self.conversations)
        self.memories = Memories(unit)
        self.memory_index = MemoryIndex(unit, self.memories.ledger)
        self.traces = Traces(unit)
        self.notes = Notes(unit)
        self.tools = Tools(unit, self.conversations)
        self.audio = Recordings(unit)
        self.meta = Metadata(unit)
        self.frames = Frames(unit, self.conversations)
        self.turns = Turns(unit, self.conversations)
        self.connections = Connections(unit)
        self.leases = Leases(unit)
        self.facts = Facts(unit)
        self.blocks = Blocks(unit, self.conversations, self.memories, self.facts)
        self.safety = Safety(unit)
        self.model_calls = ModelCalls(unit)
        self.runs = Runs(unit)
        self.letta = Letta(unit)
        self.pages = Pages(unit)
        self.overview = Overview(unit)
        self.api_keys = ApiKeys(unit)
        self.replies = Replies(unit)


class Store:
    """An open database.

    `work` is a plain function, so nothing can be awaited inside a transaction, and no model, socket or other
    task ever keeps one open. If a call is cancelled, its work has either not begun or has ended before
    CancelledError is raised, so what the caller writes next comes after it.
    """

    def __init__(self, driver: Driver, writes: Lane[Transaction], reads: Lane[Transaction]) -> None:
        self.driver = driver
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
        return await _result_of(self._writes.submit(work))

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run the work on a consistent snapshot of the database."""
        return await _result_of(self._reads.submit(work))

    async def try_to_write(self) -> None:
        """Write and delete a row, or raise: reading may work although writing does not, as on a full disk."""
        await self.write(_write_and_delete)

    def write_now(self, work: Callable[[Transaction], T]) -> T:
        """`write` for a caller without an event loop, such as a command."""
        return self._writes.submit(work).result()

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


async def _result_of(future: Future[T]) -> T:
    waiting = asyncio.wrap_future(future)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        if not future.cancel():
            await asyncio.wait([waiting])
            if not waiting.cancelled():
                waiting.exception()  # mark as retrieved: the caller was cancelled
        raise


def _write_and_delete(tx: Transaction) -> None:
    tx.unit.connection.execute("INSERT INTO alembic_version VALUES ('a trial')")
    tx.unit.connection.execute("DELETE FROM alembic_version WHERE version_num = 'a trial'")
