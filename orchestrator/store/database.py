"""The store: one unit of work is one plain function, run in one transaction, on a thread of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from typing import Final, TypeVar

from memory_blocks.ports import Clock, Ids
from orchestrator.clock import cut_to_milliseconds
from orchestrator.errors import SCHEMA_NEWER, SCHEMA_OLDER, AnamnesisError
from orchestrator.store import migrations
from orchestrator.store.audio import Recordings
from orchestrator.store.blocks import Blocks
from orchestrator.store.changes import changes
from orchestrator.store.connections import Connections
from orchestrator.store.conversations import Conversations
from orchestrator.store.drivers import Driver, Synchronous, driver_for
from orchestrator.store.frames import Frames
from orchestrator.store.lanes import Lane, SharedLane
from orchestrator.store.leases import Leases
from orchestrator.store.letta import Letta
from orchestrator.store.memories import Memories
from orchestrator.store.messages import Messages
from orchestrator.store.meta import Metadata
from orchestrator.store.notes import Notes
from orchestrator.store.safety import Safety
from orchestrator.store.statements import Connection
from orchestrator.store.tools import Tools
from orchestrator.store.traces import Traces
from orchestrator.store.turns import Turns
from orchestrator.store.unit import Unit

T = TypeVar("T")

CONNECTIONS: Final = 4


class Transaction:
    """Everything that can be read and written, at one moment, all of it or nothing."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.now = unit.now
        self.ids = unit.ids
        self.conversations = Conversations(unit)
        self.messages = Messages(unit, self.conversations)
        self.memories = Memories(unit)
        self.traces = Traces(unit)
        self.notes = Notes(unit)
        self.tools = Tools(unit, self.conversations)
        self.audio = Recordings(unit)
        self.meta = Metadata(unit)
        self.frames = Frames(unit, self.conversations)
        self.turns = Turns(unit, self.conversations)
        self.connections = Connections(unit)
        self.leases = Leases(unit)
        self.blocks = Blocks(unit, self.conversations, self.memories)
        self.safety = Safety(unit)
        self.letta = Letta(unit)


class Store:
    """A database that is open.

    `work` is a plain function, so nothing can be awaited inside a transaction: no model, no socket and no
    other task ever keeps one open. A call that is cancelled has either not begun or is over when the
    cancellation is felt, so what its caller writes next comes after it.
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
        """Open `sqlite:///FILE` or `postgresql://…`. Another schema than ours is refused by name.

        Nothing is made or changed, unless `create` asks for it: then a missing or older one is brought up,
        and a file that may not be written to is refused.
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
        return await _outcome(self._writes.submit(work))

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run the work on the database as it stands at one moment."""
        return await _outcome(self._reads.submit(work))

    async def try_to_write(self) -> None:
        """Write something and take it back, or raise: where there is no room one may still read."""
        await self.write(_leave_and_take_back)

    def write_now(self, work: Callable[[Transaction], T]) -> T:
        """`write` for a caller without an event loop, such as a command."""
        return self._writes.submit(work).result()

    def read_now(self, work: Callable[[Transaction], T]) -> T:
        """`read` for a caller without an event loop."""
        return self._reads.submit(work).result()

    def changes(self) -> AsyncIterator[None]:
        """Goes on whenever somebody, perhaps another process, has written."""
        return changes(self.driver)

    async def close(self) -> None:
        """Finish what was queued, then let go of the database."""
        await asyncio.to_thread(self.close_now)

    def close_now(self) -> None:
        """`close` for a caller without an event loop."""
        self._reads.close()
        self._writes.close()


async def _outcome(future: Future[T]) -> T:
    waiting = asyncio.wrap_future(future)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        if not future.cancel():
            await asyncio.wait([waiting])
            if not waiting.cancelled():
                waiting.exception()  # it was told; nobody is left to hear it
        raise


def _leave_and_take_back(tx: Transaction) -> None:
    tx.unit.connection.execute("INSERT INTO alembic_version VALUES ('a trial')")
    tx.unit.connection.execute("DELETE FROM alembic_version WHERE version_num = 'a trial'")
