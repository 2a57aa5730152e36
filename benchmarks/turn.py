"""One turn with default settings, compared with its bare SQL; and the replay of a long conversation."""

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles
from time import perf_counter
from typing import Any

from orchestrator.client.client import Client
from orchestrator.ops import logs
from orchestrator.orchestrator import Orchestrator
from orchestrator.settings import Settings, load
from orchestrator.store.engine.drivers import Sqlite
from orchestrator.transports.in_process import End, pair
from orchestrator.wire.ids import RandomIds
from orchestrator.wiring import build_orchestrator, open_store

MESSAGES = (
    "I am having a headache",
    "8",
    "since Tuesday",
    "on the left side",
    "no fever",
    "I take ibuprofen",
)
TURNS = 60
CONVERSATIONS = 100
STANZAS = 10_000

Statements = list[tuple[str, Any, bool]]


class Recorder:
    """A connection that records its statements, so that they can be run again without our code."""

    def __init__(self, connection: sqlite3.Connection, statements: Statements) -> None:
        self._connection, self._statements = connection, statements

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        """Run and record a statement."""
        self._statements.append((sql, parameters, False))
        return self._connection.execute(sql, parameters)

    def cursor(self) -> "Recorder":
        """Returns itself, because only `executemany` is called on a cursor."""
        return self

    def executemany(self, sql: str, parameters: Any) -> sqlite3.Cursor:
        """Run and record a statement with many sets of parameters."""
        self._statements.append((sql, parameters, True))
        return self._connection.executemany(sql, parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


class Counter:
    """The client's end of a connection, which counts what the server sends."""

    def __init__(self, end: End) -> None:
        self._end, self.frames, self.bytes = end, 0, 0

    async def receive(self) -> bytes | None:
        """The next frame."""
        frame = await self._end.receive()
        if frame is not None:
            self.frames += 1
            self.bytes += len(frame)
        return frame

    def __getattr__(self, name: str) -> Any:
        return getattr(self._end, name)


async def _connect(
    orchestrator: Orchestrator, counted: Callable[[End], Any] = lambda end: end
) -> tuple[Client, "asyncio.Task[None]"]:
    ours, theirs = pair()
    session = asyncio.create_task(orchestrator.serve(theirs, "bench"))
    client = Client(counted(ours), RandomIds())
    async for _ in client.open():
        pass
    return client, session


async def _turn(client: Client, message: str) -> float:
    started = perf_counter()
    async for _ in client.answer_to(await client.say(message)):
        pass
    return perf_counter() - started


async def _alone(settings: Settings, statements: Statements, before: Path) -> list[float]:
    """Run one conversation, turn after turn, and record its statements."""
    async with build_orchestrator(settings).open() as orchestrator:
        counters: list[Counter] = []

        def counted(end: End) -> Counter:
            counters.append(Counter(end))
            return counters[0]

        client, session = await _connect(orchestrator, counted)
        counters[0].frames = counters[0].bytes = 0
        for each in MESSAGES:
            await _turn(client, each)
        sent = counters[0]
        print(
            f"the first {len(MESSAGES)} messages    {sent.bytes} bytes in {sent.frames} frames of the server"
        )
        await orchestrator.store.write(lambda tx: None)
        shutil.copytree(settings.data.dir, before)
        statements.clear()
        seconds = [await _turn(client, MESSAGES[number % len(MESSAGES)]) for number in range(TURNS)]
        await client.close()
        await session
    return seconds


async def _together(settings: Settings) -> tuple[list[float], float]:
    """Run many conversations at once, each with a few turns. Returns each turn's and the total seconds."""
    async with build_orchestrator(settings).open() as orchestrator:
        clients = [await _connect(orchestrator) for _ in range(CONVERSATIONS)]

        async def converse(client: Client) -> list[float]:
            return [await _turn(client, message) for message in MESSAGES[:3]]

        started = perf_counter()
        found = await asyncio.gather(*(converse(client) for client, _ in clients))
        total = perf_counter() - started
        for client, session in clients:
            await client.close()
            await session
    return [each for seconds in found for each in seconds], total


def _bare(before: Path, statements: Statements) -> float:
    """Run the same statements on SQLite, without our code."""
    connection = sqlite3.connect(before / "anamnesis.db", isolation_level=None, cached_statements=512)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA journal_mode = WAL")
    started = perf_counter()
    for sql, parameters, many in statements:
        if many:
            connection.executemany(sql, parameters)
        else:
            connection.execute(sql, parameters).fetchall()
    seconds = perf_counter() - started
    connection.close()
    return seconds


async def _replay(settings: Settings) -> tuple[int, float]:
    """Replay a whole conversation to a client that has seen nothing of it."""
    async with build_orchestrator(settings).open() as orchestrator:
        client, session = await _connect(orchestrator)
        conversation_id = client.conversation_id
        while client.seen < STANZAS:
            await _turn(client, MESSAGES[client.seen % len(MESSAGES)])
        last = client.seen
        await client.close()
        await session
        ours, theirs = pair()
        session = asyncio.create_task(orchestrator.serve(theirs, "bench"))
        second = Client(ours, RandomIds())
        started = perf_counter()
        async for _ in second.open(conversation_id, seen=0):
            pass
        while second.seen < last:
            await second.receive()
        seconds = perf_counter() - started
        await second.close()
        await session
    return last, seconds


def _percentiles(seconds: list[float]) -> str:
    cuts = quantiles(seconds, n=100)
    return f"p50 {cuts[49] * 1000:7.2f} ms   p99 {cuts[98] * 1000:7.2f} ms"


def main() -> None:
    """Measure on temporary databases."""
    logs.configure("error")
    statements: Statements = []
    connect = Sqlite.connect

    def connect_recorded(driver: Sqlite, *, writing: bool) -> Any:
        connection = connect(driver, writing=writing)
        return Recorder(connection, statements) if writing else connection

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        one, many, long = (load(given={"data.dir": str(root / name)}) for name in ("one", "many", "long"))
        open_store(one).close_now()
        setattr(Sqlite, "connect", connect_recorded)  # noqa: B010 - for this one run
        try:
            alone = asyncio.run(_alone(one, statements, root / "before"))
        finally:
            setattr(Sqlite, "connect", connect)  # noqa: B010
        bare, mean = _bare(root / "before", statements) / TURNS, sum(alone) / TURNS
        print(f"one conversation        {_percentiles(alone)}   mean {mean * 1000:.2f} ms")
        print(f"its bare SQL            mean {bare * 1000:7.2f} ms   ({len(statements) // TURNS} statements)")
        print(f"ratio                   {mean / bare:.2f} of the bare SQL (goal: at most 3)")
        together, total = asyncio.run(_together(many))
        rate = len(together) / total
        print(f"{CONVERSATIONS} at once             {_percentiles(together)}   {rate:.0f} turns per second")
        print(f"ratio                   {1 / rate / bare:.2f} of the bare SQL (goal: at most 3)")
        count, seconds = asyncio.run(_replay(long))
        print(
            f"replay                  {count} stanzas in {seconds:.2f} s ({count / seconds:.0f} per second)"
        )
