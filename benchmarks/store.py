"""Rows per second through the store, compared with the same statements on the bare driver.

The statements of the store are recorded once. Then the store and the bare driver run them in alternation,
each on its own copy of the database, with the same durability.
"""

import asyncio
import gc
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import psycopg
from sqlalchemy import make_url

from orchestrator.ops.clock import SystemClock
from orchestrator.store import migrations
from orchestrator.store.engine.database import Store, Transaction
from orchestrator.store.engine.drivers import Synchronous
from orchestrator.store.repositories.memory.memories import NewMemory
from orchestrator.store.rows import Trace
from orchestrator.wire.ids import RandomIds
from tests.servers.postgres import as_psycopg, fresh_database
from tools.servers.postgres import running_postgres

ROUNDS = 50
TRANSACTIONS = 40
MANY = 100
HERE, ASKED, MEMORY = "conv_bench", "msg_bench", "mem_bench"

Work = Callable[[Transaction], None]
Statements = list[tuple[str, Any, bool]]


def fill(tx: Transaction) -> None:
    """Rows that traces and frames refer to."""
    tx.conversations.create("bench", id=HERE)
    tx.messages.append(HERE, "user", "Hello", id=ASKED)
    tx.memories.add(NewMemory(content="likes tea", user_id="bench", id=MEMORY))


def a_trace(tx: Transaction) -> Trace:
    """A trace of typical size."""
    return Trace(
        id=tx.ids.new("trace_"),
        conversation_id=HERE,
        message_id=ASKED,
        memory_id=MEMORY,
        memory_type="profile",
        action="retrieved",
        content="Prefers tea to coffee, most of all in the morning. " * 3,
        confidence=0.5,
        similarity_score=0.5,
        query_prompt="what to drink",
        query_prompt_meta={"terms": 3},
        position_in_results=1,
        actor="recall",
        meta={"label": "active_session", "revision": 7, "digest": "0" * 64, "tags": ["drink", "habit"]},
        created_at=tx.now,
        updated_at=tx.now,
        deleted_at=None,
    )


def a_trace_and_its_frame(tx: Transaction) -> None:
    """What the server writes most often."""
    trace = a_trace(tx)
    tx.traces.add([trace])
    first = tx.conversations.lock(HERE).last_server_stanza_id - 1
    tx.frames.append_server(HERE, first, [(14, trace.content.encode() * 3)])


def many_traces(tx: Transaction) -> None:
    """What a large recall or an import writes."""
    tx.traces.add([a_trace(tx) for _ in range(MANY)])


SCENES: list[tuple[str, Work, int]] = [
    ("a trace and its frame per transaction", a_trace_and_its_frame, 2),
    (f"{MANY} traces per transaction", many_traces, MANY),
]


