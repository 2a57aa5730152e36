"""One turn on embedded defaults, against the bare SQL it needs; and the replay of a long conversation."""

import asyncio
import shutil
import sqlite3
import tempfile
from pathlib import Path
from statistics import quantiles
from time import perf_counter
from typing import Any

from orchestrator import logs
from orchestrator.client import Client
from orchestrator.house import House
from orchestrator.settings import Settings, load
from orchestrator.store.drivers import Sqlite
from orchestrator.transports.in_process import pair
from orchestrator.wire.ids import RandomIds
from orchestrator.wiring import build_house, open_store

SAID = ("I am having a headache", "8", "since Tuesday", "on the left side", "no fever", "I take ibuprofen")
TURNS = 60
CONVERSATIONS = 100
STANZAS = 10_000

Statements = list[tuple[str, Any, bool]]


class Recorder:
    """A connection that also writes down what is asked of it, so that it can be asked again without us."""

    def __init__(self, connection: sqlite3.Connection, statements: Statements) -> None:
        self._connection, self._statements = connection, statements

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        """Ask, and write it down."""
        self._statements.append((sql, parameters, False))
        return self._connection.execute(sql, parameters)

    def cursor(self) -> "Recorder":
        """Itself: only `executemany` is asked of a cursor."""
        return self

    def executemany(self, sql: str, parameters: Any) -> sqlite3.Cursor:
        """Ask for many, and write it down."""
        self._statements.append((sql, parameters, True))
        return self._connection.executemany(sql, parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


async def _client(house: House) -> tuple[Client, "asyncio.Task[None]"]:
    ours, theirs = pair()
    attending = asyncio.create_task(house.attend(theirs, "bench"))
    client = Client(ours, RandomIds())
    async for _ in client.open():
        pass
    return client, attending


async def _turn(client: Client, said: str) -> float:
    began = perf_counter()
    async for _ in client.answer_to(await client.say(said)):
        pass
    return perf_counter() - began


async def _alone(settings: Settings, statements: Statements, before: Path) -> list[float]:
    """One conversation, turn after turn, with what it asks of the database written down."""
    async with build_house(settings).open() as house:
        client, attending = await _client(house)
        for each in SAID:
            await _turn(client, each)
        await house.store.write(lambda tx: None)
        shutil.copytree(settings.data.dir, before)
        statements.clear()
        seconds = [await _turn(client, SAID[at % len(SAID)]) for at in range(TURNS)]
        await client.close()
        await attending
    return seconds


async def _together(settings: Settings) -> tuple[list[float], float]:
    """Many conversations at once, each with a few turns; the latencies and how long all of it took."""
    async with build_house(settings).open() as house:
        clients = [await _client(house) for _ in range(CONVERSATIONS)]

        async def converse(client: Client) -> list[float]:
            return [await _turn(client, said) for said in SAID[:3]]

        began = perf_counter()
        found = await asyncio.gather(*(converse(client) for client, _ in clients))
        took = perf_counter() - began
        for client, attending in clients:
            await client.close()
            await attending
    return [each for seconds in found for each in seconds], took


def _bare(before: Path, statements: Statements) -> float:
    """The same statements, asked of SQLite with nothing in between."""
    connection = sqlite3.connect(before / "anamnesis.db", isolation_level=None, cached_statements=512)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA journal_mode = WAL")
    began = perf_counter()
    for sql, parameters, many in statements:
        if many:
            connection.executemany(sql, parameters)
        else:
            connection.execute(sql, parameters).fetchall()
    took = perf_counter() - began
    connection.close()
    return took


async def _replay(settings: Settings) -> tuple[int, float]:
    """A client that has seen nothing is sent everything."""
    async with build_house(settings).open() as house:
        client, attending = await _client(house)
        conversation_id = client.conversation_id
        while client.seen < STANZAS:
            await _turn(client, SAID[client.seen % len(SAID)])
        last = client.seen
        await client.close()
        await attending
        ours, theirs = pair()
        attending = asyncio.create_task(house.attend(theirs, "bench"))
        again = Client(ours, RandomIds())
        began = perf_counter()
        async for _ in again.open(conversation_id, seen=0):
            pass
        while again.seen < last:
            await again.receive()
        took = perf_counter() - began
        await again.close()
        await attending
    return last, took


def _p(seconds: list[float]) -> str:
    cuts = quantiles(seconds, n=100)
    return f"p50 {cuts[49] * 1000:7.2f} ms   p99 {cuts[98] * 1000:7.2f} ms"


def main() -> None:
    """Measure on databases of our own, in a folder that is thrown away."""
    logs.configure("error")
    statements: Statements = []
    connect = Sqlite.connect

    def recorded(driver: Sqlite, *, writing: bool) -> Any:
        connection = connect(driver, writing=writing)
        return Recorder(connection, statements) if writing else connection

    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        one, many, long = (load(given={"data.dir": str(here / name)}) for name in ("one", "many", "long"))
        open_store(one).close_now()
        setattr(Sqlite, "connect", recorded)  # noqa: B010 - for this one run
        try:
            alone = asyncio.run(_alone(one, statements, here / "before"))
        finally:
            setattr(Sqlite, "connect", connect)  # noqa: B010
        bare, mean = _bare(here / "before", statements) / TURNS, sum(alone) / TURNS
        print(f"one conversation        {_p(alone)}   mean {mean * 1000:.2f} ms")
        print(f"its bare SQL            mean {bare * 1000:7.2f} ms   ({len(statements) // TURNS} statements)")
        print(f"ratio                   {mean / bare:.2f} of the bare SQL (goal: at most 3)")
        together, took = asyncio.run(_together(many))
        rate = len(together) / took
        print(f"{CONVERSATIONS} at once             {_p(together)}   {rate:.0f} turns per second")
        print(f"ratio                   {1 / rate / bare:.2f} of the bare SQL (goal: at most 3)")
        count, seconds = asyncio.run(_replay(long))
        print(
            f"replay                  {count} stanzas in {seconds:.2f} s ({count / seconds:.0f} per second)"
        )