class Recorder:
    """A connection that also records its statements."""

    def __init__(self, connection: Any, statements: Statements) -> None:
        self._connection, self._statements = connection, statements

    def execute(self, sql: str, parameters: Any = None) -> Any:
        """Execute and record a statement."""
        self._statements.append((sql, parameters, False))
        return self._connection.execute(sql, *(() if parameters is None else (parameters,)))

    def cursor(self) -> "Recorder":
        """Returns itself, because only `executemany` is called on a cursor."""
        return self

    def executemany(self, sql: str, parameters: Any) -> None:
        """Execute and record a statement with many rows."""
        self._statements.append((sql, parameters, True))
        self._connection.cursor().executemany(sql, parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def opened(url: str, synchronous: Synchronous = "FULL") -> Store:
    """A store with one writing connection, like the bare driver."""
    return Store.open(url, clock=SystemClock(), ids=RandomIds(), connections=1, synchronous=synchronous)


def recorded_statements(url: str, work: Work, times: int) -> Statements:
    """All statements that the store runs for that work."""
    statements: Statements = []
    store = opened(url)
    connect = store.driver.connect
    store.driver.connect = lambda *, writing: Recorder(connect(writing=writing), statements)  # type: ignore[method-assign]
    store.write_now(lambda tx: None)
    statements.clear()
    for _ in range(times):
        store.write_now(work)
    store.close_now()
    return statements


async def through_the_store(store: Store, work: Work, times: int) -> float:
    """Seconds for that many transactions, awaited one after the other."""
    started = perf_counter()
    for _ in range(times):
        await store.write(work)
    return perf_counter() - started


async def at_once(store: Store, work: Work, times: int) -> float:
    """Seconds for that many transactions, started at the same time."""
    started = perf_counter()
    await asyncio.gather(*(store.write(work) for _ in range(times)))
    return perf_counter() - started


def through_the_driver(connection: Any, statements: Statements) -> float:
    """Seconds for the same statements on the bare driver."""
    started = perf_counter()
    for sql, parameters, many in statements:
        if many:
            connection.cursor().executemany(sql, parameters)
        else:
            cursor = connection.execute(sql, *(() if parameters is None else (parameters,)))
            if cursor.description:
                cursor.fetchall()
    return perf_counter() - started


async def compare(
    name: str, copies: Callable[[], str], bare: Callable[[str], Any], synchronous: Synchronous = "FULL"
) -> None:
    """Measure both in short alternating rounds, so that other load on the machine slows both equally."""
    for scene, work, rows in SCENES:
        times = max(TRANSACTIONS // rows, 1)
        statements = recorded_statements(copies(), work, times * ROUNDS)
        share = len(statements) // ROUNDS
        store, together, connection = (
            opened(copies(), synchronous),
            opened(copies(), synchronous),
            bare(copies()),
        )
        await store.write(lambda tx: None)
        await together.write(lambda tx: None)
        ours = crowd = driver = 0.0
        gc.disable()
        for turn in range(ROUNDS):
            ours += await through_the_store(store, work, times)
            driver += through_the_driver(connection, statements[turn * share : (turn + 1) * share])
            crowd += await at_once(together, work, times)
        gc.enable()
        connection.close()
        await store.close()
        await together.close()
        done = rows * times * ROUNDS
        print(
            f"  {name}, {scene}: bare {done / driver:,.0f} rows/s,"
            f" store {done / ours:,.0f} ({driver / ours:.2f} of bare),"
            f" {times} started at once {done / crowd:,.0f} ({driver / crowd:.2f})"
        )


def bare_sqlite(url: str, synchronous: Synchronous = "FULL") -> sqlite3.Connection:
    """A connection with the same options as the store's."""
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, cached_statements=512)
    for setting in ("foreign_keys = ON", f"synchronous = {synchronous}", "journal_mode = WAL"):
        connection.execute(f"PRAGMA {setting}")
    return connection


def bare_postgres(url: str) -> Any:
    """A connection with the same options as the store's."""
    return psycopg.connect(as_psycopg(url), autocommit=True)


def filled(url: str) -> None:
    """Create a database with the rows that the scenes need."""
    migrations.upgrade(url)
    store = opened(url)
    store.write_now(fill)
    store.close_now()


@contextmanager
def files() -> Iterator[Callable[[], str]]:
    """Copies of one SQLite file."""
    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder) / "template.db"
        filled(f"sqlite:///{template}")
        numbers = iter(range(1000))

        def copy() -> str:
            path = template.with_name(f"{next(numbers)}.db")
            shutil.copyfile(template, path)
            return f"sqlite:///{path}"

        yield copy


@contextmanager
def databases() -> Iterator[Callable[[], str]]:
    """Copies of one PostgreSQL database; its server does not sync the disk, as in tests."""
    with running_postgres() as server, fresh_database(server) as template, ExitStack() as copies:
        filled(template)
        name = make_url(template).database
        yield lambda: copies.enter_context(fresh_database(server, template=name))


def main() -> None:
    """Measure SQLite with the default durability, SQLite without fsync, and PostgreSQL."""
    with files() as copies:
        asyncio.run(compare("SQLite", copies, bare_sqlite))
        without_fsync = partial(bare_sqlite, synchronous="OFF")
        asyncio.run(compare("SQLite without fsync", copies, without_fsync, "OFF"))
    with databases() as copies:
        asyncio.run(compare("Postgres", copies, bare_postgres))
